/** Where the frames lie on the plane that is drawn: their corners, in motion, and which of them show a point. */
import type { Point } from "./affine";
import { homographyOf, inverse, project } from "./homography";
import type { Homography } from "./homography";
import { straighten } from "./lens";
import type { LensNumbers, LiveMosaic } from "./messages";
import { depthAt, type Mask } from "./mosaicmask";
import { shiftsOfParts } from "./mosaicparts";
import type { Size } from "./polygon";
import { outlineOf } from "./polygon";
import { plural } from "./words";

/** The corners of frames on the plane, eight numbers a frame: x and y in turn, clockwise from the top left. */
export type Quads = Float64Array;

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Find the frames' corners, and put the parts that nothing joins apart; the largest stays where it is. */
export function layOut(mosaic: LiveMosaic, size: Size, lens: LensNumbers | null): Quads {
  const middle = { x: (size.width - 1) / 2, y: (size.height - 1) / 2 };
  const corners = outlineOf(size).map((corner) => straighten(lens, corner));
  const quads = Float64Array.from(
    mosaic.parts.flatMap((_, k) => {
      const map = homographyOf(mosaic.maps.slice(9 * k, 9 * k + 9));
      return corners.map((corner) => project(map, corner, middle)).flatMap(({ x, y }) => [x, y]);
    }),
  );
  const shifts = shiftsOfParts(boxesOfParts(quads, mosaic.parts));
  return quads.map((entry, k) => {
    const shift = shifts[mosaic.parts[k >> 3]];
    return entry + (k % 2 === 0 ? shift.x : shift.y);
  });
}

/** The places of frames that depend on a single match; none while that holds for most frames. */
export function unconfirmedPlaces({ confirmed }: LiveMosaic): number[] {
  const places = confirmed.flatMap((each, place) => (each ? [] : [place]));
  return 2 * places.length > confirmed.length ? [] : places;
}

/** Which frames nothing confirms, in a sentence; null where all are confirmed. */
export function describeUnconfirmed(mosaic: LiveMosaic): string | null {
  const count = mosaic.confirmed.filter((each) => !each).length;
  if (count === 0) return null;
  if (unconfirmedPlaces(mosaic).length === 0) return "Most frames depend on a single match: no other confirms it";
  return `Dashed: ${plural(count, "frame depends", "frames depend")} on a single match`;
}

/** The boxes of the parts, in their order. */
export function boxesOfParts(quads: Quads, parts: readonly number[]): Box[] {
  const boxes: Box[] = [];
  parts.forEach((part, k) => {
    boxes[part] = join(boxes[part], boxOf(quads, k));
  });
  return boxes;
}

/** The box around all frames; there is at least one. */
export function boxOfAll(quads: Quads): Box {
  let box: Box | undefined;
  for (let k = 0; 8 * k < quads.length; k++) box = join(box, boxOf(quads, k));
  if (box === undefined) throw new Error("a mosaic without frames has no bounds");
  return box;
}

export function cornersOf(quads: Quads, k: number): Point[] {
  return [0, 2, 4, 6].map((corner) => ({ x: quads[8 * k + corner], y: quads[8 * k + corner + 1] }));
}

/** Where a frame's middle lies. */
export function centreOf(quads: Quads, k: number): Point {
  return project(planeFromSquare(cornersOf(quads, k)), { x: 0.5, y: 0.5 });
}

/** The map to a quad's corners from those of a square of side 1, clockwise from (0, 0); affine for one that is no quad. */
export function planeFromSquare([p, q, r, s]: readonly Point[]): Homography {
  const [dx1, dx2, dx3] = [q!.x - r!.x, s!.x - r!.x, p!.x - q!.x + r!.x - s!.x];
  const [dy1, dy2, dy3] = [q!.y - r!.y, s!.y - r!.y, p!.y - q!.y + r!.y - s!.y];
  const determinant = dx1 * dy2 - dx2 * dy1;
  const g = (dx3 * dy2 - dx2 * dy3) / determinant;
  const h = (dx1 * dy3 - dx3 * dy1) / determinant;
  // Depths are positive at all corners of what a camera sees.
  if (!(1 + g > 0.01 && 1 + h > 0.01 && 1 + g + h > 0.01)) {
    const [ax, ay] = [(q!.x - p!.x + r!.x - s!.x) / 2, (q!.y - p!.y + r!.y - s!.y) / 2];
    const [bx, by] = [(s!.x - p!.x + r!.x - q!.x) / 2, (s!.y - p!.y + r!.y - q!.y) / 2];
    const [x, y] = [(p!.x + q!.x + r!.x + s!.x) / 4, (p!.y + q!.y + r!.y + s!.y) / 4];
    return [ax, bx, x - (ax + bx) / 2, ay, by, y - (ay + by) / 2, 0, 0, 1];
  }
  return [
    q!.x - p!.x + g * q!.x, s!.x - p!.x + h * s!.x, p!.x,
    q!.y - p!.y + g * q!.y, s!.y - p!.y + h * s!.y, p!.y,
    g, h, 1,
  ];
}

/** Px² of the plane that a frame covers. */
export function areaOf(quads: Quads, k: number): number {
  const [p, q, r, s] = cornersOf(quads, k);
  return Math.abs((r.x - p.x) * (s.y - q.y) - (s.x - q.x) * (r.y - p.y)) / 2;
}

/** The frames that show a point of the plane, by their places in the list, in its order.
 *
 * The mask says in which part frames show the scene; null for all of them.
 */
export function framesAt(quads: Quads, point: Point, mask: Mask | null = null): number[] {
  const found: number[] = [];
  for (let k = 0; 8 * k < quads.length; k++) {
    if (!(areaOf(quads, k) > 1e-12)) continue;
    const [a, b, c, d, e, f, g, h, i] = inverse(planeFromSquare(cornersOf(quads, k)));
    const w = g * point.x + h * point.y + i;
    const [u, v] = [(a * point.x + b * point.y + c) / w, (d * point.x + e * point.y + f) / w];
    if (!(u >= 0 && u <= 1 && v >= 0 && v <= 1)) continue;
    if (mask === null || depthAt(mask, u, v) >= 0) found.push(k);
  }
  return found;
}

/** Corners on their way, entry by entry: 0 is `from`, 1 is `to`. */
export function interpolate(from: Quads, to: Quads, share: number): Quads {
  if (share >= 1) return to;
  return to.map((entry, k) => from[k] + share * (entry - from[k]));
}

/** Begin and end gently. */
export function ease(share: number): number {
  const bounded = Math.min(1, Math.max(0, share));
  return bounded * bounded * (3 - 2 * bounded);
}

/** Whether two mosaics show the same frames, so that one can turn into the other. */
export function sameFrames(one: LiveMosaic, other: LiveMosaic): boolean {
  return one.numbers.length === other.numbers.length && one.numbers.every((number, k) => number === other.numbers[k]);
}

function boxOf(quads: Quads, k: number): Box {
  const [x0, y0, x1, y1, x2, y2, x3, y3] = quads.subarray(8 * k, 8 * k + 8);
  return {
    left: Math.min(x0, x1, x2, x3),
    top: Math.min(y0, y1, y2, y3),
    right: Math.max(x0, x1, x2, x3),
    bottom: Math.max(y0, y1, y2, y3),
  };
}

function join(one: Box | undefined, other: Box): Box {
  if (one === undefined) return other;
  return {
    left: Math.min(one.left, other.left),
    top: Math.min(one.top, other.top),
    right: Math.max(one.right, other.right),
    bottom: Math.max(one.bottom, other.bottom),
  };
}
