import { describe, expect, it } from "vitest";
import { knowledgeOf } from "./knowledge";
import type { Landmark, Question } from "./messages";
import { poseOf } from "./pose";
import examples from "./pose.examples.json";

const common = { revision: 1, i: 0, j: 9, label_i: "", label_j: "", suggested: true, answer: null, is_known: false };
const reasons = { overlap: 0.5, position: 0.5, appearance: 0.5, unknown_px: 20 };

type Example = (typeof examples)[number];

function asked({ i_from_j, covariance }: Example): Question {
  return { ...common, ...reasons, joined: true, noise: 1, i_from_j, covariance };
}

function landmarksOf({ points_i, points_j }: Example): Landmark[] {
  return points_i.map(([x_i, y_i], k) => {
    const [x_j, y_j] = points_j[k]!;
    return { x_i: x_i!, y_i: y_i!, x_j: x_j!, y_j: y_j!, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null };
  });
}

/** As `tests/annotation/poses.py` has them, by another computation; a test of the program's keeps them fresh. */
describe.each(examples)("the pose by mosaic and landmarks: $name", (example) => {
  const knowledge = knowledgeOf(asked(example), landmarksOf(example), example, example.lens);
  const probe = { x: example.probe[0]!, y: example.probe[1]! };

  it("has a point where an independent computation has it, to a tenth of a px", () => {
    const { point } = knowledge.predict("j", probe);
    expect(Math.hypot(point.x - example.seen[0]!, point.y - example.seen[1]!)).toBeLessThan(0.1);
  });

  it("is as sure of it, to five percent of a variance", () => {
    const { covariance } = knowledge.predict("j", probe);
    const clicks = 1.5 ** 2;
    expect(Math.abs((covariance.xx - clicks) / example.spread[0]! - 1)).toBeLessThan(0.05);
    expect(Math.abs((covariance.yy - clicks) / example.spread[3]! - 1)).toBeLessThan(0.05);
  });

  it("leads there and back", () => {
    const there = knowledge.relation.seen("j", probe);
    const back = knowledge.relation.seen("i", there);
    expect(Math.hypot(back.x - probe.x, back.y - probe.y)).toBeLessThan(1e-6);
  });

  it("is as sure both ways, seen in either frame", () => {
    const forth = knowledge.predict("j", probe);
    const back = knowledge.predict("i", forth.point);
    const [a, b, , d, e] = knowledge.relation.tangent("i", forth.point);
    const { xx, xy, yy } = forth.covariance;
    expect(back.covariance.xx).toBeCloseTo(a * a * xx + 2 * a * b * xy + b * b * yy, 6);
    expect(back.covariance.yy).toBeCloseTo(d * d * xx + 2 * d * e * xy + e * e * yy, 6);
  });
});

describe("the tangent", () => {
  it("is what differences say, through perspective and lens", () => {
    const example = examples.find(({ lens }) => lens !== null)!;
    const { relation } = knowledgeOf(asked(example), [], example, example.lens);
    for (const side of ["i", "j"] as const) {
      const at = { x: 70, y: 190 };
      const [a, b, , d, e] = relation.tangent(side, at);
      const slope = (dx: number, dy: number) => {
        const [plus, minus] = [1, -1].map((sign) =>
          relation.seen(side, { x: at.x + sign * dx * 1e-3, y: at.y + sign * dy * 1e-3 }),
        );
        return [(plus!.x - minus!.x) / 2e-3, (plus!.y - minus!.y) / 2e-3];
      };
      const [along, across] = [slope(1, 0), slope(0, 1)];
      [a - along[0]!, d - along[1]!, b - across[0]!, e - across[1]!].forEach((off) => expect(off).toBeCloseTo(0, 6));
    }
  });
});

describe("frames that nothing joins", () => {
  const free = [100, 100, 1, 0.3, 0.1, 0.1, 0.05, 0.05];
  const basis = [
    [0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0], [0, -1, 0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1, 0, 0, 0],
    [1, 0, 0, 0, -1, 0, 0, 0], [0, 1, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1],
  ];
  const covariance = Array.from({ length: 64 }, (_, k) =>
    free.reduce((sum, sigma, m) => sum + sigma ** 2 * basis[m]![k >> 3]! * basis[m]![k % 8]!, 0),
  );
  const i_from_j = [1, 0, 0, 0, 1, 0, 0, 0, 1];
  const question: Question = { ...common, ...reasons, joined: false, noise: 1, i_from_j, covariance };
  const frame = { width: 320, height: 240 };
  /** Turned by 150° and enlarged. */
  const turned = (x: number, y: number): Landmark => {
    const [cos, sin] = [1.2 * Math.cos(2.6), 1.2 * Math.sin(2.6)];
    return { x_i: cos * x - sin * y + 300, y_i: sin * x + cos * y + 180, x_j: x, y_j: y, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null };
  };

  it("are shifted by one landmark and not turned", () => {
    const [a, b, c, d, e, f, g, h] = poseOf(question, [turned(200, 60)], frame, null).iFromJ;
    const landmark = turned(200, 60);
    [a - 1, b, d, e - 1].forEach((off) => expect(Math.abs(off)).toBeLessThan(2e-3));
    [g, h].forEach((off) => expect(Math.abs(off)).toBeLessThan(1e-6));
    expect(Math.hypot(c - landmark.x_i + 200, f - landmark.y_i + 60)).toBeLessThan(1);
  });

  it("are turned by two, as far as may be", () => {
    const { relation } = knowledgeOf(question, [turned(200, 60), turned(60, 150)], frame, null);
    const { x, y } = relation.seen("j", { x: 30, y: 30 });
    const truth = turned(30, 30);
    expect(Math.hypot(x - truth.x_i, y - truth.y_i)).toBeLessThan(0.5);
  });

  it("lie as many landmarks say", () => {
    const many = [turned(200, 60), turned(60, 150), turned(20, 20), turned(300, 230), turned(290, 10)];
    const { relation } = knowledgeOf(question, many, frame, null);
    const { x, y } = relation.seen("j", { x: 100, y: 200 });
    const truth = turned(100, 200);
    expect(Math.hypot(x - truth.x_i, y - truth.y_i)).toBeLessThan(0.05);
  });
});
