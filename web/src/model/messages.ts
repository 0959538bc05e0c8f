// Made from src/smalti/annotation/messages.py by python -m smalti.server.typescript --write: do not edit.

/** Who gave an answer. A person's answer is never rejected, only questioned. */
export type Author = "matcher" | "person";

/** What an agent says about a pair. */
export type Verdict = "yes" | "no" | "unsure";

/** How a landmark got its position. */
export type Origin =
  | "clicked"
  /** moved to where the frames correlate best */
  | "snapped"
  /** by the matcher */
  | "matched"
  /** by all pixels, from where a person had laid the frame */
  | "aligned"
  /** where a person has laid the frame, as it is */
  | "laid"
  /** on a vessel that a person has drawn along in both frames */
  | "traced";

/** A point that both frames show. An inactive one is kept but not used. */
export interface Landmark {
  x_i: number;
  y_i: number;
  x_j: number;
  y_j: number;
  origin: Origin;
  active: boolean;
  /** left out of the link to be compared with the mosaic; then it is not active either */
  check: boolean;
  /** None: its origin's */
  sigma_px: number | null;
  /** of its curve in i, free along it; None: a point */
  along_deg: number | null;
  /** landmarks of a curve have its number */
  curve: number | null;
}

/** An answer on a pair. `seen_revision` is the revision that the person saw. */
export interface GiveAnswer {
  i: number;
  j: number;
  verdict: Verdict;
  landmarks?: Landmark[];
  reason?: string;
  seconds?: number;
  /** who gives it */
  person?: string;
  /** as in the question */
  is_known?: boolean;
  seen_revision: number;
}

/** Take an answer back, whenever it was given. */
export interface RemoveAnswer {
  i: number;
  j: number;
  seen_revision: number;
}

/** Undo or redo one thing. */
export interface Step {
  seen_revision: number;
}

/** Ask whether this yes would contradict the state. */
export interface CheckLandmarks {
  i: number;
  j: number;
  landmarks: Landmark[];
  /** as in the question */
  is_known?: boolean;
}

/** One of the two frames of a pair. */
export type Side = "i" | "j";

/** Move one side of a landmark to where it correlates best with the other. */
export interface SnapPoint {
  i: number;
  j: number;
  x_i: number;
  y_i: number;
  x_j: number;
  y_j: number;
  moving: Side;
  /** affine approximation near the point, as far as it is known */
  i_from_j: number[];
  /** px of the moving frame that are searched */
  radius?: number;
}

/** Align frame j by all pixels, from where a person has laid it over frame i. */
export interface AlignFrames {
  i: number;
  j: number;
  i_from_j: number[];
}

/** Find the vessel under the strokes that a person has drawn along it in both frames. */
export interface TraceVessel {
  i: number;
  j: number;
  stroke_i: number[][];
  stroke_j: number[][];
  /** as it is expected */
  i_from_j: number[];
  /** of this; None: nothing is known */
  sigma_px: number | null;
}

/** What the program is doing. */
export type Stage = "preparing" | "asking" | "finishing" | "failed";

/** Progress of a stage. A total of 0 means unknown. */
export interface Progress {
  name: string;
  done: number;
  total: number;
}

/** The predicted error of the mosaic after so many answers. */
export interface ErrorAfter {
  answers: number;
  predicted_px: number;
}

/** The uncertainty of the predicted error, the errors after further answers, and whether these are worthwhile. */
export interface Prediction {
  /** at the time of the prediction */
  answers: number;
  /** the error is below this with a probability of 0.9 */
  bound_px: number;
  /** continues where the errors of the state end */
  ahead: ErrorAfter[];
  worth_going_on: boolean;
}

/** What has changed. Sent to every open page. */
export interface Notice {
  revision: number;
  stage: Stage;
  progress: Progress | null;
  /** None until it is computed */
  prediction: Prediction | null;
  /** the matcher is answering questions now */
  working: boolean;
}

/** Which questions a person sees. */
export type Queue =
  | "all"
  /** those of which the matcher is not sure; it answers the others itself */
  | "doubtful";

