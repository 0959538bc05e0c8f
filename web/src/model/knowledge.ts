/** Where a point of one frame is expected in the other, and how surely: by the mosaic, then by the landmarks. */
import type { Affine, Point } from "./affine";
import { add, affineOf, apply, invert, scaled, shifted, subtract } from "./affine";
import type { Covariance } from "./covariance";
import { covarianceUnder, plus, round, through } from "./covariance";
import type { Fit } from "./fit";
import { fitLandmarks, pointOf, predictedError, residualOf, SIGMA_PX } from "./fit";
import type { Landmark, Question, Side } from "./messages";
import type { Size } from "./polygon";
import { intersect, mapped, momentsOf, outlineOf } from "./polygon";

export interface Prediction {
  readonly point: Point;
  readonly covariance: Covariance;
}

export interface Knowledge {
  readonly source: "mosaic" | "corrected" | "landmarks";
  readonly iFromJ: Affine;
  /** The map to show the frames by: as `iFromJ`, unless few landmarks close together turn that askew. */
  readonly pose: Affine;
  readonly fit: Fit | null;
  /** Why the landmarks cannot be confirmed, in a sentence. */
  readonly problem: string | null;
  /** Of every landmark, px of frame i; against the fit, or while there is none against the prediction. */
  readonly residuals: readonly number[];
  /** Expected RMS distance of the fit from the truth over the overlap, px of frame i. */
  readonly errorPx: number | null;
  /** Where a point of frame `side` is expected in the other one. */
  predict(side: Side, point: Point): Prediction;
}

/** A fit worse than this share of the frame's longer side is no pose to show frames in. */
const WORST_POSE = 0.05;

export function other(side: Side): Side {
  return side === "i" ? "j" : "i";
}

/** Put together what the question and the landmarks tell about the pair. */
export function knowledgeOf(question: Question, landmarks: readonly Landmark[], frame: Size): Knowledge {
  const active = landmarks.filter((landmark) => landmark.active);
  const corrected = correct(affineOf(question.i_from_j), active);
  const fitted = fitLandmarks(landmarks);
  if ("problem" in fitted) {
    return {
      source: active.length > 0 ? "corrected" : "mosaic",
      iFromJ: corrected,
      pose: corrected,
      fit: null,
      problem: fitted.problem,
      residuals: landmarks.map((landmark) => residualOf(landmark, corrected)),
      errorPx: null,
      predict: predictByMosaic(question, corrected, active),
    };
  }
  const { fit } = fitted;
  const region = momentsOf(overlapInJ(fit.iFromJ, frame));
  const errorPx = region === null ? null : predictedError(fit, region);
  const trusted = errorPx !== null && errorPx <= WORST_POSE * Math.max(frame.width, frame.height);
  return {
    source: "landmarks",
    iFromJ: fit.iFromJ,
    pose: trusted ? fit.iFromJ : corrected,
    fit,
    problem: region === null ? "By these landmarks the frames do not overlap: check whether two are exchanged." : null,
    residuals: fit.residuals,
    errorPx,
    predict: predictByLandmarks(fit),
  };
}

/** Return the part of frame j that frame i shows too. */
export function overlapInJ(iFromJ: Affine, frame: Size) {
  const outline = outlineOf(frame);
  return intersect(outline, mapped(outline, invert(iFromJ)));
}

/** Move the mosaic's prediction by the mean offset of the landmarks that are there. */
function correct(iFromJ: Affine, active: readonly Landmark[]): Affine {
  if (active.length === 0) return iFromJ;
  const offsets = active.map((landmark) => subtract(pointOf(landmark, "i"), apply(iFromJ, pointOf(landmark, "j"))));
  return shifted(iFromJ, mean(offsets));
}

function predictByMosaic(question: Question, iFromJ: Affine, active: readonly Landmark[]): Knowledge["predict"] {
  const jFromI = invert(iFromJ);
  return (side, point) => {
    const [map, ofMap] = side === "j" ? [iFromJ, question.covariance_i] : [jFromI, question.covariance_j];
    if (active.length === 0) return { point: apply(map, point), covariance: covarianceUnder(ofMap, point, 1) };
    // The landmarks fix the place of their centre; what is left is the uncertainty of the linear part.
    const anchor = mean(active.map((landmark) => pointOf(landmark, side)));
    const clicks = SIGMA_PX.clicked ** 2 * (1 + 1 / active.length);
    const inPixels = side === "j" ? round(clicks) : through(jFromI, round(clicks));
    return {
      point: apply(map, point),
      covariance: plus(covarianceUnder(ofMap, subtract(point, anchor), 0), inPixels),
    };
  };
}

function predictByLandmarks(fit: Fit): Knowledge["predict"] {
  const jFromI = invert(fit.iFromJ);
  return (side, point) => {
    const target = apply(side === "j" ? fit.iFromJ : jFromI, point);
    const inI = round(SIGMA_PX.clicked ** 2 + fit.varianceAt(side === "j" ? point : target));
    return { point: target, covariance: side === "j" ? inI : through(jFromI, inI) };
  };
}

function mean(points: readonly Point[]): Point {
  return scaled(points.reduce(add), 1 / points.length);
}
