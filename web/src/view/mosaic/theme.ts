/** The page's colours for a canvas, which cannot read custom properties itself. */

const NAMES = {
  ground: "--ground",
  surface: "--surface",
  line: "--line",
  ink: "--ink",
  inkSoft: "--ink-soft",
  accent: "--accent",
  frameI: "--frame-i",
  frameJ: "--frame-j",
  good: "--good",
  warn: "--warn",
  bad: "--bad",
  focus: "--focus",
} as const;

export type Colour = keyof typeof NAMES;
export type Theme = Readonly<Record<Colour, string>>;

/** Call with the colours at once, and whenever the page turns light or dark; returns what ends it. */
export function watchTheme(host: HTMLElement, listener: (theme: Theme) => void): () => void {
  // A probe, because a custom property may hold an expression that only a style can resolve.
  const probe = document.createElement("span");
  probe.hidden = true;
  host.append(probe);
  const tell = () => listener(readTheme(probe));
  const system = matchMedia("(prefers-color-scheme: dark)");
  const switched = new MutationObserver(tell);
  system.addEventListener("change", tell);
  switched.observe(document.documentElement, { attributes: true });
  switched.observe(document.body, { attributes: true });
  tell();
  return () => {
    system.removeEventListener("change", tell);
    switched.disconnect();
    probe.remove();
  };
}

function readTheme(probe: HTMLElement): Theme {
  const colours = Object.entries(NAMES).map(([name, property]) => {
    probe.style.color = `var(${property})`;
    return [name, getComputedStyle(probe).color];
  });
  return Object.fromEntries(colours) as Theme;
}
