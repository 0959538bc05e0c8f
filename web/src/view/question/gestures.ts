/** Turns what pointers do on a panel into taps, drags, pans and pinches. */
import type { Point } from "../../model/affine";
import { distance, scaled, subtract } from "../../model/affine";

export interface Gestures {
  /** Return what can be dragged at a place, or null. */
  grab(place: Point, isTouch: boolean): number | null;
  onTap(place: Point): void;
  onGrabbed(index: number): void;
  onDrag(index: number, to: Point, isFirst: boolean): void;
  onDragEnd(): void;
  onPan(by: Point, alone: boolean): void;
  onZoom(at: Point, factor: number): void;
  onHover(place: Point | null): void;
  /** One pointer draws instead of panning. `lift`: the stroke ends, or a second finger breaks it off. */
  readonly drawing?: {
    isOn(): boolean;
    draw(place: Point, isFirst: boolean): void;
    lift(isComplete: boolean): void;
  };
  /** Alt and the wheel: by so many frames. */
  onTime?(by: number): void;
}

const SLOP_PX = 5;
const LONG_PRESS_MS = 380;

interface Press {
  readonly start: Point;
  readonly grabbed: number | null;
  readonly offset: Point;
  mode: "undecided" | "pan" | "drag" | "draw" | "pinch";
  timer: number;
}

/** Listen on an element; `offsetOf` gives where a thing that is grabbed lies, so that it does not jump. */
export function listenForGestures(
  element: HTMLElement,
  gestures: Gestures,
  offsetOf: (index: number) => Point,
): void {
  const pointers = new Map<number, Point>();
  let press: Press | null = null;

  const placeOf = (event: PointerEvent | WheelEvent): Point => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button > 1 || event.target instanceof Element && event.target.closest("button") !== null) return;
    const place = placeOf(event);
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place);
    if (pointers.size > 1) {
      if (press !== null) window.clearTimeout(press.timer);
      if (press?.mode === "drag") gestures.onDragEnd();
      if (press?.mode === "draw") gestures.drawing!.lift(false);
      press = { start: place, grabbed: null, offset: place, mode: "pinch", timer: 0 };
      return;
    }
    const isTouch = event.pointerType === "touch";
    const grabbed = event.button === 1 ? null : gestures.grab(place, isTouch);
    const offset = grabbed === null ? { x: 0, y: 0 } : subtract(offsetOf(grabbed), place);
    press = { start: place, grabbed, offset, mode: event.button === 1 ? "pan" : "undecided", timer: 0 };
    if (grabbed !== null) gestures.onGrabbed(grabbed);
    if (grabbed !== null && isTouch) {
      const begun = press;
      // A finger that means to pan often begins on a landmark; one that stays means the landmark.
      begun.timer = window.setTimeout(() => {
        if (begun.mode === "undecided") startDrag(begun, place);
      }, LONG_PRESS_MS);
    }
  });

  element.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    const before = pointers.get(event.pointerId);
    if (before === undefined || press === null) {
      gestures.onHover(event.pointerType === "touch" ? null : place);
      return;
    }
    if (press.mode === "pinch") {
      pinch(event.pointerId, before, place);
      pointers.set(event.pointerId, place);
      return;
    }
    if (press.mode === "undecided" && distance(press.start, place) > SLOP_PX) {
      if (press.grabbed !== null && event.pointerType !== "touch") startDrag(press, place);
      else if (gestures.drawing?.isOn() === true) {
        press.mode = "draw";
        gestures.drawing.draw(press.start, true);
      } else press.mode = "pan";
    }
    if (press.mode === "pan") gestures.onPan(subtract(place, before), event.shiftKey);
    if (press.mode === "draw") gestures.drawing!.draw(place, false);
    if (press.mode === "drag") {
      gestures.onDrag(press.grabbed!, { x: place.x + press.offset.x, y: place.y + press.offset.y }, false);
    }
    if (press.mode !== "undecided") pointers.set(event.pointerId, place);
    gestures.onHover(place);
  });

  const end = (event: PointerEvent) => {
    if (!pointers.delete(event.pointerId) || press === null) return;
    window.clearTimeout(press.timer);
    if (press.mode === "drag") gestures.onDragEnd();
    if (press.mode === "draw") gestures.drawing!.lift(event.type === "pointerup");
    if (press.mode === "undecided" && event.type === "pointerup" && press.grabbed === null) gestures.onTap(press.start);
    if (event.pointerType === "touch") gestures.onHover(null);
    // After a pinch the finger that is left does nothing until it is lifted too.
    if (pointers.size === 0) press = null;
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", () => press === null && gestures.onHover(null));

  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      if (event.altKey && gestures.onTime !== undefined) return gestures.onTime(Math.sign(event.deltaY || event.deltaX));
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      // A pinch on a touchpad comes as a wheel with Ctrl and small steps.
      const speed = event.ctrlKey ? 0.01 : 0.0015;
      gestures.onZoom(placeOf(event), Math.exp(-event.deltaY * lines * speed));
    },
    { passive: false },
  );

  function startDrag(started: Press, place: Point): void {
    started.mode = "drag";
    gestures.onDrag(started.grabbed!, { x: place.x + started.offset.x, y: place.y + started.offset.y }, true);
  }

  function pinch(id: number, before: Point, now: Point): void {
    const partner = [...pointers].find(([key]) => key !== id)?.[1];
    if (partner === undefined) return;
    const middle = scaled({ x: now.x + partner.x, y: now.y + partner.y }, 0.5);
    gestures.onPan(scaled(subtract(now, before), 0.5), false);
    gestures.onZoom(middle, distance(now, partner) / Math.max(1, distance(before, partner)));
  }
}
