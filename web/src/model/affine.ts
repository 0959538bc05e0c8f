/** Affine maps of the plane, named target_from_source: [a, b, c, d, e, f] maps (x, y) to (ax+by+c, dx+ey+f). */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export type Affine = readonly [number, number, number, number, number, number];

export const IDENTITY: Affine = [1, 0, 0, 0, 1, 0];

/** Take six numbers as they come in a message. */
export function affineOf(numbers: readonly number[]): Affine {
  if (numbers.length !== 6) throw new Error(`a map has 6 numbers, these are ${numbers.length}`);
  return numbers as unknown as Affine;
}

export function apply(map: Affine, { x, y }: Point): Point {
  return { x: map[0] * x + map[1] * y + map[2], y: map[3] * x + map[4] * y + map[5] };
}

/** Return the map that does `first` and then `then`. */
export function compose(then: Affine, first: Affine): Affine {
  const [a, b, c, d, e, f] = then;
  const [p, q, r, s, t, u] = first;
  return [a * p + b * s, a * q + b * t, a * r + b * u + c, d * p + e * s, d * q + e * t, d * r + e * u + f];
}

export function determinant([a, b, , d, e]: Affine): number {
  return a * e - b * d;
}

export function invert(map: Affine): Affine {
  const [a, b, c, d, e, f] = map;
  const det = determinant(map);
  if (det === 0) throw new Error("this map has no inverse");
  return [e / det, -b / det, (b * f - c * e) / det, -d / det, a / det, (c * d - a * f) / det];
}

/** Return how many target pixels a source pixel is wide, over all directions. */
export function scaleOf(map: Affine): number {
  return Math.sqrt(Math.abs(determinant(map)));
}

export function translation(x: number, y: number): Affine {
  return [1, 0, x, 0, 1, y];
}

export function shifted(map: Affine, by: Point): Affine {
  return [map[0], map[1], map[2] + by.x, map[3], map[4], map[5] + by.y];
}

export function add(p: Point, q: Point): Point {
  return { x: p.x + q.x, y: p.y + q.y };
}

export function subtract(p: Point, q: Point): Point {
  return { x: p.x - q.x, y: p.y - q.y };
}

export function scaled(p: Point, by: number): Point {
  return { x: p.x * by, y: p.y * by };
}

export function distance(p: Point, q: Point): number {
  return Math.hypot(p.x - q.x, p.y - q.y);
}
