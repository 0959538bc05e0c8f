/** The menu of exports: links that the browser downloads. */
import type { ExportName } from "../../state/api";
import type { Application } from "../../state/application";
import { make } from "../make";

const EXPORTS: readonly (readonly [ExportName, string, string])[] = [
  ["landmarks.csv", "landmarks", "all landmarks of all pairs, CSV"],
  ["transforms.json", "transforms", "position of every frame, 3×3 matrices, JSON"],
  ["mosaic.png", "mosaic preview", "the mosaic as it is now, PNG"],
  ["project.zip", "project", "all files except the cache, ZIP"],
];

export function makeExportMenu(app: Application): HTMLElement {
  const links = EXPORTS.map(([name, title, words]) =>
    make(
      "a",
      { href: app.api.exportAddress(name), download: name, "data-export": name },
      make("strong", {}, title),
      make("span", {}, words),
    ),
  );
  const key = make("kbd", { "aria-hidden": "true" }, "D");
  const summary = make("summary", { class: "button" }, make("span", { class: "text" }, "export"), key);
  const menu = make(
    "details",
    { class: "export", "data-testid": "export-menu" },
    summary,
    make("div", { class: "menu" }, ...links),
  );
  const close = () => menu.removeAttribute("open");
  for (const link of links) link.addEventListener("click", close);
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

export function openExportMenu(): void {
  const menu = document.querySelector<HTMLDetailsElement>("details.export");
  if (menu === null) return;
  menu.open = !menu.open;
  if (menu.open) menu.querySelector("a")?.focus();
}
