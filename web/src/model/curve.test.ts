import { describe, expect, it } from "vitest";
import { adoptCurve, countedLandmarks, determinedWords, expectedStroke, lineThrough, numberOf, sigmasAt } from "./curve";
import { begin, complete, EMPTY, remove, step, toggle } from "./draft";
import { knowledgeOf } from "./knowledge";
import type { Landmark, Question } from "./messages";
import { Relation } from "./relation";

const FRAME = { width: 320, height: 240 };
const SPREAD = [1e-4, 1e-4, 0.01, 1e-4, 1e-4, 0.01, 1e-6, 1e-6];
/** A mosaic that is sure of turn and scale, and of the shift to a tenth of the frame's unit: 14 px. */
const question = {
  ...{ revision: 1, i: 0, j: 9, label_i: "", label_j: "", suggested: true, answer: null, joined: true, noise: 1 },
  ...{ overlap: 0.5, position: 0.5, appearance: 0.5, unknown_px: 20 },
  i_from_j: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  covariance: SPREAD.flatMap((variance, k) => SPREAD.map((_, column) => (column === k ? variance : 0))),
} as Question;

/** Landmarks on a line at an angle through the middle; i is off by a shift. */
function vessel(degrees: number, shift = { x: 0, y: 0 }): Landmark[] {
  const [cosine, sine] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return [-60, -30, 0, 30, 60].map((along) => {
    const [x_j, y_j] = [160 + along * cosine, 120 + along * sine];
    const at = { x_i: x_j + shift.x, y_i: y_j + shift.y, x_j, y_j };
    return { ...at, origin: "traced", active: true, check: false, sigma_px: 0.3, along_deg: degrees, curve: 0 };
  });
}

const point = complete(begin(EMPTY, "i", { x: 30, y: 30 }, { x: 30, y: 30 }));

describe("a vessel among landmarks", () => {
  const drawn = adoptCurve(adoptCurve(point, vessel(0)), vessel(90));

  it("counts once, and has a number of its own", () => {
    expect(countedLandmarks(drawn.landmarks)).toEqual([0, 1, 6]);
    expect(numberOf(drawn.landmarks, 8)).toBe(3);
    expect(new Set(drawn.landmarks.map(({ curve }) => curve)).size).toBe(3);
  });

  it("is selected, switched off and deleted as a whole", () => {
    const selected = step(step(drawn, 1), 1);
    expect(selected.selected).toBe(1);
    expect(toggle(selected, 3).landmarks.map(({ active }) => active)).toEqual([
      ...[true, false, false, false, false, false],
      ...[true, true, true, true, true],
    ]);
    const left = remove(selected, 3);
    expect(left.landmarks).toHaveLength(6);
    expect(left.selected).toBe(1);
  });
});

describe("what a vessel determines", () => {
  const sigmas = (landmarks: Landmark[], degrees: number) => {
    return sigmasAt(knowledgeOf(question, landmarks, FRAME, null).uncertaintyInI({ x: 160, y: 120 }), degrees);
  };

  it.each([0, 30, 90])("is the position across it; along it the mosaic's word stays (%s°)", (degrees) => {
    const { across, along } = sigmas(vessel(degrees), degrees);
    expect(across).toBeLessThan(0.4);
    expect(along).toBeGreaterThan(13);
  });

  it("is everything where there are two in different directions", () => {
    const { across, along } = sigmas(adoptCurve(adoptCurve(EMPTY, vessel(0)), vessel(70)).landmarks as Landmark[], 0);
    expect(across).toBeLessThan(0.4);
    expect(along).toBeLessThan(1);
  });

  it("moves the frame across, and not along", () => {
    const { relation } = knowledgeOf(question, vessel(0, { x: 9, y: 5 }), FRAME, null);
    const { x, y } = relation.seen("j", { x: 160, y: 120 });
    expect(x).toBeCloseTo(160, 3);
    expect(y).toBeCloseTo(125, 1);
  });

  it("is told, with what to do about what is free", () => {
    const straight = vessel(0);
    const words = determinedWords(straight, knowledgeOf(question, straight, FRAME, null));
    expect(words).toMatch(/^Across the vessel ± 0\.\d px, along it ± 1\d(\.\d)? px: draw one that runs in another direction/);
    const both = adoptCurve(adoptCurve(EMPTY, straight), vessel(90)).landmarks;
    expect(determinedWords(both, knowledgeOf(question, both, FRAME, null))).not.toContain("draw one");
    expect(determinedWords(point.landmarks, knowledgeOf(question, point.landmarks, FRAME, null))).toBe("");
  });

  it("is checked as a whole: a wrong one does not confirm itself", () => {
    const points = [[40, 40], [280, 50], [60, 200]].map(([x, y]): Landmark => {
      const at = { x_i: x!, y_i: y!, x_j: x!, y_j: y! };
      return { ...at, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null };
    });
    const wrong = [...points, ...vessel(0, { x: 0, y: 25 })];
    const { judgements } = knowledgeOf(question, wrong, FRAME, null);
    expect(judgements.map(({ tone }) => tone)).toEqual([...["good", "good", "good"], ...Array<string>(5).fill("bad")]);
  });
});

it("expects a stroke where the map has it, as far as it is inside of the frame", () => {
  const shifted = new Relation([1, 0, 100, 0, 1, 0, 0, 0, 1], null, FRAME);
  const expected = expectedStroke(shifted, "j", [{ x: 100, y: 50 }, { x: 300, y: 50 }], FRAME);
  expect(expected[0]!.x).toBeCloseTo(200, 6);
  expect(expected.at(-1)!.x).toBeGreaterThan(315);
  expect(expected.at(-1)!.x).toBeLessThan(320);
});

it("draws a line through all its landmarks", () => {
  const points = [{ x: 0, y: 0 }, { x: 10, y: 5 }, { x: 20, y: 0 }];
  const line = lineThrough(points);
  for (const corner of points) expect(line).toContainEqual(corner);
});
