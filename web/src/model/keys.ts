/** Every key of the page: this table handles them, and the help is made from it. */

export type Command =
  | "yes"
  | "no"
  | "unsure"
  | "confirm"
  | "accept"
  | "reject"
  | "place"
  | "snap"
  | "snapAll"
  | "remove"
  | "switch"
  | "leaveOut"
  | "nextLandmark"
  | "previousLandmark"
  | "left"
  | "right"
  | "up"
  | "down"
  | "zoomIn"
  | "zoomOut"
  | "fit"
  | "actual"
  | "couple"
  | "loupe"
  | "earlier"
  | "later"
  | "contrast"
  | "overlay"
  | "lay"
  | "curve"
  | "blink"
  | "undo"
  | "redo"
  | "next"
  | "go"
  | "mosaic"
  | "overview"
  | "exports"
  | "finish"
  | "theme"
  | "help";

export interface Binding {
  readonly command: Command;
  /** As `keyName` spells them. */
  readonly keys: readonly string[];
  /** Empty: the words of the binding before are for both. */
  readonly words: string;
  readonly group: Group;
  /** Only while no other part of the page (mosaic, table, a field) has the focus. */
  readonly framesOnly?: boolean;
  /** Goes on while the key is held. */
  readonly repeats?: boolean;
}

export type Group = "Answer" | "Landmarks" | "View" | "Page";

export const BINDINGS: readonly Binding[] = [
  {
    command: "yes",
    keys: ["y"],
    words: "yes, a common place: mark it, or confirm the landmarks",
    group: "Answer",
  },
  { command: "no", keys: ["n"], words: "no common place", group: "Answer" },
  { command: "unsure", keys: ["u"], words: "cannot tell: not asked again", group: "Answer" },
  {
    command: "confirm",
    keys: ["Enter"],
    words: "accept the expected place, or confirm the answer",
    group: "Answer",
    framesOnly: true,
  },
  { command: "accept", keys: ["a"], words: "use the landmarks of the matcher", group: "Answer" },
  { command: "reject", keys: ["r"], words: "hide the proposal of the matcher", group: "Answer" },
  { command: "undo", keys: ["z", "Ctrl+z"], words: "undo the last drawing step or the last answer", group: "Answer" },
  { command: "redo", keys: ["Shift+z", "Ctrl+y", "Ctrl+Shift+z"], words: "redo", group: "Answer" },
  { command: "finish", keys: ["e"], words: "stop here: finish the mosaic and the report", group: "Answer" },

  { command: "next", keys: ["Escape"], words: "cancel; press again to return to the suggested pair", group: "Page" },
  { command: "go", keys: ["g"], words: "show two frames by their numbers", group: "Page" },
  { command: "mosaic", keys: ["m"], words: "enlarge the mosaic, and back", group: "Page" },
  { command: "overview", keys: ["o"], words: "enlarge the overview, and back", group: "Page" },
  { command: "exports", keys: ["d"], words: "export files", group: "Page" },
  { command: "theme", keys: ["t"], words: "colours: light, dark, or as the system", group: "Page" },
  { command: "help", keys: ["?"], words: "show this list of keys", group: "Page" },

  {
    command: "place",
    keys: ["Space"],
    words: "set a landmark at the cursor, or accept the expected place",
    group: "Landmarks",
    framesOnly: true,
  },
  {
    command: "snap",
    keys: ["f"],
    words: "snap the selected landmark: move it to the best correlation nearby; without one, align the frames by all pixels",
    group: "Landmarks",
  },
  { command: "snapAll", keys: ["Shift+f"], words: "snap all landmarks", group: "Landmarks" },
  {
    command: "left",
    keys: ["ArrowLeft", "Shift+ArrowLeft", "Alt+ArrowLeft"],
    words: "move the selected point by 1 px (Shift: 10, Alt: 0.1), or move the cursor",
    group: "Landmarks",
    framesOnly: true,
    repeats: true,
  },
  {
    command: "right",
    keys: ["ArrowRight", "Shift+ArrowRight", "Alt+ArrowRight"],
    words: "",
    group: "Landmarks",
    framesOnly: true,
    repeats: true,
  },
  {
    command: "up",
    keys: ["ArrowUp", "Shift+ArrowUp", "Alt+ArrowUp"],
    words: "",
    group: "Landmarks",
    framesOnly: true,
    repeats: true,
  },
  {
    command: "down",
    keys: ["ArrowDown", "Shift+ArrowDown", "Alt+ArrowDown"],
    words: "",
    group: "Landmarks",
    framesOnly: true,
    repeats: true,
  },
  { command: "previousLandmark", keys: ["["], words: "select the previous landmark", group: "Landmarks" },
  { command: "nextLandmark", keys: ["]"], words: "select the next landmark", group: "Landmarks" },
  { command: "switch", keys: ["s"], words: "switch the selected landmark off or on", group: "Landmarks" },
  {
    command: "leaveOut",
    keys: ["Shift+s"],
    words: "leave the selected landmark out of the answer, to check the mosaic with it",
    group: "Landmarks",
  },
  {
    command: "remove",
    keys: ["x", "Delete", "Backspace"],
    words: "delete the selected landmark",
    group: "Landmarks",
    framesOnly: true,
  },

  { command: "zoomIn", keys: ["+", "="], words: "zoom in", group: "View", framesOnly: true, repeats: true },
  { command: "zoomOut", keys: ["-"], words: "zoom out", group: "View", framesOnly: true, repeats: true },
  { command: "fit", keys: ["0"], words: "show both frames completely", group: "View", framesOnly: true },
  { command: "actual", keys: ["1"], words: "zoom to 100 %", group: "View", framesOnly: true },
  {
    command: "couple",
    keys: ["c"],
    words: "move both frames together or each one alone (Shift and drag: alone)",
    group: "View",
  },
  { command: "loupe", keys: ["l"], words: "magnifier off or on", group: "View" },
  { command: "contrast", keys: ["w"], words: "local contrast: bring out faint structure, and back", group: "View" },
  {
    command: "earlier",
    keys: [","],
    words: "show the frame before, or the one after, of the active side (20 at most; Esc: back)",
    group: "View",
    repeats: true,
  },
  { command: "later", keys: ["."], words: "", group: "View", repeats: true },
  { command: "overlay", keys: ["v"], words: "next comparison: side by side, blink, swipe, difference", group: "View" },
  {
    command: "lay",
    keys: ["h"],
    words: "lay one frame over the other by hand: drag, Shift and drag turns and scales, arrows, [ and ] turn, F aligns",
    group: "Landmarks",
  },
  {
    command: "curve",
    keys: ["k"],
    words: "draw along a vessel in both frames: drag or click (Space at the cursor), Enter finds it",
    group: "Landmarks",
  },
  { command: "blink", keys: ["b"], words: "hold to show the other frame in the same place", group: "View" },
];

export interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
  readonly repeat: boolean;
}

/** Spell a key press as the table does: letters small, Shift only where the character does not tell it. */
export function keyName({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyPress): string {
  const isLetter = /^\p{L}$/u.test(key);
  const name = key === " " ? "Space" : isLetter ? key.toLowerCase() : key;
  // With Caps Lock on, letters are capital without Shift.
  const shift = shiftKey && (isLetter || key.length > 1 || key === " ");
  return `${ctrlKey || metaKey ? "Ctrl+" : ""}${altKey ? "Alt+" : ""}${shift ? "Shift+" : ""}${name}`;
}

/** Return what a key press asks for; null where it is none of ours. */
export function bindingOf(press: KeyPress, onFrames: boolean): Binding | null {
  const name = keyName(press);
  const binding = BINDINGS.find(({ keys }) => keys.includes(name));
  if (binding === undefined || (binding.framesOnly && !onFrames)) return null;
  // A held key must not answer question after question.
  if (press.repeat && !binding.repeats) return null;
  return binding;
}

/** Spell a key for people. */
export function keyLabel(name: string): string {
  const signs: Record<string, string> = {
    ArrowLeft: "←",
    ArrowRight: "→",
    ArrowUp: "↑",
    ArrowDown: "↓",
    Escape: "Esc",
    Delete: "Del",
  };
  const parts = name === "+" ? ["+"] : name.split("+");
  return parts.map((part) => signs[part] ?? (/^\p{L}$/u.test(part) ? part.toUpperCase() : part)).join(" ");
}
