/** How the person looks at the pair: zoom and place, comparison, loupe, where pointer and cursor are. */
import type { Affine, Point } from "../model/affine";
import { add, apply, compose, IDENTITY, invert, scaled } from "../model/affine";
import { ellipseOf, through } from "../model/covariance";
import type { Prediction } from "../model/knowledge";
import { other } from "../model/knowledge";
import { pointOf } from "../model/pose";
import type { Side } from "../model/messages";
import type { Size } from "../model/polygon";
import type { Viewport } from "../model/viewport";
import { fitFrames, holdThrough, pan, place, screenFromPlane, zoomAbout } from "../model/viewport";
import type { Drawing } from "./drawing";
import { isSamePair } from "./drawing";
import { Cell } from "./observable";

export type Comparison = "side by side" | "blink" | "swipe" | "difference";

export const COMPARISONS: readonly Comparison[] = ["side by side", "blink", "swipe", "difference"];

/** How many frames before and after a frame can be looked at. */
const FARTHEST_IN_TIME = 20;

const NOW = { i: 0, j: 0 };

/** A place in one of the frames, px of that frame. */
export interface Spot {
  readonly side: Side;
  readonly point: Point;
}

/** Share of a panel that half the ellipse of an expected place may fill. */
const ROOM_FOR_ELLIPSE = 0.35;

/** How much of a panel counts as well in view. */
const WELL_IN_VIEW = 0.8;

export class PairView {
  readonly viewport = new Cell<Viewport>({ zoom: 1, centre: { x: 0, y: 0 }, slack: { x: 0, y: 0 } });
  readonly comparison = new Cell<Comparison>("side by side");
  readonly isBlinking = new Cell(false);
  readonly isCoupled = new Cell(true);
  readonly hasLoupe = new Cell(true);
  readonly pointer = new Cell<Spot | null>(null);
  readonly cursor = new Cell<Spot | null>(null);
  /** Which neighbour in time is shown instead of each frame, by how many frames later. */
  readonly moment = new Cell<Readonly<Record<Side, number>>>(NOW);
  /** The frame that keys act on. */
  readonly active = new Cell<Side>("i");
  /** Size of each of the two panels, CSS px. */
  readonly panel = new Cell<Size>({ width: 1, height: 1 });

  #isFitted = true;
  #pose: Affine = IDENTITY;
  #pair: { i: number; j: number } | null = null;
  /** What was shown before a point was set and looked at closely. */
  #before: { viewport: Viewport; isFitted: boolean } | null = null;

