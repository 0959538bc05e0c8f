/**
 * How surprising a landmark is: how far it lies from where the mosaic and the other landmarks expect it.
 *
 * A residual in the fit of all landmarks tells nothing where there are few: the fit follows a wrong one. So each
 * landmark is left out. With the equations of the others, the prediction of its place has the covariance S, in units
 * of its noise, and its distance d from there the surprise (dᵀ S⁻¹ d)^½. Linear about the pose of all landmarks.
 * Landmarks on a curve are left out together.
 */
import type { Equations } from "./equations";
import { areTogether, ENTRIES, excessOf } from "./equations";
import { add, dot, identity, invertMatrix, multiply, trace } from "./matrix";
import type { Matrix } from "./matrix";

export interface Surprise {
  /** Distance from the expected place in standard deviations of it: below 2.4 nineteen times in twenty. */
  readonly sigmas: number;
  /** Distance from the expected place, in standard deviations of the landmark alone. */
  readonly distance: number;
  /** One standard deviation of the expected place, in those of the landmark alone, where it is least sure. */
  readonly reach: number;
}

/** From this surprise on, which a true landmark has once in 270,000 times, it is taken for wrong. */
export const WRONG = 5;

const MOST_STEPS = 30;

/** Return the surprise of each landmark of the equations. */
export function surprisesOf(equations: Equations): Surprise[] {
  const marks = equations.rows.length / 2;
  const all = normalOf(equations, equations.believed);
  return Array.from({ length: marks }, (_, k) => surpriseOf(equations, all, k));
}

interface Normal {
  /** (8, 8): AᵀA. */
  readonly information: number[];
  /** (8): Aᵀ (r + A E). */
  readonly right: number[];
}

function surpriseOf(equations: Equations, all: Normal, k: number): Surprise {
  const { rows, seen, believed } = equations;
  const own = [2 * k, 2 * k + 1];
  const isOther = (at: number) => !areTogether(equations, at >> 1, k) && believed[at >> 1]!;
  const left = normalOf(equations, believed.map((isBelieved, at) => isBelieved && areTogether(equations, at, k)));
  const information = add(all.information, left.information.map((entry) => -entry));
  const right = add(all.right, left.right.map((entry) => -entry));
  const { increment, covariance, determined } = solve(information, right, equations);
  const misfit = rows.reduce((sum, row, at) => {
    return isOther(at) ? sum + (seen[at]! - dot(row, increment)) ** 2 : sum;
  }, 0);
  const told = rows.filter((row, at) => isOther(at) && row.some((entry) => entry !== 0)).length;
  const excess = excessOf(misfit, told - determined);
  const [a, b] = own.map((at) => rows[at]!) as [number[], number[]];
  const [ca, cb] = [multiply(covariance, a, ENTRIES), multiply(covariance, b, ENTRIES)];
  const xx = excess * (1 + dot(a, ca));
  const xy = excess * dot(a, cb);
  const yy = excess * (1 + dot(b, cb));
  const [x, y] = own.map((at) => seen[at]! - dot(rows[at]!, increment)) as [number, number];
  const squared = (yy * x * x - 2 * xy * x * y + xx * y * y) / (xx * yy - xy * xy);
  const largest = (xx + yy) / 2 + Math.hypot((xx - yy) / 2, xy);
  return { sigmas: Math.sqrt(Math.max(0, squared)), distance: Math.hypot(x, y), reach: Math.sqrt(largest) };
}

/** Return the sums over the equations of some landmarks. */
function normalOf({ rows, seen }: Equations, counted: readonly boolean[]): Normal {
  const information = new Array<number>(ENTRIES * ENTRIES).fill(0);
  const right = new Array<number>(ENTRIES).fill(0);
  rows.forEach((row, at) => {
    if (!counted[at >> 1]) return;
    row.forEach((one, p) => {
      right[p]! += one * seen[at]!;
      row.forEach((other, q) => (information[ENTRIES * p + q]! += one * other));
    });
  });
  return { information, right };
}

/** Solve for E as `poseOf` does, where the equations are linear. */
function solve(information: Matrix, right: Matrix, { covariance, mayGiveWay }: Equations) {
  let scale = 1;
  for (let step = 0; ; step++) {
    const scaled = covariance.map((entry) => scale * entry);
    const left = invertMatrix(add(identity(ENTRIES), multiply(information, scaled, ENTRIES)), ENTRIES);
    const v = multiply(left, right, ENTRIES).map((entry) => scale * entry);
    const increment = multiply(covariance, v, ENTRIES);
    const determined = ENTRIES - trace(left);
    const wanted = mayGiveWay && determined > 1e-6 ? Math.max(1, dot(v, increment) / determined) : 1;
    if (Math.abs(wanted / scale - 1) < 1e-3 || step === MOST_STEPS) {
      return { increment, covariance: multiply(scaled, left, ENTRIES), determined };
    }
    scale = wanted;
  }
}
