/** A mosaic in tiles, and a camera over it. Screens are in device pixels, places in px of the frames. */
import type { Point } from "./affine";
import type { TilePyramid } from "./messages";
import type { Size } from "./polygon";

export interface Camera {
  /** What is in the middle of the screen. */
  readonly centre: Point;
  /** Device pixels for each px of the frames. */
  readonly zoom: number;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export interface Tile {
  readonly level: number;
  readonly column: number;
  readonly row: number;
}

/** A part of a tile's picture. */
export interface Part {
  readonly tile: Tile;
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export const LARGEST_ZOOM = 16;
const MARGIN = 0.96;

export function boxOfPyramid({ left, top, scale, width, height }: TilePyramid): Box {
  // The first pixel's centre at scale 1 is given; its corner is the same at every scale.
  return { left: left - 0.5, top: top - 0.5, right: left - 0.5 + width / scale, bottom: top - 0.5 + height / scale };
}

export function unite(boxes: readonly Box[]): Box {
  return {
    left: Math.min(...boxes.map(({ left }) => left)),
    top: Math.min(...boxes.map(({ top }) => top)),
    right: Math.max(...boxes.map(({ right }) => right)),
    bottom: Math.max(...boxes.map(({ bottom }) => bottom)),
  };
}

/** Show everything. */
export function fitCamera({ left, top, right, bottom }: Box, screen: Size): Camera {
  const zoom = MARGIN * Math.min(screen.width / (right - left), screen.height / (bottom - top));
  return { centre: { x: (left + right) / 2, y: (top + bottom) / 2 }, zoom: Math.min(zoom, LARGEST_ZOOM) };
}

export function toScreen({ centre, zoom }: Camera, screen: Size, { x, y }: Point): Point {
  return { x: screen.width / 2 + zoom * (x - centre.x), y: screen.height / 2 + zoom * (y - centre.y) };
}

export function fromScreen({ centre, zoom }: Camera, screen: Size, { x, y }: Point): Point {
  return { x: centre.x + (x - screen.width / 2) / zoom, y: centre.y + (y - screen.height / 2) / zoom };
}

/** Zoom so that what is at a place of the screen stays there. */
export function zoomCamera(camera: Camera, screen: Size, place: Point, zoom: number, least: number): Camera {
  const bounded = Math.min(LARGEST_ZOOM, Math.max(least, zoom));
  const { x, y } = fromScreen(camera, screen, place);
  const centre = { x: x - (place.x - screen.width / 2) / bounded, y: y - (place.y - screen.height / 2) / bounded };
  return { centre, zoom: bounded };
}

/** Move the mosaic on the screen; something of it stays in the middle. */
export function panCamera({ centre, zoom }: Camera, by: Point, { left, top, right, bottom }: Box): Camera {
  const within = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));
  return {
    centre: { x: within(centre.x - by.x / zoom, left, right), y: within(centre.y - by.y / zoom, top, bottom) },
    zoom,
  };
}

/** Return the level whose pixels are at most as large as those of the screen, where there is one. */
export function levelFor({ levels, scale }: TilePyramid, zoom: number): number {
  const halvings = Math.max(0, Math.floor(Math.log2(scale / zoom) + 1e-9));
  return Math.max(0, levels - 1 - halvings);
}

export function sizeOfLevel({ levels, width, height }: TilePyramid, level: number): Size {
  const step = 2 ** (levels - 1 - level);
  return { width: Math.ceil(width / step), height: Math.ceil(height / step) };
}

/** Return the tiles of a level that the screen shows, nearest to its middle first. */
export function visibleTiles(pyramid: TilePyramid, level: number, camera: Camera, screen: Size): Tile[] {
  const box = boxOfPyramid(pyramid);
  const perPixel = 2 ** (pyramid.levels - 1 - level) / pyramid.scale;
  const size = sizeOfLevel(pyramid, level);
  const first = fromScreen(camera, screen, { x: 0, y: 0 });
  const last = fromScreen(camera, screen, { x: screen.width, y: screen.height });
  const step = pyramid.side * perPixel;
  const range = (start: number, end: number, corner: number, pixels: number): [number, number] => [
    Math.max(0, Math.floor((start - corner) / step)),
    Math.min(Math.ceil(pixels / pyramid.side) - 1, Math.floor((end - corner) / step)),
  ];
  const [left, right] = range(first.x, last.x, box.left, size.width);
  const [top, bottom] = range(first.y, last.y, box.top, size.height);
  const tiles: Tile[] = [];
  for (let row = top; row <= bottom; row++)
    for (let column = left; column <= right; column++) tiles.push({ level, column, row });
  const away = ({ column, row }: Tile) =>
    Math.hypot(box.left + (column + 0.5) * step - camera.centre.x, box.top + (row + 0.5) * step - camera.centre.y);
  return tiles.sort((a, b) => away(a) - away(b));
}

/** Return the pixels of the screen that a tile fills: its neighbours begin exactly where it ends. */
export function placeOnScreen(pyramid: TilePyramid, { level, column, row }: Tile, camera: Camera, screen: Size): Box {
  const box = boxOfPyramid(pyramid);
  const perPixel = 2 ** (pyramid.levels - 1 - level) / pyramid.scale;
  const { width, height } = sizeOfLevel(pyramid, level);
  const { side } = pyramid;
  // All edges count from the mosaic's own corner, on a whole pixel: at full resolution no pixel is interpolated.
  const corner = toScreen(camera, screen, { x: box.left, y: box.top });
  const across = (pixels: number) => Math.round(corner.x) + Math.round(pixels * perPixel * camera.zoom);
  const down = (pixels: number) => Math.round(corner.y) + Math.round(pixels * perPixel * camera.zoom);
  return {
    left: across(column * side),
    top: down(row * side),
    right: across(Math.min((column + 1) * side, width)),
    bottom: down(Math.min((row + 1) * side, height)),
  };
}

/** Return what shows a tile's place: in its own picture (`up` 0), or in that of the tile so many levels above it. */
export function partOf(pyramid: TilePyramid, { level, column, row }: Tile, up: number): Part | null {
  if (up > level) return null;
  const { side, overlap } = pyramid;
  const size = sizeOfLevel(pyramid, level);
  const step = 2 ** up;
  const tile = { level: level - up, column: Math.floor(column / step), row: Math.floor(row / step) };
  const start = (own: number, of: number) => (own * side) / step - of * side + (of > 0 ? overlap : 0);
  const length = (own: number, pixels: number) => (Math.min((own + 1) * side, pixels) - own * side) / step;
  return {
    tile,
    left: start(column, tile.column),
    top: start(row, tile.row),
    width: length(column, size.width),
    height: length(row, size.height),
  };
}

/** Return the mosaic's pixel at a place of the screen; null beside the mosaic. */
export function pixelAt(pyramid: TilePyramid, camera: Camera, screen: Size, place: Point): Point | null {
  const box = boxOfPyramid(pyramid);
  const corner = toScreen(camera, screen, { x: box.left, y: box.top });
  const perPixel = camera.zoom / pyramid.scale;
  const x = Math.floor((place.x - Math.round(corner.x)) / perPixel);
  const y = Math.floor((place.y - Math.round(corner.y)) / perPixel);
  return x >= 0 && y >= 0 && x < pyramid.width && y < pyramid.height ? { x, y } : null;
}
