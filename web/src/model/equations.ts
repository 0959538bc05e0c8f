/** The equations that landmarks are of the pose of a pair, linear about it. */
import type { Matrix } from "./matrix";

/** Of an increment E, row by row; the ninth, in the corner, is 0. */
export const ENTRIES = 8;

/** The landmarks' equations at the pose, in units of their noise, two a landmark, and what the mosaic expects of E. */
export interface Equations {
  /** (2n, 8), derivatives by the entries of E. */
  readonly rows: readonly number[][];
  /** (2n): r + A E, what is seen where E is still 0. */
  readonly seen: readonly number[];
  /** (n): whether a landmark counts. */
  readonly believed: readonly boolean[];
  /** (n): the number of the curve that a landmark is on; null for a point. Of a curve, the second equation is empty. */
  readonly curves: readonly (number | null)[];
  /** (8, 8): C. */
  readonly covariance: Matrix;
  /** Whether C is multiplied by s where the landmarks demand it. */
  readonly mayGiveWay: boolean;
}

/** Whether two landmarks are the same one, or on the same curve: they are right or wrong together. */
export function areTogether({ curves }: Equations, one: number, two: number): boolean {
  return one === two || (curves[one] !== null && curves[one] === curves[two]);
}

/** Degrees of freedom that are imagined to have shown that σ is right: few landmarks do not tell. */
const IMAGINED = 2;

/** Return by how much a variance is larger than σ² if residuals are worse than σ promises; the opposite is luck. */
export function excessOf(misfit: number, freedom: number): number {
  return Math.max(1, (misfit + IMAGINED) / (freedom + IMAGINED));
}
