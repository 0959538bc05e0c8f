import { expect, it } from "vitest";
import type { Landmark } from "./messages";
import { toneOf } from "./tone";

const landmark: Landmark = { x_i: 0, y_i: 0, x_j: 0, y_j: 0, origin: "clicked", active: true };

it("judges a residual by what the landmark promises", () => {
  expect(toneOf(landmark, 3)).toBe("good");
  expect(toneOf({ ...landmark, origin: "snapped" }, 3)).toBe("bad");
  expect(toneOf({ ...landmark, origin: "matched" }, 3)).toBe("warn");
});

it("does not judge what is switched off", () => {
  expect(toneOf({ ...landmark, active: false }, 99)).toBe("off");
});
