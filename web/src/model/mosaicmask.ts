/** Where frames show the scene: all in the same part of them, a round one if the camera is an endoscope's. */

/** How deep the pixels lie in the part that shows the scene, in pixels of the mask; negative outside of it.
 *
 * Of a pixel's middle, to the nearest side of a pixel of the other kind, along x or y, whichever is further. The edge
 * of the mask is no such side: frames may show the scene up to theirs.
 */
export interface Mask {
  readonly depths: Float32Array;
  readonly width: number;
  readonly height: number;
}

/** Measure how deep every pixel lies; `showing` says of each, row by row, whether it shows the scene. */
export function measureMask(showing: readonly boolean[], width: number, height: number): Mask {
  const inward = distances(showing, false, width, height);
  const outward = distances(showing, true, width, height);
  const depths = Float32Array.from(showing, (shows, k) => (shows ? inward[k] - 0.5 : 0.5 - outward[k]));
  // Smooth: enlarged, the border would be stairs.
  return { depths: average(depths, width, height), width, height };
}

/** How deep a place lies, 0 to 1 across and down, between the four nearest pixels.
 *
 * On a way of one pixel of the mask, along x or y, whichever is longer, it changes by `STEEPEST` at most.
 */
export function depthAt({ depths, width, height }: Mask, across: number, down: number): number {
  const x = Math.min(width - 1, Math.max(0, across * width - 0.5));
  const y = Math.min(height - 1, Math.max(0, down * height - 0.5));
  const at = (y | 0) * width + (x | 0);
  const next = x < width - 1 ? 1 : 0;
  const under = y < height - 1 ? at + width : at;
  const upper = depths[at] + (x % 1) * (depths[at + next] - depths[at]);
  const lower = depths[under] + (x % 1) * (depths[under + next] - depths[under]);
  return upper + (y % 1) * (lower - upper);
}

export const STEEPEST = 2;

/** The mean of each pixel and its eight neighbours; the outermost pixels are their own neighbours beyond the edge. */
function average(depths: Float32Array, width: number, height: number): Float32Array {
  return depths.map((_, k) => {
    const column = k % width;
    const [left, right] = [column > 0 ? -1 : 0, column < width - 1 ? 1 : 0];
    const [above, below] = [k >= width ? k - width : k, k < width * (height - 1) ? k + width : k];
    const sumOf = (at: number) => depths[at + left] + depths[at] + depths[at + right];
    return (sumOf(above) + sumOf(k) + sumOf(below)) / 9;
  });
}

/** Distances to the nearest pixel of a kind, in steps to any of eight neighbours. */
function distances(showing: readonly boolean[], kind: boolean, width: number, height: number): Int32Array {
  // Longer than any way in the mask: that of masks which have none of the kind, and of a frame of pixels around it.
  const far = width + height;
  const stride = width + 2;
  const steps = new Int32Array(stride * (height + 2)).fill(far);
  const placeOf = (k: number) => (Math.floor(k / width) + 1) * stride + (k % width) + 1;
  showing.forEach((shows, k) => {
    if (shows === kind) steps[placeOf(k)] = 0;
  });
  const shorten = (at: number, side: 1 | -1) => {
    const row = at + side * stride;
    const nearest = Math.min(steps[at + side], steps[row - 1], steps[row], steps[row + 1]);
    steps[at] = Math.min(steps[at], nearest + 1);
  };
  // Twice suffices: from above and the left, then from below and the right.
  for (let k = 0; k < showing.length; k++) shorten(placeOf(k), -1);
  for (let k = showing.length - 1; k >= 0; k--) shorten(placeOf(k), 1);
  return Int32Array.from(showing, (_, k) => steps[placeOf(k)]);
}
