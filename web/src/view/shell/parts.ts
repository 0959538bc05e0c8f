/** A part beside the frames that can have the whole window. */
import { make } from "../make";
import { makeKeyButton } from "./button";

export interface Part {
  readonly element: HTMLElement;
  readonly body: HTMLElement;
  toggle(): void;
  /** Make it small again; false where it is not large. */
  shrink(): boolean;
}

export function makePart(name: string, title: string, key: string, act: () => void): Part {
  const body = make("div", { class: "part-body" });
  const button = makeKeyButton({ text: "enlarge", key, class: "quiet small", act });
  button.setAttribute("aria-pressed", "false");
  button.querySelector(".text")!.after(make("span", { class: "hidden" }, ` ${title} `));
  const element = make(
    "section",
    { class: `part part-${name}`, "aria-label": title },
    make("div", { class: "part-head" }, make("h2", {}, title), button),
    body,
  );
  const set = (isLarge: boolean) => {
    document.querySelectorAll(".part.large").forEach((part) => part.classList.remove("large"));
    element.classList.toggle("large", isLarge);
    document.querySelectorAll(".part-head button").forEach((one) => one.setAttribute("aria-pressed", "false"));
    button.setAttribute("aria-pressed", String(isLarge));
    document.querySelectorAll(".part").forEach((part) => {
      part.querySelector(".part-head .text")!.textContent = part.classList.contains("large") ? "close" : "enlarge";
    });
    document.documentElement.classList.toggle("has-large-part", isLarge);
    // What takes keys itself comes before its buttons.
    const target = body.querySelector<HTMLElement>("[tabindex='0']") ?? body.querySelector<HTMLElement>("button, canvas");
    if (isLarge) target?.focus();
  };
  const isLarge = () => element.classList.contains("large");
  return {
    element,
    body,
    toggle: () => set(!isLarge()),
    shrink: () => {
      const was = isLarge();
      if (was) set(false);
      return was;
    },
  };
}
