import { describe, expect, it } from "vitest";
import type { Affine, Point } from "./affine";
import { apply } from "./affine";
import type { Fit } from "./fit";
import { fitLandmarks, predictedError, residualOf } from "./fit";
import type { Landmark, Origin } from "./messages";
import { momentsOf, outlineOf } from "./polygon";

const truth: Affine = [0.96, -0.31, 40, 0.28, 1.02, -15];

function landmark(j: Point, i = apply(truth, j), origin: Origin = "clicked", active = true): Landmark {
  return { x_i: i.x, y_i: i.y, x_j: j.x, y_j: j.y, origin, active };
}

const corners = [
  { x: 20, y: 10 },
  { x: 300, y: 30 },
  { x: 280, y: 220 },
  { x: 40, y: 200 },
];

function fitted(landmarks: Landmark[]): Fit {
  const result = fitLandmarks(landmarks);
  if ("problem" in result) throw new Error(result.problem);
  return result.fit;
}

function problemOf(landmarks: Landmark[]): string {
  const result = fitLandmarks(landmarks);
  return "problem" in result ? result.problem : "";
}

/** A generator with a seed, for normal numbers. */
function normals(seed: number): () => number {
  const next = () => {
    seed = (1103515245 * seed + 12345) % 2 ** 31;
    return (seed + 0.5) / 2 ** 31;
  };
  return () => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next());
}

describe("the fit", () => {
  it("finds the map of exact landmarks", () => {
    const { iFromJ } = fitted(corners.map((corner) => landmark(corner)));
    iFromJ.forEach((entry, k) => expect(entry).toBeCloseTo(truth[k]!, 9));
  });

  it("keeps its digits far from the origin", () => {
    const far = corners.map(({ x, y }) => landmark({ x: x + 90000, y: y - 70000 }));
    const fit = fitted(far);
    expect(Math.max(...far.map((one) => residualOf(one, fit.iFromJ)))).toBeLessThan(1e-6);
  });

  it("leaves out what is switched off, and still tells its residual", () => {
    const wrong = landmark({ x: 100, y: 100 }, { x: 0, y: 0 }, "clicked", false);
    const fit = fitted([...corners.map((corner) => landmark(corner)), wrong]);
    expect(fit.iFromJ[0]).toBeCloseTo(truth[0], 9);
    expect(fit.residuals[4]).toBeGreaterThan(50);
  });

  it("trusts a snapped landmark nine times as much as a clicked one", () => {
    // Two landmarks at one place that disagree by 10 px: the fit passes between them by their weights.
    const place = { x: 150, y: 350 };
    const exact = apply(truth, place);
    const three = corners.slice(0, 2).map((corner) => landmark(corner, undefined, "matched"));
    const clicked = landmark(place, { x: exact.x + 10, y: exact.y }, "clicked");
    const snapped = landmark(place, exact, "snapped");
    expect(fitted([...three, clicked, snapped]).residuals[2]).toBeCloseTo(9, 6);
  });

  it("explains what is missing", () => {
    expect(problemOf([])).toContain("Three landmarks are needed");
    expect(problemOf([landmark(corners[0]!)])).toContain("Two more landmarks are needed");
    const two = [landmark(corners[0]!), landmark(corners[1]!), landmark(corners[2]!, undefined, "clicked", false)];
    expect(problemOf(two)).toContain("One more landmark is needed (1 switched off)");
  });

  it("explains landmarks on one line", () => {
    const onLine = [0, 1, 2, 3].map((k) => landmark({ x: 10 + 50 * k, y: 20 + 30 * k }));
    expect(problemOf(onLine)).toContain("on one line");
  });

  it("explains landmarks that coincide", () => {
    expect(problemOf([0, 1, 2].map(() => landmark(corners[0]!)))).toContain("on one line");
  });

  it("explains landmarks that are exchanged", () => {
    const [a, b, c] = corners.slice(0, 3).map((corner) => landmark(corner)) as [Landmark, Landmark, Landmark];
    const exchanged = [a, { ...b, x_i: c.x_i, y_i: c.y_i }, { ...c, x_i: b.x_i, y_i: b.y_i }];
    expect(problemOf(exchanged)).toContain("mirrored");
  });
});

describe("the predicted error", () => {
  const frame = momentsOf(outlineOf({ width: 320, height: 240 }))!;

  it("is what simulated clicks give", () => {
    const normal = normals(7);
    const runs = 1500;
    let squares = 0;
    for (let run = 0; run < runs; run++) {
      const noisy = corners.map((corner) => {
        const exact = apply(truth, corner);
        return landmark(corner, { x: exact.x + 1.5 * normal(), y: exact.y + 1.5 * normal() });
      });
      const { iFromJ } = fitted(noisy);
      // The mean over the frame of a squared affine difference, by its moments.
      const d = iFromJ.map((entry, k) => entry - truth[k]!) as unknown as Affine;
      const at = apply(d, frame.centre);
      squares += at.x ** 2 + at.y ** 2;
      squares += d[0] ** 2 * frame.xx + d[1] ** 2 * frame.yy + d[3] ** 2 * frame.xx + d[4] ** 2 * frame.yy;
    }
    // Without the excess, which a lucky or unlucky run changes.
    const fit = fitted(corners.map((corner) => landmark(corner)));
    expect(predictedError(fit, frame) / Math.sqrt(squares / runs)).toBeCloseTo(1, 1);
  });

  it("is the mean of the variance over the region", () => {
    const fit = fitted(corners.map((corner) => landmark(corner)));
    let [sum, count] = [0, 0];
    for (let x = 0; x < 320; x += 4) {
      for (let y = 0; y < 240; y += 4) {
        sum += fit.varianceAt({ x: x + 1.5, y: y + 1.5 });
        count += 1;
      }
    }
    expect(fit.meanVariance(frame) / (sum / count)).toBeCloseTo(1, 3);
  });

  it("grows where residuals are larger than promised", () => {
    const shaken = corners.map((corner, k) => {
      const exact = apply(truth, corner);
      return landmark(corner, { x: exact.x + (k % 2 === 0 ? 12 : -12), y: exact.y });
    });
    const [good, bad] = [fitted(corners.map((corner) => landmark(corner))), fitted(shaken)];
    expect(good.excess).toBe(1);
    expect(predictedError(bad, frame)).toBeGreaterThan(3 * predictedError(good, frame));
  });
});
