/** What the marks on the maps mean. */
import { verdictWords } from "../../model/words";
import { make } from "../make";
import { rem } from "../mosaic/rem";
import { drawMark, type Mark } from "./mapmarks";

const MARKS: readonly [Mark, string][] = [
  ["yes", verdictWords("yes")],
  ["no", verdictWords("no")],
  ["rejected", "rejected"],
  ["unsure", verdictWords("unsure")],
];

export function makeKey(): HTMLElement {
  const list = make("ul", { class: "key", "aria-label": "Marks of answered pairs" });
  for (const [mark, words] of MARKS) {
    const side = Math.round(0.9 * rem());
    const canvas = make("canvas", { width: side, height: side, "aria-hidden": "true" });
    drawMark(canvas.getContext("2d")!, mark, side / 2, side / 2, 0.5 * side);
    list.append(make("li", {}, canvas, words));
  }
  return list;
}
