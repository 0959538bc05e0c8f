/** The landmarks of the pair in a row, what their fit is worth, and what stands against it. */
import type { Landmark } from "../../model/messages";
import { px } from "../../model/words";
import { watch } from "../../state/observable";
import { make } from "../make";
import type { Page } from "../page";
import { toneOf } from "../../model/tone";

const ORIGIN_SIGNS = { clicked: "", snapped: "snapped", matched: "matcher" } as const;

export function mountLandmarks(host: HTMLElement, page: Page): void {
  const { app, hand, snapping } = page;
  const error = make("p", { class: "predicted-error", "data-testid": "predicted-error" });
  const remark = make("p", { class: "remark", id: "landmark-remark" });
  const list = make("ol", { class: "landmark-list", "aria-label": "landmarks" });
  const snapAll = makeButton("snap all", "snap all landmarks (Shift F)", () => void snapping.snapAll());
  const off = makeButton("off / on", "switch the selected landmark off or on (S)", () => hand.switchOff());
  const remove = makeButton("delete", "delete the selected landmark (X)", () => hand.remove());
  host.append(
    make("div", { class: "fit" }, error, remark),
    list,
    make("div", { class: "landmark-tools" }, snapAll, off, remove),
  );

  watch([app.drawing.draft, app.drawing.knowledge, app.drawing.warning], () => {
    const { landmarks, selected, open } = app.drawing.draft.value;
    const knowledge = app.drawing.knowledge.value;
    host.hidden = knowledge === null;
    if (knowledge === null) return;
    error.textContent = errorWords(knowledge.errorPx);
    error.title = "expected RMS error in the overlap, from the mosaic and these landmarks; not the residual";
    const warning = app.drawing.warning.value;
    remark.textContent = remark.title = remarkOn(landmarks, open !== null, knowledge.problem, warning);
    remark.classList.toggle("warning", warning !== null && knowledge.problem === null);
    list.replaceChildren(
      ...landmarks.map((landmark, index) => {
        const residual = knowledge.residuals[index]!;
        const words = landmark.active ? `${residual.toFixed(1)} px` : "off";
        return makeRow(page, landmark, index, residual, words, index === selected);
      }),
    );
    snapAll.disabled = landmarks.length === 0;
    off.disabled = remove.disabled = selected === null;
  });
}

function makeRow(
  { hand }: Page,
  landmark: Landmark,
  index: number,
  residual: number,
  words: string,
  isSelected: boolean,
): HTMLElement {
  const tone = toneOf(landmark, residual);
  const label = `landmark ${index + 1}, ${landmark.active ? `residual ${words}` : "switched off"}`;
  const button = make(
    "button",
    { type: "button", class: `landmark ${tone}`, "aria-pressed": String(isSelected), "aria-label": label },
    make("span", { class: "number" }, String(index + 1)),
    make("span", { class: "residual" }, words),
    make("span", { class: "origin" }, ORIGIN_SIGNS[landmark.origin]),
  );
  button.addEventListener("click", () => hand.select(isSelected ? null : index));
  return make("li", { "data-testid": "landmark", "data-residual": residual.toFixed(3) }, button);
}

function errorWords(errorPx: number | null): string {
  return errorPx === null ? "predicted error –" : `predicted error ± ${px(errorPx)} px`;
}

function remarkOn(
  landmarks: readonly Landmark[],
  isOpen: boolean,
  problem: string | null,
  warning: string | null,
): string {
  if (isOpen) return "Now click the same point in the other frame. Enter accepts the expected position, F snaps it.";
  if (landmarks.length === 0) return "If the frames overlap, click a point in one frame, then the same point in the other.";
  if (problem !== null) return problem;
  if (warning !== null) return warning;
  const active = landmarks.filter((landmark) => landmark.active).length;
  if (active < 4) return "You can confirm now. More landmarks, far apart, are better.";
  return "";
}

function makeButton(text: string, title: string, act: () => void): HTMLButtonElement {
  const button = make("button", { type: "button", title }, text);
  button.addEventListener("click", act);
  return button;
}
