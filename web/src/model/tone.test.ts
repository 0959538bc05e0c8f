import { expect, it } from "vitest";
import type { Landmark } from "./messages";
import { toneOf } from "./tone";

const landmark: Landmark = { x_i: 0, y_i: 0, x_j: 0, y_j: 0, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null };
const surprise = (sigmas: number) => ({ sigmas, distance: 0, reach: 1 });

it("judges a landmark by how surprising it is", () => {
  expect(toneOf(landmark, surprise(1), 2, 300)).toBe("good");
  expect(toneOf(landmark, surprise(3), 2, 300)).toBe("warn");
  expect(toneOf(landmark, surprise(8), 2, 300)).toBe("bad");
});

it("says good of no landmark of which an error would not be noticed", () => {
  expect(toneOf(landmark, surprise(0), 12, 300)).toBe("unchecked");
  expect(toneOf(landmark, surprise(8), 12, 300)).toBe("bad");
});

it("does not judge what is switched off", () => {
  expect(toneOf({ ...landmark, active: false }, surprise(99), 2, 300)).toBe("off");
});
