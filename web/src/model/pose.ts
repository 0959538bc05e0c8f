/**
 * How two frames lie to each other by what the mosaic expects and by the landmarks on top of it.
 *
 * The mosaic expects P, i from j, and a covariance C (8 × 8) of the entries of E, P exp(E) being the truth; lengths are
 * in units of the frame, from its centre. With landmarks' residuals r and their derivatives A by the entries of E, both
 * in units of the landmarks' noise, the best E is where |r(E)|² + Eᵀ C⁻¹ E is least. E = C v, as C may be singular, and
 *
 *     v = (I + AᵀA C)⁻¹ Aᵀ (r + A E),     covariance = C (I + AᵀA C)⁻¹
 *
 * is solved a few times. A mosaic that is off by more than it thinks gives way: C is multiplied by that s ≥ 1 for which
 * Eᵀ (s C)⁻¹ E is as large as the number of directions that the landmarks tell.
 *
 * A landmark that is wrong by all that the mosaic and the others say (`surprise.ts`) is left out of the pose that is
 * shown, as long as at least half of the landmarks are not: otherwise a single slip would fling the frame.
 */
import type { Point } from "./affine";
import type { Equations } from "./equations";
import { areTogether, ENTRIES, excessOf } from "./equations";
import type { Homography } from "./homography";
import { chain, homographyFrom, homographyOf, project, STRAIGHT, tangentAt } from "./homography";
import { slopesAt, straighten } from "./lens";
import type { Landmark, LensNumbers, Origin, Question, Side } from "./messages";
import { add, dot, identity, invertMatrix, multiply, trace } from "./matrix";
import type { Matrix } from "./matrix";
import type { Size } from "./polygon";
import { surprisesOf, WRONG } from "./surprise";

/** Standard deviation of a landmark in each coordinate, in px, by how it came to its place. */
export const SIGMA_PX: Record<Origin, number> = { clicked: 1.5, snapped: 0.5, matched: 1, aligned: 1, laid: 3, traced: 1 };

/** Return the standard deviation of a landmark. */
export function sigmaOf({ sigma_px, origin }: Landmark): number {
  // Drafts that an earlier version kept have no deviation of their own.
  return sigma_px ?? SIGMA_PX[origin];
}

const MOST_STEPS = 20;
const SETTLED = 1e-10;

export interface Pose {
  /** Between straight pixels. */
  readonly iFromJ: Homography;
  /** (8, 8), of the entries of E, in units of the frame: iFromJ ← iFromJ exp(E). */
  readonly covariance: Matrix;
  /** What the pose was computed from. */
  readonly equations: Equations;
}

export function pointOf(landmark: Landmark, side: Side): Point {
  return side === "i" ? { x: landmark.x_i, y: landmark.y_i } : { x: landmark.x_j, y: landmark.y_j };
}

/** Take the active landmarks in on top of what the question expects. */
export function poseOf(question: Question, landmarks: readonly Landmark[], frame: Size, lens: LensNumbers | null): Pose {
  const { unitFromPixels, pixelsFromUnit, unit } = unitsOf(frame);
  const marks = landmarks.filter(({ active }) => active).map((landmark) => {
    const [i, j] = (["i", "j"] as const).map((side) => straighten(lens, pointOf(landmark, side)));
    const sigma = (question.noise * sigmaOf(landmark)) / unit;
    const along = alongOf(landmark, lens);
    return { i: project(unitFromPixels, i!), j: project(unitFromPixels, j!), sigma, along, curve: landmark.curve ?? null };
  });
  const expected = chain(chain(unitFromPixels, homographyOf(question.i_from_j)), pixelsFromUnit);
  let believed = marks.map(() => true);
  for (;;) {
    const { map, covariance, equations } = fit(question, expected, marks, believed);
    const doubted = mostDoubted(equations);
    if (doubted === null) return { iFromJ: normal(chain(chain(pixelsFromUnit, map), unitFromPixels)), covariance, equations };
    // A curve that is matched wrongly is wrong as a whole.
    believed = believed.map((isBelieved, k) => isBelieved && !areTogether(equations, k, doubted));
  }
}

