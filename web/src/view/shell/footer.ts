/** The lines below the frames: why the pair is asked, and the answers. */
import type { Given } from "../../model/messages";
import { gainWords, QUESTION, reasonsOf, verdictWords } from "../../model/words";
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

function makeReason({ app, laying, curves }: Page, commands: Commands): HTMLElement {
  const words = make("span", { class: "sentence" });
  const list = make("ul", {});
  const summary = make("summary", { class: "button quiet small" }, "why?");
  const reasons = make("details", { class: "reasons", "data-testid": "reasons" }, summary, list);
  const back = makeKeyButton({ text: "next suggestion", key: "Escape", class: "quiet small", act: commands.suggested });
  reasons.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !reasons.open) return;
    event.preventDefault();
    reasons.open = false;
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (target instanceof Node && !reasons.contains(target)) reasons.open = false;
  });
  watch([app.question, app.forecast], () => {
    const question = app.question.value;
    if (question === null) return;
    const forecast = isSamePair(app.forecast.value, question) ? app.forecast.value : null;
    words.textContent = words.title = answerWords(question.answer) ?? gainWords(question, forecast);
    list.replaceChildren(...reasonsOf(question).map((reason) => make("li", {}, reason)));
  });
  // While something is laid or drawn, Esc cancels that first.
  watch([app.question, laying.move, curves.sketch], () => {
    back.hidden = app.question.value?.suggested !== false || laying.isOn || curves.isOn;
  });
  const asked = make("strong", { class: "asked", "data-testid": "asked" }, QUESTION);
  return make("div", { class: "why" }, asked, words, reasons, back);
}

function answerWords(answer: Given | null): string | null {
  if (answer === null) return null;
  const who = answer.author === "person" ? "a person" : "the matcher";
  return `The answer so far is “${verdictWords(answer.verdict)}”, by ${who}. A new one replaces it.`;
}

function makeAnswers(page: Page, commands: Commands): HTMLElement {
  const { app, laying } = page;
  const makeAnswer = (text: string, key: string, testid: string, kind: string, act: () => void) =>
    makeKeyButton({ text, key, testid, class: kind, act });
  const yes = makeAnswer("yes", "y", "verdict-yes", "verdict yes", commands.yes);
  const no = makeAnswer("no", "n", "verdict-no", "verdict no", commands.no);
  const unsure = makeAnswer("cannot tell", "u", "verdict-unsure", "verdict", commands.unsure);
  const snap = makeAnswer("snap", "f", "snap", "snap", commands.snap);
  const confirm = makeAnswer("confirm", "Enter", "confirm", "confirm", commands.confirm);
  // Which reason it is stands beside the landmarks; a disabled button must point there.
  confirm.setAttribute("aria-describedby", "landmark-remark");

  watch([app.drawing.draft, app.drawing.knowledge, app.isAnswering, app.question], () => {
    const isBusy = app.isAnswering.value;
    const { landmarks, open } = app.drawing.draft.value;
    const problem = app.drawing.knowledge.value?.problem ?? null;
    for (const button of [yes, no, unsure]) button.disabled = isBusy;
    // Without a landmark, all pixels are aligned from where the frames are expected.
    const isBlank = landmarks.length === 0 && open === null;
    snap.querySelector(".text")!.textContent = isBlank ? "align" : "snap";
    snap.disabled = isBlank && !laying.canBegin;
    // Where a point is open it takes the place that is expected, as Enter does.
    confirm.querySelector(".text")!.textContent = open === null ? "confirm" : "accept place";
    confirm.disabled = isBusy || (open === null && problem !== null);
    confirm.title = (open === null ? problem : null) ?? "the two frames show a common place, as the landmarks say";
  });
  const answers = [yes, no, unsure, snap, makeMatcherStrip(page), confirm];
  return make("div", { class: "answers", role: "group", "aria-label": "your answer" }, ...answers);
}
