/** Playback: moves the step by the clock, within the chosen range, and loops. */

const LONGEST = 250; // ms between two frames that count: in a hidden tab there are none

export function mountPlayer(store, signal) {
  let last = 0;
  let owed = 0;
  const bounds = () => {
    const end = Math.max(store.steps - 1, 0);
    const [from, to] = store.state.range ?? [0, end];
    return [Math.min(from, end), Math.min(to, end)];
  };
  const tick = (now) => {
    if (!store.state.playing || signal.aborted) return;
    owed += (Math.min(now - last, LONGEST) / 1000) * store.state.speed;
    last = now;
    const whole = Math.floor(owed);
    owed -= whole;
    if (whole > 0) {
      const [from, to] = bounds();
      const next = store.state.step + whole;
      store.set({ step: next > to || next < from ? from : next });
    }
    requestAnimationFrame(tick);
  };
  store.add({
    keys: ["playing"],
    draw: ({ playing }) => {
      if (!playing) return;
      last = performance.now();
      owed = 0;
      requestAnimationFrame(tick);
    },
  });
}

/** Start or stop; a start ends Follow, because two things must not move the step. */
export function togglePlay(store) {
  store.set({ playing: !store.state.playing, follow: false });
}
