import { describe, expect, it } from "vitest";
import type { Point } from "./affine";
import { contains, intersect, mapped, momentsOf, outlineOf } from "./polygon";

const frame = { width: 100, height: 60 };

describe("outlines", () => {
  it("reach half a pixel beyond the centres", () => {
    expect(outlineOf(frame)[2]).toEqual({ x: 99.5, y: 59.5 });
    expect(contains(frame, { x: -0.4, y: 59.4 })).toBe(true);
    expect(contains(frame, { x: -0.6, y: 0 })).toBe(false);
  });

  it("overlap in the rectangle that both share", () => {
    const region = intersect(outlineOf(frame), mapped(outlineOf(frame), [1, 0, 70, 0, 1, 20]));
    expect(momentsOf(region)!.area).toBeCloseTo(30 * 40, 9);
  });

  it("overlap the same where the window is mirrored", () => {
    const mirrored = mapped(outlineOf(frame), [-1, 0, 120, 0, 1, 0]);
    expect(momentsOf(intersect(outlineOf(frame), mirrored))!.area).toBeCloseTo(79 * 60, 9);
  });

  it("have nothing in common where they are apart", () => {
    const region = intersect(outlineOf(frame), mapped(outlineOf(frame), [1, 0, 300, 0, 1, 0]));
    expect(momentsOf(region)).toBeNull();
  });
});

describe("moments", () => {
  it("are those of a rectangle", () => {
    const { area, centre, xx, xy, yy } = momentsOf(outlineOf(frame))!;
    expect(area).toBe(6000);
    expect(centre.x).toBeCloseTo(49.5, 10);
    expect(xx).toBeCloseTo(100 ** 2 / 12, 8);
    expect(yy).toBeCloseTo(60 ** 2 / 12, 8);
    expect(xy).toBeCloseTo(0, 8);
  });

  it("of a triangle agree with sampled ones", () => {
    const corners = [
      { x: 1000, y: 2000 },
      { x: 1060, y: 2010 },
      { x: 1020, y: 2090 },
    ];
    const moments = momentsOf(corners)!;
    const samples: Point[] = [];
    for (let u = 0.0025; u < 1; u += 0.005) {
      for (let v = 0.0025; u + v < 1; v += 0.005) {
        samples.push({ x: 1000 + 60 * u + 20 * v, y: 2000 + 10 * u + 90 * v });
      }
    }
    const mean = (of: (p: Point) => number) => samples.reduce((s, p) => s + of(p), 0) / samples.length;
    const [cx, cy] = [mean((p) => p.x), mean((p) => p.y)];
    expect(moments.centre.x).toBeCloseTo(cx, 0);
    expect(moments.xx / mean((p) => (p.x - cx) ** 2)).toBeCloseTo(1, 1);
    expect(moments.xy / mean((p) => (p.x - cx) * (p.y - cy))).toBeCloseTo(1, 1);
    expect(moments.yy / mean((p) => (p.y - cy) ** 2)).toBeCloseTo(1, 1);
  });
});
