import { describe, expect, it } from "vitest";
import { bend, slopesAt, straighten } from "./lens";

const lens = { centre_x: 159.5, centre_y: 119.5, unit_px: 160, k1: 0.05, k2: -0.01 };

describe("a lens", () => {
  it("straightens as its formula says", () => {
    const { x, y } = straighten(lens, { x: 319.5, y: 119.5 });
    expect([x, y]).toEqual([159.5 + 160 * 1.04, 119.5]);
  });

  it.each([lens, { ...lens, k1: -0.1, k2: 0 }, { ...lens, k1: 0.2, k2: 0.1 }])("bends back what it straightens", (one) => {
    for (const point of [{ x: 0, y: 0 }, { x: 300, y: 20 }, { x: 159.5, y: 119.5 }, { x: 10, y: 239 }]) {
      const back = bend(one, straighten(one, point));
      expect(Math.hypot(back.x - point.x, back.y - point.y)).toBeLessThan(1e-8);
    }
  });

  it("shows nothing beyond the farthest that it can", () => {
    const fish = { ...lens, k1: -0.3, k2: 0 };
    const far = bend(fish, { x: 1e6, y: 119.5 });
    expect(far.x).toBeCloseTo(159.5 + 160 * Math.sqrt(1 / 0.9), 6);
  });

  it("has the slopes that differences say", () => {
    const [a, b, , d, e] = slopesAt(lens, { x: 250, y: 30 });
    const at = (dx: number, dy: number) => straighten(lens, { x: 250 + dx, y: 30 + dy });
    const h = 1e-3;
    expect((at(h, 0).x - at(-h, 0).x) / (2 * h)).toBeCloseTo(a, 8);
    expect((at(h, 0).y - at(-h, 0).y) / (2 * h)).toBeCloseTo(d, 8);
    expect((at(0, h).x - at(0, -h).x) / (2 * h)).toBeCloseTo(b, 8);
    expect((at(0, h).y - at(0, -h).y) / (2 * h)).toBeCloseTo(e, 8);
  });

  it("does nothing where there is none", () => {
    const point = { x: 3, y: 4 };
    expect(straighten(null, point)).toBe(point);
    expect(bend(null, point)).toBe(point);
  });
});
