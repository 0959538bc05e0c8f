import { describe, expect, it } from "vitest";
import { apply, distance } from "./affine";
import type { Point } from "./affine";
import { affineThrough, cellsFor, gridOf } from "./mesh";

const frame = { width: 320, height: 240 };
const bent = ({ x, y }: Point) => ({ x: x / (1 + 8e-4 * x), y: y / (1 + 8e-4 * x) });

describe("a mesh", () => {
  it("is one cell where the map is affine", () => {
    expect(cellsFor(frame, (p) => apply([0.9, -0.3, 20, 0.4, 1.1, -7], p))).toBe(1);
  });

  it("has as many cells as a bent map needs, and no triangle strays", () => {
    const cells = cellsFor(frame, bent);
    expect(cells).toBeGreaterThan(1);
    for (const triangle of gridOf(frame, cells)) {
      const affine = affineThrough(triangle, triangle.map(bent));
      const [p, q, r] = triangle;
      for (const place of [p, { x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 }, { x: (p.x + q.x + r.x) / 3, y: (p.y + q.y + r.y) / 3 }]) {
        expect(distance(apply(affine, place), bent(place))).toBeLessThan(0.5);
      }
    }
  });

  it("covers the frame", () => {
    const area = gridOf(frame, 7).reduce(
      (sum, [p, q, r]) => sum + Math.abs((q.x - p.x) * (r.y - p.y) - (r.x - p.x) * (q.y - p.y)) / 2, 0,
    );
    expect(area).toBeCloseTo(320 * 240, 6);
  });
});
