/** The predicted error against answers, so far and to come, with the target; a pointer or the arrow keys read it. */
import { answersAxis, errorAxis, formatPx, nearest, place, read, stillAhead, ticks, wholeTicks } from "../../model/chart";
import type { Axis } from "../../model/chart";
import type { ErrorAfter, State } from "../../model/messages";
import type { DatedPrediction } from "../../model/prediction";
import { isCurrent, sentence } from "../../model/prediction";
import { plural, px } from "../../model/words";
import type { App } from "../../state/app";
import { watch } from "../../state/observable";
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
  const empty = make("p", { class: "empty" }, "The predicted error appears here with the first question.");
  const prediction = make("p", { class: "prediction", "data-testid": "prediction-sentence" });
  chart.append(svg, readout);
  const view = make("div", { class: "error-view" }, chart, prediction);
  host.append(view, empty);
  /** The reading: a place among the errors, so far and to come; null follows the last so far. */
  let chosen: number | null = null;

  const curve = (state: State): Curve => {
    const predicted = app.prediction.value;
    const isFresh = predicted !== null && isCurrent(predicted, state);
    return { state, past: state.errors, ahead: stillAhead(state.errors, predicted), predicted, isFresh };
  };

  const render = () => {
    const state = app.state.value;
    const isEmpty = state === null || state.errors.length === 0;
    view.hidden = isEmpty;
    empty.hidden = !isEmpty;
    if (isEmpty) return;
    const shown = curve(state);
    sayPrediction(prediction, shown, app.contradiction.value !== null);
    const size = { width: chart.clientWidth, height: chart.clientHeight };
    if (size.width < 60 || size.height < 60) return;
    const points = [...shown.past, ...shown.ahead];
    const at = Math.min(chosen ?? shown.past.length - 1, points.length - 1);
    const [across, up] = axesOf(shown, size);
    svg.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    svg.replaceChildren(...drawAxes(across, up, size), ...drawTarget(state.target_px ?? null, across, up));
    svg.append(...drawAhead(shown, across, up), ...drawErrors(shown.past, across, up));
    svg.append(...drawReading(points[at], across, up));
    readout.textContent = sayError(points[at], at >= shown.past.length);
    describe(chart, shown, at);
  };

  const pointAt = (event: PointerEvent) => {
    const state = app.state.value;
    if (state === null || state.errors.length === 0) return;
    const size = { width: chart.clientWidth, height: chart.clientHeight };
    const shown = curve(state);
    const [across] = axesOf(shown, size);
    const answers = read(event.clientX - chart.getBoundingClientRect().left, across);
    chosen = nearest([...shown.past, ...shown.ahead], answers);
    render();
  };
  chart.addEventListener("pointermove", pointAt);
  chart.addEventListener("pointerdown", pointAt);
  chart.addEventListener("pointerleave", () => {
    chosen = null;
    render();
  });
  chart.addEventListener("keydown", (event) => {
    const state = app.state.value;
    if (state === null || state.errors.length === 0) return;
    const { past, ahead } = curve(state);
    const last = past.length + ahead.length - 1;
    const at = Math.min(chosen ?? past.length - 1, last);
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
    if (!(event.key in moves)) return;
    chosen = Math.max(0, Math.min(last, moves[event.key]));
    render();
    event.preventDefault();
    event.stopPropagation();
  });

  const observer = new ResizeObserver(render);
  observer.observe(chart);
  const end = watch([app.state, app.prediction, app.contradiction], render);
  return () => {
    end();
    observer.disconnect();
  };
}

interface Extent {
  width: number;
  height: number;
}

/** What is drawn: errors so far and to come, and the prediction that they come from. */
interface Curve {
  state: State;
  past: readonly ErrorAfter[];
  ahead: readonly ErrorAfter[];
  predicted: DatedPrediction | null;
  isFresh: boolean;
}

