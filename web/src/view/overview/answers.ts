/** The table of answers: sorted, filtered, each can be opened again or removed. */
import type { AnswerRow, Author, Verdict } from "../../model/messages";
import { arrange, FIRST_FILTER, FIRST_ORDER, nextOrder, rowsOnScreen, type Column } from "../../model/table";
import { personWords, plural } from "../../model/words";
import type { App } from "../../state/app";
import { LONGEST_NAME } from "../../state/person";
import { make } from "../make";
import { rem } from "../mosaic/rem";
import { COLUMNS, makeRow } from "./row";

export function mountAnswers(host: HTMLElement, app: App): () => void {
  let order = FIRST_ORDER;
  let filter = FIRST_FILTER;
  let rows: AnswerRow[] = [];
  let made = new WeakMap<AnswerRow, HTMLTableRowElement>();

  const count = make("span", { class: "count", "aria-live": "polite" });
  const verdicts = makeSelect("Answer", VERDICTS, (verdict) => refine({ verdict }));
  const authors = makeSelect<Author>("By", AUTHORS, (author) => refine({ author }));
  const chain = make("button", { type: "button", "aria-pressed": "false" }, "with chain");
  chain.title = "Also show the answers of the matcher before the first question";
  chain.addEventListener("click", () => {
    refine({ chain: !filter.chain });
    chain.setAttribute("aria-pressed", String(filter.chain));
  });
  const controls = make("header", {}, verdicts, authors, chain, makeName(app), count);

  const heads = COLUMNS.map(({ column, words, title }) => makeHead(column, words, title, () => sortBy(column)));
  const lastHead = make("th", { scope: "col" }, make("span", { class: "hidden" }, "Actions"));
  const headRow = make("tr", {}, ...heads, lastHead);
  const body = make("tbody");
  const caption = make("caption", { class: "hidden" }, "Answers");
  const table = make("table", { "data-testid": "answers-table" }, caption, make("thead", {}, headRow), body);
  const empty = make("p", { class: "empty" });
  const scroller = make("div", { class: "scroller", tabindex: -1 }, table, empty);
  const people = make("p", { class: "empty", "data-testid": "people" });
  host.append(make("div", { class: "answer-list" }, controls, people, scroller));

  const refine = (change: Partial<typeof filter>) => {
    filter = { ...filter, ...change };
    renew();
  };
  const sortBy = (column: Column) => {
    order = nextOrder(order, column);
    scroller.scrollTop = 0;
    renew();
  };

  const act = {
    open: (row: AnswerRow) => void app.look(row.i, row.j),
    remove: (row: AnswerRow) => void app.remove(row.i, row.j),
  };

  const renew = () => {
    rows = arrange(app.answers.value, filter, order);
    count.textContent = plural(rows.length, "answer");
    empty.hidden = rows.length > 0;
    empty.textContent = app.answers.value.length === 0 ? "No answers yet." : "No answer of this kind.";
    table.setAttribute("aria-rowcount", String(rows.length + 1));
    heads.forEach((head, k) => {
      const sorted = COLUMNS[k].column === order.column;
      head.setAttribute("aria-sort", !sorted ? "none" : order.descending ? "descending" : "ascending");
    });
    render();
  };

  /** Put the rows into the table that are on the screen, between two that stand for all the others. */
  const render = () => {
    const height = rowHeight();
    const { first, end } = rowsOnScreen(rows.length, height, scroller.scrollTop, scroller.clientHeight);
    const shown = rows.slice(first, end).map((row, k) => {
      const element = made.get(row) ?? makeRow(row, act);
      made.set(row, element);
      element.setAttribute("aria-rowindex", String(first + k + 2));
      return element;
    });
    const focus = focusIn(body);
    body.replaceChildren(spacer(first * height), ...shown, spacer((rows.length - end) * height));
    if (focus !== null) restoreFocus(body, focus);
  };

  scroller.addEventListener("scroll", render, { passive: true });
  const observer = new ResizeObserver(render);
  observer.observe(scroller);
  const endAnswers = app.answers.subscribe(() => {
    made = new WeakMap();
    renew();
  });
  const endPeople = app.state.subscribe((state) => {
    people.textContent = (state?.people ?? []).map(personWords).join(" ");
    people.hidden = people.textContent === "";
  });
  return () => {
    endAnswers();
    endPeople();
    observer.disconnect();
  };
}

const VERDICTS: readonly [Verdict | "contradicted", string][] = [
  ["yes", "yes"],
  ["no", "no"],
  ["unsure", "cannot tell"],
  ["contradicted", "contradicted"],
];
const AUTHORS: readonly [Author, string][] = [
  ["person", "a person"],
  ["matcher", "the matcher"],
];

function makeName({ person }: App): HTMLLabelElement {
  const input = make("input", { type: "text", maxlength: LONGEST_NAME, placeholder: "nobody", "data-testid": "person" });
  input.title = "Your name: it stands with every answer that you give from now on";
  input.value = person.name.value;
  input.addEventListener("change", () => person.rename(input.value));
  input.addEventListener("keydown", ({ key }) => (key === "Enter" || key === "Escape") && input.blur());
  return make("label", {}, "I am ", input);
}

function makeSelect<T extends string>(
  name: string,
  choices: readonly [T, string][],
  choose: (value: T | null) => void,
): HTMLLabelElement {
  const options = choices.map(([value, words]) => make("option", { value }, words));
  const select = make("select", {}, make("option", { value: "" }, "all"), ...options);
  select.addEventListener("change", () => choose(select.value === "" ? null : (select.value as T)));
  return make("label", {}, `${name} `, select);
}

function makeHead(column: Column, words: string, title: string, sort: () => void): HTMLTableCellElement {
  const button = make("button", { type: "button", title }, words);
  button.addEventListener("click", sort);
  return make("th", { scope: "col", class: `in-${column}` }, button);
}

function spacer(height: number): HTMLTableRowElement {
  const cell = make("td", { colspan: COLUMNS.length + 1 });
  cell.style.height = `${height}px`;
  const row = make("tr", { class: "spacer", "aria-hidden": "true" }, cell);
  row.hidden = height === 0;
  return row;
}

/** As the style sheet has it: larger where fingers press the buttons. */
function rowHeight(): number {
  return matchMedia("(pointer: coarse)").matches ? Math.max(3.4 * rem(), 48) : 2 * rem();
}

/** Which button of which row has the keyboard; null for none. */
interface Focus {
  pair: string;
  button: string;
  row: number;
}

function focusIn(body: HTMLElement): Focus | null {
  const active = document.activeElement;
  const row = active?.closest<HTMLTableRowElement>("tr[data-i]");
  if (!row || !body.contains(row)) return null;
  const button = active!.getAttribute("data-testid") ?? "";
  return { pair: `${row.dataset.i} ${row.dataset.j}`, button, row: row.sectionRowIndex };
}

/** Give the keyboard to the same row, or, where that is gone, to the one that took its place. */
function restoreFocus(body: HTMLTableSectionElement, focus: Focus): void {
  const rows = [...body.rows].filter((row) => row.dataset.i !== undefined);
  const same = rows.find((row) => `${row.dataset.i} ${row.dataset.j}` === focus.pair);
  const row = same ?? body.rows[Math.min(focus.row, rows.length)] ?? rows[0];
  row?.querySelector<HTMLElement>(`[data-testid="${focus.button}"]`)?.focus({ preventScroll: true });
}
