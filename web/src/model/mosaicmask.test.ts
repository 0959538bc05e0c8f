import { expect, test } from "vitest";
import { depthAt, measureMask, STEEPEST } from "./mosaicmask";

/** A fixed sequence that looks random. */
function sequence(): () => number {
  let state = 12345;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

function patches(width: number, height: number): boolean[] {
  const random = sequence();
  return Array.from({ length: width * height }, () => random() < 0.8);
}

test("beside a straight border a place is as deep as it is far from it, and less than 0 beyond it", () => {
  const mask = measureMask(Array.from({ length: 20 * 12 }, (_, k) => k % 20 < 8), 20, 12);
  for (const x of [2, 5.3, 7.9, 8, 8.4, 13, 17.5]) expect(depthAt(mask, x / 20, 0.4)).toBeCloseTo(8 - x, 5);
});

test("a pixel is as deep as the mean of its neighbours' ways to the other kind", () => {
  const [width, height] = [14, 9];
  const showing = patches(width, height);
  const mask = measureMask(showing, width, height);
  const wayFrom = (at: number) => {
    const ways = showing.flatMap((shows, k) => {
      const [right, down] = [(k % width) - (at % width), Math.floor(k / width) - Math.floor(at / width)];
      return shows === showing[at] ? [] : [Math.max(Math.abs(right), Math.abs(down)) - 0.5];
    });
    return (showing[at] ? 1 : -1) * Math.min(...ways);
  };
  for (let row = 1; row < height - 1; row++) {
    for (let column = 1; column < width - 1; column++) {
      const around = [-1, 0, 1].flatMap((down) => [-1, 0, 1].map((right) => (row + down) * width + column + right));
      const mean = around.map(wayFrom).reduce((sum, way) => sum + way) / 9;
      expect(depthAt(mask, (column + 0.5) / width, (row + 0.5) / height)).toBeCloseTo(mean, 5);
    }
  }
});

test("no way is steeper than said", () => {
  const [width, height] = [30, 20];
  const mask = measureMask(patches(width, height), width, height);
  const random = sequence();
  for (let k = 0; k < 2000; k++) {
    const [x, y, right, down] = [width * random(), height * random(), 4 * random() - 2, 4 * random() - 2];
    const change = depthAt(mask, (x + right) / width, (y + down) / height) - depthAt(mask, x / width, y / height);
    expect(Math.abs(change)).toBeLessThanOrEqual(STEEPEST * Math.max(Math.abs(right), Math.abs(down)) + 1e-5);
  }
});

test("the edge of the mask is no border: where all shows the scene, all is deeper than the mask is large", () => {
  const everywhere = measureMask(new Array<boolean>(20 * 10).fill(true), 20, 10);
  for (const [u, v] of [[0, 0], [0.5, 0.5], [1, 1]]) expect(depthAt(everywhere, u, v)).toBeGreaterThan(20);
});

test("where nothing shows the scene, nothing is inside", () => {
  const nowhere = measureMask(new Array<boolean>(20 * 10).fill(false), 20, 10);
  for (const [u, v] of [[0, 0], [0.5, 0.5], [1, 1]]) expect(depthAt(nowhere, u, v)).toBeLessThan(-20);
});
