/** What a person has drawn on a pair and not yet confirmed; every change makes a new one. */
import type { Point } from "./affine";
import { countedLandmarks, numberOf, togetherWith } from "./curve";
import type { Landmark, Origin, Side } from "./messages";

/** A point set in one frame whose partner in the other is still only expected. */
export interface Open {
  readonly side: Side;
  readonly point: Point;
  readonly partner: Point;
  /** The person moved the partner away from where it was expected. */
  readonly steered: boolean;
}

export interface Draft {
  readonly landmarks: readonly Landmark[];
  readonly selected: number | null;
  readonly open: Open | null;
}

export const EMPTY: Draft = { landmarks: [], selected: null, open: null };

export function draftOf(landmarks: readonly Landmark[]): Draft {
  return { ...EMPTY, landmarks: [...landmarks] };
}

export function begin(draft: Draft, side: Side, point: Point, partner: Point): Draft {
  return { ...draft, selected: null, open: { side, point, partner, steered: false } };
}

export function steer(draft: Draft, partner: Point): Draft {
  return draft.open === null ? draft : { ...draft, open: { ...draft.open, partner, steered: true } };
}

/** Make a landmark of the open point and its partner. */
export function complete(draft: Draft): Draft {
  if (draft.open === null) return draft;
  const { side, point, partner } = draft.open;
  const [i, j] = side === "i" ? [point, partner] : [partner, point];
  const landmark: Landmark = { x_i: i.x, y_i: i.y, x_j: j.x, y_j: j.y, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null };
  return { landmarks: [...draft.landmarks, landmark], selected: draft.landmarks.length, open: null };
}

export function abandon(draft: Draft): Draft {
  return { ...draft, open: null };
}

export function move(draft: Draft, index: number, side: Side, { x, y }: Point, origin: Origin): Draft {
  const to = side === "i" ? { x_i: x, y_i: y } : { x_j: x, y_j: y };
  return change(draft, index, (landmark) => ({ ...landmark, ...to, origin, sigma_px: null }));
}

export function toggle(draft: Draft, index: number): Draft {
  const { active } = draft.landmarks[index]!;
  return change(draft, index, (landmark) => ({ ...landmark, active: !active, check: false }));
}

/** Leave a landmark out of the link, to be compared with the mosaic; or take it in again. Lines are not compared. */
export function toggleCheck(draft: Draft, index: number): Draft {
  if (draft.landmarks[index]!.curve !== null) return draft;
  return change(draft, index, (landmark) => ({ ...landmark, active: landmark.check === true, check: landmark.check !== true }));
}

export function remove(draft: Draft, index: number): Draft {
  const removed = togetherWith(draft.landmarks, index);
  const landmarks = draft.landmarks.filter((_, place) => !removed.includes(place));
  const next = togetherWith(landmarks, Math.min(removed[0] ?? index, landmarks.length - 1))[0];
  return { ...draft, landmarks, selected: landmarks.length === 0 ? null : next! };
}

export function select(draft: Draft, index: number | null): Draft {
  return draft.selected === index ? draft : { ...draft, selected: index };
}

/** Select the next or the previous landmark, or curve, round and round. */
export function step(draft: Draft, by: 1 | -1): Draft {
  const counted = countedLandmarks(draft.landmarks);
  const count = counted.length;
  if (count === 0) return draft;
  const from = draft.selected === null ? (by === 1 ? -1 : 0) : numberOf(draft.landmarks, draft.selected) - 1;
  return select(draft, counted[(from + by + count) % count]!);
}

export function adopt(draft: Draft, landmarks: readonly Landmark[]): Draft {
  return { landmarks: [...draft.landmarks, ...landmarks], selected: null, open: null };
}

/** Tell whether two drafts have the same landmarks and the same open point; a selection is nothing drawn. */
export function drawnAlike(first: Draft, second: Draft): boolean {
  return first.open === second.open && JSON.stringify(first.landmarks) === JSON.stringify(second.landmarks);
}

function change(draft: Draft, index: number, by: (landmark: Landmark) => Landmark): Draft {
  const changed = togetherWith(draft.landmarks, index);
  return { ...draft, landmarks: draft.landmarks.map((landmark, place) => (changed.includes(place) ? by(landmark) : landmark)) };
}
