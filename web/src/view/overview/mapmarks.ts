/** What is marked on a map of all pairs: answered pairs, the pair that is shown large, the pair pointed at. */
import type { AnswerRow, Verdict } from "../../model/messages";
import { isPreparation } from "../../model/table";
import type { MapState } from "./mapstate";

export function drawMarks(
  context: CanvasRenderingContext2D,
  mapState: MapState,
  side: number,
  framesPerCell: number,
): void {
  const { view, placeOf } = mapState;
  const px = side / Math.max(1, view.frames);
  const dot = Math.max(4, Math.min(8, px * 0.5));
  const at = (row: number, column: number): [number, number] => [
    (column + 0.5 - view.column) * px,
    (row + 0.5 - view.row) * px,
  ];
  const bothSides = (i: number, j: number): [number, number][] => {
    const [row, column] = [placeOf.get(i), placeOf.get(j)];
    return row === undefined || column === undefined ? [] : [at(row, column), at(column, row)];
  };

  for (const row of mapState.answers) {
    // The chain is the diagonal: marks would hide it.
    if (isPreparation(row)) continue;
    for (const [x, y] of bothSides(row.i, row.j)) drawMark(context, markOf(row), x, y, dot);
  }
  if (mapState.question !== null) {
    for (const [x, y] of bothSides(mapState.question.i, mapState.question.j)) ring(context, x, y, Math.max(6, px * 0.7));
  }
  if (mapState.pointed !== null) {
    const cellsFrom = (place: number, origin: number) => Math.floor((place - origin) / framesPerCell);
    const first = (place: number, origin: number) => origin + cellsFrom(place, origin) * framesPerCell;
    const size = framesPerCell * px;
    const x = (first(mapState.pointed.column, Math.floor(view.column)) - view.column) * px;
    const y = (first(mapState.pointed.row, Math.floor(view.row)) - view.row) * px;
    frame(context, x, y, Math.max(size, 5));
  }
}

export type Mark = Verdict | "rejected";

function markOf(row: AnswerRow): Mark {
  return row.rejected ? "rejected" : row.verdict;
}

/** Colours that are seen on the ramp's, whatever the theme; the shapes tell them apart too. */
export const MARK_COLOURS: Readonly<Record<Mark, string>> = {
  yes: "#4ade80",
  no: "#ff6b61",
  unsure: "#e5e7eb",
  rejected: "#fbbf24",
};

/** A square for a yes, a cross for a no, a ring for cannot tell, a diamond for what is rejected; on black. */
export function drawMark(context: CanvasRenderingContext2D, mark: Mark, x: number, y: number, size: number): void {
  const r = size / 2;
  context.beginPath();
  if (mark === "yes") context.rect(x - r, y - r, size, size);
  else if (mark === "unsure") context.arc(x, y, r, 0, 2 * Math.PI);
  else if (mark === "rejected") {
    const reach = 1.3 * r;
    for (const [right, down] of [[-1, 0], [0, -1], [1, 0], [0, 1]]) context.lineTo(x + reach * right, y + reach * down);
    context.closePath();
  } else {
    context.moveTo(x - r, y - r);
    context.lineTo(x + r, y + r);
    context.moveTo(x - r, y + r);
    context.lineTo(x + r, y - r);
  }
  const lines = mark === "no" || mark === "unsure";
  context.strokeStyle = "#000";
  context.lineWidth = lines ? 4 : 2;
  context.stroke();
  context.fillStyle = context.strokeStyle = MARK_COLOURS[mark];
  context.lineWidth = 1.75;
  if (lines) context.stroke();
  else context.fill();
}

function ring(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  strokeTwice(context);
}

function frame(context: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  context.beginPath();
  context.rect(x - 0.5, y - 0.5, size + 1, size + 1);
  strokeTwice(context);
}

function strokeTwice(context: CanvasRenderingContext2D): void {
  context.strokeStyle = "#000";
  context.lineWidth = 3.5;
  context.stroke();
  context.strokeStyle = "#fff";
  context.lineWidth = 1.5;
  context.stroke();
}
