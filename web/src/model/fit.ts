/** The map that landmarks determine: weighted least squares, what is wrong with them, how far to trust it. */
import type { Affine, Point } from "./affine";
import { apply, determinant, distance } from "./affine";
import type { Landmark, Origin, Side } from "./messages";
import type { Moments } from "./polygon";

export const FEWEST_LANDMARKS = 3;

/** As in `smalti.adjustment.link`: flatter than this, a map fitted to them would be free to shear. */
const SMALLEST_SPREAD_RATIO = 1e-3;

/** Standard deviation of a landmark in each coordinate, in px, by how it came to its place. */
export const SIGMA_PX: Record<Origin, number> = { clicked: 1.5, snapped: 0.5, matched: 1 };

export interface Fit {
  readonly iFromJ: Affine;
  /** Of every landmark, also those that are switched off: how far the two sides are apart in frame i, px. */
  readonly residuals: readonly number[];
  /** 1 where the residuals are as small as the landmarks' σ promise, larger where they are not. */
  readonly excess: number;
  /** Variance (px², each coordinate of frame i) of the map at a point of frame j. */
  varianceAt(pointJ: Point): number;
  /** The same, averaged over a region of frame j. */
  meanVariance(region: Moments): number;
}

export type Fitted = { readonly fit: Fit } | { readonly problem: string };

export function pointOf(landmark: Landmark, side: Side): Point {
  return side === "i" ? { x: landmark.x_i, y: landmark.y_i } : { x: landmark.x_j, y: landmark.y_j };
}

/** Fit i_from_j to the active landmarks, or say in a sentence why they do not determine it. */
export function fitLandmarks(landmarks: readonly Landmark[]): Fitted {
  const active = landmarks.filter((landmark) => landmark.active);
  const missing = FEWEST_LANDMARKS - active.length;
  if (missing > 0) return { problem: tooFew(active.length, landmarks.length - active.length) };
  for (const side of ["i", "j"] as const) {
    if (areCollinear(active.map((landmark) => pointOf(landmark, side)))) {
      return { problem: "The landmarks lie on one line and leave the map free to shear: add one away from that line." };
    }
  }
  const sums = weigh(active);
  const iFromJ = solve(active, sums);
  if (determinant(iFromJ) <= 0) {
    return { problem: "The landmarks show one frame mirrored in the other: two of them are probably exchanged." };
  }
  return { fit: describe(landmarks, active, iFromJ, sums) };
}

/** Return how far apart the two sides of a landmark are under a map, in px of frame i. */
export function residualOf(landmark: Landmark, iFromJ: Affine): number {
  return distance(pointOf(landmark, "i"), apply(iFromJ, pointOf(landmark, "j")));
}

/** Return the expected distance (RMS, px of frame i) of the map from the truth over a region of frame j. */
export function predictedError(fit: Fit, region: Moments): number {
  return Math.sqrt(2 * fit.meanVariance(region));
}

interface Sums {
  readonly weight: number;
  readonly centreI: Point;
  readonly centreJ: Point;
  /** Scatter of the points of j about their centre, and its inverse. */
  readonly inverse: { readonly xx: number; readonly xy: number; readonly yy: number };
}

function weightOf(landmark: Landmark): number {
  return 1 / SIGMA_PX[landmark.origin] ** 2;
}

function weigh(active: readonly Landmark[]): Sums {
  let weight = 0;
  const [i, j] = [
    { x: 0, y: 0 },
    { x: 0, y: 0 },
  ];
  for (const landmark of active) {
    const w = weightOf(landmark);
    weight += w;
    i.x += w * landmark.x_i;
    i.y += w * landmark.y_i;
    j.x += w * landmark.x_j;
    j.y += w * landmark.y_j;
  }
  const centreI = { x: i.x / weight, y: i.y / weight };
  const centreJ = { x: j.x / weight, y: j.y / weight };
  let [xx, xy, yy] = [0, 0, 0];
  for (const landmark of active) {
    const w = weightOf(landmark);
    const [dx, dy] = [landmark.x_j - centreJ.x, landmark.y_j - centreJ.y];
    xx += w * dx * dx;
    xy += w * dx * dy;
    yy += w * dy * dy;
  }
  const det = xx * yy - xy * xy;
  return { weight, centreI, centreJ, inverse: { xx: yy / det, xy: -xy / det, yy: xx / det } };
}

