/** Vessels drawn along in both frames: their strokes, their landmarks, and what they determine. */
import type { Point } from "./affine";
import { add, distance, scaled, subtract } from "./affine";
import type { Covariance } from "./covariance";
import type { Draft } from "./draft";
import type { Knowledge } from "./knowledge";
import type { Landmark, Side } from "./messages";
import type { Size } from "./polygon";
import { contains } from "./polygon";
import type { Relation } from "./relation";
import { px } from "./words";

export type Stroke = readonly Point[];

/** A stroke shorter than this, px of the frame, was not meant. */
export const SHORTEST_PX = 20;

/** From this ratio of the uncertainty along to that across, and from this many px, the position along counts as free. */
const FREE_RATIO = 4;
const FREE_PX = 2;

/** Pieces of the line between two landmarks on it. */
const PIECES = 8;

/** Return the landmarks that belong to one: those on the same curve, or itself alone. */
export function togetherWith(landmarks: readonly Landmark[], index: number): number[] {
  const curve = landmarks[index]?.curve ?? null;
  const all = landmarks.map((_, k) => k);
  return all.filter((k) => k === index || (curve !== null && landmarks[k]!.curve === curve));
}

/** Return the first landmark of every curve, and every other landmark: what a person counts. */
export function countedLandmarks(landmarks: readonly Landmark[]): number[] {
  return landmarks.map((_, k) => k).filter((k) => togetherWith(landmarks, k)[0] === k);
}

/** Return the number that a person sees of a landmark, or of its curve. */
export function numberOf(landmarks: readonly Landmark[], index: number): number {
  return countedLandmarks(landmarks).indexOf(togetherWith(landmarks, index)[0]!) + 1;
}

/** Take the landmarks of a vessel into a draft, as a curve of its own. */
export function adoptCurve(draft: Draft, landmarks: readonly Landmark[]): Draft {
  const curve = 1 + Math.max(-1, ...draft.landmarks.map((landmark) => landmark.curve ?? -1));
  const numbered = landmarks.map((landmark) => ({ ...landmark, curve }));
  return { landmarks: [...draft.landmarks, ...numbered], selected: null, open: null };
}

export function lengthOf(stroke: Stroke): number {
  return stroke.slice(1).reduce((sum, point, k) => sum + distance(point, stroke[k]!), 0);
}

/** Return where a stroke of one frame is expected in the other: its longest piece inside of it. */
export function expectedStroke(relation: Relation, side: Side, stroke: Stroke, frame: Size): Stroke {
  const pieces: Point[][] = [[]];
  for (const point of finely(stroke).map((each) => relation.seen(side, each))) {
    if (contains(frame, point)) pieces[pieces.length - 1]!.push(point);
    else pieces.push([]);
  }
  return pieces.reduce((longest, piece) => (piece.length > longest.length ? piece : longest));
}

/** Return a smooth line through landmarks on a curve, in one frame. */
export function lineThrough(points: readonly Point[]): Point[] {
  return points.flatMap((point, k) => {
    const next = points[k + 1];
    if (next === undefined) return [point];
    const [before, after] = [points[k - 1] ?? point, points[k + 2] ?? next];
    const [start, end] = [scaled(subtract(next, before), 0.5), scaled(subtract(after, point), 0.5)];
    return Array.from({ length: PIECES }, (_, piece) => {
      const t = piece / PIECES;
      const [a, b] = [2 * t ** 3 - 3 * t ** 2 + 1, t ** 3 - 2 * t ** 2 + t];
      const [c, d] = [-2 * t ** 3 + 3 * t ** 2, t ** 3 - t ** 2];
      return add(add(scaled(point, a), scaled(start, b)), add(scaled(next, c), scaled(end, d)));
    });
  });
}

/** Return one σ of a place of frame i across a direction and along it. */
export function sigmasAt({ xx, xy, yy }: Covariance, along_deg: number): { across: number; along: number } {
  const angle = (along_deg * Math.PI) / 180;
  const [x, y] = [Math.cos(angle), Math.sin(angle)];
  const along = xx * x * x + 2 * xy * x * y + yy * y * y;
  const across = xx * y * y - 2 * xy * x * y + yy * x * x;
  return { across: Math.sqrt(Math.max(0, across)), along: Math.sqrt(Math.max(0, along)) };
}

/** Say what is known across and along the vessel that was drawn last; empty without one. */
export function determinedWords(landmarks: readonly Landmark[], knowledge: Knowledge): string {
  const last = landmarks.findLastIndex(({ along_deg, active }) => active && typeof along_deg === "number");
  if (last < 0) return "";
  const curve = togetherWith(landmarks, last);
  const middle = landmarks[curve[Math.floor(curve.length / 2)]!]!;
  const { across, along } = sigmasAt(knowledge.uncertaintyInI({ x: middle.x_j, y: middle.y_j }), middle.along_deg!);
  const known = `Across the vessel ± ${px(across)} px, along it ± ${px(along)} px`;
  const isFree = along > FREE_RATIO * across && along > FREE_PX;
  return isFree ? `${known}: draw one that runs in another direction, or add a point.` : `${known}.`;
}

function finely(stroke: Stroke): Point[] {
  return stroke.flatMap((point, k) => {
    const next = stroke[k + 1];
    if (next === undefined) return [point];
    const steps = Math.max(1, Math.round(distance(point, next) / 2));
    return Array.from({ length: steps }, (_, step) => add(point, scaled(subtract(next, point), step / steps)));
  });
}
