/** Paints frame j on the plane of frame i as the map between them has it: perspective and lens, triangle by triangle. */
import type { Affine, Point } from "../../model/affine";
import { apply, scaled, subtract } from "../../model/affine";
import { affineThrough, cellsFor, gridOf } from "../../model/mesh";
import type { Triangle } from "../../model/mesh";
import type { Relation } from "../../model/relation";
import type { Surface } from "./painting";
import { enter, laySheet, paintFrame, sheetLike } from "./painting";

/** CSS px by which triangles reach over their sides, so that no gap shows between them. */
const SEAM = 0.6;

export function paintWarped(
  context: Surface,
  picture: ImageBitmap,
  relation: Relation,
  screenFromI: Affine,
): void {
  const place = (point: Point) => apply(screenFromI, relation.seen("j", point));
  const cells = cellsFor(relation.frame, place);
  const triangles = gridOf(relation.frame, cells);
  if (cells === 1) return paintFrame(context, picture, affineThrough(triangles[0]!, triangles[0]!.map(place)));
  // On a sheet of its own: what lies under two triangles must count once, whatever the way of painting.
  const sheet = sheetLike(context);
  for (const triangle of triangles) paintTriangle(sheet, picture, triangle, triangle.map(place));
  laySheet(context, sheet);
}

function paintTriangle(
  context: OffscreenCanvasRenderingContext2D,
  picture: ImageBitmap,
  triangle: Triangle,
  corners: readonly Point[],
): void {
  const middle = scaled(corners.reduce((p, q) => ({ x: p.x + q.x, y: p.y + q.y })), 1 / 3);
  context.save();
  context.beginPath();
  for (const corner of corners) {
    const out = subtract(corner, middle);
    const by = 1 + SEAM / Math.max(Math.hypot(out.x, out.y), 1);
    context.lineTo(middle.x + by * out.x, middle.y + by * out.y);
  }
  context.clip();
  enter(context, affineThrough(triangle, corners));
  context.imageSmoothingQuality = "medium";
  context.drawImage(picture, -0.5, -0.5);
  context.restore();
}
