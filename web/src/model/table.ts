/** The table of answers: which rows, in which order, and which of them are on the screen. */
import type { AnswerRow, Author, Verdict } from "./messages";

export type Column = "pair" | "verdict" | "author" | "landmarks" | "residual" | "role" | "seconds" | "place";

export interface Order {
  column: Column;
  descending: boolean;
}

/** What the table shows; null for all. */
export interface Filter {
  verdict: Verdict | "contradicted" | null;
  author: Author | null;
  /** What the matcher said before the first question too. */
  chain: boolean;
}

export const FIRST_ORDER: Order = { column: "residual", descending: true };
export const FIRST_FILTER: Filter = { verdict: null, author: null, chain: false };

/** Return the rows that a filter lets through, in an order; rows without a value come last in both directions. */
export function arrange(rows: readonly AnswerRow[], filter: Filter, order: Order): AnswerRow[] {
  const kept = rows.filter(
    (row) =>
      (filter.chain || !isPreparation(row)) &&
      (filter.verdict === null || (filter.verdict === "contradicted" ? row.contradicted : row.verdict === filter.verdict)) &&
      (filter.author === null || row.author === filter.author),
  );
  const sign = order.descending ? -1 : 1;
  return kept.sort((one, other) => compare(one, other, order.column, sign) || one.i - other.i || one.j - other.j);
}

/** Whether the matcher gave an answer while the sequence was prepared: the chain and what was asked for its sake. */
export function isPreparation(row: AnswerRow): boolean {
  return row.author === "matcher" && PREPARATION.has(row.role);
}

/** The order after a click on a column's head: turned round, or its own first direction. */
export function nextOrder(order: Order, column: Column): Order {
  if (order.column === column) return { column, descending: !order.descending };
  return { column, descending: LARGEST_FIRST.has(column) };
}

/** Rows of a long table that are on the screen, with a few around them: first, and one after the last. */
export function rowsOnScreen(
  count: number,
  rowHeight: number,
  scrolled: number,
  height: number,
  spare = 8,
): { first: number; end: number } {
  const first = Math.max(0, Math.min(Math.floor(scrolled / rowHeight) - spare, count));
  const end = Math.min(count, Math.ceil((scrolled + height) / rowHeight) + spare);
  return { first, end: Math.max(first, end) };
}

const PREPARATION: ReadonlySet<string> = new Set(["chain", "bridge", "check"]);

/** Numbers that one looks for begin with the largest, names and pairs with the first. */
const LARGEST_FIRST: ReadonlySet<Column> = new Set<Column>(["landmarks", "residual", "seconds", "place"]);

const VERDICTS: readonly Verdict[] = ["yes", "no", "unsure"];

function compare(one: AnswerRow, other: AnswerRow, column: Column, sign: number): number {
  if (column === "pair") return sign * (one.i - other.i || one.j - other.j);
  const [mine, theirs] = [valueIn(one, column), valueIn(other, column)];
  if (mine === null || theirs === null) return Number(mine === null) - Number(theirs === null);
  if (typeof mine === "string" || typeof theirs === "string") return sign * String(mine).localeCompare(String(theirs));
  return sign * (mine - theirs);
}

function valueIn(row: AnswerRow, column: Exclude<Column, "pair">): number | string | null {
  switch (column) {
    case "verdict":
      // What is rejected stands between the yes that count and the no.
      return VERDICTS.indexOf(row.verdict) + (row.rejected ? 0.5 : 0);
    case "author":
      return row.person || row.author;
    case "landmarks":
      return row.landmarks;
    case "residual":
      return row.residual_px;
    case "role":
      return row.role;
    case "seconds":
      return row.seconds;
    case "place":
      return row.place;
  }
}
