/** Asks whose answer counts when two people answered the same pair. */
import { plural, verdictWords } from "../../model/words";
import type { Application, AnswerConflict } from "../../state/application";
import { make } from "../make";

export function mountAnswerConflict(host: HTMLElement, app: Application): void {
  const title = make("h2", { id: "conflict-title" });
  const words = make("p", {});
  const both = make("dl", { class: "sides" });
  const keepTheirs = { type: "button", class: "primary", "data-testid": "conflict-theirs" };
  const theirs = make("button", keepTheirs, "keep the other answer");
  const mine = make("button", { type: "button", "data-testid": "conflict-mine" }, "replace it by my answer");
  const dialog = make(
    "dialog",
    { class: "conflict", "data-testid": "conflict", "aria-labelledby": "conflict-title" },
    title,
    words,
    both,
    make("div", { class: "buttons" }, theirs, mine),
  );
  host.append(dialog);
  theirs.addEventListener("click", () => void app.resolve("theirs"));
  mine.addEventListener("click", () => void app.resolve("mine"));
  // To close it is to decide nothing: what was drawn stays.
  dialog.addEventListener("close", () => app.answerConflict.set(null));
  app.answerConflict.subscribe((answerConflict) => {
    if (answerConflict === null) return dialog.close();
    const { isOwn, conflict } = answerConflict;
    title.textContent = isOwn ? "You answered this pair in another tab" : "Another person also answered this pair";
    words.textContent = isOwn ? "Which of your two answers counts?" : conflict.explanation;
    both.replaceChildren(...sidesOf(answerConflict));
    dialog.showModal();
  });
}

function sidesOf({ conflict: { theirs }, mine }: AnswerConflict): HTMLElement[] {
  const describe = (verdict: "yes" | "no" | "unsure", landmarks: number) =>
    verdict === "yes" ? `${verdictWords(verdict)}, ${plural(landmarks, "landmark")}` : verdictWords(verdict);
  const removed = "no answer: it was removed";
  return [
    makeSide("other answer", theirs === null ? removed : describe(theirs.verdict, theirs.landmarks.length)),
    makeSide("my answer", describe(mine.verdict, mine.landmarks?.length ?? 0)),
  ];
}

function makeSide(whose: string, words: string): HTMLElement {
  return make("div", {}, make("dt", {}, whose), make("dd", {}, words));
}
