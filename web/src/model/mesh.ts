/** A frame cut into triangles, in each of which a bent map is as good as affine. */
import type { Affine, Point } from "./affine";
import { apply, distance } from "./affine";
import type { Size } from "./polygon";
import { outlineOf } from "./polygon";

export type Triangle = readonly [Point, Point, Point];

/** Px by which a map may be off in a triangle. */
const TOLERANCE = 0.3;
const MOST_CELLS = 20;

/** Places along a side of the frame where a map is looked at. */
const PLACES = 5;

/** Return into how many cells along each side a frame must be cut for a map to be affine in each, to a third of a px. */
export function cellsFor(frame: Size, map: (point: Point) => Point): number {
  const [corner, , opposite] = outlineOf(frame) as [Point, Point, Point, Point];
  const at = (across: number, down: number) => ({
    x: corner.x + across * (opposite.x - corner.x),
    y: corner.y + down * (opposite.y - corner.y),
  });
  const halves = gridOf(frame, 1).map((triangle) => affineThrough(triangle, triangle.map(map)));
  let farthest = 0;
  for (let row = 0; row < PLACES; row++) {
    for (let column = 0; column < PLACES; column++) {
      const [across, down] = [column / (PLACES - 1), row / (PLACES - 1)];
      const place = at(across, down);
      farthest = Math.max(farthest, distance(apply(halves[across + down <= 1 ? 0 : 1]!, place), map(place)));
    }
  }
  // What a map strays from its chord falls with the square of the chord's length.
  return Math.min(MOST_CELLS, Math.max(1, Math.ceil(Math.sqrt(farthest / TOLERANCE))));
}

/** Return the triangles of a frame, two a cell. */
export function gridOf(frame: Size, cells: number): Triangle[] {
  const [corner, , opposite] = outlineOf(frame) as [Point, Point, Point, Point];
  const triangles: Triangle[] = [];
  for (let row = 0; row < cells; row++) {
    for (let column = 0; column < cells; column++) {
      const at = (across: number, down: number): Point => ({
        x: corner.x + ((column + across) / cells) * (opposite.x - corner.x),
        y: corner.y + ((row + down) / cells) * (opposite.y - corner.y),
      });
      triangles.push([at(0, 0), at(1, 0), at(0, 1)], [at(1, 1), at(0, 1), at(1, 0)]);
    }
  }
  return triangles;
}

/** Return the affine map that takes three points to three others. */
export function affineThrough([p, q, r]: Triangle, targets: readonly Point[]): Affine {
  const [to, toQ, toR] = targets as Triangle;
  const [ax, ay, bx, by] = [q.x - p.x, q.y - p.y, r.x - p.x, r.y - p.y];
  const det = ax * by - bx * ay;
  const row = (u: number, v: number): [number, number] => [(u * by - v * ay) / det, (v * ax - u * bx) / det];
  const [a, b] = row(toQ.x - to.x, toR.x - to.x);
  const [d, e] = row(toQ.y - to.y, toR.y - to.y);
  return [a, b, to.x - a * p.x - b * p.y, d, e, to.y - d * p.x - e * p.y];
}
