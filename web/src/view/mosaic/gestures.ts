/** Mouse, pen and fingers on an element: drag, wheel, pinch, tap, hover; places are CSS px of the element. */
import type { Point } from "../../model/affine";

export interface Gestures {
  pan(dx: number, dy: number): void;
  zoom(at: Point, factor: number): void;
  tap(at: Point): void;
  /** Null when the pointer has left. */
  hover?(at: Point | null): void;
}

/** CSS px that a pointer may move and still tap. */
const STEADY = 5;
/** Zoom a CSS px of the wheel; a pinch on a touchpad comes as a wheel of few px. */
const PER_WHEEL = 0.0016;
const PER_TOUCHPAD = 0.01;
const LINE = 18;

export function watchGestures(element: HTMLElement, gestures: Gestures): () => void {
  const down = new Map<number, Point>();
  let start: Point | null = null; // of what may become a tap
  let tapped: Point | null = null;
  const ending = new AbortController();
  const listen = <K extends keyof HTMLElementEventMap>(kind: K, listener: (event: HTMLElementEventMap[K]) => void) =>
    element.addEventListener(kind, listener, { signal: ending.signal, passive: false });

  const placeOf = (event: MouseEvent): Point => {
    const { left, top } = element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };

  listen("pointerdown", (event) => {
    if (event.button !== 0 && event.button !== 1) return;
    element.setPointerCapture(event.pointerId);
    down.set(event.pointerId, placeOf(event));
    start = down.size === 1 && event.button === 0 ? placeOf(event) : null;
  });

  listen("pointermove", (event) => {
    const at = placeOf(event);
    const before = down.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType !== "touch") gestures.hover?.(at);
      return;
    }
    if (start !== null && Math.hypot(at.x - start.x, at.y - start.y) < STEADY) return;
    start = null;
    const others = [...down].filter(([pointer]) => pointer !== event.pointerId).map(([, place]) => place);
    down.set(event.pointerId, at);
    element.toggleAttribute("data-dragged", true);
    if (others.length === 0) gestures.pan(at.x - before.x, at.y - before.y);
    else pinch(others[0], before, at);
  });

  const pinch = (still: Point, before: Point, at: Point) => {
    const distance = (place: Point) => Math.max(1, Math.hypot(place.x - still.x, place.y - still.y));
    const middle = { x: (still.x + at.x) / 2, y: (still.y + at.y) / 2 };
    gestures.zoom(middle, distance(at) / distance(before));
    gestures.pan((at.x - before.x) / 2, (at.y - before.y) / 2);
  };

  const lift = (event: PointerEvent, meant: boolean) => {
    if (!down.delete(event.pointerId)) return;
    element.toggleAttribute("data-dragged", false);
    tapped = meant ? start : null;
    start = null;
  };
  // Not when the finger is lifted: what a tap opens would take the click that follows.
  listen("click", () => {
    if (tapped !== null) gestures.tap(tapped);
    tapped = null;
  });
  listen("pointerup", (event) => lift(event, true));
  listen("pointercancel", (event) => lift(event, false));
  listen("pointerleave", () => gestures.hover?.(null));

  listen("wheel", (event) => {
    event.preventDefault();
    const px = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE : 1);
    const factor = Math.exp(-px * (event.ctrlKey && Math.abs(px) < 50 ? PER_TOUCHPAD : PER_WHEEL));
    gestures.zoom(placeOf(event), Math.min(2, Math.max(0.5, factor)));
  });

  return () => ending.abort();
}
