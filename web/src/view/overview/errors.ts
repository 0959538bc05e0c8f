/** The predicted error against answers so far, with the target; a pointer or the arrow keys read it. */
import { answersAxis, errorAxis, formatPx, nearest, place, read, ticks, wholeTicks } from "../../model/chart";
import type { Axis } from "../../model/chart";
import type { ErrorAfter, State } from "../../model/messages";
import { plural, px } from "../../model/words";
import type { App } from "../../state/app";
import { make, makeSvg } from "../make";
import { rem } from "../mosaic/rem";

/** Rem around the curve. */
const EDGE = { left: 2.9, right: 0.9, top: 1.9, bottom: 2.3 };
const MOST_TICKS = 8;
/** Points are marked while they stay apart. */
const MOST_DOTS = 60;

export function mountErrors(host: HTMLElement, app: App): () => void {
  const svg = makeSvg("svg", { "aria-hidden": "true" });
  const chart = make("div", { class: "errors", tabindex: 0, role: "slider" });
  const readout = make("p", { class: "readout" });
  const empty = make("p", { class: "empty" }, "The predicted error appears with the first question.");
  chart.append(svg, readout);
  host.append(chart, empty);
  /** The reading: a place among the errors; null follows the last. */
  let chosen: number | null = null;

  const render = () => {
    const state = app.state.value;
    const errors = state?.errors ?? [];
    chart.hidden = errors.length === 0;
    empty.hidden = !chart.hidden;
    if (state === null || errors.length === 0) return;
    const size = { width: chart.clientWidth, height: chart.clientHeight };
    if (size.width < 60 || size.height < 60) return;
    const at = Math.min(chosen ?? errors.length - 1, errors.length - 1);
    const [across, up] = axesOf(state, errors, size);
    svg.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    svg.replaceChildren(...drawAxes(across, up, size), ...drawTarget(state.target_px ?? null, across, up));
    svg.append(...drawErrors(errors, across, up), ...drawReading(errors[at], across, up));
    readout.textContent = sayError(errors[at]);
    describe(chart, state, errors, at);
  };

  const pointAt = (event: PointerEvent) => {
    const state = app.state.value;
    if (state === null || state.errors.length === 0) return;
    const size = { width: chart.clientWidth, height: chart.clientHeight };
    const [across] = axesOf(state, state.errors, size);
    chosen = nearest(state.errors, read(event.clientX - chart.getBoundingClientRect().left, across));
    render();
  };
  chart.addEventListener("pointermove", pointAt);
  chart.addEventListener("pointerdown", pointAt);
  chart.addEventListener("pointerleave", () => {
    chosen = null;
    render();
  });
  chart.addEventListener("keydown", (event) => {
    const last = (app.state.value?.errors.length ?? 0) - 1;
    const at = Math.min(chosen ?? last, last);
    const moves: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      PageDown: at - 10,
      PageUp: at + 10,
      Home: 0,
      End: last,
    };
    if (last < 0 || !(event.key in moves)) return;
    chosen = Math.max(0, Math.min(last, moves[event.key]));
    render();
    event.preventDefault();
    event.stopPropagation();
  });

  const observer = new ResizeObserver(render);
  observer.observe(chart);
  const end = app.state.subscribe(render);
  return () => {
    end();
    observer.disconnect();
  };
}

interface Extent {
  width: number;
  height: number;
}

function axesOf(state: State, errors: readonly ErrorAfter[], { width, height }: Extent): [Axis, Axis] {
  return [
    answersAxis(errors, EDGE.left * rem(), width - EDGE.right * rem()),
    errorAxis(errors, state.target_px ?? null, height - EDGE.bottom * rem(), EDGE.top * rem()),
  ];
}

function drawAxes(across: Axis, up: Axis, { height }: Extent): SVGElement[] {
  const drawn: SVGElement[] = [];
  const unit = rem();
  for (const value of ticks(up, Math.max(2, Math.min(MOST_TICKS, Math.floor((up.start - up.end) / (2.2 * unit)))))) {
    const y = place(value, up);
    drawn.push(makeSvg("line", { class: "grid", x1: across.start, x2: across.end, y1: y, y2: y }));
    drawn.push(makeSvg("text", { x: across.start - 6, y: y + 0.25 * unit, "text-anchor": "end" }, formatPx(value)));
  }
  for (const value of wholeTicks(across, Math.max(2, Math.floor((across.end - across.start) / (3 * unit))))) {
    const x = place(value, across);
    drawn.push(makeSvg("line", { class: "axis", x1: x, x2: x, y1: up.start, y2: up.start + 4 }));
    drawn.push(makeSvg("text", { x, y: up.start + unit, "text-anchor": "middle" }, formatCount(value)));
  }
  drawn.push(makeSvg("line", { class: "axis", x1: across.start, x2: across.end, y1: up.start, y2: up.start }));
  drawn.push(makeSvg("text", { x: 0.4 * unit, y: unit }, "predicted error, px"));
  drawn.push(makeSvg("text", { x: across.end, y: height - 0.3 * unit, "text-anchor": "end" }, "answers"));
  return drawn;
}

function drawTarget(target: number | null, across: Axis, up: Axis): SVGElement[] {
  if (target === null || target <= 0) return [];
  const y = place(target, up);
  return [
    makeSvg("line", { class: "target", x1: across.start, x2: across.end, y1: y, y2: y }),
    makeSvg("text", { class: "target", x: across.start + 4, y: y - 5 }, `target ${px(target)}`),
  ];
}

function drawErrors(errors: readonly ErrorAfter[], across: Axis, up: Axis): SVGElement[] {
  const points = errors.map(({ answers, predicted_px }) => [place(answers, across), heightOf(predicted_px, up)]);
  const path = points.map(([x, y], k) => `${k === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const drawn: SVGElement[] = [makeSvg("path", { class: "curve", d: path })];
  if (errors.length > MOST_DOTS) return drawn;
  return drawn.concat(points.map(([x, y]) => makeSvg("circle", { class: "dot", cx: x, cy: y, r: 0.16 * rem() })));
}

function drawReading(error: ErrorAfter, across: Axis, up: Axis): SVGElement[] {
  const [x, y] = [place(error.answers, across), heightOf(error.predicted_px, up)];
  return [
    makeSvg("line", { class: "reading", x1: x, x2: x, y1: y, y2: up.start }),
    makeSvg("circle", { class: "reading", cx: x, cy: y, r: 0.28 * rem() }),
  ];
}

/** Where an error is drawn; one of zero, which a logarithmic axis cannot hold, on its floor. */
function heightOf(error: number, up: Axis): number {
  return place(up.logarithmic ? Math.max(error, up.from) : error, up);
}

function describe(chart: HTMLElement, state: State, errors: readonly ErrorAfter[], at: number): void {
  const [first, last] = [errors[0], errors[errors.length - 1]];
  const target = state.target_px == null ? "" : `, target ${px(state.target_px)} px`;
  const words = `Predicted error by answers: from ${px(first.predicted_px)} to ${px(last.predicted_px)} px${target}`;
  chart.setAttribute("aria-label", words);
  chart.setAttribute("aria-valuemin", String(first.answers));
  chart.setAttribute("aria-valuemax", String(last.answers));
  chart.setAttribute("aria-valuenow", String(errors[at].answers));
  chart.setAttribute("aria-valuetext", sayError(errors[at]));
}

function sayError({ answers, predicted_px }: ErrorAfter): string {
  return `after ${plural(answers, "answer")} ± ${px(predicted_px)} px`;
}

function formatCount(value: number): string {
  return value.toLocaleString("en");
}
