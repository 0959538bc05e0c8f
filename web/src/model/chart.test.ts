import { describe, expect, test } from "vitest";
import { answersAxis, errorAxis, formatPx, nearest, place, read, stillAhead, ticks, wholeTicks, type Axis } from "./chart";

const errorsOf = (...values: number[]) => values.map((predicted_px, answers) => ({ answers, predicted_px }));

describe("axes", () => {
  test("errors within a decade start at zero", () => {
    expect(errorAxis(errorsOf(9, 5, 3), null, 100, 0)).toMatchObject({ from: 0, logarithmic: false });
  });

  test("errors over more than a decade are on a logarithmic axis", () => {
    expect(errorAxis(errorsOf(90, 5, 3), null, 100, 0).logarithmic).toBe(true);
  });

  test("a target far below the errors makes the axis logarithmic, and is on it", () => {
    const axis = errorAxis(errorsOf(9, 8), 0.5, 100, 0);
    expect(axis.logarithmic).toBe(true);
    expect(place(0.5, axis)).toBeGreaterThan(0);
    expect(place(0.5, axis)).toBeLessThan(100);
  });

  test("every error lies within the axis", () => {
    const axis = errorAxis(errorsOf(90, 5, 3), null, 100, 0);
    for (const value of [90, 5, 3]) {
      expect(place(value, axis)).toBeGreaterThanOrEqual(0);
      expect(place(value, axis)).toBeLessThanOrEqual(100);
    }
  });

  test("no errors and errors of zero still have an axis", () => {
    for (const errors of [[], errorsOf(0)]) {
      expect(Number.isFinite(place(0, errorAxis(errors, null, 100, 0)))).toBe(true);
    }
  });

  test("few answers do not fill the whole width", () => {
    expect(answersAxis(errorsOf(9, 8), 0, 100)).toMatchObject({ from: 0, to: 5 });
    expect(answersAxis(errorsOf(...Array(31).fill(1)), 0, 100).to).toBe(30);
  });

  test.each([true, false])("a place reads as the value that is drawn there (logarithmic: %s)", (logarithmic) => {
    const axis: Axis = { from: 0.5, to: 80, logarithmic, start: 140, end: 20 };
    for (const value of [0.5, 3, 80]) expect(read(place(value, axis), axis)).toBeCloseTo(value, 9);
    expect(place(80, axis)).toBeCloseTo(20, 9);
  });
});

describe("ticks", () => {
  const axis = (from: number, to: number, logarithmic = false): Axis => ({ from, to, logarithmic, start: 0, end: 1 });

  test("are round numbers, as many as there is room for", () => {
    expect(ticks(axis(0, 9.9), 5)).toEqual([0, 2, 4, 6, 8]);
    expect(ticks(axis(0, 0.33), 4)).toEqual([0, 0.1, 0.2, 0.3]);
  });

  test("on a logarithmic axis are 1, 2, 5, or 1, 3, or decades alone", () => {
    expect(ticks(axis(0.8, 30, true), 6)).toEqual([1, 2, 5, 10, 20]);
    expect(ticks(axis(0.15, 6.3, true), 4)).toEqual([0.3, 1, 3]);
    expect(ticks(axis(0.05, 3000, true), 5)).toEqual([0.1, 1, 10, 100, 1000]);
    expect(ticks(axis(1e-6, 1e6, true), 5).length).toBeLessThanOrEqual(5);
  });

  test.each([2, 3, 5, 9])("are never more than %i", (most) => {
    for (const to of [1, 7, 13, 99, 1001]) {
      expect(ticks(axis(0, to), most).length).toBeLessThanOrEqual(most);
      expect(ticks(axis(to / 50, to, true), most).length).toBeLessThanOrEqual(most);
      expect(ticks(axis(to / 50, to, true), most).length).toBeGreaterThan(0);
    }
  });

  test("of answers are whole", () => {
    expect(wholeTicks(axis(0, 5), 10)).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

test("the nearest error to a number of answers is found where some are missing", () => {
  const errors = [0, 1, 4, 9].map((answers) => ({ answers, predicted_px: 1 }));
  expect([-3, 0.4, 2.6, 6, 7, 99].map((answers) => nearest(errors, answers))).toEqual([0, 0, 2, 2, 3, 3]);
});

test("what was predicted is ahead until so many answers are given", () => {
  const ahead = [7, 12, 22].map((answers) => ({ answers, predicted_px: 1 }));
  const prediction = { answers: 2, bound_px: 3, ahead, worth_going_on: true };
  expect(stillAhead(errorsOf(3, 3, 3), prediction)).toEqual(ahead);
  expect(stillAhead(errorsOf(...Array(8).fill(3)), prediction)).toEqual(ahead.slice(1));
  expect(stillAhead(errorsOf(3), null)).toEqual([]);
});

test("lengths have two digits", () => {
  expect([0, 0.0421, 1.26, 17.4, 1234].map(formatPx)).toEqual(["0", "0.042", "1.3", "17", "1,200"]);
});
