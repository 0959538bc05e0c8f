import { describe, expect, it } from "vitest";
import type { TilePyramid } from "./messages";
import {
  boxOfPyramid,
  fitCamera,
  fromScreen,
  levelFor,
  panCamera,
  partOf,
  pixelAt,
  placeOnScreen,
  sizeOfLevel,
  toScreen,
  visibleTiles,
  zoomCamera,
} from "./pyramid";

const pyramid: TilePyramid = {
  left: -30,
  top: 12,
  scale: 1,
  width: 1000,
  height: 601,
  levels: 11,
  side: 254,
  overlap: 1,
};
const screen = { width: 800, height: 600 };
const full = { centre: { x: 400.3, y: 300.7 }, zoom: 1 };

describe("a pyramid of tiles", () => {
  it("has half as many pixels, rounded up, on each level before", () => {
    expect(sizeOfLevel(pyramid, 10)).toEqual({ width: 1000, height: 601 });
    expect(sizeOfLevel(pyramid, 9)).toEqual({ width: 500, height: 301 });
    expect(sizeOfLevel(pyramid, 0)).toEqual({ width: 1, height: 1 });
  });

  it("shows pixels at most as large as those of the screen", () => {
    expect(levelFor(pyramid, 4)).toBe(10);
    expect(levelFor(pyramid, 0.6)).toBe(10);
    expect(levelFor(pyramid, 0.5)).toBe(9);
    expect(levelFor(pyramid, 1e-6)).toBe(0);
    expect(levelFor({ ...pyramid, scale: 0.5 }, 0.5)).toBe(10);
  });

  it("is fitted completely", () => {
    const camera = fitCamera(boxOfPyramid(pyramid), screen);
    const { left, top, right, bottom } = boxOfPyramid(pyramid);
    const [first, last] = [
      toScreen(camera, screen, { x: left, y: top }),
      toScreen(camera, screen, { x: right, y: bottom }),
    ];
    expect(Math.min(first.x, first.y)).toBeGreaterThan(0);
    expect(last.x).toBeLessThan(screen.width);
    expect(last.y).toBeLessThan(screen.height);
  });

  it("stays under the pointer while zooming", () => {
    const place = { x: 133, y: 71 };
    const before = fromScreen(full, screen, place);
    const after = fromScreen(zoomCamera(full, screen, place, 3.7, 0.01), screen, place);
    expect(after.x).toBeCloseTo(before.x);
    expect(after.y).toBeCloseTo(before.y);
  });

  it("cannot be moved away", () => {
    const { centre } = panCamera(full, { x: 1e6, y: -1e6 }, boxOfPyramid(pyramid));
    expect(centre).toEqual({ x: -30.5, y: 612.5 });
  });

  it.each([0.13, 0.5, 1, 2.6])("covers the screen without gaps or overlaps at zoom %f", (zoom) => {
    const camera = { ...full, zoom };
    const tiles = visibleTiles(pyramid, levelFor(pyramid, zoom), camera, screen);
    const boxes = tiles.map((tile) => ({ tile, box: placeOnScreen(pyramid, tile, camera, screen) }));
    for (const { tile, box } of boxes) {
      const right = boxes.find(({ tile: other }) => other.column === tile.column + 1 && other.row === tile.row);
      const below = boxes.find(({ tile: other }) => other.row === tile.row + 1 && other.column === tile.column);
      if (right !== undefined) expect(right.box.left).toBe(box.right);
      if (below !== undefined) expect(below.box.top).toBe(box.bottom);
    }
    expect(tiles.length).toBeGreaterThan(0);
  });

  it("shows one pixel of the file on one of the screen at full resolution", () => {
    for (const tile of visibleTiles(pyramid, 10, full, screen)) {
      const box = placeOnScreen(pyramid, tile, full, screen);
      const part = partOf(pyramid, tile, 0)!;
      expect([box.right - box.left, box.bottom - box.top]).toEqual([part.width, part.height]);
      expect(part.left).toBe(tile.column > 0 ? 1 : 0);
    }
  });

  it("takes a coarser tile’s part where the tile has not come yet", () => {
    expect(partOf(pyramid, { level: 10, column: 3, row: 1 }, 1)).toEqual({
      tile: { level: 9, column: 1, row: 0 },
      left: 3 * 127 - 254 + 1,
      top: 127,
      width: (1000 - 3 * 254) / 2,
      height: 127,
    });
    expect(partOf(pyramid, { level: 0, column: 0, row: 0 }, 1)).toBeNull();
  });

  it("tells the pixel of the mosaic under the pointer", () => {
    const tile = placeOnScreen(pyramid, { level: 10, column: 1, row: 1 }, full, screen);
    expect(pixelAt(pyramid, full, screen, { x: tile.left + 0.5, y: tile.top + 2.5 })).toEqual({ x: 254, y: 256 });
    expect(pixelAt(pyramid, full, screen, { x: -2000, y: 0 })).toBeNull();
  });
});
