/** The first minute: three steps, on the person's own frames. */
import type { Draft } from "./draft";

/** Say which of the three steps comes now; `isExpected`: something is known of where frames and points are. */
export function guideWords({ landmarks, open }: Draft, isExpected: boolean): string {
  if (open !== null) return `Step 2 of 3: ${isExpected ? "the point is expected inside the ellipse" : "find the point again"}.`;
  if (landmarks.length === 0) return "Step 1 of 3: look for a place that both frames show. If there is none, answer no.";
  return "Step 3 of 3: confirm, and the mosaic is corrected at once.";
}
