/** What the page says, made from messages. */
import type { Forecast, Proposal, Question, State } from "./messages";

export function px(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : value >= 0.095 ? 1 : 2);
}

export function percent(share: number): string {
  const value = 100 * share;
  return value > 0 && value < 1 ? "less than 1 %" : `${value.toFixed(0)} %`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

export function capitalised(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Say how good the mosaic is, and how far the target. */
export function errorSummary(state: State, forecast: Forecast | null): string {
  const parts: string[] = [];
  if (state.predicted_px !== null) parts.push(`error ± ${px(state.predicted_px)} px`);
  if (state.target_px !== null) parts.push(`target ${px(state.target_px)} px`);
  if (state.parts > 1) parts.push(`${state.parts} separate parts`);
  const { yes, no, unsure } = state.counts;
  const answers = plural(yes + no + unsure, "answer");
  const more = moreAnswers(state, forecast);
  parts.push(more === null ? answers : `${answers}, ${more}`);
  return parts.join(" · ");
}

/** Whether the error is surely enough below the target, of one mosaic. */
export function isTargetReached({ target_met, parts }: State): boolean {
  return target_met && parts <= 1;
}

function moreAnswers(state: State, forecast: Forecast | null): string | null {
  if (state.target_px === null) return null;
  if (isTargetReached(state)) return "target reached";
  if (forecast === null || forecast.more === null) return null;
  return forecast.more_is_bound ? `more than ${forecast.more} more` : `about ${forecast.more} more`;
}

/** Say why a pair is shown. */
export function whyAsked(question: Question, forecast: Forecast | null): string {
  const by = `by position ${percent(question.position)}, by appearance ${percent(question.appearance)}`;
  const parts = [`probability of overlap ${percent(question.overlap)} (${by})`];
  parts.push(question.joined ? `relative position known to ± ${px(question.unknown_px)} px` : "no match joins them yet");
  const gain = forecast === null ? null : gainOf(forecast);
  if (gain !== null) parts.push(gain);
  return `${question.suggested ? "Why this pair" : "You picked this pair"}: ${parts.join("; ")}.`;
}

function gainOf({ now_px, after_yes_px }: Forecast): string | null {
  if (!(now_px > 0) || after_yes_px === null) return null;
  const share = 1 - after_yes_px / now_px;
  if (share < 0.005) return "a yes would hardly reduce the error";
  return `a yes would reduce the error by ${percent(share)} (${px(now_px)} → ${px(after_yes_px)} px)`;
}

/** Say what the matcher thinks of a pair. */
export function matcherSays({ verdict, landmarks, reason, sure }: Proposal): string {
  const doubt = sure ? "" : ", not sure";
  if (verdict === "yes") return `overlap, ${plural(landmarks.length, "landmark")}${doubt}`;
  const said = verdict === "no" ? "no overlap" : "cannot tell";
  return reason === "" ? `${said}${doubt}` : `${said}${doubt}: ${reason}`;
}

export function verdictWords(verdict: "yes" | "no" | "unsure"): string {
  return { yes: "overlap", no: "no overlap", unsure: "cannot tell" }[verdict];
}
