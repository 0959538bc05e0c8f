import { describe, expect, it } from "vitest";
import type { Affine } from "./affine";
import { apply } from "./affine";
import { covarianceUnder, ellipseOf, through } from "./covariance";

describe("covariances", () => {
  it("of a mapped point follow from the map’s by linear propagation", () => {
    // C = A Aᵀ for some A: the point's covariance is that of the rows (x̃ᵀ, 0) and (0, x̃ᵀ) of A.
    const root = Array.from({ length: 36 }, (_, k) => Math.sin(3 * k + 1));
    const ofMap = Array.from({ length: 36 }, (_, k) => {
      const [row, column] = [Math.floor(k / 6), k % 6];
      return [0, 1, 2, 3, 4, 5].reduce((sum, m) => sum + root[6 * row + m]! * root[6 * column + m]!, 0);
    });
    const column = (m: number) => [0, 1, 2, 3, 4, 5].map((row) => root[6 * row + m]!) as unknown as Affine;
    const changes = [0, 1, 2, 3, 4, 5].map(column);
    const moved = changes.map((change) => apply(change, { x: 3, y: -2 }));
    const { xx, xy, yy } = covarianceUnder(ofMap, { x: 3, y: -2 }, 1);
    expect(xx).toBeCloseTo(moved.reduce((sum, { x }) => sum + x * x, 0), 9);
    expect(xy).toBeCloseTo(moved.reduce((sum, { x, y }) => sum + x * y, 0), 9);
    expect(yy).toBeCloseTo(moved.reduce((sum, { y }) => sum + y * y, 0), 9);
  });

  it("turn with the map", () => {
    const quarter: Affine = [0, -1, 9, 1, 0, 9];
    const { xx, xy, yy } = through(quarter, { xx: 4, xy: 1, yy: 9 });
    expect([xx, xy, yy]).toEqual([9, -1, 4]);
  });
});

describe("ellipses", () => {
  it("are two standard deviations long", () => {
    expect(ellipseOf({ xx: 25, xy: 0, yy: 4 })).toEqual({ along: 10, across: 4, angle: 0 });
  });

  it("lie along the direction of largest spread", () => {
    expect(ellipseOf({ xx: 5, xy: 4, yy: 5 }).angle).toBeCloseTo(Math.PI / 4, 12);
    expect(ellipseOf({ xx: 1, xy: 0, yy: 9 }).angle).toBeCloseTo(Math.PI / 2, 12);
  });
});
