/** Convex polygons: a frame's outline, where two frames overlap, and what that region is like. */
import type { Affine, Point } from "./affine";
import { apply } from "./affine";

export type Polygon = readonly Point[];

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Area, centre and second moments about the centre, divided by the area. */
export interface Moments {
  readonly area: number;
  readonly centre: Point;
  readonly xx: number;
  readonly xy: number;
  readonly yy: number;
}

/** Return a frame's corners; its pixels reach half a pixel beyond their centres. */
export function outlineOf({ width, height }: Size): Polygon {
  const [left, top, right, bottom] = [-0.5, -0.5, width - 0.5, height - 0.5];
  return [
    { x: left, y: top },
    { x: right, y: top },
    { x: right, y: bottom },
    { x: left, y: bottom },
  ];
}

export function mapped(polygon: Polygon, map: Affine): Polygon {
  return polygon.map((corner) => apply(map, corner));
}

export function contains({ width, height }: Size, { x, y }: Point): boolean {
  return x >= -0.5 && y >= -0.5 && x <= width - 0.5 && y <= height - 0.5;
}

/** Tell whether a point is inside of a polygon. */
export function isInside(polygon: Polygon, { x, y }: Point): boolean {
  let inside = false;
  polygon.forEach((from, index) => {
    const to = polygon[(index + 1) % polygon.length]!;
    if (from.y > y !== to.y > y && x < from.x + ((y - from.y) / (to.y - from.y)) * (to.x - from.x)) inside = !inside;
  });
  return inside;
}

/** Return the part of a polygon inside a convex one; empty where they are apart. */
export function intersect(subject: Polygon, window: Polygon): Polygon {
  const turn = Math.sign(signedArea(window));
  let kept: Polygon = subject;
  window.forEach((from, index) => {
    const to = window[(index + 1) % window.length]!;
    kept = clip(kept, (p) => turn * ((to.x - from.x) * (p.y - from.y) - (to.y - from.y) * (p.x - from.x)));
  });
  return kept;
}

export function momentsOf(polygon: Polygon): Moments | null {
  const area = signedArea(polygon);
  if (Math.abs(area) < 1e-9) return null;
  // About the first corner, so that no digits are lost far from the origin.
  const origin = polygon[0]!;
  let [x, y, xx, xy, yy] = [0, 0, 0, 0, 0];
  polygon.forEach((corner, index) => {
    const following = polygon[(index + 1) % polygon.length]!;
    const [ax, ay, bx, by] = [corner.x - origin.x, corner.y - origin.y, following.x - origin.x, following.y - origin.y];
    const cross = ax * by - bx * ay;
    x += (cross * (ax + bx)) / 6;
    y += (cross * (ay + by)) / 6;
    xx += (cross * (ax * ax + ax * bx + bx * bx)) / 12;
    yy += (cross * (ay * ay + ay * by + by * by)) / 12;
    xy += (cross * (ax * by + 2 * ax * ay + 2 * bx * by + bx * ay)) / 24;
  });
  const [cx, cy] = [x / area, y / area];
  return {
    area: Math.abs(area),
    centre: { x: origin.x + cx, y: origin.y + cy },
    xx: xx / area - cx * cx,
    xy: xy / area - cx * cy,
    yy: yy / area - cy * cy,
  };
}

/** Return the smallest upright box around points, as two corners. */
export function boxOf(points: readonly Point[]): { least: Point; most: Point } {
  const xs = points.map(({ x }) => x);
  const ys = points.map(({ y }) => y);
  return {
    least: { x: Math.min(...xs), y: Math.min(...ys) },
    most: { x: Math.max(...xs), y: Math.max(...ys) },
  };
}

/** Return the smallest convex polygon around points. */
export function hullOf(points: readonly Point[]): Polygon {
  const sorted = [...points].sort((p, q) => p.x - q.x || p.y - q.y);
  const chainOf = (way: readonly Point[]) => {
    const chain: Point[] = [];
    for (const point of way) {
      while (chain.length > 1 && turnOf(chain[chain.length - 2]!, chain[chain.length - 1]!, point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...chainOf(sorted), ...chainOf(sorted.reverse())];
}

function turnOf(a: Point, b: Point, c: Point): number {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

function signedArea(polygon: Polygon): number {
  let area = 0;
  polygon.forEach((corner, index) => {
    const following = polygon[(index + 1) % polygon.length]!;
    area += corner.x * following.y - following.x * corner.y;
  });
  return area / 2;
}

function clip(polygon: Polygon, inside: (point: Point) => number): Polygon {
  const kept: Point[] = [];
  polygon.forEach((corner, index) => {
    const following = polygon[(index + 1) % polygon.length]!;
    const [here, there] = [inside(corner), inside(following)];
    if (here >= 0) kept.push(corner);
    if (here * there < 0) {
      const share = here / (here - there);
      kept.push({ x: corner.x + share * (following.x - corner.x), y: corner.y + share * (following.y - corner.y) });
    }
  });
  return kept;
}
