/** A button that shows its key. */
import { keyLabel } from "../../model/keys";
import { make } from "../make";

export interface ButtonSpec {
  readonly text: string;
  /** As in the table of keys. */
  readonly key: string;
  readonly testid?: string;
  readonly class?: string;
  readonly title?: string;
  act(): void;
}

export function makeKeyButton({ text, key, testid, class: kind, title, act }: ButtonSpec): HTMLButtonElement {
  const button = make(
    "button",
    {
      type: "button",
      class: kind ?? null,
      title: title ?? null,
      "data-testid": testid ?? null,
      "aria-keyshortcuts": key,
    },
    make("span", { class: "text" }, text),
    make("kbd", { "aria-hidden": "true" }, keyLabel(key)),
  );
  button.addEventListener("click", act);
  return button;
}
