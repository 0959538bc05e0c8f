/** What is shown instead of a question: how far the preparation is, why it failed, or why nothing is asked. */
import type { Progress, State } from "../../model/messages";
import { isOpen } from "../../model/stage";
import { capitalised } from "../../model/words";
import type { Application } from "../../state/application";
import { watch } from "../../state/observable";
import { make } from "../make";

export function mountProgress(host: HTMLElement, app: Application): void {
  const title = make("h2", {});
  const words = make("p", {});
  const bar = make("progress", { "aria-label": "progress" });
  const details = make("p", { class: "details" });
  const close = make("button", { type: "button", class: "quiet small", "aria-label": "close" }, "×");
  const panel = make(
    "section",
    { class: "status-panel", "data-testid": "progress", "aria-live": "polite" },
    title,
    words,
    bar,
    details,
    close,
  );
  host.append(panel);
  let dismissed = "";
  close.addEventListener("click", () => {
    dismissed = title.textContent;
    panel.hidden = true;
  });

  watch([app.state, app.notice, app.question], () => {
    const state = app.state.value;
    const stage = app.notice.value?.stage ?? state?.stage;
    const progress = app.notice.value?.progress ?? state?.progress ?? null;
    const isWorking = state === null || stage === "preparing" || stage === "finishing";
    const isBeside = app.question.value !== null;
    const hasWords = isWorking || stage === "failed" || state.finished || !isBeside;
    title.textContent = titleOf(state, stage);
    if (dismissed !== title.textContent) dismissed = "";
    panel.hidden = !hasWords || (isBeside && dismissed !== "");
    // Beside a question it is a note; without one it has the place of the frames.
    panel.classList.toggle("beside", isBeside);
    close.hidden = !isBeside;
    panel.classList.toggle("failed", stage === "failed");
    bar.hidden = !isWorking;
    words.textContent = wordsOf(state, stage);
    showProgress(bar, details, isWorking ? progress : null);
  });
}

function titleOf(state: State | null, stage: State["stage"] | undefined): string {
  if (state === null) return "Opening";
  if (stage === "preparing") return `Preparing ${state.name}`;
  if (stage === "failed") return "The input cannot be used";
  if (stage === "finishing") return "Making the mosaic and the report";
  if (state.finished) return "The mosaic is finished";
  return "No useful question is left";
}

function wordsOf(state: State | null, stage: State["stage"] | undefined): string {
  if (state === null) return "";
  if (stage === "failed") return state.failure ?? "The reason is unknown; look at the terminal.";
  if (stage === "preparing") return "Smalti reads the frames and registers each one to the next. Then the questions begin.";
  if (stage === "finishing") return "You can still answer. To include new answers, press “stop here” again.";
  if (state.finished) return `mosaic.png and report.html are in ${state.folder}.`;
  if (!isOpen(state)) return "";
  const why = capitalised(state.stopped ?? "no pair is left").replace(/\.?$/, ".");
  return (
    `${why} Press “stop here” to make the mosaic and the report. You can also pick a pair in the mosaic ` +
    "or in the maps, or press G and give two frame numbers."
  );
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
