/** Thumbnails: each is fetched when it first comes into sight. */

const NEAR = "200px";

export class Pictures {
  /** @param {import("../client.js").Client} client */
  constructor(client, signal) {
    this.client = client;
    /** @type {WeakMap<HTMLImageElement, AbortController>} */
    this.loading = new WeakMap();
    this.observer = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: NEAR });
    signal.addEventListener("abort", () => this.observer.disconnect());
  }

  /** @param {HTMLImageElement} image the picture of the run that `data-run` names */
  await(image) {
    this.observer.observe(image);
  }

  /** The run is gone, and its picture is wanted no more. */
  forget(image) {
    this.observer.unobserve(image);
    this.loading.get(image)?.abort();
  }

  seen(entries) {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      this.observer.unobserve(target);
      this.load(target).catch(() => {}); // a row without its picture is still a row
    }
  }

  async load(image) {
    const abort = new AbortController();
    this.loading.set(image, abort);
    const { signal } = abort;
    const blob = await this.client.request(`runs/${image.dataset.run}/image`, { signal, as: "blob" });
    image.src = URL.createObjectURL(blob);
    try {
      await image.decode();
    } finally {
      URL.revokeObjectURL(image.src);
    }
  }
}
