/** Sends keys to their commands. */
import { scaled } from "../../model/affine";
import type { Command } from "../../model/keys";
import { bindingOf, keyName } from "../../model/keys";
import type { Page } from "../page";
import type { Commands } from "./commands";
import { frameOf } from "./commands";

const DIRECTIONS = {
  left: { x: -1, y: 0 },
  right: { x: 1, y: 0 },
  up: { x: 0, y: -1 },
  down: { x: 0, y: 1 },
} as const;

const PRESSED_BY_KEYS = "button, a, summary, [role=tab], [role=menuitem]";

/** What keeps the focus after a click, because its own keys go on from there. */
const KEEPS_FOCUS = "dialog, details, [role=listbox]";

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

export function listenToKeys({ app, pairView, hand, laying }: Page, commands: Commands): void {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>(PRESSED_BY_KEYS) : null;
    // A click that keys made has no detail.
    if (button === null || event.detail === 0 || button.closest(KEEPS_FOCUS) !== null) return;
    // Otherwise Enter would press the button again, instead of confirming.
    if (button !== document.activeElement && document.activeElement !== document.body) return;
    const large = button.closest(".part.large")?.querySelector<HTMLElement>("[tabindex='0']");
    (large ?? frameOf(pairView.active.value))?.focus({ preventScroll: true });
    if (button === document.activeElement) button.blur();
  });
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
      const direction = DIRECTIONS[command as keyof typeof DIRECTIONS];
      if (laying.isOn) laying.shift(scaled(direction, { small: 0.1, normal: 1, large: 10 }[size]));
      else hand.nudge(direction, size);
    } else commands[command as keyof Commands]();
  });
  document.addEventListener("keyup", (event) => {
    if (event.key.toLowerCase() === "b") pairView.isBlinking.set(false);
  });
  window.addEventListener("blur", () => pairView.isBlinking.set(false));
}
