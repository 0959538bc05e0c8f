import { describe, expect, test } from "vitest";
import type { Affine } from "./affine";
import { homographyFrom, project } from "./homography";
import type { Homography } from "./homography";
import type { LiveMosaic } from "./messages";
import { boxOfAll, boxesOfParts, centreOf, cornersOf, ease, framesAt, interpolate, layOut, sameFrames } from "./mosaic";
import { describeUnconfirmed, unconfirmedPlaces } from "./mosaic";
import { measureMask } from "./mosaicmask";
import { mapped, outlineOf } from "./polygon";

const SIZE = { width: 40, height: 30 };

/** The corners of frames under affine maps, six numbers each. */
function quadsOf(maps: number[][]): Float64Array {
  return Float64Array.from(maps.flatMap((map) => mapped(outlineOf(SIZE), map as unknown as Affine).flatMap(({ x, y }) => [x, y])));
}

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
    maps: maps.flatMap((map) => homographyFrom(map as unknown as Affine)),
    sigma_px: maps.map(() => 1),
    parts,
    confirmed: maps.map(() => true),
  };
}

describe("frames that a single match joins", () => {
  const mosaic = mosaicOf(Array.from({ length: 5 }, () => turned(0, 1, 0, 0)));
  const withConfirmed = (...confirmed: boolean[]) => ({ ...mosaic, confirmed });

  test("are named where they are few", () => {
    const few = withConfirmed(true, false, true, true, false);
    expect(unconfirmedPlaces(few)).toEqual([1, 4]);
    expect(describeUnconfirmed(few)).toBe("Dashed: 2 frames depend on a single match");
  });

  test("are not marked one by one where they are most", () => {
    const most = withConfirmed(true, false, false, false, true);
    expect(unconfirmedPlaces(most)).toEqual([]);
    expect(describeUnconfirmed(most)).toContain("Most frames");
  });

  test("are not mentioned where there are none", () => {
    expect(describeUnconfirmed(mosaic)).toBeNull();
  });
});

describe("frames at a point", () => {
  const maps = quadsOf([turned(0, 1, 0, 0), turned(90, 1, 100, 0), turned(30, 2, 0, 200)]);

  test("a frame reaches half a pixel beyond the centres of its border pixels", () => {
    expect(framesAt(maps, { x: -0.49, y: -0.49 })).toEqual([0]);
    expect(framesAt(maps, { x: -0.51, y: 0 })).toEqual([]);
    expect(framesAt(maps, { x: 39.49, y: 29.49 })).toEqual([0]);
    expect(framesAt(maps, { x: 39.51, y: 29 })).toEqual([]);
  });

  test("a frame that is turned by 90° is as wide as it was high", () => {
    expect(framesAt(maps, { x: 72, y: 38 })).toEqual([1]);
    expect(framesAt(maps, { x: 102, y: 5 })).toEqual([]);
  });

  test("a frame that is turned and enlarged is found at its centre and at its corners alone", () => {
    expect(framesAt(maps, centreOf(maps, 2))).toEqual([2]);
    const corners = cornersOf(maps, 2);
    const centre = centreOf(maps, 2);
    for (let k = 0; k < 4; k++) {
      const beyond = (share: number) => ({
        x: centre.x + share * (corners[k].x - centre.x),
        y: centre.y + share * (corners[k].y - centre.y),
      });
      expect(framesAt(maps, beyond(0.999))).toEqual([2]);
      expect(framesAt(maps, beyond(1.001))).toEqual([]);
    }
  });

  test("a frame does not show what lies in its dark part, however it is turned", () => {
    const leftHalf = measureMask(Array.from({ length: 20 * 15 }, (_, k) => k % 20 < 10), 20, 15);
    expect(framesAt(maps, { x: 19, y: 3 }, leftHalf)).toEqual([0]);
    expect(framesAt(maps, { x: 20, y: 3 }, leftHalf)).toEqual([]);
    expect(framesAt(maps, { x: 90, y: 19 }, leftHalf)).toEqual([1]);
    expect(framesAt(maps, { x: 90, y: 20 }, leftHalf)).toEqual([]);
  });

  test("frames above each other come in their order", () => {
    const same = quadsOf([turned(0, 1, 0, 0), turned(5, 1, 3, 0), turned(-5, 1, 0, 3)]);
    expect(framesAt(same, { x: 20, y: 15 })).toEqual([0, 1, 2]);
  });

  test("a frame whose map has collapsed is nowhere", () => {
    expect(framesAt(quadsOf([[0, 0, 5, 0, 0, 5]]), { x: 5, y: 5 })).toEqual([]);
  });
});

describe("frames in perspective", () => {
  const map: Homography = [1.2, 0.1, 5, -0.2, 0.9, 7, 4e-3, -2e-3, 1];
  const tilted: LiveMosaic = { ...mosaicOf([turned(0, 1, 0, 0)]), maps: [...map] };
  const middle = { x: 19.5, y: 14.5 };

  test("lie where their homography has them, inside too", () => {
    const quads = layOut(tilted, SIZE, null);
    const [corner] = cornersOf(quads, 0);
    const exact = project(map, { x: -0.5, y: -0.5 });
    expect(corner.x).toBeCloseTo(exact.x, 9);
    expect(centreOf(quads, 0).x).toBeCloseTo(project(map, middle).x, 9);
    expect(centreOf(quads, 0).y).toBeCloseTo(project(map, middle).y, 9);
  });

  test("are found up to their border and not beyond", () => {
    const quads = layOut(tilted, SIZE, null);
    expect(framesAt(quads, project(map, { x: 39.4, y: 10 }))).toEqual([0]);
    expect(framesAt(quads, project(map, { x: 39.6, y: 10 }))).toEqual([]);
  });

  test("have the corners that the lens has", () => {
    const lens = { centre_x: 19.5, centre_y: 14.5, unit_px: 20, k1: 0.1, k2: 0 };
    const [corner] = cornersOf(layOut(tilted, SIZE, lens), 0);
    const by = 1 + 0.1 * (1 + 0.75 ** 2);
    const exact = project(map, { x: 19.5 - 20 * by, y: 14.5 - 15 * by });
    expect(corner.x).toBeCloseTo(exact.x, 9);
    expect(corner.y).toBeCloseTo(exact.y, 9);
  });
});

describe("motion", () => {
  const from = quadsOf([turned(0, 1, 0, 0)]);
  const to = quadsOf([turned(40, 1.5, 30, -10)]);

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
  const laid = layOut(mosaic, SIZE, null);

  test("the largest stays where it is", () => {
    expect(laid.slice(0, 16)).toEqual(quadsOf(maps.slice(0, 2)));
  });

  test("a part keeps its shape", () => {
    expect(laid[8 * 3] - laid[8 * 2]).toBeCloseTo(5, 9);
    expect(laid[8 * 3 + 1] - laid[8 * 2 + 1]).toBeCloseTo(0, 9);
  });

  test("no two parts touch", () => {
    const boxes = boxesOfParts(laid, mosaic.parts);
    boxes.forEach((one, k) =>
      boxes.slice(k + 1).forEach((other) => {
        const across = one.right < other.left || other.right < one.left;
        const down = one.bottom < other.top || other.bottom < one.top;
        expect(across || down).toBe(true);
      }),
    );
  });

  test("they are no higher together than the highest of them", () => {
    const all = boxOfAll(laid);
    expect(all.bottom - all.top).toBeCloseTo(70, 9);
  });
});
