/** The steps before the first question, and which of them the program is doing. */
import type { Progress } from "./messages";

export interface Step {
  readonly words: string;
  readonly state: "done" | "now" | "ahead";
}

/** In order; the steps without a stage of their own begin when the one before is complete. */
const STEPS: readonly { readonly stage: string | null; readonly words: string }[] = [
  { stage: "reading", words: "Read the frames" },
  { stage: "chain", words: "Register each frame to the next one" },
  { stage: null, words: "Compare how the frames look" },
  { stage: "answers", words: "Take up the answers so far" },
  { stage: "pictures", words: "Make the pictures for this page" },
  { stage: null, words: "Choose the first question" },
];

/** Return all steps up to the first question; `isReady`: only the question itself is still missing. */
export function stepsToQuestion(progress: Progress | null, isReady: boolean): Step[] {
  const now = isReady ? STEPS.length - 1 : stepOf(progress);
  return STEPS.map(({ words }, at) => ({ words, state: at < now ? "done" : at === now ? "now" : "ahead" }));
}

function stepOf(progress: Progress | null): number {
  const at = STEPS.findIndex(({ stage }) => stage !== null && stage === progress?.name);
  if (progress === null || at < 0) return 0;
  return progress.done >= progress.total ? at + 1 : at;
}
