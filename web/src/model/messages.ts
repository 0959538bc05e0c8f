// Made from src/smalti/annotation/messages.py by python -m smalti.server.typescript --write: do not edit.

/** Who gave an answer. A person's answer is never rejected, only questioned. */
export type Author = "matcher" | "person";

/** What an agent says about a pair. */
export type Verdict = "yes" | "no" | "unsure";

/** How a landmark came to its place. */
export type Origin =
  | "clicked"
  /** moved to where the frames correlate best */
  | "snapped"
  /** by the matcher */
  | "matched";

/** A point that both frames show; one that is not active is kept but does not count. */
export interface Landmark {
  x_i: number;
  y_i: number;
  x_j: number;
  y_j: number;
  origin: Origin;
  active: boolean;
}

/** An answer on a pair; `seen_revision` is the revision that the person had before their eyes. */
export interface GiveAnswer {
  i: number;
  j: number;
  verdict: Verdict;
  landmarks?: Landmark[];
  reason?: string;
  seconds?: number;
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

/** Would this yes contradict what is known? */
export interface CheckLandmarks {
  i: number;
  j: number;
  landmarks: Landmark[];
}

/** One of the two frames of a pair. */
export type Side = "i" | "j";

/** Move one side of a landmark to where it looks like the other. */
export interface SnapPoint {
  i: number;
  j: number;
  x_i: number;
  y_i: number;
  x_j: number;
  y_j: number;
  moving: Side;
  /** affine, near the point, as well as it is known: how the frames are turned to each other */
  i_from_j: number[];
  /** px of the moving frame that are searched */
  radius?: number;
}

/** What the program is doing. */
export type Stage = "preparing" | "asking" | "finishing" | "failed";

/** How far a stage of the work has come; a total of 0 is not known. */
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

/** How sure the predicted error is, what further answers would bring, and whether they are worth while. */
export interface Prediction {
  /** when it was foretold */
  answers: number;
  /** the error is below this nine times of ten */
  bound_px: number;
  /** goes on where the state's errors end */
  ahead: ErrorAfter[];
  worth_going_on: boolean;
}

/** What has changed; sent to every open page. */
export interface Notice {
  revision: number;
  stage: Stage;
  progress: Progress | null;
  /** computed while people look: None until it is known */
  prediction: Prediction | null;
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

/** Small pictures of all usable frames, in their order, many on one image each. */
export interface Sheets {
  count: number;
  columns: number;
  per_sheet: number;
  /** of one small picture */
  width: number;
  height: number;
}

/** What bends straight pixels: `Lens.undistort` takes one that is seen to x (1 + k1|x|² + k2|x|⁴). */
export interface LensNumbers {
  centre_x: number;
  centre_y: number;
  /** in which x counts, from the centre */
  unit_px: number;
  k1: number;
  k2: number;
}

/** Everything above the two frames, and what can be done. */
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
  /** why nothing is asked any more, in words */
  stopped: string | null;
  /** mosaics that nothing joins yet */
  parts: number;
  /** the mosaic in the folder is that of the answers so far */
  finished: boolean;
  folder: string;
  sheets: Sheets | null;
  /** None where nothing is bent */
  lens: LensNumbers | null;
  /** frames show the scene in part of them only: see /api/mask.png */
  masked: boolean;
}

/** Where every usable frame lies now, on the plane of its part's reference frame. */
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
  /** probability that this is answered yes, all things considered */
  overlap: number;
  /** probability of overlap by the mosaic alone */
  position: number;
  /** and by appearance alone */
  appearance: number;
  /** both frames are on one mosaic; otherwise nothing is known of their places */
  joined: boolean;
  /** how uncertain the place of one in the other is */
  unknown_px: number;
  /** (3, 3) */
  i_from_j: number[];
  /** (8, 8), of the entries of E, units of the frame: i_from_j ← i_from_j exp(E) */
  covariance: number[];
  /** of people's landmarks so far, times what is usual */
  noise: number;
  answer: Given | null;
}

/** What the matcher says of a pair. */
export interface Proposal {
  i: number;
  j: number;
  verdict: Verdict;
  landmarks: Landmark[];
  reason: string;
  sure: boolean;
}

/** What a yes on a pair would bring, and how many answers the target is away. */
export interface Forecast {
  revision: number;
  i: number;
  j: number;
  now_px: number;
  /** None where the method does not tell */
  after_yes_px: number | null;
  /** answers until the target; None where there is none, or it is too far to tell */
  more: number | null;
  /** `more` answers are not enough */
  more_is_bound: boolean;
}

/** An answer that does not agree with what was known. */
export interface Contradiction {
  i: number;
  j: number;
  /** as surprising as a normal number that many σ out */
  sigmas: number;
  /** RMS, from where the mosaic had the landmarks; 0 for a no */
  off_px: number;
  /** how surely it had them there */
  expected_px: number;
  /** the pair whose answer agrees least with this one */
  rival_i: number | null;
  rival_j: number | null;
  rival_author: Author | null;
  explanation: string;
}

/** What became of an answer, an undo or a redo: it is on disk. */
export interface Outcome {
  state: State;
  /** the next one */
  question: Question | null;
  contradiction: Contradiction | null;
  /** what was done, in words */
  done: string;
}

/** Somebody else changed what this answer is about, in the meantime. */
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

/** The verdict on landmarks before they are given. */
export interface Checked {
  /** none, mirrored, far outside: in words */
  problem: string | null;
  contradiction: Contradiction | null;
}

/** Where the point belongs, or why that cannot be told. */
export interface Snapped {
  found: boolean;
  x: number;
  y: number;
  correlation: number;
  reason: string;
}

/** A line of the table of answers. */
export interface AnswerRow {
  /** in the log */
  place: number;
  i: number;
  j: number;
  role: string;
  verdict: Verdict;
  author: Author;
  landmarks: number;
  /** on the mosaic as it is */
  residual_px: number | null;
  /** contradicts the others, and is not used */
  rejected: boolean;
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
