/** The field of view: the part of every frame that shows the scene, as a convex outline in pixels of the frame. */
import type { Point } from "./affine";
import type { Polygon, Size } from "./polygon";
import { hullOf } from "./polygon";

export const SQUARE: Polygon = [
  { x: 0, y: 0 },
  { x: 1, y: 0 },
  { x: 1, y: 1 },
  { x: 0, y: 1 },
];

/** Return the outline of the pixels of a mask that show the scene; `showing` goes row by row over a reduced frame. */
export function fieldOf(showing: readonly boolean[], mask: Size, frame: Size): Polygon {
  return fieldInSquare(showing, mask).map(({ x, y }) => ({ x: x * frame.width - 0.5, y: y * frame.height - 0.5 }));
}

/** Return the same outline in the square of side 1 that the frame is. */
export function fieldInSquare(showing: readonly boolean[], mask: Size): Polygon {
  const corners: Point[] = [];
  for (let row = 0; row < mask.height; row++) {
    const line = showing.slice(row * mask.width, (row + 1) * mask.width);
    const [first, last] = [line.indexOf(true), line.lastIndexOf(true)];
    if (first < 0) continue;
    // The outermost pixels of a row are enough: what lies between them is inside.
    for (const y of [row, row + 1]) {
      for (const x of [first, last + 1]) corners.push({ x: x / mask.width, y: y / mask.height });
    }
  }
  return corners.length === 0 ? SQUARE : hullOf(corners);
}
