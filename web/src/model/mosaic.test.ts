import { describe, expect, test } from "vitest";
import type { LiveMosaic } from "./messages";
import { boxOfAll, boxesOfParts, centreOf, cornersOf, ease, framesAt, interpolate, layOut, sameFrames } from "./mosaic";
import { measureMask } from "./mosaicmask";

const SIZE = { width: 40, height: 30 };

function turned(degrees: number, scale: number, x: number, y: number): number[] {
  const angle = (degrees * Math.PI) / 180;
  const [cos, sin] = [scale * Math.cos(angle), scale * Math.sin(angle)];
  return [cos, -sin, x, sin, cos, y];
}

function mosaicOf(maps: number[][], parts = maps.map(() => 0)): LiveMosaic {
  return {
    revision: 1,
    reference: 0,
    numbers: maps.map((_, k) => 10 * k),
    maps: maps.flat(),
    sigma_px: maps.map(() => 1),
    parts,
  };
}

describe("frames at a point", () => {
  const maps = Float64Array.from([turned(0, 1, 0, 0), turned(90, 1, 100, 0), turned(30, 2, 0, 200)].flat());

  test("a frame reaches half a pixel beyond the centres of its border pixels", () => {
    expect(framesAt(maps, SIZE, { x: -0.49, y: -0.49 })).toEqual([0]);
    expect(framesAt(maps, SIZE, { x: -0.51, y: 0 })).toEqual([]);
    expect(framesAt(maps, SIZE, { x: 39.49, y: 29.49 })).toEqual([0]);
    expect(framesAt(maps, SIZE, { x: 39.51, y: 29 })).toEqual([]);
  });

  test("a frame that is turned by 90° is as wide as it was high", () => {
    expect(framesAt(maps, SIZE, { x: 72, y: 38 })).toEqual([1]);
    expect(framesAt(maps, SIZE, { x: 102, y: 5 })).toEqual([]);
  });

  test("a frame that is turned and enlarged is found at its centre and at its corners alone", () => {
    expect(framesAt(maps, SIZE, centreOf(maps, 2, SIZE))).toEqual([2]);
    const corners = cornersOf(maps, 2, SIZE);
    const centre = centreOf(maps, 2, SIZE);
    for (let k = 0; k < 4; k++) {
      const beyond = (share: number) => ({
        x: centre.x + share * (corners[2 * k] - centre.x),
        y: centre.y + share * (corners[2 * k + 1] - centre.y),
      });
      expect(framesAt(maps, SIZE, beyond(0.999))).toEqual([2]);
      expect(framesAt(maps, SIZE, beyond(1.001))).toEqual([]);
    }
  });

  test("a frame does not show what lies in its dark part, however it is turned", () => {
    const leftHalf = measureMask(Array.from({ length: 20 * 15 }, (_, k) => k % 20 < 10), 20, 15);
    expect(framesAt(maps, SIZE, { x: 19, y: 3 }, leftHalf)).toEqual([0]);
    expect(framesAt(maps, SIZE, { x: 20, y: 3 }, leftHalf)).toEqual([]);
    expect(framesAt(maps, SIZE, { x: 90, y: 19 }, leftHalf)).toEqual([1]);
    expect(framesAt(maps, SIZE, { x: 90, y: 20 }, leftHalf)).toEqual([]);
  });

  test("frames above each other come in their order", () => {
    const same = Float64Array.from([turned(0, 1, 0, 0), turned(5, 1, 3, 0), turned(-5, 1, 0, 3)].flat());
    expect(framesAt(same, SIZE, { x: 20, y: 15 })).toEqual([0, 1, 2]);
  });

  test("a frame whose map has collapsed is nowhere", () => {
    expect(framesAt(Float64Array.from([0, 0, 5, 0, 0, 5]), SIZE, { x: 5, y: 5 })).toEqual([]);
  });
});

describe("motion", () => {
  const from = Float64Array.from(turned(0, 1, 0, 0));
  const to = Float64Array.from(turned(40, 1.5, 30, -10));

  test("begins at the old maps and ends at the new, to the bit", () => {
    expect(interpolate(from, to, 0)).toEqual(from);
    expect(interpolate(from, to, 1)).toEqual(to);
  });

  test("is half way in every entry in the middle", () => {
    interpolate(from, to, 0.5).forEach((entry, k) => expect(entry).toBeCloseTo((from[k] + to[k]) / 2, 12));
  });

  test("is slow at both ends, fast between, and bounded", () => {
    expect([ease(0), ease(0.5), ease(1), ease(-1), ease(2)]).toEqual([0, 0.5, 1, 0, 1]);
    expect(ease(0.1)).toBeLessThan(0.05);
    expect(ease(0.9)).toBeGreaterThan(0.95);
  });

  test("is between mosaics of the same frames only", () => {
    const one = mosaicOf([turned(0, 1, 0, 0), turned(0, 1, 9, 0)]);
    expect(sameFrames(one, mosaicOf([turned(1, 1, 0, 0), turned(2, 1, 9, 0)]))).toBe(true);
    expect(sameFrames(one, { ...one, numbers: [0, 11] })).toBe(false);
    expect(sameFrames(one, mosaicOf([turned(1, 1, 0, 0)]))).toBe(false);
  });
});

describe("parts", () => {
  const maps = [turned(0, 1, 0, 0), turned(0, 1, 60, 40), ...[5, 10, 15, 20].map((x) => turned(0, 1, x, 0))];
  const mosaic = mosaicOf(maps, [0, 0, 1, 1, 2, 3]);
  const laid = layOut(mosaic, SIZE);

  test("the largest stays where it is", () => {
    expect(Array.from(laid.slice(0, 12))).toEqual(maps.slice(0, 2).flat());
  });

  test("a part keeps its shape", () => {
    expect(laid[6 * 3 + 2] - laid[6 * 2 + 2]).toBeCloseTo(5, 9);
    expect(laid[6 * 3 + 5] - laid[6 * 2 + 5]).toBeCloseTo(0, 9);
  });

  test("no two parts touch", () => {
    const boxes = boxesOfParts(laid, mosaic.parts, SIZE);
    boxes.forEach((one, k) =>
      boxes.slice(k + 1).forEach((other) => {
        const across = one.right < other.left || other.right < one.left;
        const down = one.bottom < other.top || other.bottom < one.top;
        expect(across || down).toBe(true);
      }),
    );
  });

  test("they are no higher together than the highest of them", () => {
    const all = boxOfAll(laid, SIZE);
    expect(all.bottom - all.top).toBeCloseTo(70, 9);
  });
});
