import { describe, expect, test } from "vitest";
import type { State } from "./messages";
import { isCurrent, sentence, summary, type DatedPrediction } from "./prediction";

const state = { revision: 7, target_met: false, parts: 1 } as State;
const ahead = [1.62, 1.34, 1.08].map((predicted_px, k) => ({ answers: 4 + [5, 10, 20][k], predicted_px }));
const predicted: DatedPrediction = { revision: 7, answers: 4, bound_px: 2.87, ahead, worth_going_on: true };
const done: DatedPrediction = { ...predicted, worth_going_on: false };

describe("the prediction", () => {
  test("says how sure the error is, what comes, and whether to go on", () => {
    expect(sentence(state, predicted)).toBe(
      "Now: error below 2.9 px (90 % sure). Predicted after 5, 10, 20 more answers: 1.6, 1.3, 1.1 px. " +
        "More answers would help.",
    );
    expect(summary(state, predicted)).toBe("more answers would help · error below 2.9 px (90 % sure)");
  });

  test("says when one may stop", () => {
    expect(sentence(state, done)).toMatch(/20 more answers would change little: you can stop\.$/);
    expect(summary(state, done)).toBe("little left to gain: you can stop · error below 2.9 px (90 % sure)");
  });

  test("lets one stop at the target, even where more could be gained", () => {
    expect(summary({ ...state, target_met: true }, predicted)).toMatch(/^you can stop/);
  });

  test("lets nobody stop while an answer contradicts the others", () => {
    expect(summary({ ...state, target_met: true }, done, true)).not.toContain("stop");
    expect(sentence(state, done, true)).not.toContain("stop");
  });

  test("stops nobody while parts are not joined, which is not predicted", () => {
    const apart = { ...state, parts: 3, target_met: true };
    expect(summary(apart, predicted)).toMatch(/^more answers would help/);
    expect(summary(apart, done)).toMatch(/^a yes that joins parts would help most ·/);
  });

  test("is current only for the answers that it was made from", () => {
    expect(isCurrent(predicted, state)).toBe(true);
    expect(isCurrent(predicted, { ...state, revision: 8 })).toBe(false);
  });
});
