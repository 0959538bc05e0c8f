/** What is shown instead of a question: what the program does before it, why it failed, or why nothing is asked. */
import type { Progress, State } from "../../model/messages";
import type { Step } from "../../model/preparation";
import { stepsToQuestion } from "../../model/preparation";
import { isOpen } from "../../model/stage";
import { capitalised } from "../../model/words";
import type { Application } from "../../state/application";
import type { Finished } from "../../state/finished";
import { watch } from "../../state/observable";
import { make } from "../make";

export function mountProgress(host: HTMLElement, app: Application, finished: Finished): void {
  const title = make("h2", {});
  const words = make("p", {});
  const steps = make("ol", { class: "steps" });
  const bar = make("progress", { "aria-label": "progress" });
  const details = make("p", { class: "details" });
  const show = make("button", { type: "button", class: "primary", "data-testid": "show-finished" }, "show the mosaic");
  show.addEventListener("click", () => finished.show());
  const close = make("button", { type: "button", class: "quiet small", "aria-label": "close" }, "×");
  const panel = make(
    "section",
    { class: "status-panel", "data-testid": "progress", "aria-live": "polite" },
    title,
    words,
    steps,
    bar,
    details,
    show,
    close,
  );
  host.append(panel);
  let dismissed = "";
  close.addEventListener("click", () => {
    dismissed = title.textContent;
    panel.hidden = true;
  });

  watch([app.state, app.notice, app.question, app.showing.isAsked, finished.mosaic], () => {
    const state = app.state.value;
    const stage = stageOf(app);
    const isWorking = WORKING.has(stage);
    const progress = app.notice.value?.progress ?? state?.progress ?? null;
    const isBeside = app.question.value !== null;
    const hasWords = stage !== "asking" || state?.finished === true || !isBeside;
    title.textContent = titleOf(state, stage);
    if (dismissed !== title.textContent) dismissed = "";
    panel.hidden = !hasWords || (isBeside && dismissed !== "");
    // Beside a question it is a note; without one it has the place of the frames.
    panel.classList.toggle("beside", isBeside);
    close.hidden = !isBeside;
    show.hidden = isWorking || state?.finished !== true || finished.mosaic.value === null;
    panel.classList.toggle("failed", stage === "failed");
    words.textContent = wordsOf(state, stage);
    const before = stage === "preparing" || stage === "choosing" ? stepsToQuestion(progress, stage === "choosing") : [];
    steps.hidden = before.length === 0;
    steps.replaceChildren(...before.map(makeStep));
    bar.hidden = !isWorking;
    showProgress(bar, details, isWorking && stage !== "choosing" ? progress : null);
  });
}

/** A stage of the program, or what it does while it has no question. */
type Doing = State["stage"] | "opening" | "choosing" | "matching";

const WORKING: ReadonlySet<Doing> = new Set<Doing>(["opening", "preparing", "choosing", "matching", "finishing"]);

function stageOf(app: Application): Doing {
  const state = app.state.value;
  const stage = app.notice.value?.stage ?? state?.stage;
  if (state === null || stage === undefined) return "opening";
  if (stage !== "asking" || app.question.value !== null) return stage;
  if (state.progress !== null) return "matching";
  return app.showing.isAsked.value ? stage : "choosing";
}

function titleOf(state: State | null, stage: Doing): string {
  if (state === null || stage === "opening") return "Opening";
  if (stage === "preparing" || stage === "choosing") return `Preparing ${state.name}`;
  if (stage === "failed") return "The input cannot be used";
  if (stage === "matching") return "The matcher is answering";
  if (stage === "finishing") return "Making the mosaic and the report";
  if (state.finished) return "The mosaic is finished";
  return "No useful question is left";
}

function wordsOf(state: State | null, stage: Doing): string {
  if (state === null || stage === "opening") return "";
  if (stage === "failed") return state.failure ?? "The reason is unknown; look at the terminal.";
  if (stage === "preparing" || stage === "choosing") return "The first question comes by itself, after these steps:";
  if (stage === "matching") return "You will be asked about the pairs of which it is not sure.";
  if (stage === "finishing") return "You can still answer. To include new answers, press “stop here” again.";
  if (state.finished) return `mosaic.png and report.html are in ${state.folder}.`;
  if (!isOpen(state)) return "";
  const why = capitalised(state.stopped ?? "no pair is left").replace(/\.?$/, ".");
  return (
    `${why} Press “stop here” to make the mosaic and the report. You can also choose a pair yourself, ` +
    "in the mosaic or in the maps."
  );
}

function makeStep({ words, state }: Step): HTMLElement {
  const said = { done: "done", now: "now", ahead: "later" }[state];
  return make("li", { class: state, "aria-current": state === "now" ? "step" : null, "aria-label": `${words}: ${said}` }, words);
}

function showProgress(bar: HTMLProgressElement, details: HTMLElement, progress: Progress | null): void {
  details.textContent = "";
  bar.removeAttribute("value");
  if (progress === null) return;
  const { name, done, total } = progress;
  details.textContent = total > 0 ? `${name}: ${done} of ${total}` : done > 0 ? `${name}: ${done}` : name;
  if (total > 0) {
    bar.max = total;
    bar.value = done;
  }
}
