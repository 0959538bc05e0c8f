/** What colours and lines mean. */
import { place, ticks, formatPx, type Axis } from "../../model/chart";
import { shade, type Scale } from "../../model/colour";
import { make, makeSvg } from "../make";
import { LINE_STYLES, type AnswerKind } from "./marks";
import { rem } from "./rem";

/** A bar of the ramp's colours with numbers beneath; `format` writes a number. */
export function makeColourBar(title: string, scale: Scale, width: number, format = formatPx): HTMLElement {
  const unit = rem() / 16;
  const [left, right] = [PAD * unit, width - PAD * unit];
  const svg = makeSvg("svg", { width, height: 30 * unit, role: "img", "aria-label": describe(title, scale, format) });
  const steps = 48;
  const step = (right - left) / steps;
  for (let k = 0; k < steps; k++) {
    // A little wider, so that no line shows between them.
    const box = { x: left + k * step, y: 2, width: step + (k < steps - 1 ? 0.6 : 0), height: 10 * unit };
    svg.append(makeSvg("rect", { ...box, fill: shade((k + 0.5) / steps) }));
  }
  let numbers = scale.largest > scale.smallest ? ticksOf(scale, left, right, Math.floor(width / (46 * unit))) : [];
  // Small numbers are long words.
  const fits = () => {
    const longest = Math.max(...numbers.map(([value]) => format(value).length));
    return (numbers.length - 1) * (longest + 1.5) * 6.5 * unit <= right - left;
  };
  for (let most = numbers.length - 1; most >= 2 && !fits(); most--) numbers = ticksOf(scale, left, right, most);
  for (const [value, x] of numbers) {
    svg.append(
      makeSvg("line", { x1: x, x2: x, y1: 2 + 10 * unit, y2: 2 + 13 * unit, stroke: "currentColor" }),
      makeSvg("text", { x, y: 26 * unit, "text-anchor": "middle", fill: "currentColor" }, format(value)),
    );
  }
  if (numbers.length === 0) {
    svg.append(makeSvg("text", { x: left, y: 26 * unit, fill: "currentColor" }, format(scale.largest)));
  }
  return make("div", { class: "colour-bar" }, make("span", {}, title), svg);
}

/** CSS px at 16 px of type, as all lengths here. */
const PAD = 18;

function ticksOf(scale: Scale, start: number, end: number, most: number): [number, number][] {
  const { smallest: from, largest: to, logarithmic } = scale;
  const axis: Axis = { from, to, logarithmic, start, end };
  return ticks(axis, Math.max(2, most)).map((value) => [value, place(value, axis)]);
}

function describe(title: string, scale: Scale, format: (value: number) => string): string {
  const spread = scale.logarithmic ? ", logarithmic" : "";
  return `${title}: dark is ${format(scale.smallest)}, light is ${format(scale.largest)}${spread}`;
}

/** The lines of answers. */
export function makeAnswerLegend(): HTMLElement {
  const names: [AnswerKind, string][] = [
    ["yes", "overlap"],
    ["no", "no overlap"],
    ["rejected", "rejected (contradiction)"],
    ["unsure", "cannot tell"],
    ["chain", "chain"],
  ];
  const list = make("ul", { class: "lines", "aria-label": "Lines between frames" });
  for (const [kind, words] of names) {
    const { width, dash, opacity } = LINE_STYLES[kind];
    const style = { "stroke-width": width, "stroke-dasharray": dash.join(" "), opacity };
    const line = makeSvg("line", { x1: 0, x2: 22, y1: 5, y2: 5, ...style });
    const sample = makeSvg("svg", { width: 22, height: 10, class: `line-${kind}`, "aria-hidden": "true" }, line);
    list.append(make("li", {}, sample, words));
  }
  return list;
}
