import { describe, expect, it } from "vitest";
import { apply } from "./affine";
import type { Homography } from "./homography";
import { chain, inverse, project, tangentAt } from "./homography";

const map: Homography = [1.1, -0.2, 30, 0.25, 0.9, -12, 2e-4, -3e-4, 1];
const point = { x: 120, y: 80 };

describe("homographies", () => {
  it("divide by the depth", () => {
    const w = 2e-4 * 120 - 3e-4 * 80 + 1;
    expect(project(map, point).x).toBeCloseTo((1.1 * 120 - 0.2 * 80 + 30) / w, 12);
  });

  it("are undone by their inverse, and chained in order", () => {
    const back = project(inverse(map), project(map, point));
    expect(back.x).toBeCloseTo(120, 9);
    expect(back.y).toBeCloseTo(80, 9);
    const twice = project(chain(map, map), point);
    expect(twice.x).toBeCloseTo(project(map, project(map, point)).x, 9);
  });

  it("have the tangent that differences say", () => {
    const tangent = tangentAt(map, point);
    const near = { x: 120.01, y: 79.99 };
    expect(apply(tangent, point).x).toBeCloseTo(project(map, point).x, 9);
    expect(apply(tangent, near).x).toBeCloseTo(project(map, near).x, 6);
    expect(apply(tangent, near).y).toBeCloseTo(project(map, near).y, 6);
  });

  it("keep what is beyond the horizon on its side of it", () => {
    const steep: Homography = [1, 0, 0, 0, 1, 0, -0.01, 0, 1];
    expect(project(steep, { x: 150, y: 0 }, { x: 0, y: 0 }).x).toBeCloseTo(150 / 0.05, 9);
  });
});
