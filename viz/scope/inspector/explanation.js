/** Why a layer did or did not refresh at a step: one sentence with numbers, from what was recorded. */

import { exchangedByHead } from "../exchanged.js";
import { percent, quoted, short } from "../words.js";

const DECIDES_BY_DRIFT = new Set(["rcr", "threshold"]);
const REASONS = {
  full: "The uncompressed run keeps every entry; there is nothing to decide.",
  bacon: "BACON selects once, at the prefill, and never again.",
  snapkv: "SnapKV selects once, at the prefill, and never again.",
  oracle: "The oracle selects once, by the uncompressed answer's own attention.",
};
const EVERY_STEP = {
  exact: "Exact re-selection scans the whole prefix in every layer of every step",
  quest: "Quest selects pages again in every layer of every step",
  arkvale: "ArkVale selects pages again in every layer of every step",
  infinigen: "InfiniGen selects again in every layer of every step, by a guessed query",
};

/**
 * @param {import("../run.js").Run} run
 * @param {number} step
 * @param {number|"mean"} layer
 */
export function explain(run, step, layer) {
  if (step === 0)
    return `Step 0 is the prefill: it attends to the whole prompt and chooses ${quoted(run, 0)}. Decisions begin at step 1.`;
  return layer === "mean" ? explainStep(run, step) : explainLayer(run, step, layer);
}

function explainStep(run, step) {
  const deciding = run.deciding(step);
  const fired = deciding.filter((layer) => run.fired(step, layer));
  if (!deciding.length)
    return REASONS[run.policy] ?? "No layer evicts anything at this step; there is nothing to decide.";
  const which = fired.length && fired.length < deciding.length ? ` (${layerList(fired)})` : "";
  const tau = DECIDES_BY_DRIFT.has(run.policy) ? ` against tau ${short(run.meanTau(step))}` : "";
  const reason = fired.length ? "" : ` ${REASONS[run.policy] ?? ""}`;
  return `Step ${step}, ${quoted(run, step)}: ${fired.length} of ${deciding.length} layers refreshed${which}; mean drift ${short(run.meanDrift(step))}${tau}.${reason}`;
}

function explainLayer(run, step, layer) {
  if (!run.meta.managed[layer])
    return `Layer ${layer} is passed through, as it has no full attention (but a sliding window, say); no policy selects there.`;
  if (!run.decided(step, layer))
    return `Layer ${layer} keeps its whole prefix. ${REASONS[run.policy] ?? ""}`.trim();
  const drift = run.rows.drift.at(step, layer);
  const fired = run.fired(step, layer);
  const sentence = DECIDES_BY_DRIFT.has(run.policy)
    ? byDrift(run, step, layer, drift, fired)
    : bySchedule(run, layer, drift, fired);
  return `${sentence}${fired ? outcome(run, step, layer, drift) : ""}.`;
}

/** What a refresh came to; a deferred one shows in the selection of the next step. */
function outcome(run, step, layer, drift) {
  if (!run.meta.settings.defer)
    return `; ${exchanges(run, step, layer)}${stillMissed(run, step, layer, drift)}`;
  return step + 1 < run.steps
    ? `; on the next step ${exchanges(run, step + 1, layer)}`
    : "; it acts on the next step";
}

/** A refresh against the threshold, or the reverse, can only come from an edit. */
function byDrift(run, step, layer, drift, fired) {
  const tau = run.rows.tau.at(step, layer);
  const above = drift > tau;
  const relation = `drift ${short(drift)} ${above ? ">" : "≤"} tau ${short(tau)}`;
  const by = above === fired ? "" : ", by an edit";
  return `Layer ${layer} ${fired ? "refreshed" : "kept its selection"}${by}: ${relation}`;
}

function bySchedule(run, layer, drift, fired) {
  if (fired)
    return `${EVERY_STEP[run.policy] ?? `Layer ${layer} refreshed`}; drift before it was ${short(drift)}`;
  return `Layer ${layer} kept its selection at drift ${short(drift)}. ${(REASONS[run.policy] ?? "").replace(/\.$/, "")}`;
}

function exchanges(run, step, layer) {
  const counts = Array.from({ length: run.heads }, (_, head) => exchangedByHead(run, step, layer, head));
  if (counts.every((count) => count === 0)) return `none of ${run.meta.select} entries exchanged`;
  const [first, ...rest] = counts.slice(0, 4).map((count, head) => [count, head]);
  const parts = [`${first[0]} of ${run.meta.select} entries exchanged in KV head ${first[1]}`];
  for (const [count, head] of rest) parts.push(`${count} in KV head ${head}`);
  if (counts.length > 4)
    parts.push(`${counts.slice(4).reduce((sum, count) => sum + count, 0)} in the other ${counts.length - 4}`);
  return parts.join(", ");
}

/** After a refresh, what is missed on the entries that are evicted now; older files do not say. */
function stillMissed(run, step, layer, drift) {
  if (!run.rows.missed) return "";
  const after = run.rows.missed.at(step, layer);
  return `; missed mass ${after < drift ? "fell" : "went"} from ${percent(drift, 1)} to ${percent(after, 1)}`;
}

function layerList(layers) {
  const shown = layers.slice(0, 8).join(", ");
  return `layer${layers.length > 1 ? "s" : ""} ${shown}${layers.length > 8 ? ", …" : ""}`;
}
