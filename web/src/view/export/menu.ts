/** The menu of exports: links that the browser downloads. */
import type { ExportName } from "../../state/api";
import { FORMATS } from "../../state/api";
import type { App } from "../../state/app";
import type { Finished } from "../../state/finished";
import { make } from "../make";

const EXPORTS: readonly (readonly [ExportName, string, string])[] = [
  ["landmarks.csv", "landmarks", "all landmarks of all pairs, CSV"],
  ["transforms.json", "transforms", "position of every frame, 3×3 matrices, JSON"],
  ["preview.png", "preview", "the mosaic as it is now, reduced, PNG"],
  ["project.zip", "project", "all files except the cache, ZIP"],
];

export function makeExportMenu(app: App, finished: Finished): HTMLElement {
  const links = EXPORTS.map(([name, title, words]) => makeExportLink(app, name, title, words));
  const formats = makeFormatLinks(app);
  const ofFinished = make("div", {}, make("h3", {}, "the finished mosaic"), ...formats);
  finished.mosaic.subscribe((mosaic) => (ofFinished.hidden = mosaic === null));
  const key = make("kbd", { "aria-hidden": "true" }, "D");
  const summary = make("summary", { class: "button" }, make("span", { class: "text" }, "export"), key);
  const menu = make(
    "details",
    { class: "export", "data-testid": "export-menu" },
    summary,
    make("div", { class: "menu" }, ...links, ofFinished),
  );
  const close = () => menu.removeAttribute("open");
  for (const link of [...links, ...formats]) link.addEventListener("click", close);
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.preventDefault();
    close();
    summary.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (event.target instanceof Node && !menu.contains(event.target)) close();
  });
  return menu;
}

/** Return links to the finished mosaic in every format. */
export function makeFormatLinks(app: App): HTMLAnchorElement[] {
  return FORMATS.map(([name, title, words]) => makeExportLink(app, name, title, words));
}

function makeExportLink({ api }: App, name: ExportName, title: string, words: string): HTMLAnchorElement {
  return make(
    "a",
    { href: api.exportAddress(name), download: name, "data-export": name },
    make("strong", {}, title),
    make("span", {}, words),
  );
}

export function openExportMenu(): void {
  const menu = document.querySelector<HTMLDetailsElement>("details.export");
  if (menu === null) return;
  menu.open = !menu.open;
  if (menu.open) menu.querySelector("a")?.focus();
}
