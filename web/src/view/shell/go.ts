/** Asks for the numbers of two frames to look at. */
import type { App } from "../../state/app";
import { make } from "../make";

export function makeGoDialog(app: App): HTMLDialogElement {
  const [first, second] = [makeField("first frame"), makeField("second frame")];
  const form = make(
    "form",
    { method: "dialog" },
    make("h2", {}, "Show two frames"),
    make("div", { class: "fields" }, makeLabel("first frame", first), makeLabel("second frame", second)),
    make(
      "div",
      { class: "buttons" },
      make("button", { type: "submit", class: "primary" }, "show"),
      make("button", { type: "button", class: "cancel" }, "cancel"),
    ),
  );
  const dialog = make("dialog", { class: "go", "aria-label": "show two frames" }, form);
  form.querySelector(".cancel")!.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => form.reset());
  form.addEventListener("submit", () => {
    const [i, j] = [first.valueAsNumber, second.valueAsNumber];
    if (i === j) app.say("Give two different frames.", "warning");
    else void app.look(i, j);
  });
  return dialog;
}

function makeField(name: string): HTMLInputElement {
  return make("input", { type: "number", min: 0, step: 1, required: true, "aria-label": name });
}

function makeLabel(text: string, field: HTMLInputElement): HTMLElement {
  return make("label", {}, make("span", {}, text), field);
}
