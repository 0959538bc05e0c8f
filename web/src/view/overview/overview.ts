/** The overview: the error by answers, maps of all pairs, the table of answers; one of them at a time. */
import "../../style/overview.css";
import type { App } from "../../state/app";
import { make, setAttributes } from "../make";
import { mountAnswers } from "./answers";
import { mountErrors } from "./errors";
import { mountMaps } from "./maps";

type Mount = (host: HTMLElement, app: App) => () => void;

const TABS: readonly { name: string; words: string; mount: Mount }[] = [
  { name: "error", words: "Error", mount: mountErrors },
  { name: "maps", words: "Maps", mount: mountMaps },
  { name: "answers", words: "Answers", mount: mountAnswers },
];

let overviews = 0;

export function mountOverview(host: HTMLElement, app: App): () => void {
  const id = `overview-${overviews++}`;
  const list = make("div", { role: "tablist", "aria-label": "Overview" });
  const panel = make("div", { role: "tabpanel", id: `${id}-panel`, class: "panel" });
  const root = make("div", { class: "overview", "data-testid": "overview" }, list, panel);
  host.append(root);

  let leave = () => {};
  const tabs = TABS.map(({ name, words }, k) => {
    const testid = `tab-${name}`;
    const tab = make("button", { type: "button", role: "tab", id: `${id}-${name}`, "data-testid": testid }, words);
    tab.setAttribute("aria-controls", panel.id);
    tab.addEventListener("click", () => open(k));
    list.append(tab);
    return tab;
  });

  const open = (chosen: number) => {
    // Only what is seen is alive: the others fetch nothing.
    leave();
    panel.replaceChildren();
    tabs.forEach((tab, k) => {
      tab.setAttribute("aria-selected", String(k === chosen));
      setAttributes(tab, { tabindex: k === chosen ? null : -1 });
    });
    panel.setAttribute("aria-labelledby", tabs[chosen].id);
    leave = TABS[chosen].mount(panel, app);
  };

  list.addEventListener("keydown", (event) => {
    const from = tabs.findIndex((tab) => tab === document.activeElement);
    const places: Record<string, number> = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: tabs.length - 1 };
    if (from < 0 || !(event.key in places)) return;
    const to = (places[event.key] + tabs.length) % tabs.length;
    open(to);
    tabs[to].focus();
    event.preventDefault();
    event.stopPropagation();
  });

  open(0);
  return () => {
    leave();
    root.remove();
  };
}
