import { describe, expect, it } from "vitest";
import type { Affine } from "./affine";
import { apply } from "./affine";
import { ellipseOf } from "./covariance";
import { homographyFrom } from "./homography";
import { knowledgeOf } from "./knowledge";
import type { Landmark, Question } from "./messages";

const frame = { width: 320, height: 240 };
const truth: Affine = [0, -1, 260, 1, 0, 10];
const guess: Affine = [0, -1, 275, 1, 0, 2];

/** The place to 20 px, everything else to a hundredth. */
const deviations = [0.01, 0.01, 20 / 140, 0.01, 0.01, 20 / 140, 0.01, 0.01];
const covariance = Array.from({ length: 64 }, (_, k) => (k % 9 === 0 ? deviations[k % 8]! ** 2 : 0));

const question: Question = {
  revision: 3,
  i: 4,
  j: 90,
  label_i: "",
  label_j: "",
  suggested: true,
  overlap: 0.5,
  position: 0.5,
  appearance: 0.5,
  joined: true,
  unknown_px: 20,
  i_from_j: [...homographyFrom(guess)],
  covariance,
  noise: 1,
  answer: null, is_known: false,
};

function landmark(x: number, y: number): Landmark {
  const i = apply(truth, { x, y });
  return { x_i: i.x, y_i: i.y, x_j: x, y_j: y, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null };
}

function know(landmarks: Landmark[]) {
  return knowledgeOf(question, landmarks, frame, null);
}

describe("knowledge of a pair", () => {
  it("is the mosaic’s prediction at first", () => {
    const { point, covariance: spread } = know([]).predict("j", { x: 159.5, y: 119.5 });
    expect(point.x).toBeCloseTo(apply(guess, { x: 159.5, y: 119.5 }).x, 9);
    expect(spread.xx).toBeCloseTo(20 ** 2 + 1.5 ** 2, 6);
    expect(spread.xy).toBeCloseTo(0, 9);
    expect(know([]).source).toBe("mosaic");
  });

  it("takes one landmark for an answer", () => {
    const one = know([landmark(100, 50)]);
    expect(one.problem).toBeNull();
    expect(one.source).toBe("landmarks");
    expect(one.errorPx).toBeGreaterThan(0);
    const exact = apply(truth, { x: 120, y: 80 });
    expect(one.predict("j", { x: 120, y: 80 }).point.x).toBeCloseTo(exact.x, 0);
  });

  it("is surest near the landmark", () => {
    const one = know([landmark(100, 50)]);
    const near = ellipseOf(one.predict("j", { x: 101, y: 50 }).covariance).along;
    const far = ellipseOf(one.predict("j", { x: 300, y: 200 }).covariance).along;
    expect(near).toBeCloseTo(2 * 1.5 * Math.SQRT2, 1);
    expect(far).toBeGreaterThan(near);
    expect(far).toBeLessThan(ellipseOf(know([]).predict("j", { x: 300, y: 200 }).covariance).along);
  });

  it("is surer with every landmark", () => {
    const all = [landmark(100, 50), landmark(20, 200), landmark(300, 20), landmark(280, 220)];
    const errors = all.map((_, count) => know(all.slice(0, count + 1)).errorPx!);
    errors.slice(1).forEach((error, k) => expect(error).toBeLessThan(errors[k]!));
  });

  it("does not count what is switched off", () => {
    const off = { ...landmark(100, 50), active: false };
    expect(know([off]).source).toBe("mosaic");
    expect(know([off]).problem).toContain("switched off");
  });

  it("does not fling the frame where landmarks lie nearly on a line or close together", () => {
    const beside = { ...landmark(201, 60.5), x_i: landmark(201, 60.5).x_i + 2 };
    const line = [landmark(100, 50), landmark(300, 70), beside];
    const close = [landmark(20, 20), landmark(24, 20), { ...landmark(20, 23), x_i: landmark(20, 23).x_i + 2 }];
    for (const landmarks of [line, close]) {
      for (const corner of [{ x: 0, y: 239 }, { x: 319, y: 239 }]) {
        const { x, y } = know(landmarks).relation.seen("j", corner);
        const exact = apply(truth, corner);
        expect(Math.hypot(x - exact.x, y - exact.y)).toBeLessThan(12);
      }
    }
  });

  it("explains landmarks by which the frames are apart", () => {
    const three = [landmark(20, 20), landmark(200, 30), landmark(60, 180)];
    const wild = three.map((one) => ({ ...one, x_i: one.x_i + 5000 }));
    expect(know(wild).problem).toContain("do not overlap");
  });

  it("says what is needed first", () => {
    expect(know([]).problem).toContain("Set a landmark");
  });
});
