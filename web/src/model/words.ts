/** What the page says, made from messages. */
import type { Forecast, MeasuredPerson, Proposal, Question, State } from "./messages";

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

/** What is asked of every pair. */
export const QUESTION = "Do these two frames show a common place?";

/** Say in a few words what a yes would bring. */
export function gainWords(question: Question, forecast: Forecast | null): string {
  if (!question.joined) return "A yes would join two separate parts.";
  if (forecast === null || !(forecast.now_px > 0) || forecast.after_yes_px === null) return "";
  const { now_px, after_yes_px } = forecast;
  if (1 - after_yes_px / now_px < 0.005 || px(now_px) === px(after_yes_px)) return "A yes would hardly lower the error.";
  return `A yes would lower the error from ${px(now_px)} to ${px(after_yes_px)} px.`;
}

/** Say why the pair is shown and what is known of it, a sentence each. */
export function reasonsOf({ suggested, overlap, position, appearance, joined, unknown_px, i, j }: Question): string[] {
  const chosen = "Smalti chose this pair: no other lowers the error more for the time that it takes.";
  const evidence = `${percent(position)} from their positions alone, ${percent(appearance)} from how they look`;
  return [
    suggested ? chosen : "You chose this pair.",
    `Probability of a yes: ${percent(overlap)} (${evidence}).`,
    joined
      ? `The place of frame ${j} in frame ${i} is known to ± ${px(unknown_px)} px.`
      : "No answer joins these two frames yet, so that their places are not known.",
  ];
}

/** Say what the matcher found. */
export function matcherSays({ verdict, landmarks, reason, sure }: Proposal): string {
  const doubt = sure ? "" : ", but is not sure";
  if (verdict === "yes") return `The matcher found ${plural(landmarks.length, "common point")}${doubt}.`;
  const why = reason === "" ? "" : `: ${reason}`;
  return verdict === "no" ? `The matcher found no match${why}.` : `The matcher cannot tell${why}.`;
}

/** Say what pairs with known answers tell of a person. */
export function personWords({ person, known, right, unsure, sigma_px, sigma_uncertainty_px }: MeasuredPerson): string {
  const unknown = unsure > 0 ? ` (and ${unsure} “cannot tell”)` : "";
  const agreed = `${right} of ${plural(known, "known pair")} answered right${unknown}`;
  if (sigma_px === null || sigma_uncertainty_px === null) return `${person}: ${agreed}.`;
  return `${person}: ${agreed}, landmarks ± ${px(sigma_px)} px (known to ± ${px(sigma_uncertainty_px)} px).`;
}

export function verdictWords(verdict: "yes" | "no" | "unsure"): string {
  return { yes: "yes", no: "no", unsure: "cannot tell" }[verdict];
}
