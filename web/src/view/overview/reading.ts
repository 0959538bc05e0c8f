/** What a map says of the pair that is pointed at. */
import { readValue, type Cell } from "../../model/pairmap";
import type { Chart } from "./chart";
import type { MapState } from "./mapstate";

/** Say the value of one map, or those of several with their names. */
export function sayPointed(charts: readonly Chart[], mapState: MapState): string {
  const { pointed, numbers } = mapState;
  if (pointed === null) return "";
  const cells = charts.map((chart) => chart.cellAt(pointed.row, pointed.column));
  const first = cells[0];
  if (first === null || first === undefined) return "";
  const frames = sayFrames(first, numbers);
  if (frames === null) return `frame ${numbers[first.rows[0]]} with itself`;
  const values = charts.flatMap((chart, k) => {
    const [cell, map] = [cells[k], chart.map];
    if (cell === null || map === null) return [];
    const most = cell.rows[0] < cell.rows[1] || cell.columns[0] < cell.columns[1] ? "up to " : "";
    return [`${charts.length > 1 ? `${chart.kind} ` : ""}${most}${readValue(map, cell.byte)}`];
  });
  return `frames ${frames}: ${values.join(", ")}`;
}

function sayFrames({ rows, columns }: Cell, numbers: readonly number[]): string | null {
  if (rows[0] === columns[0] && rows[1] === columns[1] && rows[0] === rows[1]) return null;
  const span = ([from, to]: readonly [number, number]) =>
    from === to ? `${numbers[from]}` : `${numbers[from]}–${numbers[to]}`;
  const [earlier, later] = rows[0] <= columns[0] ? [rows, columns] : [columns, rows];
  return `${span(earlier)} and ${span(later)}`;
}
