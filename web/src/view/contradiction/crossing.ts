/** Asks whose answer counts when two people answered the same pair. */
import { plural, verdictWords } from "../../model/words";
import type { Application, Crossing } from "../../state/application";
import { make } from "../make";

export function mountCrossing(host: HTMLElement, app: Application): void {
  const words = make("p", {});
  const both = make("dl", { class: "sides" });
  const theirs = make("button", { type: "button", class: "primary", "data-testid": "conflict-theirs" }, "keep theirs");
  const mine = make("button", { type: "button", "data-testid": "conflict-mine" }, "replace by mine");
  const dialog = make(
    "dialog",
    { class: "crossing", "data-testid": "conflict", "aria-labelledby": "crossing-title" },
    make("h2", { id: "crossing-title" }, "Somebody else answered this pair"),
    words,
    both,
    make("div", { class: "buttons" }, theirs, mine),
  );
  host.append(dialog);
  theirs.addEventListener("click", () => void app.resolve("theirs"));
  mine.addEventListener("click", () => void app.resolve("mine"));
  // To close it is to decide nothing: what was drawn stays.
  dialog.addEventListener("close", () => app.crossing.set(null));
  app.crossing.subscribe((crossing) => {
    if (crossing === null) return dialog.close();
    words.textContent = crossing.conflict.explanation;
    both.replaceChildren(...sidesOf(crossing));
    dialog.showModal();
  });
}

function sidesOf({ conflict: { theirs }, mine }: Crossing): HTMLElement[] {
  const describe = (verdict: "yes" | "no" | "unsure", landmarks: number) =>
    verdict === "yes" ? `${verdictWords(verdict)}, ${plural(landmarks, "landmark")}` : verdictWords(verdict);
  const removed = "no answer: it was removed";
  return [
    makeSide("theirs", theirs === null ? removed : describe(theirs.verdict, theirs.landmarks.length)),
    makeSide("mine", describe(mine.verdict, mine.landmarks?.length ?? 0)),
  ];
}

function makeSide(whose: string, words: string): HTMLElement {
  return make("div", {}, make("dt", {}, whose), make("dd", {}, words));
}
