/** All keys, made from the table that handles them. */
import type { Group } from "../../model/keys";
import { BINDINGS, keyLabel } from "../../model/keys";
import { make } from "../make";

const GESTURES: readonly (readonly [string, string])[] = [
  ["click, tap", "set a point in one frame, then the same point in the other; it snaps by itself where that is sure"],
  ["drag a landmark", "move it (with a finger: hold it, then drag)"],
  ["drag elsewhere", "move both frames (Shift: only one)"],
  ["wheel, pinch", "zoom at that place"],
  ["Alt and wheel", "show the frames before and after, up to 20"],
];

export function makeHelp(): HTMLDialogElement {
  const groups = [...new Set(BINDINGS.map(({ group }) => group))].map(makeGroup);
  const gestures = make(
    "section",
    {},
    make("h3", {}, "Mouse and touch"),
    make("dl", {}, ...GESTURES.map(([what, words]) => makeEntry([make("span", { class: "gesture" }, what)], words))),
  );
  const close = make("button", { type: "submit", class: "primary" }, "close");
  const dialog = make(
    "dialog",
    { class: "help", "data-testid": "help", "aria-labelledby": "help-title" },
    make(
      "form",
      { method: "dialog" },
      make("div", { class: "dialog-head" }, make("h2", { id: "help-title" }, "Help"), close),
      make("div", { class: "groups" }, ...groups, gestures),
    ),
  );
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "?") return;
    event.preventDefault();
    dialog.close();
  });
  return dialog;
}

function makeGroup(group: Group): HTMLElement {
  const rows: Row[] = [];
  for (const { keys, words } of BINDINGS.filter((binding) => binding.group === group)) {
    if (words === "") rows.push(joined(rows.pop()!, keys));
    else rows.push({ keys, words });
  }
  return make("section", { class: "keys" }, make("h3", {}, group), make("dl", {}, ...rows.map(makeBinding)));
}

interface Row {
  readonly keys: readonly string[];
  readonly words: string;
}

function joined({ keys, words }: Row, more: readonly string[]): Row {
  return { keys: [...keys, ...more], words };
}

function makeBinding({ keys, words }: Row): HTMLElement {
  // Variants with modifiers of the arrow keys are in the words.
  const shown = keys.filter((key) => !/\+Arrow/.test(key));
  return makeEntry(
    shown.map((key) => make("kbd", {}, keyLabel(key))),
    words,
  );
}

function makeEntry(keys: readonly HTMLElement[], words: string): HTMLElement {
  return make("div", {}, make("dt", {}, ...keys), make("dd", {}, words));
}
