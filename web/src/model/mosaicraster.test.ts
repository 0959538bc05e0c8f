import { describe, expect, test } from "vitest";
import type { Affine } from "./affine";
import { cornersOf, framesAt } from "./mosaic";
import { halve, Levels, type Level } from "./mosaiclevels";
import { measureMask } from "./mosaicmask";
import { mapped, outlineOf } from "./polygon";
import { drawFrames, type Paints, type Raster } from "./mosaicraster";

const FRAME = { width: 40, height: 30 };
const STILL = { scale: 1, x: 0, y: 0 };
const RED = 0xff0000ff;
const BLUE = 0xffff0000;
const GREY = 0xff808080;

function rasterOf(width: number, height: number): Raster {
  return { pixels: new Uint32Array(width * height), width, height };
}

/** Every frame has one colour of its own. */
function plain(colours: number[]): Paints {
  const pictureOf = (place: number): Level => {
    return { pixels: Uint32Array.of(colours[place]), offset: 0, width: 1, height: 1 };
  };
  return { pictureOf, blank: GREY, tints: null, tint: 0, mask: null };
}

/** A fixed sequence that looks random. */
function sequence(): () => number {
  let state = 12345;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

/** The corners of frames under affine maps, six numbers each. */
function quadsOf(...maps: number[][]): Float64Array {
  return Float64Array.from(
    maps.flatMap((map) => mapped(outlineOf(FRAME), map as unknown as Affine).flatMap(({ x, y }) => [x, y])),
  );
}

function crowd(count: number, random: () => number): Float64Array {
  const maps = Array.from({ length: count }, () => {
    const [angle, scale] = [7 * random(), 0.5 + random()];
    const [cos, sin] = [scale * Math.cos(angle), scale * Math.sin(angle)];
    const map = [cos, -sin, 240 * random() - 40, sin, cos, 190 * random() - 40];
    // No frame is quite a parallelogram.
    return quadsOf(map).map((entry) => entry + 4 * random());
  });
  return Float64Array.from(maps.flatMap((quad) => [...quad]));
}

describe("frames on a raster", () => {
  test("every pixel shows the uppermost frame there, and no other", () => {
    const random = sequence();
    const maps = crowd(60, random);
    const raster = rasterOf(90, 60);
    const colours = Array.from({ length: 60 }, (_, k) => 0xff000000 + k + 1);
    const view = { scale: 0.9, x: 3.3, y: -2.2 };
    drawFrames(raster, view, maps, FRAME, plain(colours));
    const expected = Array.from(raster.pixels, (_, k) => {
      const [x, y] = [(k % 90) + 0.5, Math.floor(k / 90) + 0.5];
      const top = framesAt(maps, { x: (x - view.x) / 0.9, y: (y - view.y) / 0.9 }).pop();
      return top === undefined ? 0 : colours[top];
    });
    expect(Array.from(raster.pixels)).toEqual(expected);
  });

  test("says of how many pixels each frame is seen", () => {
    const raster = rasterOf(160, 120);
    const colours = Array.from({ length: 60 }, (_, k) => 0xff000000 + k + 1);
    const shown = drawFrames(raster, STILL, crowd(60, sequence()), FRAME, plain(colours));
    colours.forEach((colour, k) => expect(raster.pixels.filter((pixel) => pixel === colour).length).toBe(shown[k]));
    expect(shown.some((count) => count === 0)).toBe(true);
  });

  test("a frame that covers all ends the work", () => {
    const asked: number[] = [];
    const paints = plain([RED, RED, BLUE]);
    const pictureOf = (place: number) => {
      asked.push(place);
      return paints.pictureOf(place, 1);
    };
    const maps = quadsOf([1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 1, 0], [9, 0, -9, 0, 9, -9]);
    drawFrames(rasterOf(20, 20), STILL, maps, FRAME, { ...paints, pictureOf });
    expect(asked).toEqual([2]);
  });

  test("a frame without a picture is blank, a collapsed one is nowhere", () => {
    const raster = rasterOf(50, 40);
    const maps = quadsOf([1, 0, 0.5, 0, 1, 0.5], [0, 0, 9, 0, 0, 9]);
    const paints = { ...plain([]), pictureOf: () => null };
    const shown = drawFrames(raster, STILL, maps, FRAME, paints);
    expect(raster.pixels[5 * 50 + 5]).toBe(GREY);
    expect(Array.from(shown)).toEqual([40 * 30, 0]);
  });

  test("a tint of a quarter is a quarter of its colour", () => {
    const raster = rasterOf(2, 2);
    const paints = { ...plain([RED]), tints: Uint32Array.of(BLUE), tint: 64 };
    drawFrames(raster, STILL, quadsOf([1, 0, 0, 0, 1, 0]), FRAME, paints);
    expect(raster.pixels[0].toString(16)).toBe("ff3f00bf");
  });

  test("a picture is where its frame is: left in the left half, turned with it", () => {
    const picture: Level = { pixels: Uint32Array.of(RED, BLUE), offset: 0, width: 2, height: 1 };
    const paints = { ...plain([RED]), pictureOf: () => picture };
    const raster = rasterOf(60, 60);
    drawFrames(raster, STILL, quadsOf([1, 0, 0, 0, 1, 0]), FRAME, paints);
    expect([raster.pixels[15 * 60 + 5], raster.pixels[15 * 60 + 34]]).toEqual([RED, BLUE]);
    const turned = rasterOf(60, 60);
    const quarter = quadsOf([0, -1, 40, 1, 0, 5]);
    drawFrames(turned, STILL, quarter, FRAME, paints);
    const [{ x: x0, y: y0 }, { x: x1, y: y1 }] = cornersOf(quarter, 0);
    expect(turned.pixels[Math.round(y0 + 4) * 60 + Math.round(x0 - 4)]).toBe(RED);
    expect(turned.pixels[Math.round(y1 - 4) * 60 + Math.round(x1 - 4)]).toBe(BLUE);
  });

  test("between two pixels of a picture is their mean", () => {
    const picture: Level = { pixels: Uint32Array.of(0xff000000, 0xff0000c8), offset: 0, width: 2, height: 1 };
    const raster = rasterOf(40, 1);
    const paints = { ...plain([RED]), pictureOf: () => picture };
    drawFrames(raster, STILL, quadsOf([1, 0, 0, 0, 1, 0]), FRAME, paints);
    expect(raster.pixels[19] & 255).toBeGreaterThan(90);
    expect(raster.pixels[20] & 255).toBeLessThan(110);
  });
});

describe("frames that show the scene in a part of them", () => {
  const maskOf = (shows: (x: number, y: number) => boolean) =>
    measureMask(Array.from({ length: 80 * 60 }, (_, k) => shows((k % 80) + 0.5, Math.floor(k / 80) + 0.5)), 80, 60);
  const isRound = (x: number, y: number) => Math.hypot(x - 40, y - 30) < 26;
  const round = maskOf(isRound);
  /** A ring with a spot in the middle, which a row enters and leaves three times. */
  const target = maskOf((x, y) => Math.abs(Math.hypot(x - 40, y - 30) - 18) > 6 && isRound(x, y));
  const ONE = quadsOf([1, 0, 0, 0, 1, 0]);

  test("a dark corner does not hide the frame beneath, the round part does", () => {
    const raster = rasterOf(60, 40);
    const maps = quadsOf([1, 0, -20, 0, 1, -15], [1, 0, 0, 0, 1, 0]); // the middle of the lower one is the other's corner
    const tints = Uint32Array.of(RED, BLUE);
    drawFrames(raster, STILL, maps, FRAME, { pictureOf: () => null, blank: GREY, tints, tint: 256, mask: round });
    expect([raster.pixels[60 + 1], raster.pixels[15 * 60 + 20], raster.pixels[60 + 38]]).toEqual([RED, BLUE, 0]);
  });

  test.each([round, target])("every pixel shows the uppermost frame that shows it, whatever the part", (mask) => {
    const maps = crowd(40, sequence());
    const raster = rasterOf(150, 110);
    const tints = Uint32Array.from({ length: 40 }, (_, k) => 0xff000000 + k + 1);
    const view = { scale: 0.9, x: 3.3, y: -2.2 };
    const shown = drawFrames(raster, view, maps, FRAME, { pictureOf: () => null, blank: GREY, tints, tint: 256, mask });
    const expected = Array.from(raster.pixels, (_, k) => {
      const [x, y] = [(k % 150) + 0.5, Math.floor(k / 150) + 0.5];
      const top = framesAt(maps, { x: (x - view.x) / 0.9, y: (y - view.y) / 0.9 }, mask).pop();
      return top === undefined ? 0 : tints[top];
    });
    expect(Array.from(raster.pixels)).toEqual(expected);
    tints.forEach((tint, k) => expect(expected.filter((pixel) => pixel === tint).length).toBe(shown[k]));
  });

  test.each([0.3, 0.6, 1, 2, 7])("no dark rim is drawn, and all but a rim is: %s times as large", (scale) => {
    const pixels = Uint32Array.from({ length: 80 * 60 }, (_, k) => {
      return isRound((k % 80) + 0.5, Math.floor(k / 80) + 0.5) ? RED : 0xff000000;
    });
    const levels = new Levels(pixels, 1, 80, 60);
    const paints = { ...plain([RED]), pictureOf: (_: number, width: number) => levels.pick(0, width), mask: round };
    const raster = rasterOf(300, 230);
    const [drawn] = drawFrames(raster, { scale, x: scale / 2, y: scale / 2 }, ONE, FRAME, paints);
    const dark = raster.pixels.filter((pixel) => pixel !== 0 && (pixel & 255) < 240);
    expect(dark.length).toBe(0);
    const rim = 2 * Math.max(1, scale / 2); // pixels of the raster, or of the picture where those are larger
    expect(drawn).toBeGreaterThan(Math.PI * (13 * scale - rim) ** 2);
  });

  test("a mask that leaves nothing out changes nothing", () => {
    const maps = crowd(40, sequence());
    const paints = plain(Array.from({ length: 40 }, (_, k) => 0xff000000 + k + 1));
    const [bare, masked] = [rasterOf(150, 110), rasterOf(150, 110)];
    drawFrames(bare, STILL, maps, FRAME, paints);
    drawFrames(masked, STILL, maps, FRAME, { ...paints, mask: maskOf(() => true) });
    expect(masked.pixels).toEqual(bare.pixels);
  });
});

describe("levels", () => {
  const pixels = Uint32Array.from({ length: 2 * 64 * 48 }, (_, k) => (k < 64 * 48 ? RED : BLUE));
  const levels = new Levels(pixels, 2, 64, 48);

  test("a picture is halved by the mean of four pixels, each colour for itself", () => {
    const four = Uint32Array.of(0xff0000ff, 0xff00ff00, 0xffff0000, 0xff000000);
    expect(halve(four, 1, 2, 2)[0].toString(16)).toBe("ff404040");
  });

  test("pictures that follow each other do not run into each other", () => {
    for (const width of [64, 32, 16]) {
      for (const [place, colour] of [RED, BLUE].entries()) {
        const level = levels.pick(place, width);
        const own = level.pixels.subarray(level.offset, level.offset + level.width * level.height);
        expect(own.every((pixel) => pixel === colour)).toBe(true);
      }
    }
  });

  test("an odd row and column are left out", () => {
    const two = new Uint32Array(2 * 5 * 3).fill(RED, 0, 15).fill(BLUE, 15);
    expect(halve(two, 2, 5, 3)).toEqual(Uint32Array.of(RED, RED, BLUE, BLUE));
  });

  test("the size is that in which it is drawn or a little more, and the largest beyond that", () => {
    const widths = [500, 64, 60, 40, 33, 20, 1].map((width) => levels.pick(0, width).width);
    expect(widths).toEqual([64, 64, 64, 32, 32, 16, 16]);
  });
});
