/** Light, dark, or as the system has it; kept in the browser. */

const THEMES = ["as the system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const KEY = "smalti:theme";

export function restoreTheme(): void {
  const kept = localStorage.getItem(KEY);
  show(THEMES.find((theme) => theme === kept) ?? "as the system");
}

/** Go on to the next theme and return its name. */
export function cycleTheme(): Theme {
  const now = THEMES.find((theme) => theme === document.documentElement.dataset["theme"]) ?? "as the system";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]!;
  localStorage.setItem(KEY, next);
  show(next);
  return next;
}

function show(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
}
