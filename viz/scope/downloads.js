/** Files that the page hands to a person. */

const REVOKE = 10_000; // ms: the browser reads the file some time after the click

/** @param {Blob} blob */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE);
}

/**
 * Save what a route answers, under the name that the server gives it. A plain link could not carry the owner.
 * @param {import("../client.js").Client} client
 */
export async function saveRoute(client, path) {
  const answer = await client.request(path);
  const [, name] = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "") ?? [];
  save(await answer.blob(), name ?? path.split("/").at(-1));
}

/** Rows of numbers and words as CSV; what is missing (null, NaN) stays empty. */
export function asCsv(rows) {
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function cell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** A name for a file: A-Z a-z 0-9 . _ - only. */
export function fileStem(run) {
  const clean = (text) => text.replace(/[^\w.-]+/g, "-").replace(/^[.-]+|[.-]+$/g, "");
  const label = clean(run.label.replace(/\.rcr$/, "").replace(new RegExp(`\\.${clean(run.policy)}$`), ""));
  return `${label || "run"}.${clean(run.policy) || "policy"}`;
}
