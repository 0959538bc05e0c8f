/** What is drawn over the frames: outlines with numbers, lines of answers, names of parts, the crosshair. */
import type { AnswerRow } from "../../model/messages";
import { boxesOfParts, centreOf, cornersOf, planeFromSquare, type Quads } from "../../model/mosaic";
import { screenFromPlane, type View } from "../../model/mosaicview";
import type { Point } from "../../model/affine";
import { project } from "../../model/homography";
import type { Polygon, Size } from "../../model/polygon";
import { isPreparation } from "../../model/table";
import { plural } from "../../model/words";
import { rem } from "./rem";
import type { Colour, Theme } from "./theme";


/** What a label covers, CSS px. */
export interface Label {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Plane {
  quads: Quads;
  view: View;
  /** What frames show, in the square of side 1 that each of them is. */
  field: Polygon;
}

function outlineOnScreen({ quads, view, field }: Plane, place: number): Point[] {
  const map = planeFromSquare(cornersOf(quads, place));
  return field.map((corner) => screenFromPlane(view, project(map, corner)));
}

/** Outline a frame; a light line on a dark one is seen on any picture. */
export function drawOutline(
  context: CanvasRenderingContext2D,
  plane: Plane,
  place: number,
  colour: string,
  halo: string,
  dash: readonly number[] = [],
): void {
  context.beginPath();
  for (const { x, y } of outlineOnScreen(plane, place)) context.lineTo(x, y);
  context.closePath();
  context.lineJoin = "round";
  context.setLineDash([...dash]);
  stroke(context, halo, 4.5);
  stroke(context, colour, 2.25);
  context.setLineDash([]);
}

/** Write a frame's number at that corner of it which is farthest from another place; null if the frame is out of view. */
export function drawNumber(
  context: CanvasRenderingContext2D,
  plane: Plane,
  place: number,
  text: string,
  colours: { paper: string; ink: string },
  away: Point,
  screen: Size,
): Label | null {
  const { quads, view } = plane;
  const places = outlineOnScreen(plane, place);
  const [xs, ys] = [places.map(({ x }) => x), places.map(({ y }) => y)];
  if (Math.max(...xs) < 0 || Math.min(...xs) > screen.width) return null;
  if (Math.max(...ys) < 0 || Math.min(...ys) > screen.height) return null;
  const centre = screenFromPlane(view, centreOf(quads, place));
  const from = screenFromPlane(view, away);
  const distance = ({ x, y }: Point) => Math.hypot(x - from.x, y - from.y);
  const corner = places.reduce((best, each) => (distance(each) > distance(best) + 1e-6 ? each : best));
  const letters = setFont(context);
  const [width, height] = [context.measureText(text).width + 0.8 * letters, 1.5 * letters];
  // Outside of the corner, but on the screen.
  const outward = (corner: number, centre: number, px: number) => corner - (corner < centre ? px : 0);
  const x = clamp(outward(corner.x, centre.x, width), 2, screen.width - width - 2);
  const y = clamp(outward(corner.y, centre.y, height), 2, screen.height - height - 2);
  context.fillStyle = colours.paper;
  context.beginPath();
  context.roundRect(x, y, width, height, 4);
  context.fill();
  context.fillStyle = colours.ink;
  context.textBaseline = "middle";
  context.fillText(text, x + 0.4 * letters, y + height / 2 + 0.5);
  return { x, y, width, height };
}

/** Join the centres of answered pairs: a line is a yes, a dashed one a no. */
export function drawAnswers(
  context: CanvasRenderingContext2D,
  { quads, view }: Plane,
  answers: readonly AnswerRow[],
  placeOf: ReadonlyMap<number, number>,
  theme: Theme,
): void {
  // One path a kind, the most telling on top.
  for (const [kind, look] of Object.entries(LINE_STYLES) as [AnswerKind, Look][]) {
    context.beginPath();
    for (const row of answers) {
      if (kindOf(row) !== kind) continue;
      const [i, j] = [placeOf.get(row.i), placeOf.get(row.j)];
      if (i === undefined || j === undefined) continue;
      const from = screenFromPlane(view, centreOf(quads, i));
      const to = screenFromPlane(view, centreOf(quads, j));
      context.moveTo(from.x, from.y);
      context.lineTo(to.x, to.y);
    }
    context.setLineDash(look.dash);
    context.globalAlpha = look.opacity;
    stroke(context, theme[look.colour], look.width);
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

export type AnswerKind = "chain" | "no" | "unsure" | "yes" | "rejected";

interface Look {
  colour: Colour;
  width: number;
  dash: number[];
  opacity: number;
}

/** In the order in which they are drawn. */
export const LINE_STYLES: Readonly<Record<AnswerKind, Look>> = {
  chain: { colour: "inkSoft", width: 1, dash: [], opacity: 0.6 },
  unsure: { colour: "inkSoft", width: 1.25, dash: [2, 4], opacity: 0.8 },
  no: { colour: "bad", width: 1.25, dash: [5, 4], opacity: 0.75 },
  yes: { colour: "good", width: 2, dash: [], opacity: 0.95 },
  rejected: { colour: "warn", width: 2.5, dash: [], opacity: 1 },
};

function kindOf(row: AnswerRow): AnswerKind {
  if (row.rejected) return "rejected";
  if (row.verdict !== "yes") return row.verdict;
  return isPreparation(row) ? "chain" : "yes";
}

/** Name the parts that nothing joins, where there is room for it, beside the labels that are there already. */
export function drawParts(
  context: CanvasRenderingContext2D,
  { quads, view }: Plane,
  parts: readonly number[],
  theme: Theme,
  taken: readonly Label[],
): void {
  const counts: number[] = [];
  parts.forEach((part) => (counts[part] = (counts[part] ?? 0) + 1));
  if (counts.length < 2) return;
  const letters = setFont(context);
  context.textBaseline = "bottom";
  boxesOfParts(quads, parts).forEach((box, part) => {
    const corner = screenFromPlane(view, { x: box.left, y: box.top });
    const width = view.scale * (box.right - box.left);
    const text = [`part ${part + 1} · ${plural(counts[part]!, "frame")}`, `part ${part + 1}`, `${part + 1}`].find(
      (each) => context.measureText(each).width <= Math.max(width, 24),
    );
    if (text === undefined) return;
    const label = { x: corner.x, y: corner.y - 3 - letters, width: context.measureText(text).width, height: letters };
    const x = taken.filter((other) => overlaps(label, other)).reduce((most, { x, width }) => Math.max(most, x + width + 4), corner.x);
    const y = corner.y;
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = theme.ground;
    context.strokeText(text, x, y - 3);
    context.fillStyle = theme.ink;
    context.fillText(text, x, y - 3);
  });
}

/** Mark the place that the keyboard means. */
export function drawCrosshair(context: CanvasRenderingContext2D, { width, height }: Size, theme: Theme): void {
  const [x, y] = [Math.round(width / 2), Math.round(height / 2)];
  context.beginPath();
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
    context.moveTo(x + 4 * dx, y + 4 * dy);
    context.lineTo(x + 14 * dx, y + 14 * dy);
  }
  stroke(context, theme.surface, 4);
  stroke(context, theme.focus, 2);
}

/** `width`: CSS px at 16 px of type. */
function stroke(context: CanvasRenderingContext2D, colour: string, width: number): void {
  context.strokeStyle = colour;
  context.lineWidth = (width * rem()) / 16;
  context.stroke();
}

/** Returns the size of the letters, CSS px. */
function setFont(context: CanvasRenderingContext2D): number {
  const letters = 0.78 * rem();
  context.font = `600 ${letters}px system-ui, sans-serif`;
  return letters;
}

function overlaps(one: Label, other: Label): boolean {
  const across = one.x < other.x + other.width && other.x < one.x + one.width;
  return across && one.y < other.y + other.height && other.y < one.y + one.height;
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
