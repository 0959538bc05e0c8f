/** What every command of the page does, whether by key or by button. */
import type { Command } from "../../model/keys";
import type { Side, Verdict } from "../../model/messages";
import type { Page } from "../page";
import { cycleTheme } from "./theme";

/** What parts of the shell do themselves. */
export interface ShellActions {
  openHelp(): void;
  openExports(): void;
  askForPair(): void;
  toggleLarge(part: "mosaic" | "overview"): void;
  /** Make large parts small again; false where none is large. */
  shrink(): boolean;
}

export type Commands = Readonly<Record<Exclude<Command, Direction | "blink">, () => void>> & {
  /** Back to the suggested pair, at once. */
  suggested(): void;
};
type Direction = "left" | "right" | "up" | "down";

export function makeCommands({ app, finished, pairView, hand, laying, curves, snapping }: Page, shell: ShellActions): Commands {
  const confirm = () => {
    const problem = app.drawing.knowledge.value?.problem ?? null;
    if (problem === null) give("yes");
    else app.say(problem, "warning");
  };
  const suggested = () => void app.next();
  return {
    yes: () => {
      const { landmarks, open } = app.drawing.draft.value;
      if (landmarks.length > 0 || open !== null) return confirm();
      focusFrame("i");
      app.say("Mark a point in one frame, then the same point in the other. One landmark is an answer, two are better.");
    },
    no: () => give("no"),
    unsure: () => give("unsure"),
    confirm: () => {
      if (laying.isOn) return laying.keep();
      if (curves.isOn) return curves.finish();
      if (acceptExpected()) return;
      if (pairView.cursor.value !== null) return place();
      if (app.drawing.draft.value.landmarks.length > 0) confirm();
    },
    accept: () => hand.takeProposal(),
    reject: () => hand.rejectProposal(),
    place,
    snap: () => {
      if (laying.isOn) return void laying.align();
      void (laying.canBegin ? laying.alignExpected() : snapping.snap());
    },
    snapAll: () => void snapping.snapAll(),
    remove: () => void (curves.undo() || hand.remove()),
    switch: () => hand.switchOff(),
    leaveOut: () => hand.leaveOut(),
    nextLandmark: () => (laying.isOn ? laying.turn(1) : hand.step(1)),
    previousLandmark: () => (laying.isOn ? laying.turn(-1) : hand.step(-1)),
    zoomIn: () => pairView.zoom(1.25),
    zoomOut: () => pairView.zoom(1 / 1.25),
    fit: () => pairView.fit(),
    actual: () => pairView.zoomTo(1),
    couple: () => {
      pairView.isCoupled.set(!pairView.isCoupled.value);
      app.say(pairView.isCoupled.value ? "The frames move together." : "Each frame moves alone.");
    },
    loupe: () => pairView.hasLoupe.set(!pairView.hasLoupe.value),
    contrast: () => {
      const on = app.showing.looks.toggleContrast();
      app.voice.whisper(on ? "Local contrast is on." : "Local contrast is off.");
    },
    earlier: () => pairView.goInTime(pairView.active.value, -1, app.state.value?.frames ?? 0),
    later: () => pairView.goInTime(pairView.active.value, 1, app.state.value?.frames ?? 0),
    lay: () => laying.toggle(),
    curve: () => curves.toggle(),
    overlay: () => pairView.cycleComparison(),
    undo: () => (curves.undo() ? undefined : app.drawing.canUndo ? app.drawing.undo() : void app.undo()),
    redo: () => (app.drawing.canRedo ? app.drawing.redo() : void app.redo()),
    next: () => {
      if (laying.end() || curves.end() || pairView.backInTime() || hand.letGo() || shell.shrink()) return;
      if (pairView.comparison.value !== "side by side") return pairView.comparison.set("side by side");
      if (app.question.value?.suggested === false) suggested();
    },
    suggested,
    go: () => shell.askForPair(),
    mosaic: () => shell.toggleLarge("mosaic"),
    overview: () => shell.toggleLarge("overview"),
    exports: () => shell.openExports(),
    finish: () => void finished.make(),
    theme: () => app.say(`Colours: ${cycleTheme()}.`),
    help: () => shell.openHelp(),
  };

  function give(verdict: Verdict): void {
    if (app.showing.isSeen.value) void app.give(verdict);
    else if (!app.isAnswering.value) app.say("These two frames are new. Look at them first, then answer.");
  }

  function place(): void {
    const cursor = pairView.cursor.value;
    if (curves.isOn && cursor !== null) return curves.tap(cursor.side, cursor.point);
    if (acceptExpected()) return;
    hand.placeAtCursor();
    focusFrame(pairView.active.value);
  }

  /** By keys the focus goes with the frame that they act on. */
  function acceptExpected(): boolean {
    const isAccepted = hand.accept();
    if (isAccepted && document.activeElement?.matches(".frame")) focusFrame(pairView.active.value);
    return isAccepted;
  }
}

function focusFrame(side: Side): void {
  frameOf(side)?.focus({ preventScroll: true });
}

/** Return the large frame of a side. */
export function frameOf(side: Side): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[data-testid="frame-${side}"]`);
}