  constructor(private readonly drawing: Drawing) {
    drawing.draft.subscribe(({ open }) => open === null && this.#stepBack());
    drawing.knowledge.subscribe((knowledge) => knowledge !== null && this.#follow(knowledge.pose));
  }

  get pose(): Affine {
    return this.#pose;
  }

  screenFrom(side: Side): Affine {
    return this.screenOf(side, side);
  }

  /** Return the map by which a frame is shown in a panel, its own or the other's. */
  screenOf(frame: Side, panel: Side): Affine {
    const plane = screenFromPlane(this.viewport.value, this.panel.value, panel);
    return frame === "i" ? plane : compose(plane, this.#pose);
  }

  frameFromScreen(side: Side, place: Point): Point {
    return apply(invert(this.screenFrom(side)), place);
  }

  resize(panel: Size): void {
    const { width, height } = this.panel.value;
    if (panel.width === width && panel.height === height) return;
    this.panel.set(panel);
    if (this.#isFitted) this.fit();
  }

  fit(): void {
    this.#isFitted = true;
    this.#before = null;
    this.viewport.set(fitFrames(this.panel.value, this.drawing.frame, this.#pose));
  }

  zoom(factor: number, side: Side = this.active.value, at: Point = this.#middle()): void {
    this.#isFitted = false;
    this.#before = null;
    this.viewport.set(zoomAbout(this.viewport.value, this.panel.value, side, at, factor));
  }

  zoomTo(zoom: number, side: Side = this.active.value, at: Point = this.#middle()): void {
    this.zoom(zoom / this.viewport.value.zoom, side, at);
  }

  pan(by: Point, side: Side, alone: boolean): void {
    this.#isFitted = false;
    this.viewport.set(pan(this.viewport.value, by, alone || !this.isCoupled.value ? side : null));
  }

  /** Have a point seen: in the middle if it is out of view, otherwise leave it where it is. */
  reveal(side: Side, point: Point, at: Point = this.#middle()): void {
    const onScreen = apply(this.screenFrom(side), point);
    if (this.#isWellInView(onScreen)) return;
    this.#isFitted = false;
    const onPlane = side === "i" ? point : apply(this.#pose, point);
    this.viewport.set(place(this.viewport.value, this.panel.value, side, onPlane, at));
  }

  /** Show a point set in one frame at 100 %, and where it is expected in the other frame at the same place. */
  bringTogether(side: Side, point: Point, { point: partner, covariance }: Prediction): void {
    const at = apply(this.screenFrom(side), point);
    const { width, height } = this.panel.value;
    const reach = ellipseOf(through(side === "i" ? this.#pose : IDENTITY, covariance)).along;
    // Less where the partner might then be out of view.
    const zoom = Math.min(1, (ROOM_FOR_ELLIPSE * Math.min(width, height)) / reach);
    const before = this.#before ?? { viewport: this.viewport.value, isFitted: this.#isFitted };
    if (this.viewport.value.zoom >= zoom) return this.reveal(other(side), partner, at);
    this.zoomTo(zoom, side, at);
    this.#before = before;
    const onPlane = side === "i" ? apply(this.#pose, partner) : partner;
    this.viewport.set(place(this.viewport.value, this.panel.value, other(side), onPlane, at));
  }

  /** Move the cursor by so many CSS pixels; it begins in the middle of its panel. */
  moveCursor(by: Point): void {
    const side = this.active.value;
    const cursor = this.cursor.value;
    const now = cursor?.side === side ? apply(this.screenFrom(side), cursor.point) : this.#middle();
    const point = this.frameFromScreen(side, add(now, by));
    this.cursor.set({ side, point });
    this.reveal(side, point);
  }

  /** Show a neighbour in time of a frame of the pair: so many frames later than what is shown. */
  goInTime(side: Side, by: number, frames: number): void {
    const { question } = this.drawing;
    if (question === null) return;
    const least = Math.max(-FARTHEST_IN_TIME, -question[side]);
    const most = Math.min(FARTHEST_IN_TIME, frames - 1 - question[side]);
    const later = Math.min(most, Math.max(least, this.moment.value[side] + by));
    if (later !== this.moment.value[side]) this.moment.set({ ...this.moment.value, [side]: later });
  }

  /** Show the frames of the pair again; false where they are shown. */
  backInTime(): boolean {
    const was = this.moment.value.i !== 0 || this.moment.value.j !== 0;
    if (was) this.moment.set(NOW);
    return was;
  }

  cycleComparison(): void {
    const next = (COMPARISONS.indexOf(this.comparison.value) + 1) % COMPARISONS.length;
    this.comparison.set(COMPARISONS[next]!);
  }

  /** Return the map from frame i's plane to a panel as large as both, for the comparisons. */
  screenOfComparison(size: Size): Affine {
    return screenFromPlane(this.viewport.value, size, "i");
  }

  #follow(pose: Affine): void {
    const before = this.#pose;
    const question = this.drawing.question;
    const isNew = !isSamePair(question, this.#pair);
    this.#pose = pose;
    this.#pair = question;
    if (isNew) {
      this.cursor.set(null);
      this.comparison.set("side by side");
      this.moment.set(NOW);
      this.isCoupled.set(true);
    }
    if (isNew) return this.fit();
    // Landmarks turn the frame a little, about the one that was set: nothing else on the screen moves.
    const { landmarks, selected } = this.drawing.draft.value;
    const landmark = landmarks[selected ?? landmarks.length - 1];
    const held = landmark === undefined ? null : pointOf(landmark, "j");
    this.viewport.set(holdThrough(this.viewport.value, before, pose, held));
  }

  /** The landmark is set: show again what was shown before, so that the next one can be far from it. */
  #stepBack(): void {
    const before = this.#before;
    if (before === null) return;
    this.#before = null;
    this.#isFitted = before.isFitted;
    this.viewport.set(before.viewport);
  }

  #middle(): Point {
    const { width, height } = this.panel.value;
    return scaled({ x: width, y: height }, 0.5);
  }

  #isWellInView({ x, y }: Point): boolean {
    const { width, height } = this.panel.value;
    return Math.abs(x / width - 0.5) < WELL_IN_VIEW / 2 && Math.abs(y / height - 0.5) < WELL_IN_VIEW / 2;
  }
}
