/** Whether to go on: the predicted error, in words. */
import { formatPx } from "./chart";
import type { Prediction, State } from "./messages";
import { capitalised, isTargetReached } from "./words";

/** What was predicted, and after which revision. */
export interface DatedPrediction extends Prediction {
  readonly revision: number;
}

/** Whether it is about the answers that there are. */
export function isCurrent(predicted: DatedPrediction, state: State): boolean {
  return predicted.revision === state.revision;
}

/** Say in a few words whether to go on, and how sure the error is. */
export function summary(state: State, prediction: Prediction, isDisputed = false): string {
  const isJoining = state.parts > 1 && !prediction.worth_going_on && !isDisputed;
  // Short, for it has one line.
  const words = isJoining ? "a yes that joins parts would help most" : advice(state, prediction, "little left to gain", isDisputed);
  return `${words} · ${bound(prediction)}`;
}

/** Say all of it: how sure the error is, what further answers would bring, whether to go on. */
export function sentence(state: State, prediction: Prediction, isDisputed = false): string {
  const more = prediction.ahead.map(({ answers }) => answers - prediction.answers);
  const left = prediction.ahead.map(({ predicted_px }) => formatPx(predicted_px));
  const most = more.at(-1) ?? 0;
  const ahead = `Predicted after ${more.join(", ")} more answers: ${left.join(", ")} px`;
  const whether = capitalised(advice(state, prediction, `${most} more answers would change little`, isDisputed));
  return `Now: ${bound(prediction)}. ${ahead}. ${whether}.`;
}

function bound({ bound_px }: Prediction): string {
  return `error below ${formatPx(bound_px)} px (90 % sure)`;
}

function advice(state: State, { worth_going_on }: Prediction, little: string, isDisputed: boolean): string {
  // Nobody is told to stop while an answer contradicts the others.
  if (isDisputed) return "two answers contradict each other";
  if (isTargetReached(state)) return "you can stop";
  if (worth_going_on) return "more answers would help";
  // Within each part: what joins them is not predicted.
  return state.parts > 1 ? `${little} inside the parts; a yes between them would join them` : `${little}: you can stop`;
}
