/** Which study was shown, so that a reload shows it again; in this window alone. */

const SHOWN_KEY = "rcr-scope-study";

export function remembered() {
  try {
    return sessionStorage.getItem(SHOWN_KEY);
  } catch {
    return null; // storage is switched off
  }
}

export function remember(id) {
  try {
    if (id) sessionStorage.setItem(SHOWN_KEY, id);
    else sessionStorage.removeItem(SHOWN_KEY);
  } catch {
    // storage is switched off: a reload shows the first one
  }
}
