/** Colours and words of landmarks, by how surprising they are. */
import type { Landmark } from "./messages";
import type { Surprise } from "./surprise";
import { WRONG } from "./surprise";

export type LandmarkTone = "good" | "unchecked" | "warn" | "bad" | "off";

/** A true landmark is as surprising once in twenty-three times. */
const DOUBTFUL = 2.5;

/** A landmark is checked where an error of this share of the frame's side would be doubtful. */
const NOTICED = 0.08;

/** `reachPx`: one σ of where it is expected; `side`: of the frame, px. */
export function toneOf({ active }: Landmark, { sigmas }: Surprise, reachPx: number, side: number): LandmarkTone {
  if (!active) return "off";
  if (sigmas >= WRONG) return "bad";
  if (sigmas >= DOUBTFUL) return "warn";
  return DOUBTFUL * reachPx > NOTICED * side ? "unchecked" : "good";
}

/** Return the judgement of the landmark that fits least. */
export function worstOf<T extends { readonly tone: LandmarkTone }>(judgements: readonly T[]): T {
  const rank = ({ tone }: T) => ["off", "good", "unchecked", "warn", "bad"].indexOf(tone);
  return judgements.reduce((worst, judgement) => (rank(judgement) > rank(worst) ? judgement : worst));
}

export function toneWords(tone: LandmarkTone): string {
  return { good: "fits", unchecked: "not checked", warn: "doubtful", bad: "wrong?", off: "off" }[tone];
}
