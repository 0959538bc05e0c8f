/** A picture in sizes that halve, so that a small view of it is smooth. */

/** A picture, `offset` pixels from the beginning; pixels are as in `mosaicraster.ts`. */
export interface Level {
  readonly pixels: Uint32Array;
  readonly offset: number;
  readonly width: number;
  readonly height: number;
}

/** Halve pictures of one size that follow each other; an odd last row or column is left out. */
export function halve(pixels: Uint32Array, count: number, width: number, height: number): Uint32Array {
  const [narrow, low] = [width >> 1, height >> 1];
  const halved = new Uint32Array(count * narrow * low);
  let to = 0;
  for (let k = 0; k < count; k++) {
    for (let row = 0; row < low; row++) {
      let at = (k * height + 2 * row) * width;
      for (let column = 0; column < narrow; column++, at += 2) {
        halved[to++] = mean(pixels[at], pixels[at + 1], pixels[at + width], pixels[at + width + 1]);
      }
    }
  }
  return halved;
}

/** Pictures of one size that follow each other, in all sizes down to a few pixels. */
export class Levels {
  readonly #levels: { pixels: Uint32Array; width: number; height: number }[] = [];

  constructor(pixels: Uint32Array, count: number, width: number, height: number) {
    this.#levels.push({ pixels, width, height });
    while (width >= SMALLEST && height >= SMALLEST) {
      pixels = halve(pixels, count, width, height);
      [width, height] = [width >> 1, height >> 1];
      this.#levels.push({ pixels, width, height });
    }
  }

  /** The width of the largest. */
  get width(): number {
    return this.#levels[0].width;
  }

  /** A picture in the smallest size that is still about as wide as it is drawn. */
  pick(place: number, drawnWidth: number): Level {
    const { pixels, width, height } =
      this.#levels.findLast((level) => level.width >= SHARP * drawnWidth) ?? this.#levels[0];
    return { pixels, offset: place * width * height, width, height };
  }
}

/** Smaller sizes than half of this are not made. */
const SMALLEST = 16;
/** A picture may be drawn a little larger than it is, rather than one that is much too large. */
const SHARP = 0.8;

function mean(one: number, two: number, three: number, four: number): number {
  // Two bytes at a time: the sums of four have room between them.
  const bytes = (shift: number) => {
    const upper = ((one >>> shift) & 0xff00ff) + ((two >>> shift) & 0xff00ff);
    const lower = ((three >>> shift) & 0xff00ff) + ((four >>> shift) & 0xff00ff);
    return ((upper + lower + 0x20002) >>> 2) & 0xff00ff;
  };
  return (bytes(0) | (bytes(8) << 8)) >>> 0;
}