function solve(active: readonly Landmark[], { centreI, centreJ, inverse }: Sums): Affine {
  // Rows of Σ w (x_i - c_i)(x_j - c_j)ᵀ.
  const cross = [0, 0, 0, 0] as [number, number, number, number];
  for (const landmark of active) {
    const w = weightOf(landmark);
    const [ix, iy] = [landmark.x_i - centreI.x, landmark.y_i - centreI.y];
    const [jx, jy] = [landmark.x_j - centreJ.x, landmark.y_j - centreJ.y];
    cross[0] += w * ix * jx;
    cross[1] += w * ix * jy;
    cross[2] += w * iy * jx;
    cross[3] += w * iy * jy;
  }
  const a = cross[0] * inverse.xx + cross[1] * inverse.xy;
  const b = cross[0] * inverse.xy + cross[1] * inverse.yy;
  const d = cross[2] * inverse.xx + cross[3] * inverse.xy;
  const e = cross[2] * inverse.xy + cross[3] * inverse.yy;
  return [a, b, centreI.x - a * centreJ.x - b * centreJ.y, d, e, centreI.y - d * centreJ.x - e * centreJ.y];
}

function describe(landmarks: readonly Landmark[], active: readonly Landmark[], iFromJ: Affine, sums: Sums): Fit {
  const freedom = 2 * (active.length - FEWEST_LANDMARKS);
  const chi2 = active.reduce((sum, landmark) => sum + weightOf(landmark) * residualOf(landmark, iFromJ) ** 2, 0);
  // Where the residuals are worse than σ promises, σ was too small; the opposite is luck.
  const excess = freedom > 0 ? Math.sqrt(Math.max(1, chi2 / freedom)) : 1;
  const { weight, centreJ, inverse } = sums;
  const spread = (xx: number, xy: number, yy: number) =>
    excess ** 2 * (1 / weight + inverse.xx * xx + 2 * inverse.xy * xy + inverse.yy * yy);
  return {
    iFromJ,
    residuals: landmarks.map((landmark) => residualOf(landmark, iFromJ)),
    excess,
    varianceAt({ x, y }) {
      const [dx, dy] = [x - centreJ.x, y - centreJ.y];
      return spread(dx * dx, dx * dy, dy * dy);
    },
    meanVariance({ centre, xx, xy, yy }) {
      const [dx, dy] = [centre.x - centreJ.x, centre.y - centreJ.y];
      return spread(xx + dx * dx, xy + dx * dy, yy + dy * dy);
    },
  };
}

function areCollinear(points: readonly Point[]): boolean {
  const n = points.length;
  const centre = { x: points.reduce((s, p) => s + p.x, 0) / n, y: points.reduce((s, p) => s + p.y, 0) / n };
  let [xx, xy, yy] = [0, 0, 0];
  for (const { x, y } of points) {
    xx += (x - centre.x) ** 2;
    xy += (x - centre.x) * (y - centre.y);
    yy += (y - centre.y) ** 2;
  }
  const middle = (xx + yy) / 2;
  const along = middle + Math.hypot((xx - yy) / 2, xy);
  // The determinant over the larger eigenvalue keeps the digits that the difference would lose.
  const across = along > 0 ? (xx * yy - xy * xy) / along : 0;
  return across <= SMALLEST_SPREAD_RATIO ** 2 * along;
}

function tooFew(active: number, off: number): string {
  const missing = FEWEST_LANDMARKS - active;
  const need = active === 0 ? "Three landmarks" : missing === 1 ? "One more landmark" : "Two more landmarks";
  const aside = off > 0 ? ` (${off} switched off)` : "";
  return `${need} ${missing === 1 ? "is" : "are"} needed${aside}: three that are not on one line fix the map.`;
}
