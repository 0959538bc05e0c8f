/** A row of the table of answers. */
import type { AnswerRow } from "../../model/messages";
import type { Column } from "../../model/table";
import { px, verdictWords } from "../../model/words";
import { make } from "../make";

export const COLUMNS: readonly { column: Column; words: string; title: string }[] = [
  { column: "pair", words: "Frames", title: "The two frames" },
  { column: "verdict", words: "Answer", title: "The answer" },
  { column: "residual", words: "Residual", title: "RMS distance between the landmarks on the mosaic, px" },
  { column: "author", words: "By", title: "Who answered" },
  { column: "landmarks", words: "Marks", title: "Number of landmarks" },
  { column: "role", words: "Role", title: "Why the pair was asked" },
  { column: "seconds", words: "Time", title: "Seconds that the answer took" },
  { column: "place", words: "No.", title: "Position in the log" },
];

export interface Acts {
  open(row: AnswerRow): void;
  remove(row: AnswerRow): void;
}

export function makeRow(row: AnswerRow, acts: Acts): HTMLTableRowElement {
  const pair = `frames ${row.i} and ${row.j}`;
  const open = make("button", { type: "button", "data-testid": "answer-open", "aria-label": `Open ${pair}` }, "Open");
  const remove = make("button", { type: "button", "data-testid": "answer-remove", "aria-label": `Remove ${pair}` });
  remove.title = "Remove";
  remove.append(make("span", { class: "long" }, "Remove"), make("span", { class: "short" }, "×"));
  open.addEventListener("click", () => acts.open(row));
  remove.addEventListener("click", () => acts.remove(row));
  const cells = COLUMNS.map(({ column }) => make("td", { class: `in-${column}` }, ...cellOf(row, column)));
  const element = make("tr", { "data-testid": "answer-row", "data-i": row.i, "data-j": row.j }, ...cells);
  element.append(make("td", { class: "acts" }, open, remove));
  element.classList.toggle("rejected", row.rejected);
  return element;
}

function cellOf(row: AnswerRow, column: Column): (Node | string)[] {
  switch (column) {
    case "pair":
      return [`${row.i} – ${row.j}`];
    case "verdict": {
      const mark = make("span", { class: `said ${row.rejected ? "rejected" : row.verdict}`, title: row.reason || null });
      const doubt = row.contradicted ? ", contradicted" : "";
      mark.textContent = row.rejected ? "rejected" : `${verdictWords(row.verdict)}${doubt}`;
      return [mark];
    }
    case "author":
      return [row.person || row.author];
    case "landmarks":
      return [row.landmarks > 0 ? String(row.landmarks) : "–"];
    case "residual":
      return [row.residual_px == null ? "–" : `${px(row.residual_px)} px`];
    case "role":
      return [row.role];
    case "seconds":
      return [row.seconds > 0 ? `${px(row.seconds)} s` : "–"];
    case "place":
      return [String(row.place)];
  }
}
