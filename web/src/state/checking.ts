/** Asks the program, while the person still draws, whether the landmarks would contradict what is known. */
import { RefusedError, UnreachableError } from "./api";
import type { Application } from "./application";
import { isSamePair } from "./drawing";

const PAUSE_MS = 350;

/** Check whenever the landmarks have stayed the same for a moment, one check at a time. */
export function keepChecking(app: Application): void {
  const { drawing } = app;
  let timer = 0;
  let isAsking = false;
  const later = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void check(), PAUSE_MS);
  };
  drawing.knowledge.subscribe(() => {
    drawing.warning.set(null);
    later();
  });

  async function check(): Promise<void> {
    const { question } = drawing;
    const { landmarks } = drawing.draft.value;
    const isSound = drawing.knowledge.value?.problem === null;
    // The answer itself is checked when it is given.
    if (question === null || !isSound || !drawing.isTouched || app.isAnswering.value) return;
    if (isAsking) return later();
    isAsking = true;
    try {
      const { i, j, is_known } = question;
      const { problem, contradiction } = await app.api.check({ i, j, landmarks: [...landmarks], is_known });
      const isStill = isSamePair(drawing.question, question) && drawing.draft.value.landmarks === landmarks;
      if (isStill) drawing.warning.set(problem ?? contradiction?.explanation ?? null);
    } catch (error) {
      if (!(error instanceof RefusedError || error instanceof UnreachableError)) throw error;
    } finally {
      isAsking = false;
    }
  }
}
