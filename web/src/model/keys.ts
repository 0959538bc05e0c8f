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
  | "overlay"
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

export type Group = "Answer" | "Landmarks" | "Looking" | "Going about";

export const BINDINGS: readonly Binding[] = [
  {
    command: "yes",
    keys: ["y"],
    words: "the frames overlap: set landmarks, or confirm those that are set",
    group: "Answer",
  },
  { command: "no", keys: ["n"], words: "no overlap", group: "Answer" },
  { command: "unsure", keys: ["u"], words: "cannot tell", group: "Answer" },
  {
    command: "confirm",
    keys: ["Enter"],
    words: "accept the expected place, or confirm the answer",
    group: "Answer",
    framesOnly: true,
  },
  { command: "accept", keys: ["a"], words: "take the matcher’s landmarks", group: "Answer" },
  { command: "reject", keys: ["r"], words: "hide the matcher’s proposal", group: "Answer" },
  { command: "undo", keys: ["z", "Ctrl+z"], words: "undo what was drawn last, or the last answer", group: "Answer" },
  { command: "redo", keys: ["Shift+z", "Ctrl+y", "Ctrl+Shift+z"], words: "redo", group: "Answer" },
  { command: "finish", keys: ["e"], words: "stop here: finish the mosaic and the report", group: "Answer" },

  { command: "next", keys: ["Escape"], words: "let go; then: back to the suggested pair", group: "Going about" },
  { command: "go", keys: ["g"], words: "look at two frames by their numbers", group: "Going about" },
  { command: "mosaic", keys: ["m"], words: "the mosaic large, and back", group: "Going about" },
  { command: "overview", keys: ["o"], words: "the overview large, and back", group: "Going about" },
  { command: "exports", keys: ["d"], words: "export", group: "Going about" },
  { command: "theme", keys: ["t"], words: "light, dark, as the system", group: "Going about" },
  { command: "help", keys: ["?"], words: "these keys", group: "Going about" },

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
    words: "snap the selected landmark to where the frames correlate best",
    group: "Landmarks",
  },
  { command: "snapAll", keys: ["Shift+f"], words: "snap all landmarks", group: "Landmarks" },
  {
    command: "left",
    keys: ["ArrowLeft", "Shift+ArrowLeft", "Alt+ArrowLeft"],
    words: "nudge the selected point by 1 px (Shift 10, Alt 0.1), or move the cursor",
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
    command: "remove",
    keys: ["x", "Delete", "Backspace"],
    words: "delete the selected landmark",
    group: "Landmarks",
    framesOnly: true,
  },

  { command: "zoomIn", keys: ["+", "="], words: "larger", group: "Looking", framesOnly: true, repeats: true },
  { command: "zoomOut", keys: ["-"], words: "smaller", group: "Looking", framesOnly: true, repeats: true },
  { command: "fit", keys: ["0"], words: "both frames whole", group: "Looking", framesOnly: true },
  { command: "actual", keys: ["1"], words: "100 %", group: "Looking", framesOnly: true },
  {
    command: "couple",
    keys: ["c"],
    words: "move the frames together or each alone (Shift and drag: alone)",
    group: "Looking",
  },
  { command: "loupe", keys: ["l"], words: "loupe off or on", group: "Looking" },
  { command: "overlay", keys: ["v"], words: "side by side, blink, swipe, difference", group: "Looking" },
  { command: "blink", keys: ["b"], words: "hold: the other frame in its place", group: "Looking" },
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
