import { expect, it } from "vitest";
import { stepsToQuestion } from "./preparation";

const statesAt = (name: string, done: number, total: number) =>
  stepsToQuestion({ name, done, total }, false).map(({ state }) => state);

it("marks the steps before the one at work as done", () => {
  expect(statesAt("chain", 3, 40)).toEqual(["done", "now", "ahead", "ahead", "ahead", "ahead"]);
});

it("goes on to the next step when one is complete, although the program has not named it yet", () => {
  expect(statesAt("chain", 40, 40)).toEqual(["done", "done", "now", "ahead", "ahead", "ahead"]);
  expect(statesAt("answers", 0, 0)[4]).toBe("now");
});

it("begins at the beginning, and ends with the first question", () => {
  expect(stepsToQuestion(null, false)[0]!.state).toBe("now");
  expect(stepsToQuestion(null, true).map(({ state }) => state).pop()).toBe("now");
});
