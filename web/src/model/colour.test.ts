import { describe, expect, test } from "vitest";
import { chooseScale, RAMP, rampColour, shade, shareOf, valueAt } from "./colour";

/** Relative luminance to the power 1/3: near enough to lightness to see that steps are even. */
function lightness([red, green, blue]: number[]): number {
  const linear = [red, green, blue].map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return Math.cbrt(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]);
}

describe("the ramp", () => {
  test("grows lighter at every step of eight, by steps that are alike", () => {
    const steps: number[] = [];
    for (let k = 8; k < 256; k += 8) {
      const before = lightness(Array.from(RAMP.slice(3 * (k - 8), 3 * (k - 8) + 3)));
      steps.push(lightness(Array.from(RAMP.slice(3 * k, 3 * k + 3))) - before);
    }
    expect(Math.min(...steps)).toBeGreaterThan(0);
    expect(Math.max(...steps)).toBeLessThan(2.5 * Math.min(...steps));
  });

  test("has its own colour for each of sixteen steps", () => {
    const colours = new Set(Array.from({ length: 16 }, (_, k) => shade(k / 15)));
    expect(colours.size).toBe(16);
  });

  test("stays at its ends beyond them", () => {
    expect(rampColour(-3)).toEqual(rampColour(0));
    expect(rampColour(7)).toEqual(rampColour(1));
  });
});

describe("scales", () => {
  test("values within a decade have a linear scale from smallest to largest", () => {
    expect(chooseScale([2, 8, 5])).toEqual({ smallest: 2, largest: 8, logarithmic: false });
  });

  test("values over more than a decade have a logarithmic scale of the positive ones", () => {
    expect(chooseScale([0, 0.5, 50])).toEqual({ smallest: 0.5, largest: 50, logarithmic: true });
  });

  test("a zero among values within a decade does not make their scale logarithmic", () => {
    expect(chooseScale([0, 5, 8])).toEqual({ smallest: 0, largest: 8, logarithmic: false });
  });

  test("no values have a scale all the same", () => {
    expect(chooseScale([])).toEqual({ smallest: 0, largest: 1, logarithmic: false });
  });

  test.each([true, false])("a value is found again by its share (logarithmic: %s)", (logarithmic) => {
    const scale = { smallest: 0.2, largest: 90, logarithmic };
    for (const value of [0.2, 1, 33, 90]) expect(valueAt(shareOf(value, scale), scale)).toBeCloseTo(value, 9);
  });

  test("the middle of two decades is one of them", () => {
    expect(valueAt(0.5, { smallest: 1, largest: 100, logarithmic: true })).toBeCloseTo(10, 9);
  });

  test("what is below a logarithmic scale has its smallest colour", () => {
    expect(shareOf(0, { smallest: 0.1, largest: 10, logarithmic: true })).toBe(0);
  });

  test("values that are all the same fill the scale", () => {
    expect(shareOf(3, { smallest: 3, largest: 3, logarithmic: false })).toBe(1);
  });
});
