/**
 * How a frame is developed to be looked at: one channel alone, highlights suppressed, local contrast, light.
 *
 * Local contrast shows what a frame hides in a dark corner or a bright middle. Of every pixel the mean of the brightness
 * around it is subtracted, and what is left is stretched until it varies by the same everywhere. Mean and deviation are
 * taken over a coarse grid, so that a large frame takes little longer than a small one. Highlights, and what the mask
 * hides, do not count. The colours keep their hue.
 */

/** Cells along the longer side of the grid, and how far a window reaches to either side of its cell. */
const CELLS = 96;
const REACH = 9;

/** Standard deviation of the brightness after the stretch, and the strongest stretch: noise must not fill the frame. */
const DEVIATION = 48;
const MOST_GAIN = 6;
const MOST_COLOUR_GAIN = 2;

/** Brighter pixels are reflections of the light. */
const HIGHLIGHT = 248;

/** Where highlights are suppressed: so many deviations above what is around it a pixel counts as one. */
const HIGHLIGHT_DEVIATIONS = 3;
/** The share of what is above that is left of it. */
const LEFT_OF_HIGHLIGHT = 0.1;

export const CHANNELS = ["all", "red", "green", "blue"] as const;

export type Channel = (typeof CHANNELS)[number];

export interface Look {
  /** The channel that is shown, in gray, or all of them. */
  readonly channel: Channel;
  /** Whether reflections of the light are left as they are. */
  readonly highlights: boolean;
  /** Local contrast. */
  readonly contrast: boolean;
  /** Added to all pixels, as a share of white. */
  readonly brightness: number;
  /** Above 1 dark parts become brighter. */
  readonly gamma: number;
}

export const PLAIN: Look = { channel: "all", highlights: true, contrast: false, brightness: 0, gamma: 1 };

export function isPlain({ channel, highlights, contrast, brightness, gamma }: Look): boolean {
  return channel === "all" && highlights && !contrast && brightness === 0 && gamma === 1;
}

/** Change the pixels (RGBA) of a frame to a look, in place. */
export function develop(pixels: Uint8ClampedArray, width: number, height: number, look: Look): void {
  if (look.channel !== "all") isolate(pixels, CHANNELS.indexOf(look.channel) - 1);
  if (!look.highlights) suppressHighlights(pixels, width, height);
  if (look.contrast) stretch(pixels, width, height);
  if (look.brightness === 0 && look.gamma === 1) return;
  const curve = Uint8ClampedArray.from({ length: 256 }, (_, value) => {
    return 255 * ((value / 255) ** (1 / look.gamma) + look.brightness);
  });
  for (let at = 0; at < pixels.length; at += 4) {
    for (let channel = at; channel < at + 3; channel++) pixels[channel] = curve[pixels[channel]!]!;
  }
}

/** Show one channel (0 to 2) in gray, in place. */
function isolate(pixels: Uint8ClampedArray, channel: number): void {
  for (let at = 0; at < pixels.length; at += 4) pixels.fill(pixels[at + channel]!, at, at + 3);
}

/** Subtract the background and stretch what is left, in place. */
export function stretch(pixels: Uint8ClampedArray, width: number, height: number): void {
  eachPixel(pixels, width, height, (at, brightness, mean, deviation) => {
    const gain = Math.min(MOST_GAIN, DEVIATION / Math.max(deviation, 1e-6));
    const stretched = 128 + gain * (brightness - mean);
    const colour = Math.min(gain, MOST_COLOUR_GAIN);
    for (let channel = at; channel < at + 3; channel++) {
      pixels[channel] = stretched + colour * (pixels[channel]! - brightness);
    }
  });
}

/** Make reflections of the light, with their rims, hardly brighter than what is around them, in place. */
export function suppressHighlights(pixels: Uint8ClampedArray, width: number, height: number): void {
  eachPixel(pixels, width, height, (at, brightness, mean, deviation) => {
    const most = mean + HIGHLIGHT_DEVIATIONS * deviation;
    if (brightness <= most) return;
    const share = (most + LEFT_OF_HIGHLIGHT * (brightness - most)) / brightness;
    for (let channel = at; channel < at + 3; channel++) pixels[channel]! *= share;
  });
}

