/** The refresh rate that a run steers to, as its settings and its edits say. */

/**
 * rho at a step (Infinity: at the end); null where the policy steers to no rate. Other policies carry the
 * setting
 * without following it, and with gain 0 tau stays where it is.
 * @param {{policy: string, settings: object, edits?: {kind: string, step: number, value: number}[]}} run
 */
export function targetRate({ policy, settings, edits = [] }, step = 0) {
  if (policy !== "rcr" || settings.gain === 0 || !Number.isFinite(settings.rho)) return null;
  let rho = settings.rho;
  for (const edit of edits) {
    const applies = edit.kind === "rho" && Number.isInteger(edit.step) && Number.isFinite(edit.value);
    if (applies && edit.step <= step) rho = edit.value;
  }
  return Math.min(Math.max(rho, 0), 1);
}
