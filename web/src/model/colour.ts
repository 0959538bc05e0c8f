/** Colours of quantities: even in lightness, so that equal steps look equal, to everybody and in print. */

const DARKEST = 0.2;
const LIGHTEST = 0.95;
const FIRST_HUE = 292; // degrees: violet
const LAST_HUE = 104; // yellow
const MOST_CHROMA = 0.135;

/** 256 colours, red, green and blue in turn, from dark violet (little) through green to pale yellow (much). */
export const RAMP: Uint8Array = makeRamp(256);

/** Return a style's colour of a share, 0 to 1, of the ramp. */
export function shade(share: number): string {
  const [red, green, blue] = rampColour(share);
  return `rgb(${red} ${green} ${blue})`;
}

/** Return red, green and blue, 0 to 255, of a share of the ramp; beyond its ends the ends. */
export function rampColour(share: number): [number, number, number] {
  const steps = RAMP.length / 3 - 1;
  const step = Math.round(Math.min(1, Math.max(0, share)) * steps);
  return [RAMP[3 * step], RAMP[3 * step + 1], RAMP[3 * step + 2]];
}

/** A quantity's range and how it is spread over the ramp. */
export interface Scale {
  smallest: number;
  largest: number;
  logarithmic: boolean;
}

/** Where a value lies on a scale, 0 to 1. */
export function shareOf(value: number, scale: Scale): number {
  if (scale.largest <= scale.smallest) return value >= scale.largest ? 1 : 0;
  const share = scale.logarithmic
    ? Math.log(Math.max(value, scale.smallest) / scale.smallest) / Math.log(scale.largest / scale.smallest)
    : (value - scale.smallest) / (scale.largest - scale.smallest);
  return Math.min(1, Math.max(0, share));
}

/** The value at a share of a scale; undoes `shareOf`. */
export function valueAt(share: number, scale: Scale): number {
  if (scale.largest <= scale.smallest) return scale.largest;
  if (scale.logarithmic) return scale.smallest * (scale.largest / scale.smallest) ** share;
  return scale.smallest + share * (scale.largest - scale.smallest);
}

/** Choose the scale of values: logarithmic where the positive ones span more than a decade. */
export function chooseScale(values: ArrayLike<number>): Scale {
  let smallest = Infinity;
  let least = Infinity; // among the positive ones
  let largest = -Infinity;
  for (let k = 0; k < values.length; k++) {
    const value = values[k];
    if (value < smallest) smallest = value;
    if (value > 0 && value < least) least = value;
    if (value > largest) largest = value;
  }
  if (largest === -Infinity) return { smallest: 0, largest: 1, logarithmic: false };
  const logarithmic = smallest >= 0 && largest > 10 * least;
  return { smallest: logarithmic ? least : smallest, largest, logarithmic };
}

function makeRamp(count: number): Uint8Array {
  const ramp = new Uint8Array(3 * count);
  for (let k = 0; k < count; k++) {
    const share = k / (count - 1);
    const lightness = DARKEST + share * (LIGHTEST - DARKEST);
    const hue = ((FIRST_HUE + share * (LAST_HUE - FIRST_HUE)) * Math.PI) / 180;
    ramp.set(mostVivid(lightness, hue), 3 * k);
  }
  return ramp;
}

/** The colour of a lightness and hue with as much chroma as a screen can show, up to the ramp's. */
function mostVivid(lightness: number, hue: number): number[] {
  let low = 0;
  let high = MOST_CHROMA;
  for (let round = 0; round < 20; round++) {
    const middle = (low + high) / 2;
    if (linearFromOklch(lightness, middle, hue).every((part) => part >= 0 && part <= 1)) low = middle;
    else high = middle;
  }
  return linearFromOklch(lightness, low, hue).map((part) => Math.round(255 * encode(part)));
}

/** Linear red, green and blue of a colour in OKLCH (Ottosson 2020). */
function linearFromOklch(lightness: number, chroma: number, hue: number): [number, number, number] {
  const a = chroma * Math.cos(hue);
  const b = chroma * Math.sin(hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

/** The sRGB transfer curve. */
function encode(linear: number): number {
  const part = Math.min(1, Math.max(0, linear));
  return part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055;
}
