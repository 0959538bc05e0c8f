/** The predicted error against answers: axes, ticks, and the place of a value. */
import type { ErrorAfter, Prediction } from "./messages";

/** One direction of a chart: from values to CSS px and back. */
export interface Axis {
  from: number;
  to: number;
  logarithmic: boolean;
  /** Where `from` and `to` are drawn. */
  start: number;
  end: number;
}

/** Where a value is drawn. */
export function place(value: number, axis: Axis): number {
  return axis.start + (stretch(value, axis) - stretch(axis.from, axis)) * pxPerUnit(axis);
}

/** Which value is drawn at a place. */
export function read(px: number, axis: Axis): number {
  const stretched = stretch(axis.from, axis) + (px - axis.start) / pxPerUnit(axis);
  return axis.logarithmic ? 10 ** stretched : stretched;
}

/** The error's axis: holds all errors and the target; logarithmic where they span more than a decade. */
export function errorAxis(errors: readonly ErrorAfter[], target: number | null, start: number, end: number): Axis {
  const values = errors.map((error) => error.predicted_px).filter((value) => value > 0);
  if (target !== null && target > 0) values.push(target);
  if (values.length === 0) return { from: 0, to: 1, logarithmic: false, start, end };
  const smallest = values.reduce((least, value) => Math.min(least, value));
  const largest = values.reduce((most, value) => Math.max(most, value));
  if (largest > 10 * smallest) return { from: smallest / 1.25, to: largest * 1.25, logarithmic: true, start, end };
  return { from: 0, to: largest * 1.1, logarithmic: false, start, end };
}

/** The answers' axis: from the first to the last, at least five answers wide. */
export function answersAxis(errors: readonly ErrorAfter[], start: number, end: number): Axis {
  const from = errors.length > 0 ? errors[0].answers : 0;
  const last = errors.length > 0 ? errors[errors.length - 1].answers : 0;
  return { from, to: Math.max(last, from + 5), logarithmic: false, start, end };
}

/** Round values within an axis, at most `most` of them and at least one: 1, 2, 3 or 5 times a power of ten. */
export function ticks(axis: Axis, most: number): number[] {
  const found = axis.logarithmic ? logTicks(axis, most) : [];
  return found.length >= Math.min(2, most) ? found : evenTicks(axis, most);
}

/** Like `ticks`, whole numbers only. */
export function wholeTicks(axis: Axis, most: number): number[] {
  return ticks(axis, most).filter((value) => Number.isInteger(value));
}

/** Errors that were predicted, as far as they are still ahead. */
export function stillAhead(errors: readonly ErrorAfter[], prediction: Prediction | null): readonly ErrorAfter[] {
  const last = errors.at(-1)?.answers ?? 0;
  return prediction === null ? [] : prediction.ahead.filter(({ answers }) => answers > last);
}

/** The error that is nearest to a number of answers, by its place in the list; there is at least one. */
export function nearest(errors: readonly ErrorAfter[], answers: number): number {
  let best = 0;
  errors.forEach((error, k) => {
    if (Math.abs(error.answers - answers) < Math.abs(errors[best].answers - answers)) best = k;
  });
  return best;
}

/** A length in px with as many digits as one reads: 0.042, 1.3, 17, 1,200. */
export function formatPx(px: number): string {
  if (px === 0) return "0";
  const rounded = Number(px.toPrecision(2));
  return rounded.toLocaleString("en", { maximumFractionDigits: 12 });
}

function stretch(value: number, axis: Axis): number {
  return axis.logarithmic ? Math.log10(value) : value;
}

function pxPerUnit(axis: Axis): number {
  return (axis.end - axis.start) / (stretch(axis.to, axis) - stretch(axis.from, axis));
}

const STEPS = [1, 2, 5];

function evenTicks(axis: Axis, most: number): number[] {
  const rough = (axis.to - axis.from) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const step of [1, 2, 5, 10, 20].map((factor) => factor * power)) {
    const first = Math.ceil(axis.from / step - 1e-9);
    const last = Math.floor(axis.to / step + 1e-9);
    if (last - first + 1 > most) continue;
    return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
  }
  return [];
}

/** Decades with 2 and 5 or with 3 between if there is room, else decades, else every so many decades. */
function logTicks(axis: Axis, most: number): number[] {
  const first = Math.floor(Math.log10(axis.from));
  const last = Math.ceil(Math.log10(axis.to));
  const inside = (value: number) => value >= axis.from * (1 - 1e-9) && value <= axis.to * (1 + 1e-9);
  for (const steps of [STEPS, [1, 3], [1]]) {
    const found: number[] = [];
    for (let power = first; power <= last; power++) found.push(...steps.map((step) => step * 10 ** power));
    const kept = found.map((value) => Number(value.toPrecision(12))).filter(inside);
    if (kept.length <= most) return kept;
  }
  const decades = Array.from({ length: last - first + 1 }, (_, k) => first + k).filter((power) => inside(10 ** power));
  const every = Math.ceil(decades.length / most);
  return decades.filter((_, k) => k % every === 0).map((power) => Number((10 ** power).toPrecision(12)));
}
