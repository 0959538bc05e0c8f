/** The keyboard in a map: arrows move from cell to cell, + and - zoom about it, 0 shows all, Enter looks. */
import { revealCell, showAll, zoomMap } from "../../model/pairmap";
import type { Chart } from "./chart";
import type { Sight } from "./sight";

const FAST = 10;
const ZOOM = 1.5;

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

export function handleMapKeys(chart: Chart, sight: Sight, changed: () => void, look: () => void): void {
  chart.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const total = sight.numbers.length;
    const bound = (place: number) => Math.max(0, Math.min(total - 1, Math.floor(place)));
    const { view } = sight;
    const middle = { row: bound(view.row + view.frames / 2), column: bound(view.column + view.frames / 2) };
    const pointed = sight.pointed ?? middle;
    const arrow = ARROWS[event.key];
    const zoom = (factor: number) => {
      const [right, down] = [pointed.column + 0.5 - view.column, pointed.row + 0.5 - view.row];
      sight.view = zoomMap(view, right / view.frames, down / view.frames, factor, total);
    };
    if (arrow !== undefined) {
      const step = chart.framesPerCell * (event.shiftKey ? FAST : 1);
      sight.pointed = { row: bound(pointed.row + step * arrow[0]), column: bound(pointed.column + step * arrow[1]) };
      sight.view = revealCell(view, sight.pointed.row, sight.pointed.column, total);
    } else if (event.key === "+" || event.key === "=") zoom(ZOOM);
    else if (event.key === "-") zoom(1 / ZOOM);
    else if (event.key === "0") sight.view = showAll(total);
    else if (event.key === "Enter") look();
    else return;
    event.preventDefault();
    event.stopPropagation();
    changed();
  });
}