/** Answers of the loop so far. */
export interface Counts {
  yes: number;
  no: number;
  unsure: number;
  by_person: number;
}

/** Small pictures of all usable frames, in order, many on each image. */
export interface Sheets {
  count: number;
  columns: number;
  per_sheet: number;
  /** of one small picture */
  width: number;
  height: number;
}

/** What pairs with known answers say of a person. */
export interface MeasuredPerson {
  person: string;
  /** pairs answered yes or no */
  known: number;
  /** of these */
  right: number;
  /** answered "cannot tell" */
  unsure: number;
  /** of a coordinate of their landmarks; None without a yes */
  sigma_px: number | null;
  sigma_uncertainty_px: number | null;
}

/** The lens: `Lens.undistort` maps a distorted pixel to x (1 + k1|x|² + k2|x|⁴). */
export interface LensNumbers {
  centre_x: number;
  centre_y: number;
  /** unit of x, from the centre */
  unit_px: number;
  k1: number;
  k2: number;
}

/** The numbers above the two frames, and the possible actions. */
export interface State {
  revision: number;
  stage: Stage;
  progress: Progress | null;
  failure: string | null;
  name: string;
  source: string;
  queue: Queue;
  width: number;
  height: number;
  /** of the source */
  frames: number;
  usable: number;
  counts: Counts;
  predicted_px: number | null;
  target_px: number | null;
  /** the bound on the error is below it */
  target_met: boolean;
  errors: ErrorAfter[];
  /** what would be undone, in words */
  undo: string | null;
  redo: string | null;
  /** why no question is left, or why the matcher answers no more, in words */
  stopped: string | null;
  /** the matcher is answering questions now, and nobody is asked */
  working: boolean;
  /** number of mosaics that nothing joins yet */
  parts: number;
  /** the mosaic in the folder has all answers so far */
  finished: boolean;
  folder: string;
  sheets: Sheets | null;
  people: MeasuredPerson[];
  /** None without distortion */
  lens: LensNumbers | null;
  /** only part of each frame is valid: see /api/mask.png */
  masked: boolean;
}

/** The map of every usable frame, to the reference frame of its part. */
export interface LiveMosaic {
  revision: number;
  /** of the largest part */
  reference: number;
  numbers: number[];
  /** mosaic_from_frame, 9 a frame */
  maps: number[];
  /** of the centre relative to the reference of its part */
  sigma_px: number[];
  /** 0 for the largest */
  parts: number[];
  /** False for a frame whose position depends on a single match */
  confirmed: boolean[];
}

/** The answer that a pair has. */
export interface Given {
  verdict: Verdict;
  landmarks: Landmark[];
  author: Author;
  reason: string;
}

/** Two frames, why they are asked, and where one is expected in the other. */
export interface Question {
  revision: number;
  i: number;
  j: number;
  label_i: string;
  label_j: string;
  /** by the engine; otherwise the person picked the pair */
  suggested: boolean;
  /** probability of a yes, from all evidence */
  overlap: number;
  /** probability of overlap from the mosaic alone */
  position: number;
  /** probability of overlap from appearance alone */
  appearance: number;
  /** both frames are on one mosaic; otherwise their relative position is unknown */
  joined: boolean;
  /** uncertainty of the relative position */
  unknown_px: number;
  /** (3, 3) */
  i_from_j: number[];
  /** (8, 8), of the entries of E, units of the frame: i_from_j ← i_from_j exp(E) */
  covariance: number[];
  /** of people's landmarks so far, relative to the usual noise */
  noise: number;
  answer: Given | null;
  /** asked to measure the person, who is not told */
  is_known: boolean;
}

/** An answer on a pair that a person may accept: the matcher's, or that of an alignment by all pixels. */
export interface Proposal {
  i: number;
  j: number;
  verdict: Verdict;
  landmarks: Landmark[];
  reason: string;
  sure: boolean;
}

/** The expected effect of a yes on a pair, and the number of answers until the target. */
export interface Forecast {
  revision: number;
  i: number;
  j: number;
  now_px: number;
  /** None if the method does not predict it */
  after_yes_px: number | null;
  /** answers until the target; None without a target, or if it is too far away */
  more: number | null;
  /** `more` answers are not enough */
  more_is_bound: boolean;
}

