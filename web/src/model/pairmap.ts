/** Maps of all pairs: which part is on the screen, which part to fetch, and what a place of it says. */
import { formatPx } from "./chart";
import { rampColour, valueAt } from "./colour";
import type { MapKind, PairMap } from "./messages";

/** What a square screen shows: so many usable frames down and to the right of a place, all of them fractional. */
export interface MapView {
  readonly row: number;
  readonly column: number;
  readonly frames: number;
}

/** Fewest frames across the screen: their cells are then easy to hit. */
export const CLOSEST = 8;

export function showAll(total: number): MapView {
  return { row: 0, column: 0, frames: total };
}

/** Enlarge about a place of the screen, as a share of its side, which stays where it is unless an edge comes in. */
export function zoomMap(view: MapView, right: number, down: number, factor: number, total: number): MapView {
  const frames = Math.min(total, Math.max(Math.min(CLOSEST, total), view.frames / factor));
  const row = view.row + down * (view.frames - frames);
  const column = view.column + right * (view.frames - frames);
  return within({ row, column, frames }, total);
}

/** Move by shares of the screen's side. */
export function panMap(view: MapView, right: number, down: number, total: number): MapView {
  return within(
    { row: view.row - down * view.frames, column: view.column - right * view.frames, frames: view.frames },
    total,
  );
}

/** Move as little as shows a cell. */
export function revealCell(view: MapView, row: number, column: number, total: number): MapView {
  const along = (from: number, place: number) => Math.min(place, Math.max(from, place + 1 - view.frames));
  return within({ row: along(view.row, row), column: along(view.column, column), frames: view.frames }, total);
}

/** A square of whole usable frames, to be had with at most `size` cells a side. */
export interface Excerpt {
  row: number;
  column: number;
  frames: number;
  size: number;
}

/** What to fetch for a view on a screen of so many pixels a side. */
export function windowFor(view: MapView, total: number, pixels: number): Excerpt {
  const row = Math.floor(view.row);
  const column = Math.floor(view.column);
  const end = Math.max(Math.ceil(view.row + view.frames) - row, Math.ceil(view.column + view.frames) - column);
  const frames = Math.min(total, Math.max(1, end));
  return {
    row: Math.min(row, total - frames),
    column: Math.min(column, total - frames),
    frames,
    size: Math.min(LARGEST_MAP, Math.max(1, Math.round(pixels)), frames),
  };
}

/** A map with its values at hand. */
export interface OpenMap {
  readonly map: PairMap;
  readonly bytes: Uint8Array;
}

export function open(map: PairMap): OpenMap {
  const text = atob(map.values);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  if (bytes.length !== map.rows * map.columns) {
    throw new Error(`a map of ${map.rows} × ${map.columns} cells came with ${bytes.length} values`);
  }
  return { map, bytes };
}

/** Colours of a map's cells: red, green, blue and opacity in turn. */
export function colourCells({ bytes }: OpenMap): Uint8ClampedArray<ArrayBuffer> {
  const pixels = new Uint8ClampedArray(4 * bytes.length);
  bytes.forEach((byte, k) => {
    pixels.set(rampColour(byte / 255), 4 * k);
    pixels[4 * k + 3] = 255;
  });
  return pixels;
}

/** A cell of a map: its value, and the usable frames it stands for, the last ones included. */
export interface Cell {
  byte: number;
  rows: readonly [number, number];
  columns: readonly [number, number];
}

/** The cell at a place, counted in usable frames; null outside of the map. */
export function cellAt({ map, bytes }: OpenMap, row: number, column: number, total: number): Cell | null {
  const down = Math.floor((row - map.first_row) / map.frames_per_cell);
  const right = Math.floor((column - map.first_column) / map.frames_per_cell);
  if (down < 0 || right < 0 || down >= map.rows || right >= map.columns) return null;
  const span = (first: number): [number, number] => [first, Math.min(total, first + map.frames_per_cell) - 1];
  return {
    byte: bytes[down * map.columns + right],
    rows: span(map.first_row + down * map.frames_per_cell),
    columns: span(map.first_column + right * map.frames_per_cell),
  };
}

/** The pair with the largest value of a map, by places among the usable frames, the earlier first; null for none. */
export function bestPair({ map, bytes }: OpenMap): [number, number] | null {
  let best: [number, number] | null = null;
  let most = -1;
  bytes.forEach((byte, k) => {
    const row = map.first_row + Math.floor(k / map.columns);
    const column = map.first_column + (k % map.columns);
    if (row === column || byte <= most) return;
    most = byte;
    best = [Math.min(row, column), Math.max(row, column)];
  });
  return best;
}

/** What a cell's value is, in words. */
export function readValue(map: PairMap, byte: number): string {
  const value = valueAt(byte / 255, map);
  if (map.logarithmic && map.smallest > 0 && byte === 0) return `${formatValue(map.kind, map.smallest)} or less`;
  return formatValue(map.kind, value);
}

export function formatValue(kind: MapKind, value: number): string {
  if (kind === "overlap") return `${Math.round(100 * value)} %`;
  return `${formatPx(value)} ${UNITS[kind]}`;
}

const UNITS: Record<Exclude<MapKind, "overlap">, string> = { informativeness: "px", reward: "px²" };

/** Cells a side; finer is neither seen nor quickly sent. */
const LARGEST_MAP = 512;

function within(view: MapView, total: number): MapView {
  const bound = (place: number) => Math.min(Math.max(0, total - view.frames), Math.max(0, place));
  return { row: bound(view.row), column: bound(view.column), frames: view.frames };
}
