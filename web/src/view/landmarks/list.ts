/** The landmarks of the pair in a row, what their fit is worth, and what stands against it. */
import { countedLandmarks, togetherWith } from "../../model/curve";
import type { Judgement } from "../../model/knowledge";
import { worstOf } from "../../model/tone";
import type { Landmark } from "../../model/messages";
import { errorWords, judgementWords, remarkOn } from "../../model/remarks";
import { toneWords } from "../../model/tone";
import { watch } from "../../state/observable";
import { Guide } from "../../state/guide";
import { make } from "../make";
import type { Page } from "../page";

const ORIGIN_SIGNS = { clicked: "", snapped: "snapped", matched: "matcher", aligned: "aligned", laid: "by hand", traced: "vessel" } as const;

export function mountLandmarks(host: HTMLElement, page: Page): void {
  const { app, hand, snapping } = page;
  const error = make("p", { class: "predicted-error", "data-testid": "predicted-error" });
  const remark = make("p", { class: "remark", id: "landmark-remark" });
  const list = make("ol", { class: "landmark-list", "aria-label": "landmarks" });
  const snapAll = makeButton("snap all", "snap all landmarks (Shift F)", () => void snapping.snapAll());
  const automatic = makeButton("snap by itself", "snap each landmark when you set it, where the program is sure; Z takes it back", () =>
    snapping.toggle(),
  );
  const off = makeButton("off / on", "switch the selected landmark off or on (S)", () => hand.switchOff());
  const leaveOut = makeButton("check only", "leave the selected landmark out of the answer: the report compares it with the mosaic (Shift S)", () =>
    hand.leaveOut(),
  );
  const remove = makeButton("delete", "delete the selected landmark (X)", () => hand.remove());
  const guide = new Guide(localStorage);
  const skip = makeButton("skip", "do not show these steps again", () => guide.end());
  skip.className = "quiet small skip";
  host.append(
    make("div", { class: "fit" }, make("div", { class: "fit-head" }, error, skip), remark),
    list,
    make("div", { class: "landmark-tools" }, automatic, snapAll, off, leaveOut, remove),
  );

  snapping.isAutomatic.subscribe((on) => automatic.setAttribute("aria-pressed", String(on)));
  app.drawing.snapping.subscribe((count) => list.setAttribute("aria-busy", String(count > 0)));
  guide.isOn.subscribe((isOn) => (skip.hidden = !isOn));
  app.state.subscribe((state) => state !== null && state.counts.by_person > 0 && guide.end());
  watch([guide.isOn, app.drawing.draft, app.drawing.knowledge, app.drawing.warning], () => {
    const { landmarks, selected, open } = app.drawing.draft.value;
    const knowledge = app.drawing.knowledge.value;
    host.hidden = knowledge === null;
    if (knowledge === null) return;
    error.textContent = errorWords(knowledge);
    error.title = "expected RMS error of the relative position, over the part that both frames show";
    const warning = app.drawing.warning.value;
    remark.textContent = remark.title = remarkOn(app.drawing.draft.value, knowledge, warning, guide.isOn.value);
    remark.classList.toggle("warning", warning !== null && knowledge.problem === null);
    list.replaceChildren(
      ...countedLandmarks(landmarks).map((index, place) => {
        const together = togetherWith(landmarks, index);
        const judgement = worstOf(together.map((member) => knowledge.judgements[member]!));
        const isSelected = selected !== null && together.includes(selected);
        return makeRow(page, landmarks[index]!, { index, number: place + 1 }, judgement, isSelected);
      }),
    );
    snapAll.disabled = landmarks.length === 0;
    off.disabled = leaveOut.disabled = selected === null;
    remove.disabled = selected === null && open === null;
  });
}

function makeRow(
  { hand }: Page,
  landmark: Landmark,
  { index, number }: { index: number; number: number },
  judgement: Judgement,
  isSelected: boolean,
): HTMLElement {
  const { tone, offPx } = judgement;
  const words = toneWords(tone);
  const origin = landmark.check === true ? "check only" : ORIGIN_SIGNS[landmark.origin];
  const button = make(
    "button",
    {
      type: "button",
      class: `landmark ${tone}`,
      "aria-pressed": String(isSelected),
      title: judgementWords(judgement),
    },
    make("span", { class: "number" }, make("span", { class: "hidden" }, "landmark "), String(number)),
    " ",
    make("span", { class: "judgement" }, words),
    " ",
    make("span", { class: "origin" }, origin),
  );
  button.addEventListener("click", () => hand.select(isSelected ? null : index));
  return make("li", { "data-testid": "landmark", "data-tone": tone, "data-off": offPx.toFixed(3) }, button);
}

function makeButton(text: string, title: string, act: () => void): HTMLButtonElement {
  const button = make("button", { type: "button", title }, text);
  button.addEventListener("click", act);
  return button;
}
