/** The buttons while one frame is laid over the other by hand. */
import type { Laying } from "../../state/laying";
import { watch } from "../../state/observable";
import { make } from "../make";
import { makeKeyButton } from "../shell/button";

export function makeLayingBar(laying: Laying): HTMLElement {
  const align = makeKeyButton({ text: "align by all pixels", key: "f", testid: "align", act: () => void laying.align() });
  const keep = makeKeyButton({ text: "use as it is", key: "Enter", testid: "keep-laid", act: () => laying.keep() });
  const cancel = makeKeyButton({ text: "cancel", key: "Escape", class: "quiet", act: () => void laying.end() });
  const bar = make(
    "div",
    { class: "laying-bar", role: "toolbar", "aria-label": "frame laid by hand", "data-testid": "laying" },
    makeStep("↺", "turn to the left ([)", () => laying.turn(-1)),
    makeStep("↻", "turn to the right (])", () => laying.turn(1)),
    makeStep("−", "smaller", () => laying.scale(-1)),
    makeStep("+", "larger", () => laying.scale(1)),
    align,
    keep,
    cancel,
  );
  watch([laying.move, laying.isAligning], () => {
    bar.hidden = !laying.isOn;
    align.disabled = keep.disabled = laying.isAligning.value;
  });
  return bar;
}

function makeStep(text: string, title: string, act: () => void): HTMLButtonElement {
  const button = make("button", { type: "button", class: "quiet", title, "aria-label": title }, text);
  button.addEventListener("click", act);
  return button;
}
