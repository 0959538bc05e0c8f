/** Paints frames and polygons under affine maps. */
import type { Affine } from "../../model/affine";
import { apply, scaleOf } from "../../model/affine";
import type { Polygon } from "../../model/polygon";

/** From here on, in screen pixels a frame pixel, single pixels are shown as such. */
const PIXELS_SHOW_ABOVE = 2;

export type Surface = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** Return an empty canvas as large as another one, with its units. */
export function sheetLike(context: Surface): OffscreenCanvasRenderingContext2D {
  const sheet = new OffscreenCanvas(context.canvas.width, context.canvas.height).getContext("2d")!;
  sheet.setTransform(context.getTransform());
  return sheet;
}

/** Draw a sheet over a canvas as large as it. */
export function laySheet(context: Surface, { canvas }: OffscreenCanvasRenderingContext2D): void {
  context.save();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(canvas, 0, 0);
  context.restore();
}

/** Draw a frame; the centre of its first pixel is its origin. */
export function paintFrame(context: Surface, picture: ImageBitmap, screenFromFrame: Affine): void {
  context.save();
  enter(context, screenFromFrame);
  context.imageSmoothingEnabled = scaleOf(screenFromFrame) <= PIXELS_SHOW_ABOVE;
  context.imageSmoothingQuality = "medium";
  context.drawImage(picture, -0.5, -0.5);
  context.restore();
}

export function enter(context: CanvasTransform, [a, b, c, d, e, f]: Affine): void {
  context.transform(a, d, b, e, c, f);
}

/** Make a polygon the current path, in CSS pixels. */
export function trace(context: CanvasRenderingContext2D, polygon: Polygon, screenFromPolygon: Affine): void {
  context.beginPath();
  for (const corner of polygon) {
    const { x, y } = apply(screenFromPolygon, corner);
    context.lineTo(x, y);
  }
  context.closePath();
}

/** Stroke the current path so that it is seen on any ground; the width is that at the usual size of type. */
export function strokeVisibly(context: CanvasRenderingContext2D, colour: string, width: number): void {
  const scale = typeScale();
  context.lineWidth = (width + 1.5) * scale;
  context.strokeStyle = "rgb(0 0 0 / 0.5)";
  context.stroke();
  context.lineWidth = width * scale;
  context.strokeStyle = colour;
  context.stroke();
}

/** Return how much larger than usual the page's type is: what is drawn on frames grows with it. */
export function typeScale(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;
}
