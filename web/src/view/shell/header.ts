/** The line above everything: the project, whether all is saved, how good the mosaic is, what can be done always. */
import { isCurrent, sentence, summary } from "../../model/prediction";
import { isOpen } from "../../model/stage";
import { errorSummary } from "../../model/words";
import { watch } from "../../state/observable";
import { makeExportMenu } from "../export/menu";
import { make } from "../make";
import type { Page } from "../page";
import { makeKeyButton } from "./button";
import type { Commands } from "./commands";

export function makeHeader({ app, finished }: Page, commands: Commands): HTMLElement {
  const name = make("h1", {}, "smalti");
  const source = make("span", { class: "source" });
  const saved = make("span", { class: "saved", role: "status", "data-testid": "saved" });
  const now = make("p", { class: "error-summary" });
  const prediction = make("p", { class: "prediction", "data-testid": "prediction" });
  const undo = makeKeyButton({ text: "undo", key: "z", testid: "undo", act: commands.undo });
  const redo = makeKeyButton({ text: "redo", key: "Shift+z", testid: "redo", act: commands.redo });
  const themes = "colours: light, dark, or as the system";
  const theme = makeKeyButton({ text: "theme", key: "t", class: "quiet", title: themes, act: commands.theme });
  const stop = makeKeyButton({
    text: "stop here",
    key: "e",
    testid: "finish",
    title: "make the mosaic and the report from the answers so far",
    act: commands.finish,
  });
  const help = makeKeyButton({ text: "help", key: "?", class: "quiet", title: "what mouse, fingers and keys do", act: commands.help });

  watch([app.sender.saving, app.voice.connected, app.state], () => {
    const saving = app.sender.saving.value;
    const state = app.state.value;
    const isAway = saving.kind === "waiting" || !app.voice.connected.value;
    saved.classList.toggle("away", isAway);
    saved.classList.toggle("busy", saving.kind === "saving");
    const away = "Smalti does not answer";
    if (saving.kind === "waiting") saved.textContent = `not yet on disk: ${away}; next try in ${saving.seconds} s`;
    else if (saving.kind === "saving") saved.textContent = "saving…";
    else if (isAway) saved.textContent = away;
    else saved.textContent = state !== null && isOpen(state) ? "saved ✓" : "";
  });
  watch([app.state, app.prediction, app.contradiction], () => {
    const state = app.state.value;
    const predicted = app.prediction.value;
    const isKnown = state !== null && isOpen(state) && predicted !== null;
    const isDisputed = app.contradiction.value !== null;
    prediction.textContent = isKnown ? summary(state, predicted, isDisputed) : "";
    prediction.title = isKnown ? sentence(state, predicted, isDisputed) : "";
    prediction.classList.toggle("stale", isKnown && !isCurrent(predicted, state));
  });
  watch([app.state, app.forecast, app.drawing.draft, app.question], () => {
    const state = app.state.value;
    source.textContent = state?.name ?? "";
    source.title = state?.source ?? "";
    document.title = state === null ? "smalti" : `${state.name} · smalti`;
    now.textContent = state === null || !isOpen(state) ? "" : errorSummary(state, app.forecast.value);
    const { canUndo, canRedo } = app.drawing;
    setStep(undo, canUndo ? "last drawing step" : state?.undo, "undo");
    setStep(redo, canRedo ? "last drawing step" : state?.redo, "redo");
    stop.disabled = state === null || state.stage !== "asking" || !isOpen(state);
  });
  return make(
    "header",
    { class: "top" },
    make("div", { class: "title" }, name, source, saved),
    make("div", { class: "exactness" }, now, prediction),
    make("nav", { "aria-label": "general actions" }, undo, redo, makeExportMenu(app, finished), stop, theme, help),
  );
}

function setStep(button: HTMLButtonElement, what: string | null | undefined, verb: string): void {
  button.disabled = what == null;
  button.title = what == null ? `nothing to ${verb}` : `${verb}: ${what}`;
}
