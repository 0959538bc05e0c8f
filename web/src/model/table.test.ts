import { describe, expect, test } from "vitest";
import type { AnswerRow } from "./messages";
import { arrange, FIRST_FILTER, FIRST_ORDER, nextOrder, rowsOnScreen, type Column } from "./table";

const row = (i: number, j: number, also: Partial<AnswerRow> = {}): AnswerRow => ({
  place: i,
  i,
  j,
  role: "loop",
  verdict: "yes",
  author: "person",
  person: "",
  contradicted: false,
  landmarks: 4,
  residual_px: 1,
  rejected: false,
  reason: "",
  seconds: 3,
  ...also,
});

const pairs = (rows: AnswerRow[]) => rows.map(({ i, j }) => [i, j]);
const ALL = { verdict: null, author: null, chain: true };

describe("order", () => {
  test("is by residual first, the largest on top, none at the bottom", () => {
    const rows = [row(1, 5), row(2, 5, { residual_px: null }), row(3, 5, { residual_px: 9 })];
    expect(pairs(arrange(rows, FIRST_FILTER, FIRST_ORDER))).toEqual([[3, 5], [1, 5], [2, 5]]);
  });

  test("without a residual is last in the other direction too", () => {
    const rows = [row(1, 5, { residual_px: null }), row(2, 5), row(3, 5, { residual_px: 9 })];
    expect(pairs(arrange(rows, ALL, { column: "residual", descending: false }))).toEqual([[2, 5], [3, 5], [1, 5]]);
  });

  test("by pair looks at both frames, in both directions", () => {
    const rows = [row(10, 12), row(2, 30), row(2, 4)];
    expect(pairs(arrange(rows, ALL, { column: "pair", descending: false }))).toEqual([[2, 4], [2, 30], [10, 12]]);
    expect(pairs(arrange(rows, ALL, { column: "pair", descending: true }))).toEqual([[10, 12], [2, 30], [2, 4]]);
  });

  test.each<[Column, Partial<AnswerRow>, Partial<AnswerRow>]>([
    ["verdict", { verdict: "yes" }, { verdict: "no" }],
    ["verdict", { verdict: "yes" }, { verdict: "yes", rejected: true }],
    ["author", { author: "matcher" }, { author: "person" }],
    ["author", { person: "Ann" }, { person: "Ben" }],
    ["landmarks", { landmarks: 9 }, { landmarks: 10 }],
    ["residual", { residual_px: 9 }, { residual_px: 10 }],
    ["role", { role: "bridge" }, { role: "loop" }],
    ["seconds", { seconds: 9 }, { seconds: 10 }],
    ["place", { place: 9 }, { place: 10 }],
  ])("by %s can be had in both directions", (column, less, more) => {
    const rows = [row(1, 2, more), row(3, 4, less)];
    expect(pairs(arrange(rows, ALL, { column, descending: false }))).toEqual([[3, 4], [1, 2]]);
    expect(pairs(arrange(rows, ALL, { column, descending: true }))).toEqual([[1, 2], [3, 4]]);
  });

  test("among equals is by pair", () => {
    const rows = [row(5, 6), row(1, 9), row(1, 2)];
    expect(pairs(arrange(rows, ALL, FIRST_ORDER))).toEqual([[1, 2], [1, 9], [5, 6]]);
  });

  test("leaves the answers themselves as they were", () => {
    const rows = [row(5, 6), row(1, 9)];
    arrange(rows, ALL, FIRST_ORDER);
    expect(pairs(rows)).toEqual([[5, 6], [1, 9]]);
  });

  test("turns round on the second click on a head; numbers begin with the largest, names with the first", () => {
    expect(nextOrder(FIRST_ORDER, "residual")).toEqual({ column: "residual", descending: false });
    expect(nextOrder(FIRST_ORDER, "landmarks")).toEqual({ column: "landmarks", descending: true });
    expect(nextOrder(FIRST_ORDER, "author")).toEqual({ column: "author", descending: false });
  });
});

describe("filter", () => {
  const rows = [
    row(1, 2, { role: "chain", author: "matcher" }),
    row(1, 9, { verdict: "no" }),
    row(2, 9, { author: "matcher" }),
  ];

  test("hides the chain first", () => {
    expect(pairs(arrange(rows, FIRST_FILTER, FIRST_ORDER))).toEqual([[1, 9], [2, 9]]);
    expect(arrange(rows, ALL, FIRST_ORDER)).toHaveLength(3);
  });

  test("takes what was asked for the chain's sake for a part of it, unless a person has said it", () => {
    const more = ["bridge", "check"].map((role, k) => row(k, 9, { role, author: "matcher" }));
    expect(arrange(more, FIRST_FILTER, FIRST_ORDER)).toEqual([]);
    expect(arrange([row(1, 2, { role: "chain", author: "person" })], FIRST_FILTER, FIRST_ORDER)).toHaveLength(1);
  });

  test("by verdict and by author keeps what is both", () => {
    expect(pairs(arrange(rows, { ...ALL, verdict: "no" }, FIRST_ORDER))).toEqual([[1, 9]]);
    expect(pairs(arrange(rows, { ...ALL, author: "matcher" }, FIRST_ORDER))).toEqual([[1, 2], [2, 9]]);
    expect(arrange(rows, { verdict: "no", author: "matcher", chain: true }, FIRST_ORDER)).toEqual([]);
    const doubted = [row(0, 5), row(1, 6, { contradicted: true })];
    expect(pairs(arrange(doubted, { ...ALL, verdict: "contradicted" }, FIRST_ORDER))).toEqual([[1, 6]]);
  });
});

describe("rows on the screen", () => {
  test("are those in sight and a few around them", () => {
    expect(rowsOnScreen(5000, 30, 3000, 300, 8)).toEqual({ first: 92, end: 118 });
  });

  test("end with the table", () => {
    expect(rowsOnScreen(12, 30, 0, 300, 8)).toEqual({ first: 0, end: 12 });
    expect(rowsOnScreen(0, 30, 0, 300, 8)).toEqual({ first: 0, end: 0 });
  });

  test("are none from beyond its end, where it has become shorter", () => {
    const { first, end } = rowsOnScreen(10, 30, 9000, 300, 8);
    expect(first).toBeLessThanOrEqual(end);
    expect(end).toBe(10);
  });
});
