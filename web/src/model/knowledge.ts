/** Where a point of one frame is expected in the other, and how surely: by the mosaic, and by the landmarks that are set. */
import type { Affine, Point } from "./affine";
import { distance, invert } from "./affine";
import type { Covariance } from "./covariance";
import { plus, round, through } from "./covariance";
import { tangentAt } from "./homography";
import { slopesAt, straighten } from "./lens";
import type { Landmark, LensNumbers, Question, Side } from "./messages";
import { multiply } from "./matrix";
import type { Polygon, Size } from "./polygon";
import { boxOf, isInside, momentsOf } from "./polygon";
import type { Pose } from "./pose";
import { ENTRIES, motionOf, pointOf, poseOf, SIGMA_PX, unitsOf } from "./pose";
import { Relation } from "./relation";

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
  /** Of every landmark, px of frame i. */
  readonly residuals: readonly number[];
  /** Expected RMS distance of the pose from the truth over the overlap, px of frame i; null without landmarks. */
  readonly errorPx: number | null;
  /** Where a point of frame `side` is expected in the other one. */
  predict(side: Side, point: Point): Prediction;
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
): Knowledge {
  const active = landmarks.filter((landmark) => landmark.active);
  const pose = poseOf(question, landmarks, frame, lens);
  const relation = new Relation(pose.iFromJ, lens, frame);
  const overlap = relation.overlap("j");
  const region = momentsOf(overlap);
  const centre = region?.centre ?? { x: (frame.width - 1) / 2, y: (frame.height - 1) / 2 };
  const problem = active.length === 0
    ? needed(landmarks.length)
    : region === null
      ? "With these landmarks the frames do not overlap. Check whether two landmarks are swapped."
      : null;
  return {
    source: active.length > 0 ? "landmarks" : "mosaic",
    relation,
    pose: relation.tangent("j", centre),
    problem,
    residuals: landmarks.map((landmark) => distance(pointOf(landmark, "i"), relation.seen("j", pointOf(landmark, "j")))),
    errorPx: active.length === 0 || region === null ? null : errorOver(overlap, centre, relation, pose),
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

/** Return how uncertain the place in frame i of a point of frame j is: J v(x) C v(x)ᵀ Jᵀ, as it is seen. */
function covarianceInI(relation: Relation, { covariance }: Pose, point: Point): Covariance {
  const { iFromJ, lens, frame } = relation;
  const { unit } = unitsOf(frame);
  const straight = straighten(lens, point);
  const rows = motionOf({
    x: (straight.x - (frame.width - 1) / 2) / unit,
    y: (straight.y - (frame.height - 1) / 2) / unit,
  }).flat();
  const carried = multiply(covariance, transposed(rows), ENTRIES);
  const [xx, xy, , yy] = multiply(rows, carried, ENTRIES).map((entry) => entry * unit ** 2);
  const map = tangentAt(iFromJ, straight);
  const inStraight = through(map, { xx: xx!, xy: xy!, yy: yy! });
  return through(invert(slopesAt(lens, relation.seen("j", point))), inStraight);
}

/** Return rows (2, 8) as columns (8, 2). */
function transposed(rows: readonly number[]): number[] {
  return Array.from({ length: 2 * ENTRIES }, (_, k) => rows[(k % 2) * ENTRIES + Math.floor(k / 2)]!);
}

function errorOver(overlap: Polygon, centre: Point, relation: Relation, pose: Pose): number {
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
  const variances = places.map((point) => covarianceInI(relation, pose, point)).map(({ xx, yy }) => xx + yy);
  return Math.sqrt(variances.reduce((sum, variance) => sum + variance) / places.length);
}

function needed(off: number): string {
  return off > 0
    ? "All landmarks are switched off. Switch on at least one."
    : "Set a landmark: click a point in one frame, then the same point in the other.";
}
