/** Colours of landmarks, by how far their two sides are apart. */
import { SIGMA_PX } from "./pose";
import type { Landmark } from "./messages";

export type LandmarkTone = "good" | "warn" | "bad" | "off";

/** A landmark as good as its σ promises has a residual below 2.5 σ nineteen times in twenty. */
export function toneOf({ origin, active }: Landmark, residual: number): LandmarkTone {
  if (!active) return "off";
  const surprise = residual / SIGMA_PX[origin];
  return surprise < 2.5 ? "good" : surprise < 5 ? "warn" : "bad";
}
