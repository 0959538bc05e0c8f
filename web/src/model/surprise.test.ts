import { describe, expect, it } from "vitest";
import type { Affine } from "./affine";
import { apply } from "./affine";
import { homographyFrom } from "./homography";
import { knowledgeOf } from "./knowledge";
import type { Landmark, Question } from "./messages";
import { poseOf } from "./pose";
import { surprisesOf } from "./surprise";

const frame = { width: 320, height: 240 };
const truth: Affine = [0.98, -0.2, 60, 0.2, 0.98, 10];

/** The mosaic is right, and says that it knows the place to 6 px, all else to a hundredth. */
const deviations = [0.01, 0.01, 6 / 140, 0.01, 0.01, 6 / 140, 0.01, 0.01];
const covariance = Array.from({ length: 64 }, (_, k) => (k % 9 === 0 ? deviations[k % 8]! ** 2 : 0));
const looks = { label_i: "", label_j: "", overlap: 0.5, position: 0.5, appearance: 0.5, unknown_px: 6 };
const question: Question = {
  ...looks,
  ...{ revision: 3, i: 4, j: 90, suggested: true, joined: true, noise: 1, answer: null, is_known: false },
  i_from_j: [...homographyFrom(truth)],
  covariance,
};

function landmark(x: number, y: number, off = 0): Landmark {
  const i = apply(truth, { x, y });
  return { x_i: i.x + off, y_i: i.y, x_j: x, y_j: y, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null };
}

const tonesOf = (landmarks: Landmark[], asked = question) =>
  knowledgeOf(asked, landmarks, frame, null).judgements.map(({ tone }) => tone);

const surprises = (landmarks: Landmark[]) => surprisesOf(poseOf(question, landmarks, frame, null).equations);

describe("the surprise of a landmark", () => {
  it("is, of a single one, its distance from where the mosaic expects it", () => {
    // In the middle of the frame only the place counts.
    const { x, y } = { x: 159.5, y: 119.5 };
    const across = Math.hypot(6 * Math.hypot(0.98, 0.2), 1.5);
    expect(surprises([landmark(x, y, 12)])[0]!.sigmas).toBeCloseTo(12 / across, 2);
  });

  it("is that of the prediction by the others alone", () => {
    const others = [landmark(30, 40, 1), landmark(280, 50, -1), landmark(60, 210, 0.5)];
    const fourth = landmark(270, 200, 5);
    const { point, covariance: spread } = knowledgeOf(question, others, frame, null).predict("j", { x: 270, y: 200 });
    const off = { x: fourth.x_i - point.x, y: fourth.y_i - point.y };
    const determinant = spread.xx * spread.yy - spread.xy ** 2;
    const squared = (spread.yy * off.x ** 2 - 2 * spread.xy * off.x * off.y + spread.xx * off.y ** 2) / determinant;
    expect(surprises([...others, fourth])[3]!.sigmas).toBeCloseTo(Math.sqrt(squared), 1);
  });

  it("is on average as large as its definition says, where all is as it is said to be", () => {
    let seed = 7;
    const uniform = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
    const rounds = 200;
    let sum = 0;
    for (let round = 0; round < rounds; round++) {
      const marks = [[40, 40], [280, 60], [60, 200]].map(([x, y]) => {
        const mark = landmark(x!, y!, 1.5 * normal());
        return { ...mark, y_i: mark.y_i + 1.5 * normal() };
      });
      sum += surprises(marks).reduce((total, { sigmas }) => total + sigmas ** 2, 0) / 3;
    }
    // Two directions: 2. The mosaic is exact here although it promises less, so that it is smaller.
    expect(sum / rounds).toBeGreaterThan(0.5);
    expect(sum / rounds).toBeLessThan(2);
  });
});

describe("the colour of a landmark", () => {
  it("is that of a wrong one where three would fit any map: by the mosaic and the other two", () => {
    const tones = tonesOf([landmark(30, 40), landmark(280, 50), landmark(60, 210, 60)]);
    expect(tones[2]).toBe("bad");
    // They know less now, and are not to blame.
    for (const tone of tones.slice(0, 2)) expect(["good", "unchecked"]).toContain(tone);
  });

  it("is not good where nothing checks it", () => {
    const unjoined = { ...question, joined: false, covariance: covariance.map((entry) => 1e4 * entry) };
    const marks = [landmark(30, 40), landmark(280, 50, 30), landmark(60, 210)];
    expect(new Set(tonesOf(marks, unjoined))).toEqual(new Set(["unchecked"]));
  });

  it("is good where the landmarks agree, although the mosaic was wrong by more than it thought", () => {
    const marks = [[30, 40], [280, 50], [60, 210], [270, 200]].map(([x, y]) => landmark(x!, y!, 40));
    expect(tonesOf(marks)).toEqual(["good", "good", "good", "good"]);
    expect(tonesOf(marks.slice(0, 1))).toEqual(["bad"]);
  });
});

it("what one more landmark is said to bring is what it brings where it tells most", () => {
  const one = [landmark(60, 60)];
  const { oneMorePx, errorPx } = knowledgeOf(question, one, frame, null);
  const places = Array.from({ length: 49 }, (_, k) => landmark(20 + 46 * (k % 7), 20 + 33 * Math.floor(k / 7)));
  const brought = Math.min(...places.map((more) => knowledgeOf(question, [...one, more], frame, null).errorPx!));
  expect(oneMorePx!).toBeLessThan(errorPx!);
  expect(Math.abs(brought / oneMorePx! - 1)).toBeLessThan(0.1);
});

describe("a landmark that is surely wrong", () => {
  const two = [landmark(30, 40), landmark(280, 50)];
  const corner = { x: 300, y: 220 };
  const placeBy = (marks: Landmark[]) => knowledgeOf(question, marks, frame, null).relation.seen("j", corner);

  it("moves nothing of the pose that the others give", () => {
    const [before, after] = [placeBy(two), placeBy([...two, landmark(60, 210, 80)])];
    expect(Math.hypot(after.x - before.x, after.y - before.y)).toBeLessThan(1e-6);
  });

  it("is heard where it is alone, because the mosaic may be wrong", () => {
    const { x } = placeBy([landmark(159.5, 119.5, 80)]);
    expect(x - apply(truth, corner).x).toBeGreaterThan(60);
  });
});
