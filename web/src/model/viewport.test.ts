import { describe, expect, it } from "vitest";
import type { Affine } from "./affine";
import { apply, compose, invert } from "./affine";
import { outlineOf } from "./polygon";
import { fitFrames, holdThrough, pan, place, screenFromPlane, zoomAbout } from "./viewport";

const panel = { width: 400, height: 300 };
const frame = { width: 1000, height: 700 };
const iFromJ: Affine = [0, -1, 1400, 1, 0, 250];
const fitted = fitFrames(panel, frame, iFromJ);

describe("the viewport", () => {
  it("fits both frames whole into their panels", () => {
    for (const [side, map] of [["i", [1, 0, 0, 0, 1, 0]], ["j", iFromJ]] as const) {
      const screen = compose(screenFromPlane(fitted, panel, side), map as Affine);
      for (const corner of outlineOf(frame)) {
        const { x, y } = apply(screen, corner);
        expect(x).toBeGreaterThan(0);
        expect(x).toBeLessThan(panel.width);
        expect(y).toBeGreaterThan(0);
        expect(y).toBeLessThan(panel.height);
      }
    }
  });

  it("shows both frames at one scale", () => {
    expect(screenFromPlane(fitted, panel, "i")[0]).toBe(screenFromPlane(fitted, panel, "j")[0]);
  });

  it("keeps what is under the pointer while zooming, in either panel", () => {
    for (const side of ["i", "j"] as const) {
      const at = { x: 310, y: 40 };
      const point = apply(invert(screenFromPlane(fitted, panel, side)), at);
      const after = apply(screenFromPlane(zoomAbout(fitted, panel, side, at, 2.5), panel, side), point);
      expect(after.x).toBeCloseTo(at.x, 6);
      expect(after.y).toBeCloseTo(at.y, 6);
    }
  });

  it("draws the panels to the same place when zooming in, and not apart when zooming out", () => {
    const nearer = zoomAbout(fitted, panel, "i", { x: 200, y: 150 }, 4);
    expect(Math.hypot(nearer.slack.x, nearer.slack.y)).toBeLessThan(Math.hypot(fitted.slack.x, fitted.slack.y) / 10);
    expect(zoomAbout(nearer, panel, "i", { x: 200, y: 150 }, 0.25).slack).toEqual(nearer.slack);
  });

  it("pans both panels alike, or one alone", () => {
    const by = { x: 30, y: -20 };
    const before = { i: screenFromPlane(fitted, panel, "i"), j: screenFromPlane(fitted, panel, "j") };
    const shiftOf = (viewport: typeof fitted, side: "i" | "j") => {
      const after = screenFromPlane(viewport, panel, side);
      return [Math.round(after[2] - before[side][2]), Math.round(after[5] - before[side][5])];
    };
    expect([shiftOf(pan(fitted, by, null), "i"), shiftOf(pan(fitted, by, null), "j")]).toEqual([[30, -20], [30, -20]]);
    expect([shiftOf(pan(fitted, by, "i"), "i"), shiftOf(pan(fitted, by, "i"), "j")]).toEqual([[30, -20], [0, 0]]);
    expect([shiftOf(pan(fitted, by, "j"), "i"), shiftOf(pan(fitted, by, "j"), "j")]).toEqual([[0, 0], [30, -20]]);
  });

  it("puts a point where it is asked to", () => {
    const placed = place(fitted, panel, "j", { x: 77, y: 88 }, { x: 11, y: 22 });
    const { x, y } = apply(screenFromPlane(placed, panel, "j"), { x: 77, y: 88 });
    expect([x, y].map(Math.round)).toEqual([11, 22]);
  });

  it("keeps the middle of frame j’s panel when its pose changes", () => {
    const after: Affine = [0.1, -0.9, 1300, 1.1, 0, 300];
    const held = holdThrough(fitted, iFromJ, after);
    const middle = { x: 499.5, y: 349.5 };
    const before = apply(compose(screenFromPlane(fitted, panel, "j"), iFromJ), middle);
    const now = apply(compose(screenFromPlane(held, panel, "j"), after), middle);
    expect(now.x).toBeCloseTo(before.x, 6);
    expect(now.y).toBeCloseTo(before.y, 6);
  });
});
