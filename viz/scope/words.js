/** Short texts for numbers, tokens and states, the same everywhere on the page. */

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

/** What a map of attention shows. */
export const MAP_NAMES = { attention: "attention", missed: "missed mass", full: "uncompressed attention" };

/** Three significant digits, without exponents for what people read. */
export function short(value) {
  if (value === 0) return "0";
  if (Math.abs(value) < 1e-4) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

/** A token's text as one visible line. */
export function tokenText(run, step) {
  const text = run.tokenText[step] ?? "";
  if (text) return text.replace(/\n/g, "⏎");
  return step === run.steps - 1 && run.stopReason === "stop token" ? "■" : "·";
}

/** The text of a token, or of part of one, so that spaces and line breaks are seen. */
export function visible(text) {
  return text.trim() ? text.replace(/\n/g, "⏎") : text.replace(/ /g, "␣").replace(/\n/g, "⏎") || "·";
}

/** A visual token as a sentence names it; where there are several pictures, with its own. */
export function patchName(run, patch) {
  const { shots } = run;
  return shots.several ? `patch ${patch} of picture ${shots.list[shots.of[patch]].name}` : `patch ${patch}`;
}

/** "word" in quotes, for sentences. */
export const quoted = (run, step) => `“${tokenText(run, step).trim()}”`;

export function statusText(run) {
  const rate = run.rate ? `, ${run.rate < 10 ? run.rate.toFixed(1) : Math.round(run.rate)} tokens/s` : "";
  if (run.stopping && run.live) return "stopping";
  switch (run.status) {
    case "opening":
      return "asking the server for it";
    case "queued":
      return run.place > 1 ? `waiting, place ${run.place} in the queue` : "waiting, next in the queue";
    case "loading":
      return "getting the model and the picture ready";
    case "prefill":
      return "prefill: reading the picture and the prompt";
    case "decoding":
      return `decoding${rate}`;
    case "error":
      return run.error ? `failed: ${run.error.message}` : "failed";
    case "stopped":
      return `stopped after ${run.steps} tokens`;
    default:
      return run.stopReason === "length" ? `${run.steps} tokens, the limit` : `${run.steps} tokens`;
  }
}

const POLICY_TITLES = {
  full: "Uncompressed",
  bacon: "BACON",
  snapkv: "SnapKV",
  oracle: "Prefill oracle",
  exact: "Exact re-selection",
  threshold: "Fixed threshold",
  rcr: "RCR",
  quest: "Quest",
  arkvale: "ArkVale",
  infinigen: "InfiniGen",
};

export const policyTitle = (name) => POLICY_TITLES[name] ?? name;
