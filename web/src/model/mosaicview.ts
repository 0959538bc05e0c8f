/** What of the plane is on the screen: screen = scale × plane + (x, y), in CSS px. */
import type { Affine, Point } from "./affine";
import type { Box } from "./mosaic";
import type { Size } from "./polygon";

export interface View {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

/** Show a box as large as it goes, in the middle, with a margin of CSS px around it. */
export function fit(box: Box, screen: Size, margin: number): View {
  const room = (px: number) => Math.max(1, px - 2 * margin);
  const scale = Math.min(room(screen.width) / (box.right - box.left), room(screen.height) / (box.bottom - box.top));
  return {
    scale,
    x: screen.width / 2 - (scale * (box.left + box.right)) / 2,
    y: screen.height / 2 - (scale * (box.top + box.bottom)) / 2,
  };
}

export function pan(view: View, dx: number, dy: number): View {
  return { scale: view.scale, x: view.x + dx, y: view.y + dy };
}

/** Enlarge, and keep what is at a place of the screen where it is; the scale stays within bounds. */
export function zoomAbout(view: View, at: Point, factor: number, bounds: readonly [number, number]): View {
  const scale = Math.min(bounds[1], Math.max(bounds[0], view.scale * factor));
  const applied = scale / view.scale;
  return { scale, x: at.x - applied * (at.x - view.x), y: at.y - applied * (at.y - view.y) };
}

export function planeFromScreen(view: View, at: Point): Point {
  return { x: (at.x - view.x) / view.scale, y: (at.y - view.y) / view.scale };
}

export function screenFromPlane(view: View, at: Point): Point {
  return { x: view.scale * at.x + view.x, y: view.scale * at.y + view.y };
}

/** A view on its way. */
export function viewBetween(from: View, to: View, share: number): View {
  const blend = (one: number, other: number) => one + share * (other - one);
  return { scale: blend(from.scale, to.scale), x: blend(from.x, to.x), y: blend(from.y, to.y) };
}

/** The view as a map, screen_from_plane. */
export function asAffine({ scale, x, y }: View): Affine {
  return [scale, 0, x, 0, scale, y];
}
