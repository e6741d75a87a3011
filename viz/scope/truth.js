/** Ground truth of a bundled scene: which object the words at a step speak of. */

/** The object of the mention that covers a token, {box, name, place, state}; null where there is none. */
export function spokenObject(run, step) {
  if (!run?.truth) return null;
  const [begin, end] = [run.tokenStart[step], run.tokenStart[step + 1]];
  const said = run.truth.said.find((mention) => mention.start < end && begin < mention.end);
  return said && said.object !== null ? run.truth.objects[said.object] : null;
}
