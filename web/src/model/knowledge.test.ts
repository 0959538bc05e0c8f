import { describe, expect, it } from "vitest";
import type { Affine } from "./affine";
import { apply, invert } from "./affine";
import { ellipseOf } from "./covariance";
import { knowledgeOf } from "./knowledge";
import type { Landmark, Question } from "./messages";

const frame = { width: 320, height: 240 };
const truth: Affine = [0, -1, 260, 1, 0, 10];
const guess: Affine = [0, -1, 275, 1, 0, 2];

const covariance = Array.from({ length: 36 }, (_, k) => {
  if (k % 7 !== 0) return 0;
  return Math.floor(k / 6) % 3 === 2 ? 400 : 1e-4;
});

const question: Question = {
  revision: 3,
  i: 4,
  j: 90,
  label_i: "",
  label_j: "",
  suggested: true,
  position: 0.5,
  looks: 0.5,
  unknown_px: 20,
  i_from_j: [...guess],
  j_from_i: [...invert(guess)],
  covariance_i: covariance,
  covariance_j: covariance,
  answer: null,
};

function landmark(x: number, y: number): Landmark {
  const i = apply(truth, { x, y });
  return { x_i: i.x, y_i: i.y, x_j: x, y_j: y, origin: "clicked", active: true };
}

describe("knowledge of a pair", () => {
  it("is the mosaic’s prediction at first", () => {
    const { point, covariance: spread } = knowledgeOf(question, [], frame).predict("j", { x: 30, y: 40 });
    expect(point).toEqual(apply(guess, { x: 30, y: 40 }));
    expect(spread.xx).toBeCloseTo(400 + 1e-4 * (30 ** 2 + 40 ** 2), 9);
    expect(spread.xy).toBe(0);
  });

  it("predicts both ways alike", () => {
    const knowledge = knowledgeOf(question, [landmark(100, 50)], frame);
    const there = knowledge.predict("j", { x: 30, y: 40 }).point;
    const back = knowledge.predict("i", there).point;
    expect(back.x).toBeCloseTo(30, 9);
    expect(back.y).toBeCloseTo(40, 9);
  });

  it("is moved by the mean offset of one or two landmarks", () => {
    const one = knowledgeOf(question, [landmark(100, 50)], frame);
    expect(one.source).toBe("corrected");
    const exact = apply(truth, { x: 120, y: 80 });
    expect(one.predict("j", { x: 120, y: 80 }).point.x).toBeCloseTo(exact.x, 9);
    const off = { ...landmark(200, 60), x_i: landmark(200, 60).x_i + 4 };
    const two = knowledgeOf(question, [landmark(100, 50), off], frame);
    expect(two.predict("j", { x: 120, y: 80 }).point.x).toBeCloseTo(exact.x + 2, 9);
  });

  it("is surest near the landmark", () => {
    const one = knowledgeOf(question, [landmark(100, 50)], frame);
    const near = ellipseOf(one.predict("j", { x: 101, y: 50 }).covariance).along;
    const far = ellipseOf(one.predict("j", { x: 300, y: 200 }).covariance).along;
    expect(near).toBeCloseTo(2 * 1.5 * Math.SQRT2, 1);
    expect(far).toBeGreaterThan(near);
    const none = knowledgeOf(question, [], frame);
    expect(far).toBeLessThan(ellipseOf(none.predict("j", { x: 300, y: 200 }).covariance).along);
  });

  it("comes from the landmarks alone after three", () => {
    const knowledge = knowledgeOf(question, [landmark(20, 20), landmark(200, 30), landmark(60, 180)], frame);
    expect(knowledge.source).toBe("landmarks");
    expect(knowledge.problem).toBeNull();
    expect(knowledge.predict("j", { x: 150, y: 150 }).point.x).toBeCloseTo(apply(truth, { x: 150, y: 150 }).x, 9);
    expect(knowledge.errorPx).toBeGreaterThan(0);
  });

  it("does not count what is switched off", () => {
    const off = { ...landmark(100, 50), active: false };
    expect(knowledgeOf(question, [off], frame).source).toBe("mosaic");
  });

  it("keeps the mosaic’s pose while landmarks are too close together to tell it", () => {
    const close = [landmark(20, 20), landmark(24, 20), { ...landmark(20, 23), x_i: landmark(20, 23).x_i + 2 }];
    const { pose, iFromJ, problem } = knowledgeOf(question, close, frame);
    expect(problem).toBeNull();
    expect(pose).not.toEqual(iFromJ);
    expect(pose.slice(0, 2)).toEqual(guess.slice(0, 2));
  });

  it("explains landmarks by which the frames are apart", () => {
    const three = [landmark(20, 20), landmark(200, 30), landmark(60, 180)];
    const wild = three.map((one) => ({ ...one, x_i: one.x_i + 5000 }));
    expect(knowledgeOf(question, wild, frame).problem).toContain("do not overlap");
  });
});
