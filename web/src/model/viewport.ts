/** What the two panels show: both the same plane, that of frame i, at one zoom; pan and zoom are coupled. */
import type { Affine, Point } from "./affine";
import { add, apply, invert, scaled, subtract } from "./affine";
import type { Side } from "./messages";
import type { Size } from "./polygon";
import { boxOf, mapped, outlineOf } from "./polygon";

export interface Viewport {
  /** CSS pixels a pixel of frame i. */
  readonly zoom: number;
  /** What is in the middle of frame i's panel, px of frame i. */
  readonly centre: Point;
  /** How far from that, on the same plane, the middle of frame j's panel is: 0 where the two show the same place. */
  readonly slack: Point;
}

export const LARGEST_ZOOM = 32;
const SMALLEST_ZOOM = 0.02;
const MARGIN = 0.97;

/** Show both frames whole. */
export function fitFrames(panel: Size, frame: Size, iFromJ: Affine): Viewport {
  const outline = outlineOf(frame);
  const boxes = [boxOf(outline), boxOf(mapped(outline, iFromJ))];
  const zooms = boxes.map(({ least, most }) =>
    Math.min(panel.width / (most.x - least.x), panel.height / (most.y - least.y)),
  );
  const [inI, inJ] = boxes.map(({ least, most }) => scaled(add(least, most), 0.5)) as [Point, Point];
  return { zoom: bounded(MARGIN * Math.min(...zooms)), centre: inI, slack: subtract(inJ, inI) };
}

/** Return the map from frame i's plane to CSS pixels of a panel. */
export function screenFromPlane({ zoom, centre, slack }: Viewport, panel: Size, side: Side): Affine {
  const middle = side === "i" ? centre : add(centre, slack);
  return [zoom, 0, panel.width / 2 - zoom * middle.x, 0, zoom, panel.height / 2 - zoom * middle.y];
}

/** Zoom about a place of a panel; zooming in draws the two panels to the same place. */
export function zoomAbout(viewport: Viewport, panel: Size, side: Side, place: Point, factor: number): Viewport {
  const zoom = bounded(viewport.zoom * factor);
  const fromMiddle = { x: place.x - panel.width / 2, y: place.y - panel.height / 2 };
  const moved = scaled(fromMiddle, 1 / viewport.zoom - 1 / zoom);
  const slack = scaled(viewport.slack, Math.min(1, (viewport.zoom / zoom) ** 2));
  const centre = add(viewport.centre, moved);
  // What the person points at stays; the other panel follows.
  return { zoom, slack, centre: side === "i" ? centre : add(centre, subtract(viewport.slack, slack)) };
}

/** Move what is shown by so many CSS pixels, in both panels or in one alone. */
export function pan(viewport: Viewport, by: Point, alone: Side | null): Viewport {
  const moved = scaled(by, -1 / viewport.zoom);
  if (alone === "j") return { ...viewport, slack: add(viewport.slack, moved) };
  const slack = alone === "i" ? subtract(viewport.slack, moved) : viewport.slack;
  return { ...viewport, centre: add(viewport.centre, moved), slack };
}

/** Show a point of frame i's plane at a place of a panel, leaving the other panel alone. */
export function place(viewport: Viewport, panel: Size, side: Side, point: Point, at: Point): Viewport {
  const now = apply(screenFromPlane(viewport, panel, side), point);
  return pan(viewport, subtract(at, now), side);
}

/** Keep a point of frame j where it is on the screen although the frame's pose changes; else what is in the middle. */
export function holdThrough(viewport: Viewport, before: Affine, after: Affine, point: Point | null = null): Viewport {
  const held = point ?? apply(invert(before), add(viewport.centre, viewport.slack));
  const moved = subtract(apply(after, held), apply(before, held));
  return { ...viewport, slack: add(viewport.slack, moved) };
}

function bounded(zoom: number): number {
  return Math.min(LARGEST_ZOOM, Math.max(SMALLEST_ZOOM, zoom));
}
