/** What the table says of a run: one column a fact, with the words for a fact that is missing. */

import { isLive } from "../run.js";
import { targetRate } from "../target.js";
import { percent, policyTitle, short, statusText } from "../words.js";

export const NONE = "–";
const RESIDENT = `${NONE}, all resident`;

/** Settings that a policy reads besides the budget. */
const CONTROLLER = { rcr: ["tau0", "rho", "gain"], threshold: ["tau0"] };

/**
 * @typedef {Object} Column
 * @property {string} id
 * @property {string} head
 * @property {string} help what the column says, as a tooltip of its head
 * @property {string} [term] of the glossary
 * @property {boolean} [number] aligned at the right; the largest come first when sorted
 * @property {function(object): (number|string|null)} sort what rows are ordered by; null goes last
 * @property {function(object): ?string} text null where the run has no such fact
 * @property {function(object): string} [why] a tooltip; of a missing fact, why it is missing
 */

/** @type {Column[]} */
export const COLUMNS = [
  {
    id: "policy",
    term: "policy",
    head: "Policy",
    help: "how the prefix entries that stay in the cache are chosen",
    sort: (run) => policyTitle(run.policy).toLowerCase(),
    text: (run) => policyTitle(run.policy),
  },
  {
    id: "settings",
    term: "budget",
    head: "Settings",
    help: "entries kept per KV head, the window, and the settings that this policy reads",
    sort: (run) => (run.policy === "full" ? null : (run.settings.select ?? null)),
    text: settingsText,
    why: (run) => (isLive(run) ? "known when the run decodes" : "everything is kept: no setting matters"),
  },
  {
    id: "state",
    head: "State",
    help: "how the run stands",
    sort: (run) => stateText(run),
    text: stateText,
    why: (run) => run.error?.hint ?? "",
  },
  {
    id: "steps",
    term: "step",
    head: "Steps",
    help: "generated tokens",
    number: true,
    sort: (run) => run.steps,
    text: (run) => String(run.steps),
  },
  {
    id: "objects",
    term: "objects right",
    head: "Objects",
    help: "objects of the scene that the caption has right",
    number: true,
    sort: (run) => (run.truth ? run.truth.right / run.truth.total : null),
    text: (run) => (run.truth ? `${run.truth.right} of ${run.truth.total}` : null),
    why: (run) => (run.truth ? "" : "graded for the bundled scenes only"),
  },
  {
    id: "rate",
    term: "refresh rate",
    head: "Refresh rate",
    help: "the share of layer-steps that selected anew",
    number: true,
    sort: (run) => (decides(run) ? run.refresh_rate : null),
    text: (run) => (decides(run) ? percent(run.refresh_rate, 1) : null),
    why: noDecision,
  },
  {
    id: "rho",
    term: "rho",
    head: "rho",
    help: "the target of the refresh rate",
    number: true,
    sort: (run) => targetRate(run),
    text: (run) => (targetRate(run) === null ? null : percent(targetRate(run))),
    why: (run) => (targetRate(run) === null ? "this run steers to no rate" : ""),
  },
  {
    id: "drift",
    term: "drift",
    head: "Drift",
    help: "mean drift over the decisions: the share of attention that the selection misses, as estimated",
    number: true,
    sort: (run) => (decides(run) ? run.mean_drift : null),
    text: (run) => (decides(run) ? run.mean_drift.toFixed(3) : null),
    why: noDecision,
  },
  {
    id: "fidelity",
    term: "fidelity",
    head: "Fidelity",
    help: "ROUGE-L of the text to that of the uncompressed run",
    number: true,
    sort: (run) => run.fidelity,
    text: (run) => run.fidelity?.toFixed(2) ?? null,
    why: (run) => (run.fidelity === null ? noFidelity(run) : ""),
  },
  {
    id: "reads",
    term: "reads",
    head: "Reads",
    help: "vectors read from the prefix per KV head and layer-step, at most",
    number: true,
    sort: (run) => (run.policy === "full" ? null : run.reads), // it has nothing to fetch: that is no saving
    text: (run) =>
      run.policy === "full" ? RESIDENT : Number.isFinite(run.reads) ? readsText(run.reads) : null,
    why: readsWhy,
  },
  {
    id: "size",
    head: "Size",
    help: "memory that the run takes on the server; its file is about as large",
    number: true,
    sort: (run) => run.bytes,
    text: (run) => sizeText(run.bytes),
  },
];

export function sizeText(bytes) {
  return bytes < 1e5 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0)} MB`;
}

function readsWhy(run) {
  if (run.policy === "full") return "the whole prefix stays in the cache: nothing is fetched from elsewhere";
  if (!run.full_scan_reads) return "not known";
  const counted = Number.isFinite(run.reads_fetched)
    ? `counted: ${readsText(run.reads_fetched)} fetched from host memory, of ${readsText(run.reads_asked)} asked for; `
    : "";
  return `${counted}a full scan reads ${readsText(run.full_scan_reads)}`;
}

const readsText = (value) => (value < 10 ? short(value) : String(Math.round(value)));

function settingsText({ policy, settings }) {
  if (policy === "full" || !("select" in settings)) return null;
  const said = (names) => names.map((name) => `${name} ${settings[name]}`).join(", ");
  const more = (CONTROLLER[policy] ?? []).filter((name) => name in settings);
  return said(["select", "window"]) + (more.length ? `\n${said(more)}` : "");
}

/** An ended run has its tokens in a column of their own. */
function stateText(run) {
  if (run.status === "stopped") return "stopped";
  if (run.status !== "done") return statusText({ ...run, stopReason: run.stop_reason });
  return run.stop_reason === "length" ? "done, at the limit" : "done";
}

const decides = (run) => run.policy !== "full" && run.steps > 1 && Number.isFinite(run.mean_drift);

function noDecision(run) {
  if (decides(run)) return "";
  if (run.policy === "full") return "nothing is evicted, so nothing is decided";
  return isLive(run) ? "known when the run decodes" : "no decision was taken";
}

function noFidelity(run) {
  if (run.policy === "full") return "this run is uncompressed: others are held against it";
  if (isLive(run)) return "known when the run has ended";
  if (run.status === "error") return "the run failed";
  return "there is no finished uncompressed run of the same picture, prompt and number of tokens";
}

/** A run in a few words, where there is no room for a row. */
export const title = (run) => `${policyTitle(run.policy)}, ${run.label || "run"}`;
