/** The finished pairs that ship with the page. */

const PREFERRED = [["rcr", "bacon"]];

/** Examples of one picture, as pairs that are worth comparing: {a, b, name}. */
export async function examplePairs(client) {
  const byLabel = new Map();
  for (const run of (await client.list()).runs.filter(({ kind }) => kind === "example")) {
    byLabel.set(run.label, { ...byLabel.get(run.label), [run.policy]: run });
  }
  return [...byLabel].flatMap(([label, found]) =>
    PREFERRED.filter(([a, b]) => found[a] && found[b]).map(([a, b]) => ({
      a: found[a],
      b: found[b],
      name: label.replace(/^\d+-/, "").replace(/-/g, " "),
    })),
  );
}

/** Open a pair where its runs first differ. */
export async function openExample(session, { a, b }) {
  await session.openPair(a.id, b.id, { follow: false });
  session.store.goTo(session.store.compare.stop(0, 1) ?? 1);
}
