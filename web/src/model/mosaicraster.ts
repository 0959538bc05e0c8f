/** Frames drawn on a picture from the uppermost down, so that every pixel is drawn once however many frames lie there.
 *
 * A canvas would draw all frames, the lower ones beneath the upper: with thousands of frames of one place that takes
 * seconds without a graphics card, and memory with one.
 */
import type { Point } from "./affine";
import type { Homography } from "./homography";
import { homographyOf, inverse } from "./homography";
import { areaOf, cornersOf, planeFromSquare, type Quads } from "./mosaic";
import type { Level } from "./mosaiclevels";
import { depthAt, STEEPEST, type Mask } from "./mosaicmask";
import { screenFromPlane, type View } from "./mosaicview";
import type { Size } from "./polygon";

/** A picture whose pixels are whole numbers, red in the lowest byte and opacity in the highest; 0 is empty. */
export interface Raster {
  pixels: Uint32Array;
  width: number;
  height: number;
}

export interface Paints {
  /** A frame's picture, suited to a width on the raster; null where there is none. */
  pictureOf(place: number, width: number): Level | null;
  /** The colour of frames that have no picture. */
  blank: number;
  /** Colours that tint the frames, one each, and how much of them, 0 to 256; null for none. */
  tints: Uint32Array | null;
  tint: number;
  /** Where frames show the scene: what is elsewhere in them is left out; null where they show it everywhere. */
  mask: Mask | null;
}

/** Draw the frames as a view shows them, in pixels of the raster; later frames lie above earlier ones.
 *
 * Returns how many pixels of the raster show each frame.
 */
export function drawFrames(raster: Raster, view: View, quads: Quads, frame: Size, paints: Paints): Uint32Array {
  const shown = new Uint32Array(quads.length / 8);
  // Where a pixel is taken: one after the last of the run that was drawn with it. So a row is passed in leaps.
  const beyond = new Uint16Array(raster.width * raster.height);
  let free = raster.width * raster.height;
  for (let place = shown.length - 1; place >= 0 && free > 0; place--) {
    shown[place] = drawFrame(raster, beyond, view, quads, frame, paints, place);
    free -= shown[place];
  }
  return shown;
}

function drawFrame(
  { pixels, width: columns, height: rows }: Raster,
  beyond: Uint16Array,
  view: View,
  quads: Quads,
  { width, height }: Size,
  paints: Paints,
  place: number,
): number {
  const area = view.scale ** 2 * areaOf(quads, place);
  if (!(area > 1e-12)) return 0;
  const corners = cornersOf(quads, place).map((corner) => screenFromPlane(view, corner));
  const [a, b, c, d, e, f, g, h, i] = oriented(inverse(planeFromSquare(corners)), corners);
  const picture = paints.pictureOf(place, Math.sqrt(area / (width * height)) * width);
  const tint = paints.tints === null ? 0 : paints.tint;
  const colour = paints.tints === null ? 0 : paints.tints[place];
  const blank = mix(paints.blank, colour, tint);
  const { mask } = paints;
  // Of a picture's pixels those at the border of the mask are dark in part.
  const border = mask === null || picture === null ? 0 : (BORDER * mask.width) / picture.width;
  const ys = corners.map(({ y }) => y);
  const bottom = Math.min(rows, Math.max(...ys) - 0.5);
  let drawn = 0;
  for (let row = Math.max(0, Math.ceil(Math.min(...ys) - 0.5)); row < bottom; row++) {
    // The frame's own coordinates, from 0 to 1, at the middle of a pixel are U/W and V/W; each of the three is its value
    // at column 0 plus a step for every column.
    const y = row + 0.5;
    const [u0, v0, w0] = [0.5 * a + b * y + c, 0.5 * d + e * y + f, 0.5 * g + h * y + i];
    // Where the row enters and leaves the frame, by its sides and by its top and bottom.
    span.first = 0;
    span.end = columns;
    narrow(span, u0, a);
    narrow(span, w0 - u0, g - a);
    narrow(span, v0, d);
    narrow(span, w0 - v0, g - d);
    let column = Math.ceil(span.first);
    const last = Math.ceil(span.end) - 1;
    // How much deeper in the mask a column can lie than the one before it, or less deep. The derivatives of U/W and V/W
    // are a constant of the row over W², and W is least at one end.
    const least = Math.min(w0 + column * g, w0 + last * g) ** 2;
    const across = (Math.abs(a * w0 - u0 * g) * (mask?.width ?? 0)) / least;
    const down = (Math.abs(d * w0 - v0 * g) * (mask?.height ?? 0)) / least;
    const steepest = STEEPEST * Math.max(across, down);
    // One after the last column of which it is known that the frame shows the scene there.
    let end = mask === null ? last + 1 : column;
    for (const line = row * columns; column <= last; ) {
      const taken = beyond[line + column];
      if (taken > 0) {
        const further = taken <= last ? beyond[line + taken] : 0;
        if (further > 0) beyond[line + column] = further;
        column = taken;
        continue;
      }
      const w = w0 + column * g;
      const u = (u0 + column * a) / w;
      const v = (v0 + column * d) / w;
      if (mask !== null && column >= end) {
        const depth = depthAt(mask, u, v) - border;
        const alike = Math.max(1, Math.floor(Math.abs(depth) / steepest));
        if (depth < 0) {
          column += alike;
          continue;
        }
        end = Math.min(last + 1, column + alike);
      }
      pixels[line + column] = picture === null ? blank : mix(sample(picture, u, v), colour, tint);
      beyond[line + column] = end;
      drawn++;
      column++;
    }
  }
  return drawn;
}

const span = { first: 0, end: 0 };

/** Leave of a span of columns those where a value that grows by a step a column is not negative. */
function narrow(span: { first: number; end: number }, value: number, step: number): void {
  if (step > 0) span.first = Math.max(span.first, -value / step);
  else if (step < 0) span.end = Math.min(span.end, -value / step);
  else if (value < 0) span.end = 0;
}

/** The same map with positive depths where a quad is. */
function oriented(map: Homography, [corner]: readonly Point[]): Homography {
  const depth = map[6] * corner!.x + map[7] * corner!.y + map[8];
  return depth > 0 ? map : homographyOf(map.map((entry) => -entry));
}

/** Pixels of the picture that is drawn, whatever its size. */
const BORDER = 1;

/** The colour at a place of a picture, 0 to 1 across and down, between its four nearest pixels. */
function sample({ pixels, offset, width, height }: Level, across: number, down: number): number {
  const x = Math.min(width - 1, Math.max(0, across * width - 0.5));
  const y = Math.min(height - 1, Math.max(0, down * height - 0.5));
  const column = x | 0;
  const row = y | 0;
  const right = ((x - column) * 256) | 0;
  const below = ((y - row) * 256) | 0;
  const at = offset + row * width + column;
  const next = column < width - 1 ? 1 : 0;
  const under = row < height - 1 ? at + width : at;
  return mix(mix(pixels[at], pixels[at + next], right), mix(pixels[under], pixels[under + next], right), below);
}

/** Between two colours: 0 is the one, 256 the other; two bytes at a time. */
function mix(one: number, other: number, share: number): number {
  if (share === 0) return one;
  const rest = 256 - share;
  const odd = Math.imul(one & 0xff00ff, rest) + Math.imul(other & 0xff00ff, share);
  const even = Math.imul((one >>> 8) & 0xff00ff, rest) + Math.imul((other >>> 8) & 0xff00ff, share);
  return (((odd >>> 8) & 0xff00ff) | (even & 0xff00ff00)) >>> 0;
}
