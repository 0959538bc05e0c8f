/** Vessels that are drawn along: the strokes on the frames, and the buttons meanwhile. */
import type { Affine, Point } from "../../model/affine";
import { apply } from "../../model/affine";
import type { Side } from "../../model/messages";
import type { Curves } from "../../state/curves";
import { watch } from "../../state/observable";
import { make } from "../make";
import { makeKeyButton } from "../shell/button";
import { strokeVisibly, typeScale } from "./painting";
import { PALETTE } from "./palette";

/** Draw the stroke of a frame, and where the other frame's stroke is expected in it. */
export function paintSketch(context: CanvasRenderingContext2D, curves: Curves, side: Side, screenFromFrame: Affine): void {
  const sketch = curves.sketch.value;
  if (sketch === null) return;
  const stroke = sketch.strokes[side];
  traceLine(context, stroke, screenFromFrame);
  strokeVisibly(context, PALETTE.open, 2);
  for (const corner of stroke.length < 30 ? stroke : []) {
    const { x, y } = apply(screenFromFrame, corner);
    context.beginPath();
    context.arc(x, y, 3 * typeScale(), 0, 2 * Math.PI);
    strokeVisibly(context, PALETTE.open, 1);
  }
  if (stroke.length > 0) return;
  traceLine(context, curves.expected(side), screenFromFrame);
  context.setLineDash([6, 4]);
  strokeVisibly(context, PALETTE.open, 1.5);
  context.setLineDash([]);
}

/** Make an open line the current path, in CSS pixels. */
export function traceLine(context: CanvasRenderingContext2D, line: readonly Point[], screenFromFrame: Affine): void {
  context.beginPath();
  for (const point of line) {
    const { x, y } = apply(screenFromFrame, point);
    context.lineTo(x, y);
  }
}

export function makeCurvesBar(curves: Curves): HTMLElement {
  const find = makeKeyButton({ text: "find the vessel", key: "Enter", testid: "find-vessel", act: () => curves.finish() });
  const undo = makeKeyButton({ text: "undo", key: "z", class: "quiet", act: () => void curves.undo() });
  const cancel = makeKeyButton({ text: "cancel", key: "Escape", class: "quiet", act: () => void curves.end() });
  const bar = make(
    "div",
    { class: "laying-bar", role: "toolbar", "aria-label": "vessel drawn along", "data-testid": "drawing-vessel" },
    find,
    undo,
    cancel,
  );
  watch([curves.sketch, curves.isTracing], () => {
    bar.hidden = !curves.isOn;
    find.disabled = undo.disabled = curves.isTracing.value || curves.sketch.value?.first == null;
  });
  return bar;
}
