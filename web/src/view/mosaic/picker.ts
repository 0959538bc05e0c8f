/** The frames at a place: a list to pick two from, and the button that asks about them. */
import { plural, px } from "../../model/words";
import { make } from "../make";

/** A frame that shows the place. */
export interface Here {
  number: number;
  sigma: number;
  /** Whether more than one match determines its position. */
  confirmed: boolean;
  /** Draws its small picture. */
  draw(canvas: HTMLCanvasElement): void;
}

export interface Picker {
  /** List the frames at a place, on the left or the right of it; `focus` moves the keyboard there. */
  open(frames: readonly Here[], side: "left" | "right", focus: boolean): void;
  close(): void;
  /** Close the list, or forget what is picked; false where there is neither. */
  letGo(): boolean;
  /** The frames that are picked, one or two. */
  readonly picked: readonly number[];
  /** The frame of the list that is pointed at. */
  readonly pointed: number | null;
}

/** Rows that a list can have before it is better to look closer. */
const MOST_ROWS = 200;
const THUMBNAIL = { width: 48, height: 36 };

let lists = 0;

export function mountPicker(
  host: HTMLElement,
  ask: (i: number, j: number) => void,
  changed: () => void,
  leave: () => void,
): Picker {
  const id = `frames-here-${lists++}`;
  const title = make("strong", { id: `${id}-title` });
  const close = make("button", { type: "button", class: "quiet", "aria-label": "Close the list", title: "Esc" }, "×");
  const list = make("ul", { role: "listbox", tabindex: 0, "aria-multiselectable": "true" });
  list.setAttribute("aria-labelledby", title.id);
  const status = make("span", { class: "status", "aria-live": "polite" });
  const askButton = make("button", { type: "button", class: "primary", "data-testid": "ask-pair" }, "Show this pair");
  const footer = make("footer", {}, status, askButton);
  const panel = make("section", { class: "frames-here", "data-testid": "frames-here", hidden: true });
  panel.setAttribute("aria-labelledby", title.id);
  panel.append(make("header", {}, title, close), list, footer);
  host.append(panel);

  let frames: readonly Here[] = [];
  let isOpen = false;
  let picked: number[] = [];
  let active = 0;
  let pointed: number | null = null;

  const render = () => {
    panel.hidden = !isOpen && picked.length === 0;
    panel.classList.toggle("folded", !isOpen);
    for (const option of list.children) {
      const number = Number(option.getAttribute("data-frame"));
      option.setAttribute("aria-selected", String(picked.includes(number)));
      option.classList.toggle("active", option.id === `${id}-${active}`);
    }
    list.setAttribute("aria-activedescendant", isOpen && frames.length > 0 ? `${id}-${active}` : "");
    askButton.disabled = picked.length < 2;
    status.textContent = describe(picked, isOpen);
    changed();
  };

  const toggle = (number: number) => {
    // A third frame takes the place of the one that was picked first.
    picked = picked.includes(number) ? picked.filter((each) => each !== number) : [...picked, number].slice(-2);
    render();
  };

  const fold = (leaving: boolean) => {
    if (isOpen) isOpen = false;
    else picked = [];
    pointed = null;
    render();
    if (leaving) leave();
  };

  const point = (to: number) => {
    active = Math.max(0, Math.min(list.children.length - 1, to));
    pointed = frames[active]?.number ?? null;
    render();
    list.children[active]?.scrollIntoView({ block: "nearest" });
  };

  const rowOf = (frame: Here, k: number) => {
    const canvas = make("canvas", { ...THUMBNAIL, "aria-hidden": "true" });
    frame.draw(canvas);
    const spread = frame.sigma === 0 ? "reference frame" : `± ${px(frame.sigma)} px`;
    const certainty = frame.confirmed ? spread : `${spread}, depends on a single match`;
    const words = make("span", {}, `frame ${frame.number}`, make("small", {}, certainty));
    const row = make("li", { role: "option", id: `${id}-${k}`, "data-frame": frame.number }, canvas, words);
    row.addEventListener("click", () => {
      point(k);
      toggle(frame.number);
    });
    row.addEventListener("pointerenter", () => {
      pointed = frame.number;
      changed();
    });
    return row;
  };

  list.addEventListener("pointerleave", () => {
    pointed = null;
    changed();
  });
  close.addEventListener("click", () => fold(true));
  askButton.addEventListener("click", () => {
    const [i, j] = [...picked].sort((one, other) => one - other);
    picked = [];
    isOpen = false;
    pointed = null;
    render();
    ask(i, j);
  });
  panel.addEventListener("keydown", (event) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 6, PageUp: -6, Home: -1e9, End: 1e9 };
    if (event.key === "Escape") fold(true);
    else if (event.target !== list) return;
    else if (event.key in steps) point(active + steps[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && frames[active]) toggle(frames[active].number);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    open(here, side, focus) {
      panel.classList.toggle("left", side === "left");
      const every = Math.ceil(here.length / MOST_ROWS);
      frames = here.filter((_, k) => k % every === 0);
      isOpen = true;
      active = 0;
      pointed = null;
      title.textContent = nameList(here.length, every);
      list.replaceChildren(...frames.map(rowOf));
      list.scrollTop = 0;
      render();
      if (focus) list.focus();
    },
    close() {
      if (isOpen) fold(false);
    },
    letGo() {
      const held = isOpen || picked.length > 0;
      if (held) fold(false);
      return held;
    },
    get picked() {
      return picked;
    },
    get pointed() {
      return pointed;
    },
  };
}

function nameList(count: number, every: number): string {
  if (count === 0) return "No frame here";
  return every > 1 ? `${count} frames here, every ${every}th is listed` : `${plural(count, "frame")} here`;
}

function describe(picked: readonly number[], isOpen: boolean): string {
  if (picked.length === 2) return `Frames ${Math.min(...picked)} and ${Math.max(...picked)}`;
  if (picked.length === 0) return "Pick two frames";
  return isOpen ? `Frame ${picked[0]}; pick another` : `Frame ${picked[0]}; click a place to pick another`;
}
