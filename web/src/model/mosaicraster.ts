/** Frames drawn on a picture from the uppermost down, so that every pixel is drawn once however many frames lie there.
 *
 * A canvas would draw all frames, the lower ones beneath the upper: with thousands of frames of one place that takes
 * seconds without a graphics card, and memory with one.
 */
import type { Maps } from "./mosaic";
import type { Level } from "./mosaiclevels";
import { depthAt, STEEPEST, type Mask } from "./mosaicmask";
import type { View } from "./mosaicview";
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
export function drawFrames(raster: Raster, view: View, maps: Maps, frame: Size, paints: Paints): Uint32Array {
  const shown = new Uint32Array(maps.length / 6);
  // Where a pixel is taken: one after the last of the run that was drawn with it. So a row is passed in leaps.
  const beyond = new Uint16Array(raster.width * raster.height);
  let free = raster.width * raster.height;
  for (let place = shown.length - 1; place >= 0 && free > 0; place--) {
    shown[place] = drawFrame(raster, beyond, view, maps.subarray(6 * place, 6 * place + 6), frame, paints, place);
    free -= shown[place];
  }
  return shown;
}

function drawFrame(
  { pixels, width: columns, height: rows }: Raster,
  beyond: Uint16Array,
  view: View,
  map: Maps,
  { width, height }: Size,
  paints: Paints,
  place: number,
): number {
  const [a, b, d, e] = [0, 1, 3, 4].map((k) => view.scale * map[k]);
  const [c, f] = [view.scale * map[2] + view.x, view.scale * map[5] + view.y];
  const determinant = a * e - b * d;
  if (!(Math.abs(determinant) > 1e-12)) return 0;
  const picture = paints.pictureOf(place, Math.sqrt(Math.abs(determinant)) * width);
  const tint = paints.tints === null ? 0 : paints.tint;
  const colour = paints.tints === null ? 0 : paints.tints[place];
  const blank = mix(paints.blank, colour, tint);
  const { mask } = paints;
  // Of a picture's pixels those at the border of the mask are dark in part.
  const border = mask === null || picture === null ? 0 : (BORDER * mask.width) / picture.width;

  // The frame's own coordinates, from 0 to 1, at the middle of a pixel: across + column · acrossStep, and so on.
  // A step of 0 would make a row begin nowhere; this one is as good.
  const acrossStep = e / determinant / width || 1e-30;
  const downStep = -d / determinant / height || 1e-30;
  // How much deeper in the mask a column can lie than the one before it, or less deep.
  const [maskColumns, maskRows] = [acrossStep * (mask?.width ?? 0), downStep * (mask?.height ?? 0)];
  const steepest = STEEPEST * Math.max(Math.abs(maskColumns), Math.abs(maskRows));
  const [top, bottom] = extent(d * width, e * height, f - 0.5 * (d + e));
  let drawn = 0;
  for (let row = Math.max(0, Math.ceil(top - 0.5)); row < Math.min(rows, bottom - 0.5); row++) {
    const x = 0.5 - c;
    const y = row + 0.5 - f;
    const across = ((e * x - b * y) / determinant + 0.5) / width;
    const down = ((a * y - d * x) / determinant + 0.5) / height;
    // Where the row enters and leaves the frame, by its sides and by its top and bottom.
    const left = -across / acrossStep;
    const right = (1 - across) / acrossStep;
    const upper = -down / downStep;
    const lower = (1 - down) / downStep;
    let column = Math.ceil(Math.max(0, Math.min(left, right), Math.min(upper, lower)));
    const last = Math.ceil(Math.min(columns, Math.max(left, right), Math.max(upper, lower))) - 1;
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
      const u = across + column * acrossStep;
      const v = down + column * downStep;
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

/** Pixels of the picture that is drawn, whatever its size. */
const BORDER = 1;

/** The smallest and the largest of a frame's corners in one direction. */
function extent(across: number, down: number, corner: number): [number, number] {
  return [corner + Math.min(0, across) + Math.min(0, down), corner + Math.max(0, across) + Math.max(0, down)];
}

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
