/** What the program's stage allows. */
import type { Stage, State } from "./messages";

/** Whether there is a sequence to ask about. */
export function isOpen(state: State): boolean {
  return isReady(state) && state.usable > 0;
}

/** Whether the program has done its preparations. */
export function isReady({ stage }: { readonly stage: Stage }): boolean {
  return stage === "asking" || stage === "finishing";
}
