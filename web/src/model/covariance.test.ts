import { describe, expect, it } from "vitest";
import type { Affine } from "./affine";
import { ellipseOf, sigmasOf, through } from "./covariance";

describe("covariances", () => {
  it("turn with the map", () => {
    const quarter: Affine = [0, -1, 9, 1, 0, 9];
    const { xx, xy, yy } = through(quarter, { xx: 4, xy: 1, yy: 9 });
    expect([xx, xy, yy]).toEqual([9, -1, 4]);
  });
});

describe("ellipses", () => {
  it("are so many standard deviations out everywhere", () => {
    const covariance = { xx: 5, xy: 4, yy: 5 };
    const { along, across } = ellipseOf(covariance);
    const diagonal = Math.SQRT1_2;
    expect(sigmasOf(covariance, { x: along * diagonal, y: along * diagonal })).toBeCloseTo(2, 12);
    expect(sigmasOf(covariance, { x: across * diagonal, y: -across * diagonal })).toBeCloseTo(2, 12);
  });

  it("are two standard deviations long", () => {
    expect(ellipseOf({ xx: 25, xy: 0, yy: 4 })).toEqual({ along: 10, across: 4, angle: 0 });
  });

  it("lie along the direction of largest spread", () => {
    expect(ellipseOf({ xx: 5, xy: 4, yy: 5 }).angle).toBeCloseTo(Math.PI / 4, 12);
    expect(ellipseOf({ xx: 1, xy: 0, yy: 9 }).angle).toBeCloseTo(Math.PI / 2, 12);
  });
});
