import { expect, test } from "vitest";
import { apply } from "./affine";
import { asAffine, fit, pan, planeFromScreen, screenFromPlane, viewBetween, zoomAbout } from "./mosaicview";

const SCREEN = { width: 360, height: 300 };
const BOX = { left: -100, top: 50, right: 500, bottom: 350 };
const FREE = [0, Infinity] as const;

test("fit shows the whole box, in the middle, as large as it goes", () => {
  const view = fit(BOX, SCREEN, 10);
  expect(screenFromPlane(view, { x: BOX.left, y: 0 }).x).toBeCloseTo(10, 9);
  expect(screenFromPlane(view, { x: BOX.right, y: 0 }).x).toBeCloseTo(350, 9);
  expect(screenFromPlane(view, { x: 200, y: 200 })).toEqual({ x: 180, y: 150 });
});

test("fit turns nothing inside out where the screen is smaller than its margins", () => {
  expect(fit(BOX, { width: 12, height: 12 }, 10).scale).toBeGreaterThan(0);
});

test("a zoom keeps what is under the pointer there", () => {
  const view = fit(BOX, SCREEN, 10);
  const at = { x: 77, y: 201 };
  const before = planeFromScreen(view, at);
  const after = planeFromScreen(zoomAbout(view, at, 3.7, FREE), at);
  expect(after.x).toBeCloseTo(before.x, 9);
  expect(after.y).toBeCloseTo(before.y, 9);
});

test("a zoom beyond the bounds stops at them and still keeps its place", () => {
  const view = { scale: 1, x: 5, y: 6 };
  const zoomed = zoomAbout(view, { x: 50, y: 60 }, 100, [0.1, 4]);
  expect(zoomed.scale).toBe(4);
  expect(planeFromScreen(zoomed, { x: 50, y: 60 })).toEqual(planeFromScreen(view, { x: 50, y: 60 }));
});

test("a pan moves what is shown by as many CSS px, at any scale", () => {
  const view = { scale: 0.25, x: 5, y: 6 };
  const [before, after] = [view, pan(view, 30, -20)].map((each) => screenFromPlane(each, { x: 8, y: 9 }));
  expect([after.x - before.x, after.y - before.y]).toEqual([30, -20]);
});

test("plane and screen undo each other, and the map says the same", () => {
  const view = { scale: 0.3, x: -40, y: 12 };
  const at = { x: 123, y: -7 };
  const there = screenFromPlane(view, at);
  expect(apply(asAffine(view), at)).toEqual(there);
  expect(planeFromScreen(view, there).x).toBeCloseTo(at.x, 9);
  expect(planeFromScreen(view, there).y).toBeCloseTo(at.y, 9);
});

test("a view on its way begins and ends at the two views", () => {
  const [from, to] = [{ scale: 1, x: 0, y: 0 }, { scale: 2, x: 10, y: -10 }];
  expect([0, 0.5, 1].map((share) => viewBetween(from, to, share))).toEqual([from, { scale: 1.5, x: 5, y: -5 }, to]);
});
