/** What an image pane says in words: its title, its note, and a patch under the pointer. */

import { MAP_NAMES, patchName, percent, policyTitle, quoted, short } from "../words.js";

/** @param {import("./pane.js").Pane} pane */
export function titleText(pane) {
  const { run, store, preview } = pane;
  if (!run?.steps) return run ? policyTitle(run.policy) : "no run";
  const { step } = pane;
  const title = `${policyTitle(run.policy)} at ${quoted(run, step)}`;
  if (preview.step !== null) return `${title}, preview of step ${step}`;
  if (store.state.step <= step) return title;
  return `${title}, ${run.live ? "so far at" : "ended at"} step ${step}`;
}

/**
 * What the step would have missed, what it misses after the decision, what it sees, and what is not there
 * yet.
 */
export function noteText(pane, found) {
  const { run, step } = pane;
  const { layer } = pane.store.state;
  if (step === 0) return "prefill: attends to the whole prompt; outlined is what is kept for the next step";
  const missed = pane.evicts(step) ? missedText(run, step, layer) : "nothing is evicted here";
  const onImage = layer === "mean" ? run.visualShare(step) : run.rows.mass.at(step, 4 * layer);
  return `${missed}; ${percent(onImage)} on kept patches${onThis(pane)}${lacking(pane, found)}`;
}

/** Of several pictures, how much attention rests on the one that is shown. */
function onThis({ run, shot, sums, store }) {
  if (!sums || store.state.map !== "attention") return "";
  return `, ${percent(sums[run.shots.list.indexOf(shot)])} on this picture`;
}

function missedText(run, step, layer) {
  const drift = `drift ${percent(run.meanDrift(step, layer), 1)}`;
  return run.rows.missed
    ? `${drift}, missed after the decision ${percent(run.meanOfDecisions("missed", step, layer) || 0, 1)}`
    : drift;
}

function lacking({ run, store }, found) {
  const { layer, map } = store.state;
  if (!found) return run.records(map) ? "; the map is on its way" : "; this run has no such map";
  if (!found.exact) return "; mean over layers until the layer's map is here";
  const ofLayers = layer !== "mean" || map !== "attention";
  return run.patchCell && ofLayers ? "; maps of layers are means over neighbouring patches" : "";
}

export function patchText(pane, patch) {
  const name = patchName(pane.run, patch);
  if (!pane.found) return `${name}: the map is not here yet`;
  const state = pane.evicts(pane.step) ? `, ${stateText(pane.memory, patch)}` : "";
  return `${name}: ${MAP_NAMES[pane.store.state.map]} ${short(pane.memory.values[patch])}${state}`;
}

function stateText({ now, before }, patch) {
  if (now[patch] > 0) return before[patch] > 0 ? "kept" : "just in";
  return before[patch] > 0 ? "just out" : "evicted";
}
