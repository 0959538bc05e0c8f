/** Covariances of points: what maps make of them, and the ellipse that shows them. */
import type { Affine, Point } from "./affine";

/** Of a point, px². */
export interface Covariance {
  readonly xx: number;
  readonly xy: number;
  readonly yy: number;
}

export interface Ellipse {
  readonly along: number;
  readonly across: number;
  /** Of the longer axis against the x axis, radians, clockwise on a screen. */
  readonly angle: number;
}

export function round(variance: number): Covariance {
  return { xx: variance, xy: 0, yy: variance };
}

export function plus(first: Covariance, second: Covariance): Covariance {
  return { xx: first.xx + second.xx, xy: first.xy + second.xy, yy: first.yy + second.yy };
}

/** Return the covariance of mapped points: L C Lᵀ with the linear part of the map. */
export function through([a, b, , d, e]: Affine, { xx, xy, yy }: Covariance): Covariance {
  return {
    xx: a * a * xx + 2 * a * b * xy + b * b * yy,
    xy: a * d * xx + (a * e + b * d) * xy + b * e * yy,
    yy: d * d * xx + 2 * d * e * xy + e * e * yy,
  };
}

/** Return how many standard deviations from its mean a point is that lies so far off. */
export function sigmasOf({ xx, xy, yy }: Covariance, { x, y }: Point): number {
  return Math.sqrt((yy * x * x - 2 * xy * x * y + xx * y * y) / (xx * yy - xy * xy));
}

/** Return the ellipse that is `sigmas` standard deviations out in every direction. */
export function ellipseOf({ xx, xy, yy }: Covariance, sigmas = 2): Ellipse {
  const middle = (xx + yy) / 2;
  const half = Math.hypot((xx - yy) / 2, xy);
  return {
    along: sigmas * Math.sqrt(middle + half),
    across: sigmas * Math.sqrt(Math.max(0, middle - half)),
    angle: Math.atan2(2 * xy, xx - yy) / 2,
  };
}
