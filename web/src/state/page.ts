/** What this page calls itself before the program: the same after a reload, another one in every tab. */

const KEY = "smalti:page";

export function nameOfPage(storage: Storage): string {
  const known = storage.getItem(KEY);
  if (known !== null) return known;
  const numbers = crypto.getRandomValues(new Uint32Array(4));
  const name = [...numbers].map((number) => number.toString(36)).join("-");
  try {
    storage.setItem(KEY, name);
  } catch {
    // Where the browser keeps nothing, a reload makes another page.
  }
  return name;
}
