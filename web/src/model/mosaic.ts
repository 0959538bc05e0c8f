/** Where the frames lie on the plane that is drawn: their maps, in motion, and which of them show a point. */
import type { Point } from "./affine";
import type { LiveMosaic } from "./messages";
import { depthAt, type Mask } from "./mosaicmask";
import { shiftsOfParts } from "./mosaicparts";
import type { Size } from "./polygon";

/** Maps of frames, plane_from_frame, six numbers a frame, row by row. */
export type Maps = Float64Array;

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Put the parts that nothing joins apart from each other; the largest stays where it is. */
export function layOut(mosaic: LiveMosaic, size: Size): Maps {
  const maps = Float64Array.from(mosaic.maps);
  const shifts = shiftsOfParts(boxesOfParts(maps, mosaic.parts, size));
  mosaic.parts.forEach((part, k) => {
    maps[6 * k + 2] += shifts[part].x;
    maps[6 * k + 5] += shifts[part].y;
  });
  return maps;
}

/** The boxes of the parts, in their order. */
export function boxesOfParts(maps: Maps, parts: readonly number[], size: Size): Box[] {
  const boxes: Box[] = [];
  parts.forEach((part, k) => {
    boxes[part] = join(boxes[part], boxOf(maps, k, size));
  });
  return boxes;
}

/** The box around all frames; there is at least one. */
export function boxOfAll(maps: Maps, size: Size): Box {
  let box: Box | undefined;
  for (let k = 0; 6 * k < maps.length; k++) box = join(box, boxOf(maps, k, size));
  if (box === undefined) throw new Error("a mosaic without frames has no bounds");
  return box;
}

/** The corners of a frame on the plane, x and y in turn: a frame covers [-0.5, width - 0.5]. */
export function cornersOf(maps: Maps, k: number, { width, height }: Size): number[] {
  const [a, b, c, d, e, f] = maps.subarray(6 * k, 6 * k + 6);
  const left = c - 0.5 * (a + b);
  const top = f - 0.5 * (d + e);
  return [
    left,
    top,
    left + a * width,
    top + d * width,
    left + a * width + b * height,
    top + d * width + e * height,
    left + b * height,
    top + e * height,
  ];
}

export function centreOf(maps: Maps, k: number, { width, height }: Size): Point {
  const x = (width - 1) / 2;
  const y = (height - 1) / 2;
  const at = 6 * k;
  return {
    x: maps[at] * x + maps[at + 1] * y + maps[at + 2],
    y: maps[at + 3] * x + maps[at + 4] * y + maps[at + 5],
  };
}

/** The frames that show a point of the plane, by their places in the list, in its order.
 *
 * The mask says in which part frames show the scene; null for all of them.
 */
export function framesAt(maps: Maps, { width, height }: Size, { x, y }: Point, mask: Mask | null = null): number[] {
  const found: number[] = [];
  for (let k = 0; 6 * k < maps.length; k++) {
    const [a, b, c, d, e, f] = maps.subarray(6 * k, 6 * k + 6);
    const determinant = a * e - b * d;
    if (determinant === 0) continue;
    const u = (e * (x - c) - b * (y - f)) / determinant;
    const v = (a * (y - f) - d * (x - c)) / determinant;
    if (u < -0.5 || u > width - 0.5 || v < -0.5 || v > height - 0.5) continue;
    if (mask === null || depthAt(mask, (u + 0.5) / width, (v + 0.5) / height) >= 0) found.push(k);
  }
  return found;
}

/** Maps on their way, entry by entry: 0 is `from`, 1 is `to`. */
export function interpolate(from: Maps, to: Maps, share: number): Maps {
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

function boxOf(maps: Maps, k: number, size: Size): Box {
  const [x0, y0, x1, y1, x2, y2, x3, y3] = cornersOf(maps, k, size);
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
