/** Magnified patches around the pointer in both frames, the second one turned to fit the first. */
import type { Affine, Point } from "../../model/affine";
import { apply, compose, IDENTITY, translation } from "../../model/affine";
import { pointOf } from "../../model/pose";
import { other } from "../../model/knowledge";
import type { Side } from "../../model/messages";
import type { Spot } from "../../state/pairview";
import { watch } from "../../state/observable";
import { make } from "../make";
import type { Page } from "../page";
import { paintFrame, strokeVisibly } from "../question/painting";
import { PALETTE } from "../question/palette";
import { prepare, Repainting } from "../question/repainting";

const LEAST_MAGNIFICATION = 4;

export function mountLoupes(hostI: HTMLElement, hostJ: HTMLElement, page: Page): void {
  const { app, pairView } = page;
  const loupes = { i: makeLoupe(hostI), j: makeLoupe(hostJ) };
  const repainting = new Repainting(() => {
    const spots = spotsOf(page);
    for (const side of ["i", "j"] as const) {
      const canvas = loupes[side];
      canvas.hidden = spots === null;
      if (spots === null) continue;
      const onScreen = apply(pairView.screenFrom(side), spots[side]);
      const { width, height } = pairView.panel.value;
      // Never over what it magnifies.
      canvas.classList.toggle("left", onScreen.x > width / 2 && onScreen.y < height / 2);
      paintLoupe(canvas, page, side, spots[side]);
    }
  });
  watch(
    [
      ...[pairView.pointer, pairView.cursor, pairView.hasLoupe, pairView.viewport, pairView.comparison],
      ...[app.question, app.drawing.draft, app.showing.looks.current],
    ],
    () => repainting.request(),
  );
}

/** Return what to magnify in the two frames; null where there is nothing to look at closely. */
function spotsOf({ app, pairView }: Page): Record<Side, Point> | null {
  const knowledge = app.drawing.knowledge.value;
  if (!pairView.hasLoupe.value || knowledge === null || pairView.comparison.value !== "side by side") return null;
  const { open, selected, landmarks } = app.drawing.draft.value;
  const pointer = pairView.pointer.value;
  if (open !== null) {
    // The point that is set stays; its partner follows the pointer.
    const partner = pointer?.side === other(open.side) ? pointer.point : open.partner;
    return both(open.side, pointer?.side === open.side ? pointer.point : open.point, partner);
  }
  const spot: Spot | null = pointer ?? pairView.cursor.value;
  if (spot !== null) return both(spot.side, spot.point, knowledge.predict(spot.side, spot.point).point);
  const landmark = selected === null ? undefined : landmarks[selected];
  return landmark === undefined ? null : { i: pointOf(landmark, "i"), j: pointOf(landmark, "j") };
}

function both(side: Side, point: Point, partner: Point): Record<Side, Point> {
  return side === "i" ? { i: point, j: partner } : { i: partner, j: point };
}

function makeLoupe(host: HTMLElement): HTMLCanvasElement {
  const canvas = make("canvas", { class: "loupe", hidden: true, "aria-hidden": "true" });
  host.append(canvas);
  return canvas;
}

function paintLoupe(canvas: HTMLCanvasElement, { app, pairView }: Page, side: Side, spot: Point): void {
  const question = app.question.value;
  const picture = question === null ? null : app.pictures.ready(question[side]);
  const { context, width, height } = prepare(canvas);
  if (picture === null) return;
  const magnification = Math.max(LEAST_MAGNIFICATION, 2 * pairView.viewport.value.zoom);
  const plane: Affine = side === "i" ? IDENTITY : pairView.pose;
  const middle = apply(plane, spot);
  const aboutSpot = compose(translation(-middle.x, -middle.y), plane);
  paintFrame(context, app.showing.looks.picture(side, picture), compose([magnification, 0, width / 2, 0, magnification, height / 2], aboutSpot));
  context.beginPath();
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]] as const) {
    context.moveTo(width / 2 + 4 * dx, height / 2 + 4 * dy);
    context.lineTo(width / 2 + 16 * dx, height / 2 + 16 * dy);
  }
  strokeVisibly(context, PALETTE[side], 1.5);
}