/** Call for every pixel that is shown, with its brightness, and the mean and the deviation of that around it. */
function eachPixel(
  pixels: Uint8ClampedArray,
  width: number,
  height: number,
  change: (at: number, brightness: number, mean: number, deviation: number) => void,
): void {
  const cell = Math.max(1, Math.ceil(Math.max(width, height) / CELLS));
  const [columns, rows] = [Math.ceil(width / cell), Math.ceil(height / cell)];
  const { means, deviations } = background(pixels, width, height, cell, columns, rows);
  for (let y = 0; y < height; y++) {
    const down = Math.min(rows - 1, Math.max(0, (y + 0.5) / cell - 0.5));
    const upper = Math.floor(down) * columns;
    const lower = Math.min(rows - 1, Math.floor(down) + 1) * columns;
    for (let x = 0; x < width; x++) {
      const at = 4 * (y * width + x);
      if (pixels[at + 3] === 0) continue;
      const across = Math.min(columns - 1, Math.max(0, (x + 0.5) / cell - 0.5));
      const left = Math.floor(across);
      const right = Math.min(columns - 1, left + 1);
      const between = (values: Float32Array) => {
        const above = values[upper + left]! + (across % 1) * (values[upper + right]! - values[upper + left]!);
        const below = values[lower + left]! + (across % 1) * (values[lower + right]! - values[lower + left]!);
        return above + (down % 1) * (below - above);
      };
      change(at, brightnessAt(pixels, at), between(means), between(deviations));
    }
  }
}

/** Return the mean brightness around each cell of a grid, and its deviation. */
function background(
  pixels: Uint8ClampedArray,
  width: number,
  height: number,
  cell: number,
  columns: number,
  rows: number,
): { means: Float32Array; deviations: Float32Array } {
  // Sums of 1, the brightness and its square over all cells above and to the left.
  const stride = columns + 1;
  const sums = [0, 1, 2].map(() => new Float64Array(stride * (rows + 1))) as [Float64Array, Float64Array, Float64Array];
  for (let y = 0; y < height; y++) {
    const row = (Math.floor(y / cell) + 1) * stride + 1;
    for (let x = 0; x < width; x++) {
      const at = 4 * (y * width + x);
      const brightness = brightnessAt(pixels, at);
      if (pixels[at + 3]! < 128 || brightness >= HIGHLIGHT) continue;
      const place = row + Math.floor(x / cell);
      sums[0][place]! += 1;
      sums[1][place]! += brightness;
      sums[2][place]! += brightness * brightness;
    }
  }
  for (const sum of sums) {
    for (let at = stride; at < sum.length; at++) if (at % stride > 0) sum[at]! += sum[at - 1]!;
    for (let at = stride; at < sum.length; at++) sum[at]! += sum[at - stride]!;
  }
  const means = new Float32Array(columns * rows).fill(128);
  // Of a part without a pixel that counts, nothing is stretched.
  const deviations = new Float32Array(columns * rows).fill(DEVIATION);
  for (let k = 0; k < means.length; k++) {
    const [column, row] = [k % columns, Math.floor(k / columns)];
    const [left, right] = [Math.max(0, column - REACH), Math.min(columns, column + REACH + 1)];
    const [top, bottom] = [Math.max(0, row - REACH) * stride, Math.min(rows, row + REACH + 1) * stride];
    const [count, first, second] = sums.map((sum) => {
      return sum[bottom + right]! - sum[bottom + left]! - sum[top + right]! + sum[top + left]!;
    }) as [number, number, number];
    if (count === 0) continue;
    means[k] = first / count;
    deviations[k] = Math.sqrt(Math.max(0, second / count - (first / count) ** 2));
  }
  return { means, deviations };
}

function brightnessAt(pixels: Uint8ClampedArray, at: number): number {
  return 0.299 * pixels[at]! + 0.587 * pixels[at + 1]! + 0.114 * pixels[at + 2]!;
}