/** Return the posterior of the mosaic and of the landmarks that are believed, and the equations of all. */
function fit({ joined, covariance: prior }: Question, expected: Homography, marks: readonly Mark[], believed: boolean[]) {
  const used = marks.filter((_, k) => believed[k]);
  const first = joined || used.length === 0 ? expected : similarity(used);
  const { map, covariance, v } = update(first, prior, used, joined);
  const { rows, residuals, increment } = look(first, v, prior, marks);
  const seen = rows.map((row, k) => residuals[k]! + dot(row, increment));
  const curves = marks.map(({ curve }) => curve);
  return { map, covariance, equations: { rows, seen, believed, curves, covariance: prior, mayGiveWay: joined } };
}

/** Return the landmark that is most surely wrong; null where none is, or where too many would be. */
function mostDoubted(equations: Equations): number | null {
  const { believed } = equations;
  const sigmas = surprisesOf(equations).map((surprise, k) => (believed[k] ? surprise.sigmas : 0));
  const most = Math.max(...sigmas);
  const doubted = sigmas.indexOf(most);
  // A curve counts once, however many landmarks are on it.
  const firsts = believed.map((_, k) => k).filter((k) => believed.findIndex((_, other) => areTogether(equations, other, k)) === k);
  const left = firsts.filter((k) => believed[k] && !areTogether(equations, k, doubted)).length;
  return most < WRONG || left < 1 || 2 * left < firsts.length ? null : doubted;
}

/** The frame's units: half the mean of its sides, from its centre. */
export function unitsOf({ width, height }: Size): {
  readonly unit: number;
  readonly unitFromPixels: Homography;
  readonly pixelsFromUnit: Homography;
} {
  const unit = (width + height) / 4;
  const [x, y] = [(width - 1) / 2, (height - 1) / 2];
  return {
    unit,
    unitFromPixels: [1 / unit, 0, -x / unit, 0, 1 / unit, -y / unit, 0, 0, 1],
    pixelsFromUnit: [unit, 0, x, 0, unit, y, 0, 0, 1],
  };
}

/** Return how a point (in units) moves with the entries of E: two rows of 8. */
export function motionOf({ x, y }: Point): [number[], number[]] {
  return [
    [x, y, 1, 0, 0, 0, -x * x, -x * y],
    [0, 0, 0, x, y, 1, -x * y, -y * y],
  ];
}

interface Mark {
  readonly i: Point;
  readonly j: Point;
  readonly sigma: number;
  /** Unit vector in frame i along which it says nothing; null for a point. */
  readonly along: Point | null;
  readonly curve: number | null;
}

/** Return the direction in frame i, straight, along which a landmark says nothing. */
function alongOf({ along_deg, x_i, y_i }: Landmark, lens: LensNumbers | null): Point | null {
  // Drafts that an earlier version kept have no directions.
  if (typeof along_deg !== "number") return null;
  const angle = (along_deg * Math.PI) / 180;
  const [a, b, , d, e] = slopesAt(lens, { x: x_i, y: y_i });
  const [x, y] = [a * Math.cos(angle) + b * Math.sin(angle), d * Math.cos(angle) + e * Math.sin(angle)];
  return { x: x / Math.hypot(x, y), y: y / Math.hypot(x, y) };
}

function update(prior: Homography, covariance: Matrix, marks: readonly Mark[], mayGiveWay: boolean) {
  let v: number[] = new Array(ENTRIES).fill(0);
  let scale = 1;
  let state = look(prior, v, covariance, marks);
  if (marks.length === 0) return { map: prior, covariance, v };
  let left = identity(ENTRIES);
  for (let step = 0; step < MOST_STEPS; step++) {
    const scaled = covariance.map((entry) => scale * entry);
    left = invertMatrix(add(identity(ENTRIES), multiply(state.information, scaled, ENTRIES)), ENTRIES);
    const right = add(state.gradient, multiply(state.information, state.increment, ENTRIES));
    const target = multiply(left, right, ENTRIES).map((entry) => scale * entry);
    const before = v;
    let share = 1;
    let next = state;
    // A step that makes it worse is too long.
    for (; share > 1e-3; share /= 2) {
      v = before.map((entry, k) => entry + share * (target[k]! - entry));
      next = look(prior, v, covariance, marks);
      if (next.misfit + next.surprise / scale <= state.misfit + state.surprise / scale + 1e-9) break;
    }
    const moved = Math.max(...next.increment.map((entry, k) => Math.abs(entry - state.increment[k]!)));
    state = next;
    const determined = ENTRIES - trace(left);
    const wanted = mayGiveWay && determined > 1e-6 ? Math.max(1, state.surprise / determined) : 1;
    const isSettled = moved < SETTLED && Math.abs(wanted / scale - 1) < 1e-6;
    scale = wanted;
    if (isSettled) break;
  }
  const scaled = covariance.map((entry) => scale * entry);
  left = invertMatrix(add(identity(ENTRIES), multiply(state.information, scaled, ENTRIES)), ENTRIES);
  const told = marks.reduce((sum, { along }) => sum + (along === null ? 2 : 1), 0);
  const excess = excessOf(state.misfit, told - (ENTRIES - trace(left)));
  return { map: state.map, covariance: multiply(scaled, left, ENTRIES).map((entry) => excess * entry), v };
}

