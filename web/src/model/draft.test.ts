import { describe, expect, it } from "vitest";
import { abandon, adopt, begin, complete, draftOf, drawnAlike, EMPTY } from "./draft";
import { move, remove, select, steer, step, toggle } from "./draft";

const begun = begin(EMPTY, "j", { x: 1, y: 2 }, { x: 10, y: 20 });
const one = complete(begun);
const two = complete(begin(one, "i", { x: 5, y: 5 }, { x: 6, y: 6 }));
const three = complete(begin(two, "i", { x: 8, y: 8 }, { x: 9, y: 9 }));

describe("a draft", () => {
  it("makes a landmark of a point and its expected partner, whichever frame came first", () => {
    expect(one.landmarks).toEqual([{ x_i: 10, y_i: 20, x_j: 1, y_j: 2, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null }]);
    expect(one.selected).toBe(0);
    expect(one.open).toBeNull();
  });

  it("takes the partner where the person puts it", () => {
    expect(complete(steer(begun, { x: 11, y: 21 })).landmarks[0]).toMatchObject({ x_i: 11, y_i: 21 });
  });

  it("moves one side and remembers how", () => {
    const [moved] = move(one, 0, "j", { x: 3, y: 4 }, "snapped").landmarks;
    expect(moved).toMatchObject({ x_i: 10, x_j: 3, y_j: 4, origin: "snapped" });
  });

  it("switches a landmark off and on", () => {
    expect(toggle(one, 0).landmarks[0]!.active).toBe(false);
    expect(toggle(toggle(one, 0), 0)).toEqual(one);
  });

  it("selects the neighbour of what it deletes", () => {
    expect(remove(three, 2).selected).toBe(1);
    expect(remove(three, 0).selected).toBe(0);
    expect(remove(one, 0).selected).toBeNull();
  });

  it("steps round through the landmarks", () => {
    expect(step(select(three, 2), 1).selected).toBe(0);
    expect(step(select(three, null), 1).selected).toBe(0);
    expect(step(select(three, null), -1).selected).toBe(2);
    expect(step(EMPTY, 1).selected).toBeNull();
  });

  it("adds the matcher’s landmarks to one’s own", () => {
    expect(adopt(one, three.landmarks).landmarks).toHaveLength(4);
  });

  it("differs by what is drawn, not by what is selected", () => {
    expect(drawnAlike(three, select(three, 1))).toBe(true);
    expect(drawnAlike(draftOf(one.landmarks), one)).toBe(true);
    expect(drawnAlike(EMPTY, begun)).toBe(false);
    expect(drawnAlike(one, toggle(one, 0))).toBe(false);
    expect(drawnAlike(EMPTY, abandon(begun))).toBe(true);
  });
});
