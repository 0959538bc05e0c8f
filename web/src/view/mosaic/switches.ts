/** A row of choices of which one holds; the arrow keys move between them, as between radio buttons. */
import { make, setAttributes } from "../make";

export interface Choice<T extends string> {
  value: T;
  words: string;
  /** What it does, for a tooltip. */
  title?: string;
}

/** Made of buttons: while a field of a form has the keyboard, the page's own keys would rest. */
export function makeSwitch<T extends string>(
  name: string,
  choices: readonly Choice<T>[],
  first: T,
  choose: (value: T) => void,
): HTMLElement {
  const group = make("div", { class: "switch", role: "radiogroup", "aria-label": name });
  const buttons = choices.map(({ value, words, title }) => {
    const button = make("button", { type: "button", role: "radio", title: title ?? null }, words);
    button.addEventListener("click", () => set(value));
    group.append(button);
    return button;
  });

  const render = (chosen: T) => {
    choices.forEach(({ value }, k) => {
      buttons[k].setAttribute("aria-checked", String(value === chosen));
      setAttributes(buttons[k], { tabindex: value === chosen ? null : -1 });
    });
  };
  const set = (value: T) => {
    render(value);
    choose(value);
  };

  group.addEventListener("keydown", (event) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
    const from = buttons.findIndex((button) => button === event.target);
    if (from < 0 || !(event.key in steps)) return;
    const to = (from + steps[event.key] + buttons.length) % buttons.length;
    set(choices[to].value);
    buttons[to].focus();
    event.preventDefault();
    event.stopPropagation();
  });

  render(first);
  return group;
}
