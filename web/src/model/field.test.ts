import { describe, expect, it } from "vitest";
import { fieldOf } from "./field";
import { isInside, momentsOf, outlineOf } from "./polygon";

const mask = { width: 40, height: 30 };
const frame = { width: 320, height: 240 };
const showing = (shows: (x: number, y: number) => boolean) =>
  Array.from({ length: mask.width * mask.height }, (_, k) => shows((k % 40) + 0.5, Math.floor(k / 40) + 0.5));

describe("the field of view", () => {
  it("is round where the mask is", () => {
    const field = fieldOf(showing((x, y) => Math.hypot(x - 20, y - 15) < 12), mask, frame);
    // A radius of 96 px of the frame, to half a pixel of the mask.
    expect(Math.sqrt(momentsOf(field)!.area / Math.PI)).toBeCloseTo(96, -1);
    expect(isInside(field, { x: 160, y: 30 })).toBe(true);
    for (const corner of outlineOf(frame)) expect(isInside(field, corner)).toBe(false);
  });

  it("is the whole frame where all of it shows the scene, to half a pixel beyond the outermost centres", () => {
    const { area, centre } = momentsOf(fieldOf(showing(() => true), mask, frame))!;
    expect(area).toBeCloseTo(320 * 240, 6);
    expect(centre).toEqual({ x: 159.5, y: 119.5 });
  });

  it("is the whole frame where the mask says nothing", () => {
    expect(fieldOf(showing(() => false), mask, frame)).toEqual(outlineOf(frame));
  });
});
