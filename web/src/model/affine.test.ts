import { describe, expect, it } from "vitest";
import type { Affine } from "./affine";
import { affineOf, apply, compose, determinant, invert, scaleOf } from "./affine";

const turned: Affine = [0.8, -0.6, 12, 0.6, 0.8, -7];
const sheared: Affine = [1.2, 0.3, -4, -0.1, 0.9, 25];
const point = { x: 3, y: -11 };

describe("affine maps", () => {
  it("composes right to left", () => {
    const both = apply(compose(turned, sheared), point);
    const oneByOne = apply(turned, apply(sheared, point));
    expect(both.x).toBeCloseTo(oneByOne.x, 10);
    expect(both.y).toBeCloseTo(oneByOne.y, 10);
  });

  it("inverts", () => {
    const back = apply(invert(sheared), apply(sheared, point));
    expect(back.x).toBeCloseTo(point.x, 10);
    expect(back.y).toBeCloseTo(point.y, 10);
  });

  it("refuses to invert what has no inverse", () => {
    expect(() => invert([1, 2, 0, 2, 4, 0])).toThrow("no inverse");
  });

  it("scales by the root of the area", () => {
    expect(scaleOf([2, 0, 5, 0, 2, 5])).toBe(2);
    expect(determinant(turned)).toBeCloseTo(1, 12);
  });

  it("refuses a message of another length", () => {
    expect(() => affineOf([1, 2, 3])).toThrow("6 numbers");
  });
});
