/** Paints landmarks, the open point and where its partner is expected, and the cursor. */
import type { Affine, Point } from "../../model/affine";
import { apply } from "../../model/affine";
import { ellipseOf, through } from "../../model/covariance";
import { countedLandmarks, lineThrough, numberOf, togetherWith } from "../../model/curve";
import type { Draft } from "../../model/draft";
import { pointOf } from "../../model/pose";
import type { Knowledge } from "../../model/knowledge";
import { worstOf } from "../../model/tone";
import type { Landmark, Side } from "../../model/messages";
import { traceLine } from "../question/curves";
import { strokeVisibly, typeScale } from "../question/painting";
import { PALETTE } from "../question/palette";

export interface Marking {
  readonly context: CanvasRenderingContext2D;
  readonly screenFromFrame: Affine;
  readonly side: Side;
}

/** Draw all landmarks of a draft in one frame. */
export function paintDraft(marking: Marking, draft: Draft, knowledge: Knowledge): void {
  const { side, screenFromFrame } = marking;
  for (const index of countedLandmarks(draft.landmarks)) paintCurve(marking, draft, index, knowledge);
  draft.landmarks.forEach((landmark, index) => {
    if ((landmark.curve ?? null) !== null) return;
    const colour = PALETTE[knowledge.judgements[index]!.tone];
    const place = apply(screenFromFrame, pointOf(landmark, side));
    paintMark(marking, place, colour, index === draft.selected, String(numberOf(draft.landmarks, index)), !landmark.active);
  });
  const { open } = draft;
  if (open === null) return;
  if (open.side === side) return paintMark(marking, apply(screenFromFrame, open.point), PALETTE.open, true, "", false);
  const { point, covariance } = knowledge.predict(open.side, open.point);
  const middle = apply(screenFromFrame, point);
  const { along, across, angle } = ellipseOf(through(screenFromFrame, covariance));
  marking.context.beginPath();
  marking.context.ellipse(middle.x, middle.y, Math.max(along, 3), Math.max(across, 3), angle, 0, 2 * Math.PI);
  marking.context.setLineDash([6, 4]);
  strokeVisibly(marking.context, PALETTE.open, 1.5);
  marking.context.setLineDash([]);
  paintMark(marking, apply(screenFromFrame, open.partner), PALETTE.open, true, "?", true);
}

/** Draw the line that a vessel was found on, with its landmarks; nothing for a landmark that is on none. */
function paintCurve({ context, side, screenFromFrame }: Marking, draft: Draft, first: number, knowledge: Knowledge): void {
  if ((draft.landmarks[first]!.curve ?? null) === null) return;
  const curve = togetherWith(draft.landmarks, first);
  const points = curve.map((index) => pointOf(draft.landmarks[index]!, side));
  const colour = PALETTE[worstOf(curve.map((index) => knowledge.judgements[index]!)).tone];
  const isSelected = draft.selected !== null && curve.includes(draft.selected);
  traceLine(context, lineThrough(points), screenFromFrame);
  if (!draft.landmarks[first]!.active) context.setLineDash([3, 3]);
  strokeVisibly(context, colour, isSelected ? 2.5 : 1.5);
  context.setLineDash([]);
  for (const point of points) {
    const { x, y } = apply(screenFromFrame, point);
    context.beginPath();
    context.arc(x, y, 2.5 * typeScale(), 0, 2 * Math.PI);
    strokeVisibly(context, colour, 1);
  }
  const { x, y } = apply(screenFromFrame, points[0]!);
  paintLabel(context, String(numberOf(draft.landmarks, first)), { x: x + 8 * typeScale(), y }, colour);
}

/** Draw faintly what the matcher proposes. */
export function paintProposal({ context, screenFromFrame, side }: Marking, landmarks: readonly Landmark[]): void {
  context.save();
  context.globalAlpha = 0.7;
  for (const landmark of landmarks) {
    const { x, y } = apply(screenFromFrame, pointOf(landmark, side));
    context.beginPath();
    context.arc(x, y, 3 * typeScale(), 0, 2 * Math.PI);
    strokeVisibly(context, PALETTE.open, 1);
  }
  context.restore();
}

/** Draw the keyboard's cursor: lines that leave the pixel itself free. */
export function paintCursor({ context, screenFromFrame }: Marking, point: Point): void {
  const scale = typeScale();
  const { x, y } = apply(screenFromFrame, point);
  context.beginPath();
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]] as const) {
    context.moveTo(x + 5 * scale * dx, y + 5 * scale * dy);
    context.lineTo(x + 26 * scale * dx, y + 26 * scale * dy);
  }
  strokeVisibly(context, PALETTE.cursor, 2);
}

function paintMark(
  { context }: Marking,
  { x, y }: Point,
  colour: string,
  isSelected: boolean,
  label: string,
  isHollow: boolean,
): void {
  const scale = typeScale();
  const radius = (isSelected ? 11 : 8) * scale;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  if (isHollow) context.setLineDash([3, 3]);
  strokeVisibly(context, colour, isSelected ? 2.5 : 1.75);
  context.setLineDash([]);
  // Four ticks point at the place and leave it free.
  context.beginPath();
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]] as const) {
    context.moveTo(x + 2.5 * scale * dx, y + 2.5 * scale * dy);
    context.lineTo(x + radius * dx, y + radius * dy);
  }
  strokeVisibly(context, colour, isSelected ? 1.5 : 1);
  if (label !== "") paintLabel(context, label, { x: x + radius + 4 * scale, y: y - radius * 0.7 }, colour);
}

function paintLabel(context: CanvasRenderingContext2D, label: string, { x, y }: Point, colour: string): void {
  const scale = typeScale();
  context.font = `600 ${12 * scale}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 4 * scale;
  context.strokeStyle = "rgb(0 0 0 / 0.7)";
  context.strokeText(label, x, y);
  context.fillStyle = colour;
  context.fillText(label, x, y);
}