function axesOf({ state, past, ahead, predicted }: Curve, { width, height }: Extent): [Axis, Axis] {
  const points = [...past, ...ahead];
  const bound = predicted === null ? [] : [{ answers: predicted.answers, predicted_px: predicted.bound_px }];
  return [
    answersAxis(points, EDGE.left * rem(), width - EDGE.right * rem()),
    errorAxis([...points, ...bound], state.target_px ?? null, height - EDGE.bottom * rem(), EDGE.top * rem()),
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
    // At the end: the curve falls through the line soon after its beginning.
    makeSvg("text", { class: "target", x: across.end, y: y - 5, "text-anchor": "end" }, `target ${px(target)}`),
  ];
}

function drawErrors(errors: readonly ErrorAfter[], across: Axis, up: Axis): SVGElement[] {
  const drawn: SVGElement[] = [makeSvg("path", { class: "curve", d: pathOf(errors, across, up) })];
  return errors.length > MOST_DOTS ? drawn : drawn.concat(drawDots(errors, "dot", across, up));
}

/** How the curve may go on, and up to where the error may be now. */
function drawAhead({ past, ahead, predicted, isFresh }: Curve, across: Axis, up: Axis): SVGElement[] {
  if (predicted === null) return [];
  const last = past[past.length - 1];
  const shade = isFresh ? "" : " stale";
  const drawn: SVGElement[] = [];
  if (isFresh) {
    const [x, y1, y2] = [place(last.answers, across), heightOf(last.predicted_px, up), heightOf(predicted.bound_px, up)];
    drawn.push(makeSvg("line", { class: "bound", x1: x, x2: x, y1, y2 }));
    drawn.push(makeSvg("line", { class: "bound", x1: x - 0.25 * rem(), x2: x + 0.25 * rem(), y1: y2, y2 }));
  }
  drawn.push(makeSvg("path", { class: `curve ahead${shade}`, d: pathOf([last, ...ahead], across, up) }));
  return drawn.concat(drawDots(ahead, `dot ahead${shade}`, across, up));
}

function pathOf(errors: readonly ErrorAfter[], across: Axis, up: Axis): string {
  return errors
    .map(({ answers, predicted_px }) => [place(answers, across), heightOf(predicted_px, up)])
    .map(([x, y], k) => `${k === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`)
    .join("");
}

function drawDots(errors: readonly ErrorAfter[], kind: string, across: Axis, up: Axis): SVGElement[] {
  return errors.map(({ answers, predicted_px }) => {
    const at = { cx: place(answers, across), cy: heightOf(predicted_px, up) };
    return makeSvg("circle", { class: kind, ...at, r: 0.16 * rem() });
  });
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

function sayPrediction(host: HTMLElement, { state, predicted, isFresh }: Curve, isDisputed: boolean): void {
  host.textContent = predicted === null ? "" : sentence(state, predicted, isDisputed);
  host.classList.toggle("stale", !isFresh);
}

function describe(chart: HTMLElement, { state, past, ahead }: Curve, at: number): void {
  const [first, last] = [past[0], past[past.length - 1]];
  const points = [...past, ...ahead];
  const target = state.target_px == null ? "" : `, target ${px(state.target_px)} px`;
  const words = `Predicted error by answers: from ${px(first.predicted_px)} to ${px(last.predicted_px)} px${target}`;
  chart.setAttribute("aria-label", words);
  chart.setAttribute("aria-valuemin", String(first.answers));
  chart.setAttribute("aria-valuemax", String(points[points.length - 1].answers));
  chart.setAttribute("aria-valuenow", String(points[at].answers));
  chart.setAttribute("aria-valuetext", sayError(points[at], at >= past.length));
}

function sayError({ answers, predicted_px }: ErrorAfter, isAhead: boolean): string {
  return `after ${plural(answers, "answer")}: ${isAhead ? "about " : ""}${px(predicted_px)} px error`;
}

function formatCount(value: number): string {
  return value.toLocaleString("en");
}
