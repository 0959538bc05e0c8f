/** Sends keys to their commands. */
import type { Command } from "../../model/keys";
import { bindingOf, keyName } from "../../model/keys";
import type { Page } from "../page";
import type { Commands } from "./commands";

const DIRECTIONS = {
  left: { x: -1, y: 0 },
  right: { x: 1, y: 0 },
  up: { x: 0, y: -1 },
  down: { x: 0, y: 1 },
} as const;

const PRESSED_BY_KEYS = "button, a, summary, [role=tab], [role=menuitem]";

/** What can be done without a pair on the screen. */
const NEEDS_NO_PAIR: ReadonlySet<Command> = new Set([
  "undo",
  "redo",
  "next",
  "go",
  "mosaic",
  "overview",
  "exports",
  "finish",
  "theme",
  "help",
]);

export function listenToKeys({ app, pairView, hand }: Page, commands: Commands): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]") !== null) return;
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    if (target.matches("input:not([type=range]), textarea, select")) return;
    const name = keyName(event);
    // A focused button is pressed by these keys, and does what it says.
    if ((name === "Enter" || name === "Space") && target.closest(PRESSED_BY_KEYS) !== null) return;
    const onFrames = target.closest("aside, nav, dialog, [role=menu], input") === null;
    const binding = bindingOf(event, onFrames);
    if (binding === null) return;
    const { command } = binding;
    if (app.drawing.question === null && !NEEDS_NO_PAIR.has(command)) return;
    event.preventDefault();
    if (command === "blink") pairView.isBlinking.set(true);
    else if (command in DIRECTIONS) {
      const size = event.shiftKey ? "large" : event.altKey ? "small" : "normal";
      hand.nudge(DIRECTIONS[command as keyof typeof DIRECTIONS], size);
    } else commands[command as keyof Commands]();
  });
  document.addEventListener("keyup", (event) => {
    if (event.key.toLowerCase() === "b") pairView.isBlinking.set(false);
  });
  window.addEventListener("blur", () => pairView.isBlinking.set(false));
}
