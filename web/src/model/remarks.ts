/** What the page says of the landmarks that are drawn: how good they are, and what to do next. */
import { determinedWords, numberOf } from "./curve";
import type { Draft } from "./draft";
import { guideWords } from "./guide";
import type { Judgement, Knowledge } from "./knowledge";
import { px } from "./words";

/** A landmark that removes less than this share of the error is not worth a click. */
const LITTLE = 0.1;

/** Say how well the relative position is known. */
export function errorWords({ errorPx, source }: Knowledge): string {
  if (errorPx === null) return "position not known yet";
  return `± ${px(errorPx)} px ${source === "mosaic" ? "by the mosaic alone" : "with landmarks"}`;
}

/** Say what to do next, most important first; `isGuided`: to somebody who has never answered. */
export function remarkOn(draft: Draft, knowledge: Knowledge, warning: string | null, isGuided: boolean): string {
  const remark = remarkAlone(draft, knowledge, warning);
  if (!isGuided) return remark;
  if (draft.open !== null || draft.landmarks.length === 0) return `${guideWords(draft, knowledge.errorPx !== null)} ${remark}`;
  // There is room for three short lines.
  return remark.startsWith(CONFIRM) ? guideWords(draft, true) : remark;
}

const CONFIRM = "You can confirm now.";

function remarkAlone({ landmarks, open }: Draft, knowledge: Knowledge, warning: string | null): string {
  if (open !== null) return `Mark the same point in the other frame${knowledge.errorPx === null ? "" : ", or accept the place shown"}.`;
  if (landmarks.length === 0) return "Mark a point of a common place in one frame.";
  if (knowledge.problem !== null) return knowledge.problem;
  if (warning !== null) return warning;
  const wrong = knowledge.judgements.findIndex(({ tone }) => tone === "bad");
  const what = wrong >= 0 && typeof landmarks[wrong]!.along_deg === "number" ? "Vessel" : "Landmark";
  if (wrong >= 0) return `${what} ${numberOf(landmarks, wrong)} does not fit what the mosaic and the other landmarks say. Check it.`;
  return `${CONFIRM} ${determinedWords(landmarks, knowledge) || nextLandmarkWords(knowledge)}`;
}

/** Say how much one more landmark would bring. */
export function nextLandmarkWords({ errorPx, oneMorePx, judgements }: Knowledge): string {
  if (errorPx === null || oneMorePx === null) return "";
  const active = judgements.filter(({ tone }) => tone !== "off");
  const isUnchecked = active.length > 0 && active.every(({ tone }) => tone === "unchecked");
  const check = isUnchecked ? " and check what you have" : "";
  if (oneMorePx > (1 - LITTLE) * errorPx && !isUnchecked) return "One more landmark would change little.";
  return `One more landmark, far from the others, would bring ± ${px(oneMorePx)} px${check}.`;
}

/** Say how a landmark agrees with all the rest. */
export function judgementWords({ tone, offPx, reachPx }: Judgement): string {
  if (tone === "off") return "switched off: not used";
  const expected = "where the mosaic and the other landmarks expect it";
  const said = `${px(offPx)} px from ${expected}, which they know to ± ${px(reachPx)} px`;
  return tone === "unchecked" ? `${said}: too little to notice a wrong point` : said;
}
