/** Where a point of one frame is expected in the other, and how surely: by the mosaic, and by the landmarks that are set. */
import type { Affine, Point } from "./affine";
import { compose, invert } from "./affine";
import type { Covariance } from "./covariance";
import { plus, round, through } from "./covariance";
import { ENTRIES } from "./equations";
import { tangentAt } from "./homography";
import { slopesAt, straighten } from "./lens";
import type { Landmark, LensNumbers, Question, Side } from "./messages";
import { dot, multiply, trace } from "./matrix";
import type { Polygon, Size } from "./polygon";
import { boxOf, isInside, momentsOf } from "./polygon";
import type { Pose } from "./pose";
import { motionOf, poseOf, SIGMA_PX, sigmaOf, unitsOf } from "./pose";
import { linearOf, Relation } from "./relation";
import { surprisesOf } from "./surprise";
import type { LandmarkTone } from "./tone";
import { toneOf } from "./tone";

export interface Prediction {
  readonly point: Point;
  readonly covariance: Covariance;
}

export interface Knowledge {
  /** By the mosaic alone, or by landmarks on top of it. */
  readonly source: "mosaic" | "landmarks";
  readonly relation: Relation;
  /** The affine map to show frame j by, on the plane of frame i: as the relation in the middle of what both show. */
  readonly pose: Affine;
  /** Why the landmarks cannot be confirmed, in a sentence. */
  readonly problem: string | null;
  /** What the mosaic and the other landmarks say of each landmark. */
  readonly judgements: readonly Judgement[];
  /** Expected RMS distance of the pose from the truth over the overlap, px of frame i; null where nothing is known. */
  readonly errorPx: number | null;
  /** The same after one more landmark, clicked where it tells most. */
  readonly oneMorePx: number | null;
  /** How uncertain the place in frame i of a point of frame j is, apart from a click's own error. */
  uncertaintyInI(point: Point): Covariance;
  /** Where a point of frame `side` is expected in the other one. */
  predict(side: Side, point: Point): Prediction;
}

export interface Judgement {
  readonly tone: LandmarkTone;
  /** Distance from where it is expected, px of frame i, and one σ of that place. */
  readonly offPx: number;
  readonly reachPx: number;
}

/** Places along each side of the overlap's box at which the error is looked at. */
const PLACES = 7;

export function other(side: Side): Side {
  return side === "i" ? "j" : "i";
}

/** Put together what the question and the landmarks tell about the pair. */
export function knowledgeOf(
  question: Question,
  landmarks: readonly Landmark[],
  frame: Size,
  lens: LensNumbers | null,
  field?: Polygon,
): Knowledge {
  const active = landmarks.filter((landmark) => landmark.active);
  const pose = poseOf(question, landmarks, frame, lens);
  const relation = new Relation(pose.iFromJ, lens, frame, field);
  const overlap = relation.overlap("j");
  const region = momentsOf(overlap);
  const centre = region?.centre ?? { x: (frame.width - 1) / 2, y: (frame.height - 1) / 2 };
  const problem = active.length === 0
    ? needed(landmarks.length)
    : region === null
      ? "With these landmarks the frames do not overlap. Check whether two landmarks are swapped."
      : null;
  const isKnown = region !== null && (active.length > 0 || question.joined);
  const [errorPx, oneMorePx] = isKnown ? errorsOver(overlap, centre, relation, pose) : [null, null];
  return {
    source: active.length > 0 ? "landmarks" : "mosaic",
    relation,
    pose: relation.tangent("j", centre),
    problem,
    judgements: judge(landmarks, question.noise, pose, frame),
    errorPx,
    oneMorePx,
    uncertaintyInI: (point) => covarianceInI(relation, pose, point),
    predict: (side, point) => predict(relation, pose, side, point),
  };
}

function predict(relation: Relation, pose: Pose, side: Side, point: Point): Prediction {
  const target = relation.seen(side, point);
  const clicks = round(SIGMA_PX.clicked ** 2);
  if (side === "j") return { point: target, covariance: plus(covarianceInI(relation, pose, point), clicks) };
  // The same error, seen the other way: what is i's place for j's point is j's place for i's.
  const back = relation.tangent("i", point);
  return { point: target, covariance: plus(through(back, covarianceInI(relation, pose, target)), through(back, clicks)) };
}

