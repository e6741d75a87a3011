/** Puts the Scope together and onto the page. */

import { fromFragment, toFragment } from "./address.js";
import { mountCaptions } from "./captions.js";
import { buildBridge } from "./bridge.js";
import { make } from "./dom.js";
import { examplePairs, openExample } from "./examples.js";
import { mountHelp } from "./help.js";
import { mountImages } from "./images/images.js";
import { mountInspector } from "./inspector/inspector.js";
import { listenForKeys } from "./keys.js";
import { completeForm } from "./names.js";
import { mountPlayer } from "./player.js";
import { observe } from "./probe.js";
import { listenForTerms } from "./rooms.js";
import { theSession } from "./session.js";
import { mountSharing } from "./sharing.js";
import { mountSkip } from "./skip.js";
import { mountStatus } from "./status.js";
import { mountTable } from "./table.js";
import { mountTimelines } from "./timelines/timelines.js";
import { mountTour } from "./tour.js";
import { mountTransport } from "./transport.js";
import { mountViewBar } from "./viewbar.js";
import { mountWelcome } from "./welcome.js";

const ADDRESS_EVERY = 350; // ms: browsers take at most a hundred changes of the address in 30 s

/**
 * Build the Scope inside an element. Called again for a new element (the page was drawn anew), it takes the
 * place of
 * the earlier one.
 * @param {HTMLElement} element
 */
export function mountScope(element) {
  window.rcrScopeAbort?.abort();
  const abort = new AbortController();
  window.rcrScopeAbort = abort;
  const ours = theSession();
  ours.store.views.clear();
  const parts = {};
  const place = (name) => make("div", { class: `scope-${name}` });
  const [notice, transport, captions, viewbar, images, inspector, timelines, tables] = [
    "notices",
    "transport",
    "captions",
    "view",
    "images",
    "inspector",
    "lines",
    "tables",
  ].map(place);
  const upper = make("div", { class: "scope-upper" }, viewbar, images);
  const lower = make("div", { class: "scope-lower" }, timelines, tables);
  const middle = make("div", { class: "scope-middle" }, upper, inspector, lower);
  element.replaceChildren(transport, notice, captions, middle);
  element.classList.add("scope");
  mountStatus(notice, ours);
  mountWelcome(notice, ours, element, parts);
  mountTransport(transport, ours, parts);
  mountCaptions(captions, ours);
  mountViewBar(viewbar, ours, parts);
  parts.zoomBy = mountImages(images, ours.store).zoomBy;
  mountInspector(inspector, ours.store);
  mountTimelines(timelines, ours.store, abort.signal);
  mountTable(tables, ours.store);
  mountPlayer(ours.store, abort.signal);
  parts.help = mountHelp(element);
  parts.tour = tourOf(ours, mountTour(element, ours));
  mountSharing(transport, ours, parts);
  listenForKeys(element, ours, parts, abort.signal);
  listenForTerms(abort.signal);
  mountSkip(element, abort.signal);
  completeForm(abort.signal);
  redrawWith(ours.store, element, abort.signal);
  keepAddress(ours, abort.signal);
  buildBridge(ours, parts);
  observe(ours);
}

/** The tour goes over the first finished example, whatever was open before. */
function tourOf(ours, start) {
  return async () => {
    try {
      const [pair] = await examplePairs(ours.client);
      if (!pair)
        return ours.say(
          "there is no finished example to tour",
          "press Run to make a run of your own",
          "info",
        );
      await openExample(ours, pair);
      return start();
    } catch (error) {
      return ours.fail(error);
    }
  };
}

/** Redraw when the theme, the size or the display's pixel ratio changes. */
function redrawWith(store, element, signal) {
  const theme = new MutationObserver(() => store.signal("theme"));
  theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  const size = new ResizeObserver(() => store.signal("size"));
  size.observe(element);
  signal.addEventListener("abort", () => (theme.disconnect(), size.disconnect()));
  const ratio = () => {
    const query = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    query.addEventListener("change", () => (store.signal("size"), ratio()), { once: true, signal });
  };
  ratio();
}

/** The address always names the view; a view in the address is opened. */
function keepAddress(ours, signal) {
  const { store, client } = ours;
  const open = (address) => {
    const { a, b, keys, view } = fromFragment(new URL(address).hash);
    for (const [id, key] of keys) client.keys.set(id, key);
    if (a || b) ours.openPair(a, b, view);
  };
  let timer = 0;
  const forget = store.listen((state) => {
    timer ||= setTimeout(() => {
      timer = 0; // not put off by the next frame: while a run decodes there is always one
      if (signal.aborted) return;
      const fragment = toFragment(state, client.keys);
      if (fragment !== location.hash)
        history.replaceState(history.state, "", location.pathname + location.search + fragment);
    }, ADDRESS_EVERY);
  });
  signal.addEventListener("abort", forget);
  window.addEventListener("hashchange", ({ newURL }) => open(newURL), { signal });
  open(location.href);
}
