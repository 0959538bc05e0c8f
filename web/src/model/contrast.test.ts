import { describe, expect, it } from "vitest";
import { develop, PLAIN, stretch, suppressHighlights } from "./contrast";

const [WIDTH, HEIGHT] = [240, 180];

/** A faint texture on a background that is four times as bright on the right; RGBA. */
function frame(change: (x: number, y: number) => number | null = () => null): Uint8ClampedArray {
  const pixels = new Uint8ClampedArray(4 * WIDTH * HEIGHT);
  for (let k = 0; k < WIDTH * HEIGHT; k++) {
    const [x, y] = [k % WIDTH, Math.floor(k / WIDTH)];
    const background = 40 + (120 * x) / WIDTH;
    const texture = ((x >> 2) + (y >> 2)) % 2 === 0 ? 4 : -4;
    const value = change(x, y) ?? background + texture;
    pixels.set([value, value, value, 255], 4 * k);
  }
  return pixels;
}

/** Mean and standard deviation of the brightness in a square. */
function statistics(pixels: Uint8ClampedArray, left: number, top: number, side = 40) {
  const values = Array.from({ length: side * side }, (_, k) => {
    return pixels[4 * ((top + Math.floor(k / side)) * WIDTH + left + (k % side))]!;
  });
  const mean = values.reduce((sum, value) => sum + value) / values.length;
  return { mean, deviation: Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length) };
}

describe("local contrast", () => {
  it("shows a faint texture as strongly on a dark as on a bright ground", () => {
    const pixels = frame();
    stretch(pixels, WIDTH, HEIGHT);
    const [dark, bright] = [statistics(pixels, 40, 70), statistics(pixels, 160, 70)];
    for (const { mean, deviation } of [dark, bright]) {
      expect(Math.abs(mean - 128)).toBeLessThan(20);
      // 4 before.
      expect(deviation).toBeGreaterThan(15);
    }
    expect(Math.abs(dark.deviation / bright.deviation - 1)).toBeLessThan(0.15);
  });

  it("is not disturbed by a highlight", () => {
    const [plain, lit] = [frame(), frame((x, y) => (Math.hypot(x - 120, y - 90) < 12 ? 255 : null))];
    for (const pixels of [plain, lit]) stretch(pixels, WIDTH, HEIGHT);
    const [before, after] = [statistics(plain, 80, 80, 20), statistics(lit, 80, 80, 20)];
    expect(Math.abs(after.mean - before.mean)).toBeLessThan(6);
    expect(Math.abs(after.deviation / before.deviation - 1)).toBeLessThan(0.1);
  });

  it("does not count what the mask hides, and leaves it as it is", () => {
    const hidden = (pixels: Uint8ClampedArray) => {
      for (let k = 0; k < WIDTH * HEIGHT; k++) if (k % WIDTH < 60) pixels.set([0, 0, 0, 0], 4 * k);
      return pixels;
    };
    const pixels = hidden(frame());
    stretch(pixels, WIDTH, HEIGHT);
    expect(pixels[3]).toBe(0);
    // Beside the hidden part, as bright as elsewhere.
    expect(Math.abs(statistics(pixels, 62, 70).mean - 128)).toBeLessThan(25);
  });

  it("does not blow up the noise of a flat frame", () => {
    const pixels = frame((x, y) => 100 + ((7 * x + 13 * y) % 3) - 1);
    stretch(pixels, WIDTH, HEIGHT);
    expect(statistics(pixels, 100, 70).deviation).toBeLessThan(8);
  });
});

describe("brightness and gamma", () => {
  it("change nothing where they are plain", () => {
    const pixels = frame();
    develop(pixels, WIDTH, HEIGHT, PLAIN);
    expect(pixels).toEqual(frame());
  });

  it("lift all, or the dark parts most", () => {
    const of = (look: object) => {
      const pixels = frame();
      develop(pixels, WIDTH, HEIGHT, { ...PLAIN, ...look });
      return [statistics(pixels, 0, 70, 20).mean, statistics(pixels, 210, 70, 20).mean] as const;
    };
    const [dark, bright] = of({});
    const [liftedDark, liftedBright] = of({ gamma: 2 });
    expect(of({ brightness: 0.1 })[0] - dark).toBeCloseTo(25.5, 0);
    expect(liftedDark / dark).toBeGreaterThan(liftedBright / bright);
  });
});

describe("highlights", () => {
  it("are hardly brighter than what is around them, and the rest is as it was", () => {
    const lit = () => frame((x, y) => (Math.hypot(x - 120, y - 90) < 10 ? 255 : null));
    const pixels = lit();
    suppressHighlights(pixels, WIDTH, HEIGHT);
    expect(statistics(lit(), 115, 85, 10).mean).toBe(255);
    expect(statistics(pixels, 115, 85, 10).mean).toBeLessThan(165);
    expect(statistics(pixels, 20, 20)).toEqual(statistics(lit(), 20, 20));
  });
});

describe("a channel alone", () => {
  it("is shown in gray", () => {
    const pixels = new Uint8ClampedArray([10, 20, 30, 255, 40, 50, 60, 128]);
    develop(pixels, 2, 1, { ...PLAIN, channel: "green" });
    expect([...pixels]).toEqual([20, 20, 20, 255, 50, 50, 50, 128]);
  });
});
