/** Whether to go on: what the program foretells, in words. */
import { formatPx } from "./chart";
import type { Outlook, State } from "./messages";
import { isTargetReached } from "./words";

/** What was foretold, and after which revision. */
export interface Foretold extends Outlook {
  readonly revision: number;
}

/** Whether it is about the answers that there are. */
export function isCurrent(foretold: Foretold, state: State): boolean {
  return foretold.revision === state.revision;
}

/** Say in a few words whether to go on, and how sure the error is. */
export function summary(state: State, outlook: Outlook): string {
  return `${advice(state, outlook, "little left to gain")} · ${bound(outlook)}`;
}

/** Say all of it: how sure the error is, what further answers would bring, whether to go on. */
export function sentence(state: State, outlook: Outlook): string {
  const more = outlook.ahead.map(({ answers }) => answers - outlook.answers);
  const left = outlook.ahead.map(({ predicted_px }) => formatPx(predicted_px));
  const most = more.at(-1) ?? 0;
  const ahead = `after ${more.join(", ")} more answers about ${left.join(", ")} px`;
  return `Now ${bound(outlook)}; ${ahead}. ${capitalised(advice(state, outlook, `${most} more would change little`))}.`;
}

function bound({ bound_px }: Outlook): string {
  return `below ${formatPx(bound_px)} px nine times of ten`;
}

function advice(state: State, { worth_going_on }: Outlook, little: string): string {
  if (isTargetReached(state)) return "you may stop";
  if (worth_going_on) return "worth going on";
  // Within each part: what joins them is not foretold.
  return state.parts > 1 ? `${little} within the parts` : `${little}: you may stop`;
}

function capitalised(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