function judge(landmarks: readonly Landmark[], noise: number, { equations }: Pose, frame: Size): Judgement[] {
  const surprises = surprisesOf(equations);
  const side = (frame.width + frame.height) / 2;
  let at = 0;
  return landmarks.map((landmark) => {
    if (!landmark.active) return { tone: "off", offPx: 0, reachPx: 0 };
    const surprise = surprises[at++]!;
    const sigmaPx = noise * sigmaOf(landmark);
    const reachPx = surprise.reach * sigmaPx;
    return { tone: toneOf(landmark, surprise, reachPx, side), offPx: surprise.distance * sigmaPx, reachPx };
  });
}

/** Return how uncertain the place in frame i of a point of frame j is, as it is seen. */
function covarianceInI(relation: Relation, { covariance }: Pose, point: Point): Covariance {
  const rows = rowsInI(relation, point).flat();
  const [xx, xy, , yy] = multiply(rows, multiply(covariance, transposed(rows), ENTRIES), ENTRIES);
  return { xx: xx!, xy: xy!, yy: yy! };
}

/** Return how the place in frame i of a point of frame j moves with the entries of E, px: J v(x), as it is seen. */
function rowsInI(relation: Relation, point: Point): [number[], number[]] {
  const { iFromJ, lens, frame } = relation;
  const { unit } = unitsOf(frame);
  const straight = straighten(lens, point);
  const [x, y] = motionOf({
    x: (straight.x - (frame.width - 1) / 2) / unit,
    y: (straight.y - (frame.height - 1) / 2) / unit,
  });
  const [a, b, , d, e] = compose(invert(slopesAt(lens, relation.seen("j", point))), linearOf(tangentAt(iFromJ, straight)));
  return [x.map((one, k) => unit * (a * one + b * y[k]!)), x.map((one, k) => unit * (d * one + e * y[k]!))];
}

/** Return rows (2, 8) as columns (8, 2). */
function transposed(rows: readonly number[]): number[] {
  return Array.from({ length: 2 * ENTRIES }, (_, k) => rows[(k % 2) * ENTRIES + Math.floor(k / 2)]!);
}

/** Return the RMS error over the overlap, now and after a click on the place that tells most of the others. */
function errorsOver(overlap: Polygon, centre: Point, relation: Relation, { covariance }: Pose): [number, number] {
  const { least, most } = boxOf(overlap);
  const shares = Array.from({ length: PLACES }, (_, k) => (k + 0.5) / PLACES);
  const grid = shares.flatMap((down) =>
    shares.map((across) => ({
      x: least.x + across * (most.x - least.x),
      y: least.y + down * (most.y - least.y),
    })),
  );
  const inside = grid.filter((point) => isInside(overlap, point));
  const places = inside.length > 0 ? inside : [centre];
  const rows = places.map((place) => rowsInI(relation, place));
  // Of all places at once: the mean of the squared errors is the trace of this times the covariance.
  const weight = new Array<number>(ENTRIES * ENTRIES).fill(0);
  for (const row of rows.flat()) {
    row.forEach((one, p) => row.forEach((other, q) => (weight[ENTRIES * p + q]! += (one * other) / places.length)));
  }
  const now = trace(multiply(weight, covariance, ENTRIES));
  const variance = SIGMA_PX.clicked ** 2;
  const removed = rows.map(([along, across]) => {
    const [ca, cb] = [multiply(covariance, along, ENTRIES), multiply(covariance, across, ENTRIES)];
    const [xx, xy, yy] = [dot(along, ca) + variance, dot(along, cb), dot(across, cb) + variance];
    const [wa, wb] = [multiply(weight, ca, ENTRIES), multiply(weight, cb, ENTRIES)];
    return (yy * dot(ca, wa) - 2 * xy * dot(ca, wb) + xx * dot(cb, wb)) / (xx * yy - xy * xy);
  });
  return [Math.sqrt(now), Math.sqrt(Math.max(0, now - Math.max(...removed)))];
}

function needed(off: number): string {
  return off > 0
    ? "All landmarks are switched off. Switch on at least one."
    : "Set a landmark: mark a point in one frame, then the same point in the other.";
}
