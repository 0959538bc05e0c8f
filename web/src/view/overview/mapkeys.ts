/** The keyboard in a map: arrows move from cell to cell, + and - zoom about it, 0 shows all, Enter looks. */
import { revealCell, showAll, zoomMap } from "../../model/pairmap";
import type { Chart } from "./chart";
import type { MapState } from "./mapstate";

const FAST = 10;
const ZOOM = 1.5;

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

export function handleMapKeys(chart: Chart, mapState: MapState, changed: () => void, look: () => void): void {
  chart.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const total = mapState.numbers.length;
    const bound = (place: number) => Math.max(0, Math.min(total - 1, Math.floor(place)));
    const { view } = mapState;
    const middle = { row: bound(view.row + view.frames / 2), column: bound(view.column + view.frames / 2) };
    const pointed = mapState.pointed ?? middle;
    const arrow = ARROWS[event.key];
    const zoom = (factor: number) => {
      const [right, down] = [pointed.column + 0.5 - view.column, pointed.row + 0.5 - view.row];
      mapState.view = zoomMap(view, right / view.frames, down / view.frames, factor, total);
    };
    if (arrow !== undefined) {
      const step = chart.framesPerCell * (event.shiftKey ? FAST : 1);
      mapState.pointed = { row: bound(pointed.row + step * arrow[0]), column: bound(pointed.column + step * arrow[1]) };
      mapState.view = revealCell(view, mapState.pointed.row, mapState.pointed.column, total);
    } else if (event.key === "+" || event.key === "=") zoom(ZOOM);
    else if (event.key === "-") zoom(1 / ZOOM);
    else if (event.key === "0") mapState.view = showAll(total);
    else if (event.key === "Enter") look();
    else return;
    event.preventDefault();
    event.stopPropagation();
    changed();
  });
}