/** Return what landmarks say of the map prior exp(C v). */
function look(prior: Homography, v: readonly number[], covariance: Matrix, marks: readonly Mark[]) {
  const increment = multiply(covariance, v, ENTRIES);
  const map = chain(prior, exponential(increment));
  const information = new Array<number>(ENTRIES * ENTRIES).fill(0);
  const gradient = new Array<number>(ENTRIES).fill(0);
  const allRows: number[][] = [];
  const residuals: number[] = [];
  let misfit = 0;
  for (const { i, j, sigma, along } of marks) {
    const seen = project(map, j, { x: 0, y: 0 });
    const [a, b, , d, e] = tangentAt(map, j);
    const [vx, vy] = motionOf(j);
    let rows = [vx.map((entry, k) => a * entry + b * vy[k]!), vx.map((entry, k) => d * entry + e * vy[k]!)];
    let offs = [i.x - seen.x, i.y - seen.y];
    if (along !== null) {
      // Only what is across the curve; the second equation is empty.
      const [x, y] = [-along.y, along.x];
      rows = [rows[0]!.map((entry, k) => x * entry + y * rows[1]![k]!), new Array<number>(ENTRIES).fill(0)];
      offs = [x * offs[0]! + y * offs[1]!, 0];
    }
    offs.forEach((off, axis) => {
      const row = rows[axis]!.map((entry) => entry / sigma);
      const residual = off / sigma;
      misfit += residual ** 2;
      allRows.push(row);
      residuals.push(residual);
      row.forEach((one, p) => {
        gradient[p]! += one * residual;
        row.forEach((other, q) => (information[ENTRIES * p + q]! += one * other));
      });
    });
  }
  return { increment, map, information, gradient, misfit, surprise: dot(v, increment), rows: allRows, residuals };
}

/** Return the shift, or the turn, scale and shift, that landmarks have in common. */
function similarity(marks: readonly Mark[]): Homography {
  const [middleI, middleJ] = [middle(marks.map(({ i }) => i)), middle(marks.map(({ j }) => j))];
  let [along, across, square] = [0, 0, 0];
  for (const { i, j } of marks) {
    const [ix, iy, jx, jy] = [i.x - middleI.x, i.y - middleI.y, j.x - middleJ.x, j.y - middleJ.y];
    along += ix * jx + iy * jy;
    across += jx * iy - jy * ix;
    square += jx * jx + jy * jy;
  }
  const isTurned = square > 1e-9 && Math.hypot(along, across) > 1e-3 * square;
  const [a, b] = isTurned ? [along / square, across / square] : [1, 0];
  return homographyFrom([
    a, -b, middleI.x - a * middleJ.x + b * middleJ.y,
    b, a, middleI.y - b * middleJ.x - a * middleJ.y,
  ]);
}

/** Return exp(E) for the entries of E. */
function exponential(entries: readonly number[]): Homography {
  const squarings = Math.max(0, Math.ceil(Math.log2(16 * Math.max(...entries.map(Math.abs), 1e-9))));
  const small = homographyOf([...entries, 0].map((entry) => entry / 2 ** squarings));
  let sum = STRAIGHT;
  for (let term = 10; term > 0; term--) {
    const product = chain(small, sum);
    sum = homographyOf(product.map((entry, k) => entry / term + STRAIGHT[k]!));
  }
  for (let k = 0; k < squarings; k++) sum = chain(sum, sum);
  return sum;
}

function normal(map: Homography): Homography {
  return homographyOf(map.map((entry) => entry / map[8]));
}

function middle(points: readonly Point[]): Point {
  const sum = points.reduce((p, q) => ({ x: p.x + q.x, y: p.y + q.y }));
  return { x: sum.x / points.length, y: sum.y / points.length };
}
