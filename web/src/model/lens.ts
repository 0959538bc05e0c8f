/** What a lens bends: where a point that is seen in a frame would be without distortion, and back. As `geometry/lens.py`. */
import type { Affine, Point } from "./affine";
import type { LensNumbers } from "./messages";

const STEPS = 12;

/** Return the straight place of a point that is seen. */
export function straighten(lens: LensNumbers | null, point: Point): Point {
  if (lens === null) return point;
  const [x, y] = [(point.x - lens.centre_x) / lens.unit_px, (point.y - lens.centre_y) / lens.unit_px];
  const squared = x * x + y * y;
  const by = lens.unit_px * (1 + squared * (lens.k1 + squared * lens.k2));
  return { x: by * x + lens.centre_x, y: by * y + lens.centre_y };
}

/** Return where a straight point is seen; beyond what the lens can show, at the farthest place that it does. */
export function bend(lens: LensNumbers | null, point: Point): Point {
  if (lens === null) return point;
  const [x, y] = [(point.x - lens.centre_x) / lens.unit_px, (point.y - lens.centre_y) / lens.unit_px];
  const straight = Math.hypot(x, y);
  if (straight === 0) return point;
  const by = (bentRadius(straight, lens) / straight) * lens.unit_px;
  return { x: by * x + lens.centre_x, y: by * y + lens.centre_y };
}

/** Return the linear map that `straighten` is around a point that is seen. */
export function slopesAt(lens: LensNumbers | null, point: Point): Affine {
  if (lens === null) return [1, 0, 0, 0, 1, 0];
  const [x, y] = [(point.x - lens.centre_x) / lens.unit_px, (point.y - lens.centre_y) / lens.unit_px];
  const squared = x * x + y * y;
  const along = 1 + squared * (lens.k1 + squared * lens.k2);
  const out = 2 * lens.k1 + 4 * lens.k2 * squared;
  return [along + out * x * x, out * x * y, 0, out * x * y, along + out * y * y, 0];
}

function bentRadius(straight: number, { k1, k2 }: LensNumbers): number {
  const farthest = farthestSeen(k1, k2);
  let radius = Math.min(straight, farthest);
  for (let step = 0; step < STEPS; step++) {
    const squared = radius * radius;
    const slope = 1 + squared * (3 * k1 + 5 * squared * k2);
    if (slope <= 1e-9) break;
    const off = radius * (1 + squared * (k1 + squared * k2)) - straight;
    radius = Math.min(Math.max(radius - off / slope, 0), farthest);
  }
  return radius;
}

/** Up to where the distortion is one to one: its derivative 1 + 3 k1 r² + 5 k2 r⁴ is not 0. */
function farthestSeen(k1: number, k2: number): number {
  if (k2 === 0) return k1 < 0 ? Math.sqrt(-1 / (3 * k1)) : Infinity;
  const inside = 9 * k1 * k1 - 20 * k2;
  if (inside < 0) return Infinity;
  const squares = [-1, 1].map((sign) => (-3 * k1 + sign * Math.sqrt(inside)) / (10 * k2));
  return Math.sqrt(Math.min(...squares.filter((squared) => squared > 0), Infinity));
}
