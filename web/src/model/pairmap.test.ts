import { describe, expect, test } from "vitest";
import { RAMP } from "./colour";
import type { PairMap } from "./messages";
import {
  bestPair,
  cellAt,
  CLOSEST,
  colourCells,
  formatValue,
  open,
  panMap,
  readValue,
  revealCell,
  showAll,
  windowFor,
  zoomMap,
} from "./pairmap";

function mapOf(bytes: number[][], also: Partial<PairMap> = {}): PairMap {
  return {
    revision: 1,
    kind: "overlap",
    first_row: 0,
    first_column: 0,
    frames_per_cell: 1,
    rows: bytes.length,
    columns: bytes[0].length,
    values: btoa(String.fromCharCode(...bytes.flat())),
    smallest: 0,
    largest: 1,
    logarithmic: false,
    ...also,
  };
}

describe("the view", () => {
  test("a zoom keeps the pair under the pointer there", () => {
    const view = zoomMap(showAll(600), 0.7, 0.2, 4, 600);
    expect(view.frames).toBe(150);
    expect(view.column + 0.7 * view.frames).toBeCloseTo(0.7 * 600, 9);
    expect(view.row + 0.2 * view.frames).toBeCloseTo(0.2 * 600, 9);
  });

  test("a zoom out ends with all frames", () => {
    expect(zoomMap({ row: 90, column: 3, frames: 200 }, 0, 1, 0.01, 600)).toEqual(showAll(600));
  });

  test("a zoom in ends with a few frames, or with all where there are fewer", () => {
    expect(zoomMap(showAll(600), 0.5, 0.5, 1e6, 600).frames).toBe(CLOSEST);
    expect(zoomMap(showAll(5), 0.5, 0.5, 1e6, 5)).toEqual(showAll(5));
  });

  test("a drag takes the pairs along", () => {
    const view = panMap({ row: 100, column: 100, frames: 50 }, 0.5, -0.2, 600);
    expect(view).toEqual({ row: 110, column: 75, frames: 50 });
  });

  test("a drag ends at the edges", () => {
    expect(panMap({ row: 100, column: 100, frames: 50 }, -99, 99, 600)).toEqual({ row: 0, column: 550, frames: 50 });
  });

  test("a cell is brought into view by as little as it takes", () => {
    const view = { row: 100, column: 100, frames: 50 };
    expect(revealCell(view, 120, 130, 600)).toEqual(view);
    expect(revealCell(view, 99, 151, 600)).toEqual({ row: 99, column: 102, frames: 50 });
  });
});

describe("what is fetched", () => {
  test("covers the view by whole frames", () => {
    expect(windowFor({ row: 10.6, column: 20.2, frames: 30 }, 600, 256)).toEqual({
      row: 10,
      column: 20,
      frames: 31,
      size: 31,
    });
  });

  test("stays within the matrix", () => {
    const window = windowFor({ row: 570.5, column: 0, frames: 29.5 }, 600, 256);
    expect(window.row + window.frames).toBeLessThanOrEqual(600);
    expect(window.row).toBeLessThanOrEqual(570);
  });

  test("has no more cells than the screen has pixels, and never more than 512", () => {
    expect(windowFor(showAll(2000), 2000, 300.4).size).toBe(300);
    expect(windowFor(showAll(2000), 2000, 3000).size).toBe(512);
  });
});

describe("cells", () => {
  const reduced = open(mapOf([[0, 10], [20, 255]], { first_row: 8, first_column: 100, frames_per_cell: 4 }));

  test("a place is found in its cell, with the frames that the cell stands for", () => {
    expect(cellAt(reduced, 12.9, 103.9, 600)).toEqual({ byte: 20, rows: [12, 15], columns: [100, 103] });
  });

  test("the last cell ends with the last frame", () => {
    expect(cellAt(reduced, 15, 105, 106)?.columns).toEqual([104, 105]);
  });

  test("outside of the map is no cell", () => {
    expect(cellAt(reduced, 7.9, 101, 600)).toBeNull();
    expect(cellAt(reduced, 9, 108, 600)).toBeNull();
  });

  test("values that are too few for the cells are a mistake", () => {
    expect(() => open({ ...mapOf([[1, 2]]), rows: 2 })).toThrow("2 × 2 cells came with 2 values");
  });

  test("the best pair of a map is the largest value, the earlier frame first, and no frame with itself", () => {
    expect(bestPair(open(mapOf([[255, 3], [200, 255]])))).toEqual([0, 1]);
    expect(bestPair(open(mapOf([[9, 7], [1, 0]], { first_row: 30, first_column: 10 })))).toEqual([10, 30]);
    expect(bestPair(open(mapOf([[255]])))).toBeNull();
  });

  test("colours are those of the ramp, opaque", () => {
    const pixels = colourCells(open(mapOf([[0, 255]])));
    expect(Array.from(pixels)).toEqual([...RAMP.slice(0, 3), 255, ...RAMP.slice(-3), 255]);
  });
});

describe("words", () => {
  test("an overlap is a percentage", () => {
    expect(readValue(mapOf([[0]]), 158)).toBe("62 %");
  });

  test("a logarithmic value is read along its decades", () => {
    const map = mapOf([[0]], { kind: "informativeness", smallest: 0.01, largest: 100, logarithmic: true });
    expect(readValue(map, 255)).toBe("100 px");
    expect(readValue(map, 191)).toBe("9.9 px");
    expect(readValue(map, 0)).toBe("0.01 px or less");
  });

  test("where nothing is worth asking, every value is 0", () => {
    const map = mapOf([[0]], { kind: "reward", smallest: 0, largest: 0, logarithmic: true });
    expect(readValue(map, 0)).toBe("0 px²");
  });

  test("large values are grouped, small ones keep two digits", () => {
    expect(formatValue("informativeness", 12345)).toBe("12,000 px");
    expect(formatValue("reward", 0.000123)).toBe("0.00012 px²");
  });
});
