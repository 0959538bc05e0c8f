/** Maps of the plane with perspective, named target_from_source: nine numbers, row by row. */
import type { Affine, Point } from "./affine";

export type Homography = readonly [number, number, number, number, number, number, number, number, number];

export const STRAIGHT: Homography = [1, 0, 0, 0, 1, 0, 0, 0, 1];

/** Of a point, relative to that of another: less is as good as beyond the horizon. */
const SMALLEST_DEPTH = 0.05;

/** Take nine numbers as they come in a message. */
export function homographyOf(numbers: readonly number[]): Homography {
  if (numbers.length !== 9) throw new Error(`a map has 9 numbers, these are ${numbers.length}`);
  return numbers as unknown as Homography;
}

export function homographyFrom([a, b, c, d, e, f]: Affine): Homography {
  return [a, b, c, d, e, f, 0, 0, 1];
}

/** Return where a point falls; one beyond the horizon far away in its direction, as seen from `middle`. */
export function project(map: Homography, { x, y }: Point, middle: Point = { x, y }): Point {
  const least = SMALLEST_DEPTH * depthOf(map, middle);
  const depth = depthOf(map, { x, y });
  const w = least > 0 ? Math.max(depth, least) : Math.min(depth, least);
  return { x: (map[0] * x + map[1] * y + map[2]) / w, y: (map[3] * x + map[4] * y + map[5]) / w };
}

/** Return the affine map that is the same at a point, and around it to first order. */
export function tangentAt(map: Homography, at: Point): Affine {
  const w = depthOf(map, at);
  const { x, y } = project(map, at);
  const [a, b] = [(map[0] - x * map[6]) / w, (map[1] - x * map[7]) / w];
  const [d, e] = [(map[3] - y * map[6]) / w, (map[4] - y * map[7]) / w];
  return [a, b, x - a * at.x - b * at.y, d, e, y - d * at.x - e * at.y];
}

/** Return the map that does `first` and then `then`. */
export function chain(then: Homography, first: Homography): Homography {
  const entry = (row: number, column: number) =>
    then[3 * row]! * first[column]! + then[3 * row + 1]! * first[3 + column]! + then[3 * row + 2]! * first[6 + column]!;
  return homographyOf([0, 1, 2].flatMap((row) => [0, 1, 2].map((column) => entry(row, column))));
}

/** Return the map back; its scale is any. */
export function inverse([a, b, c, d, e, f, g, h, k]: Homography): Homography {
  return [
    e * k - f * h, c * h - b * k, b * f - c * e,
    f * g - d * k, a * k - c * g, c * d - a * f,
    d * h - e * g, b * g - a * h, a * e - b * d,
  ];
}

function depthOf(map: Homography, { x, y }: Point): number {
  return map[6] * x + map[7] * y + map[8];
}
