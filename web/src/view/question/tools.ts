/** Small buttons above the frames for what keys and gestures do too. */
import type { Cell } from "../../state/observable";
import { COMPARISONS } from "../../state/pairview";
import { make } from "../make";
import type { Page } from "../page";
import { makeLight } from "./light";

export function makeTools({ app, pairView, laying, curves }: Page): HTMLElement {
  const zoom = make("output", { class: "zoom", "aria-label": "zoom" });
  const couple = makeTool("together", "move the frames together (C)", () => toggle(pairView.isCoupled));
  const loupe = makeTool("magnifier", "magnifier (L)", () => toggle(pairView.hasLoupe));
  const comparisons = COMPARISONS.map((comparison) =>
    makeTool(comparison, `${comparison} (V)`, () => pairView.comparison.set(comparison)),
  );
  pairView.viewport.subscribe((viewport) => (zoom.value = `${Math.round(100 * viewport.zoom)} %`));
  pairView.isCoupled.subscribe((on) => couple.setAttribute("aria-pressed", String(on)));
  pairView.hasLoupe.subscribe((on) => loupe.setAttribute("aria-pressed", String(on)));
  pairView.comparison.subscribe((now) =>
    comparisons.forEach((button, index) => button.setAttribute("aria-pressed", String(COMPARISONS[index] === now))),
  );
  const lay = makeTool("by hand", "by hand: lay one frame over the other (H)", () => laying.toggle());
  laying.move.subscribe(() => lay.setAttribute("aria-pressed", String(laying.isOn)));
  const vessel = makeTool("vessel", "vessel: draw along it in both frames (K)", () => curves.toggle());
  curves.sketch.subscribe(() => vessel.setAttribute("aria-pressed", String(curves.isOn)));
  const go = (by: number) => pairView.goInTime(pairView.active.value, by, app.state.value?.frames ?? 0);
  return make(
    "div",
    { class: "tools", role: "toolbar", "aria-label": "view of the frames" },
    make("div", { class: "group" }, ...comparisons, lay, vessel),
    make(
      "div",
      { class: "group" },
      makeTool("−", "zoom out (-)", () => pairView.zoom(1 / 1.25)),
      zoom,
      makeTool("+", "zoom in (+)", () => pairView.zoom(1.25)),
      makeTool("fit", "show both frames completely (0)", () => pairView.fit()),
      makeTool("1 : 1", "zoom to 100 % (1)", () => pairView.zoomTo(1)),
    ),
    make("div", { class: "group" }, couple, loupe),
    make(
      "div",
      { class: "group" },
      makeTool("◂ time", "earlier: the frame before, on the side that you marked last (comma, or Alt and wheel)", () => go(-1)),
      makeTool("time ▸", "later: the frame after (full stop, or Alt and wheel)", () => go(1)),
    ),
    makeLight(app.showing.looks),
  );
}

function makeTool(text: string, title: string, act: () => void): HTMLButtonElement {
  // What is seen comes first in the name, for those who speak to their machine.
  const label = title.startsWith(text) ? title : `${text}: ${title}`;
  const button = make("button", { type: "button", class: "tool", title, "aria-label": label }, text);
  button.addEventListener("click", act);
  return button;
}

function toggle(cell: Cell<boolean>): void {
  cell.set(!cell.value);
}
