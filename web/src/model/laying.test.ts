import { expect, it } from "vitest";
import type { Point } from "./affine";
import { apply, IDENTITY, translation } from "./affine";
import { STRAIGHT } from "./homography";
import { laid, landmarksOf, turnAbout, turnFromTo } from "./laying";
import { Relation } from "./relation";

const FRAME = { width: 320, height: 240 };
const MIDDLE = { x: 160, y: 120 };
const lens = { centre_x: 159.5, centre_y: 119.5, unit_px: 140, k1: 0.05, k2: 0 };

function expectNear(found: Point, { x, y }: Point): void {
  expect(found.x).toBeCloseTo(x, 6);
  expect(found.y).toBeCloseTo(y, 6);
}

it("turns and scales about a middle that stays", () => {
  const turned = turnAbout(MIDDLE, Math.PI / 2, 2);
  expectNear(apply(turned, MIDDLE), MIDDLE);
  expectNear(apply(turned, { x: 170, y: 120 }), { x: 160, y: 140 });
});

it("follows the pointer: the place under it stays under it", () => {
  const [from, to] = [{ x: 260, y: 100 }, { x: 200, y: 210 }];
  const turn = turnFromTo(MIDDLE, from, to)!;
  expectNear(apply(turn, from), to);
  expectNear(apply(turn, MIDDLE), MIDDLE);
});

it("does not turn where the pointer is on the middle", () => {
  expect(turnFromTo(MIDDLE, MIDDLE, { x: 10, y: 10 })).toBeNull();
});

it.each([["without a lens", null], ["through a lens", lens]])("makes landmarks of how a frame is laid, %s", (_, through) => {
  const relation = laid(new Relation(STRAIGHT, through, FRAME), translation(90, -30));
  const landmarks = landmarksOf(relation);
  expect(landmarks).toHaveLength(4);
  for (const { x_i, y_i, x_j, y_j, origin } of landmarks) {
    expectNear(relation.seen("j", { x: x_j, y: y_j }), { x: x_i, y: y_i });
    expect(origin).toBe("laid");
    for (const [x, y] of [[x_i, y_i], [x_j, y_j]]) {
      expect(x).toBeGreaterThan(0);
      expect(x).toBeLessThan(FRAME.width);
      expect(y).toBeGreaterThan(0);
      expect(y).toBeLessThan(FRAME.height);
    }
  }
});

it("spreads them: they tell turn and scale", () => {
  const xs = landmarksOf(laid(new Relation(STRAIGHT, null, FRAME), IDENTITY)).map(({ x_j }) => x_j);
  expect(Math.max(...xs) - Math.min(...xs)).toBeGreaterThan(FRAME.width / 2);
});

it("makes none of frames that do not overlap", () => {
  expect(landmarksOf(laid(new Relation(STRAIGHT, null, FRAME), translation(900, 0)))).toEqual([]);
});