/** An answer that does not agree with the state before it. */
export interface Contradiction {
  i: number;
  j: number;
  /** as surprising as a normal variable this many σ from its mean */
  sigmas: number;
  /** RMS, from where the mosaic predicted the landmarks; 0 for a no */
  off_px: number;
  /** uncertainty of that prediction */
  expected_px: number;
  /** the pair whose answer agrees least with this one */
  rival_i: number | null;
  rival_j: number | null;
  rival_author: Author | null;
  explanation: string;
}

/** The result of an answer, an undo or a redo. It is on disk. */
export interface Outcome {
  state: State;
  /** the next one */
  question: Question | null;
  contradiction: Contradiction | null;
  /** what was done, in words */
  done: string;
}

/** Somebody else has changed the answer on this pair meanwhile. */
export interface Conflict {
  explanation: string;
  i: number;
  j: number;
  theirs: Given | null;
  state: State;
}

/** Why a request cannot be done, and what to do. */
export interface Refusal {
  explanation: string;
}

/** The result of a check of landmarks before they are given. */
export interface Checked {
  /** none, mirrored, far outside: in words */
  problem: string | null;
  contradiction: Contradiction | null;
}

/** The new position of the point, or why it cannot be found. */
export interface Snapped {
  found: boolean;
  x: number;
  y: number;
  correlation: number;
  reason: string;
}

/** Landmarks on the vessel under two strokes, or why there are none. */
export interface TracedVessel {
  found: boolean;
  landmarks: Landmark[];
  /** RMS between the lines of both frames, across */
  distance_px: number;
  reason: string;
}

/** A row of the table of answers. */
export interface AnswerRow {
  /** in the log */
  place: number;
  i: number;
  j: number;
  role: string;
  verdict: Verdict;
  author: Author;
  /** the name that the person gave */
  person: string;
  landmarks: number;
  /** on the current mosaic */
  residual_px: number | null;
  /** contradicts the others, and is not used */
  rejected: boolean;
  /** contradicts the others, and counts less than half or not at all */
  contradicted: boolean;
  reason: string;
  seconds: number;
}

/** What a map of all pairs shows. */
export type MapKind = "overlap" | "informativeness" | "reward";

/** A window of an N × N matrix over the usable frames, reduced by maximum. */
export interface PairMap {
  revision: number;
  kind: MapKind;
  /** among the usable frames */
  first_row: number;
  first_column: number;
  frames_per_cell: number;
  rows: number;
  columns: number;
  /** base64 of rows × columns bytes, 0 for `smallest` or less, 255 for `largest` */
  values: string;
  smallest: number;
  largest: number;
  logarithmic: boolean;
}

/** One of the two mosaics that can be compared at the end. */
export type MosaicVersion =
  | "now"
  /** by the chain alone */
  | "before";

/** A mosaic as DeepZoom tiles. Its last level has `width` × `height` pixels, and each level before half as many. */
export interface TilePyramid {
  /** centre of its first pixel at scale 1, in coordinates that both versions share, px of the frames */
  left: number;
  top: number;
  /** its pixels for each px of the frames */
  scale: number;
  width: number;
  height: number;
  levels: number;
  /** of a tile, without what it shares with its neighbours */
  side: number;
  /** px that a tile shares with each neighbour */
  overlap: number;
}

/** A file of the project's folder. */
export interface DeliveredFile {
  name: string;
  bytes: number;
}

/** The last mosaic that was finished, to be looked at. */
export interface FinishedMosaic {
  /** changes when it is finished again */
  edition: string;
  now: TilePyramid;
  /** None if the chain alone makes no mosaic that can be drawn */
  before: TilePyramid | null;
  /** on it */
  frames: number;
  /** predicted */
  error_px: number | null;
  /** the same by the chain alone */
  before_px: number | null;
  /** it has all answers */
  is_newest: boolean;
  files: DeliveredFile[];
  folder: string;
}
