/** The lines below the frames: why the pair is asked, and the answers. */
import type { Given } from "../../model/messages";
import { verdictWords, whyAsked } from "../../model/words";
import { isSamePair } from "../../state/drawing";
import { watch } from "../../state/observable";
import { make } from "../make";
import type { Page } from "../page";
import { makeMatcherStrip } from "../question/matcher";
import { makeKeyButton } from "./button";
import type { Commands } from "./commands";

export function makeFooter(page: Page, commands: Commands): HTMLElement {
  const { app } = page;
  const footer = make(
    "footer",
    { class: "bottom", "aria-label": "the question" },
    makeReason(page, commands),
    makeAnswers(page, commands),
  );
  app.question.subscribe((question) => (footer.hidden = question === null));
  return footer;
}

function makeReason({ app }: Page, commands: Commands): HTMLElement {
  const words = make("span", { class: "sentence" });
  const back = makeKeyButton({ text: "next suggestion", key: "Escape", class: "quiet small", act: commands.suggested });
  watch([app.question, app.forecast], () => {
    const question = app.question.value;
    if (question === null) return;
    const forecast = isSamePair(app.forecast.value, question) ? app.forecast.value : null;
    words.textContent = words.title = whyAsked(question, forecast) + whatWasSaid(question.answer);
    back.hidden = question.suggested;
  });
  return make("p", { class: "why" }, words, " ", back);
}

function whatWasSaid(answer: Given | null): string {
  if (answer === null) return "";
  const who = answer.author === "person" ? "a person" : "the matcher";
  return ` Present answer: “${verdictWords(answer.verdict)}”, by ${who}. A new answer replaces it.`;
}

function makeAnswers(page: Page, commands: Commands): HTMLElement {
  const { app, snapping } = page;
  const makeAnswer = (text: string, key: string, testid: string, kind: string, act: () => void) =>
    makeKeyButton({ text, key, testid, class: kind, act });
  const yes = makeAnswer("overlap", "y", "verdict-yes", "verdict yes", commands.yes);
  const no = makeAnswer("no overlap", "n", "verdict-no", "verdict no", commands.no);
  const unsure = makeAnswer("cannot tell", "u", "verdict-unsure", "verdict", commands.unsure);
  const snap = makeAnswer("snap", "f", "snap", "snap", () => void snapping.snap());
  const confirm = makeAnswer("confirm", "Enter", "confirm", "confirm", commands.confirm);
  // Which reason it is stands beside the landmarks; a disabled button must point there.
  confirm.setAttribute("aria-describedby", "landmark-remark");

  watch([app.drawing.draft, app.drawing.knowledge, app.isAnswering, app.question], () => {
    const isBusy = app.isAnswering.value;
    const { landmarks, open } = app.drawing.draft.value;
    const problem = app.drawing.knowledge.value?.problem ?? null;
    for (const button of [yes, no, unsure]) button.disabled = isBusy;
    snap.disabled = landmarks.length === 0 && open === null;
    confirm.disabled = isBusy || problem !== null;
    confirm.title = problem ?? "confirm that the frames overlap as the landmarks show";
  });
  const answers = [yes, no, unsure, snap, makeMatcherStrip(page), confirm];
  return make("div", { class: "answers", role: "group", "aria-label": "your answer" }, ...answers);
}
