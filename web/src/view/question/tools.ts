/** Small buttons above the frames for what keys and gestures do too. */
import type { Cell } from "../../state/observable";
import { COMPARISONS } from "../../state/sight";
import { make } from "../make";
import type { Page } from "../page";

export function makeTools({ sight }: Page): HTMLElement {
  const zoom = make("output", { class: "zoom", "aria-label": "zoom" });
  const couple = makeTool("together", "move the frames together (C)", () => toggle(sight.isCoupled));
  const loupe = makeTool("loupe", "loupe (L)", () => toggle(sight.hasLoupe));
  const comparisons = COMPARISONS.map((comparison) =>
    makeTool(comparison, `${comparison} (V)`, () => sight.comparison.set(comparison)),
  );
  sight.viewport.subscribe((viewport) => (zoom.value = `${Math.round(100 * viewport.zoom)} %`));
  sight.isCoupled.subscribe((on) => couple.setAttribute("aria-pressed", String(on)));
  sight.hasLoupe.subscribe((on) => loupe.setAttribute("aria-pressed", String(on)));
  sight.comparison.subscribe((now) =>
    comparisons.forEach((button, index) => button.setAttribute("aria-pressed", String(COMPARISONS[index] === now))),
  );
  return make(
    "div",
    { class: "tools", role: "toolbar", "aria-label": "looking at the frames" },
    make("div", { class: "group" }, ...comparisons),
    make(
      "div",
      { class: "group" },
      makeTool("−", "smaller (-)", () => sight.zoom(1 / 1.25)),
      zoom,
      makeTool("+", "larger (+)", () => sight.zoom(1.25)),
      makeTool("fit", "both frames whole (0)", () => sight.fit()),
      makeTool("1 : 1", "100 % (1)", () => sight.zoomTo(1)),
    ),
    make("div", { class: "group" }, couple, loupe),
  );
}

function makeTool(text: string, title: string, act: () => void): HTMLButtonElement {
  const button = make("button", { type: "button", class: "tool", title, "aria-label": title }, text);
  button.addEventListener("click", act);
  return button;
}

function toggle(cell: Cell<boolean>): void {
  cell.set(!cell.value);
}
