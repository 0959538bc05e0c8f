/** One map of all pairs on its canvas: fetched as finely as the screen shows it. */
import type { MapKind, PairMap } from "../../model/messages";
import { cellAt, colourCells, formatValue, open, showAll, windowFor } from "../../model/pairmap";
import type { Cell, OpenMap } from "../../model/pairmap";
import type { Api } from "../../state/api";
import { makeColourBar } from "../mosaic/legend";
import { make } from "../make";
import { drawMarks } from "./mapmarks";
import type { MapState } from "./mapstate";

/** A map with its cells as a picture, a px each. */
interface Painted extends OpenMap {
  picture: OffscreenCanvas;
}

export class Chart {
  readonly canvas: HTMLCanvasElement;
  readonly figure: HTMLElement;
  readonly #legend = make("div", { class: "scale" });
  #side = 1;
  #legendWidth = 1;
  #whole: Painted | null = null;
  #part: Painted | null = null;
  #turn = 0;

  constructor(
    readonly kind: MapKind,
    words: string,
    private readonly api: Api,
    private readonly mapState: MapState,
    describedBy: string,
  ) {
    this.canvas = make("canvas", { tabindex: 0, role: "application", "aria-describedby": describedBy });
    this.canvas.dataset.testid = `map-${kind}`;
    const how = "Arrow keys move between pairs, plus and minus zoom, 0 shows all, Enter shows the pair.";
    this.canvas.setAttribute("aria-label", `Map of ${words} for all pairs of frames. ${how}`);
    this.figure = make("figure", {}, make("figcaption", {}, words), this.canvas, this.#legend);
  }

  get side(): number {
    return this.#side;
  }

  /** `legend`: how wide, CSS px. */
  resize(side: number, legend: number): void {
    if (side === this.#side && legend === this.#legendWidth) return;
    [this.#side, this.#legendWidth] = [side, legend];
    this.canvas.style.width = this.canvas.style.height = `${side}px`;
    this.canvas.width = this.canvas.height = Math.round(side * devicePixelRatio);
    this.#renderLegend();
  }

  /** Fetch what is in view; an answer that comes after the next request is dropped. */
  async renew(): Promise<void> {
    const turn = ++this.#turn;
    const { view, numbers, revision } = this.mapState;
    const total = numbers.length;
    const px = this.#side * devicePixelRatio;
    if (this.#whole?.map.revision !== revision) {
      const whole = paint(await this.api.pairMap(this.kind, windowFor(showAll(total), total, px)));
      if (turn !== this.#turn) return;
      this.#whole = whole;
      this.#part = null;
      this.#renderLegend();
      this.draw();
    }
    if (view.frames >= total || this.#whole.map.frames_per_cell === 1) {
      this.#part = null;
      return;
    }
    const part = paint(await this.api.pairMap(this.kind, windowFor(view, total, px)));
    if (turn !== this.#turn) return;
    this.#part = part;
    this.draw();
  }

  /** The cell at a pair, as finely as it is known. */
  cellAt(row: number, column: number): Cell | null {
    const total = this.mapState.numbers.length;
    const inPart = this.#part === null ? null : cellAt(this.#part, row, column, total);
    return inPart ?? (this.#whole === null ? null : cellAt(this.#whole, row, column, total));
  }

  /** Frames a side of a cell in view. */
  get framesPerCell(): number {
    return (this.#part ?? this.#whole)?.map.frames_per_cell ?? 1;
  }

  /** The map whose scale the colours have. */
  get map(): PairMap | null {
    return (this.#part ?? this.#whole)?.map ?? null;
  }

  draw(): void {
    const context = this.canvas.getContext("2d")!;
    const { view, theme } = this.mapState;
    const cssPx = this.#side / Math.max(1, view.frames);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, this.#side, this.#side);
    context.imageSmoothingEnabled = false;
    for (const painted of [this.#whole, this.#part]) {
      if (painted === null) continue;
      const { first_row, first_column, frames_per_cell, rows, columns } = painted.map;
      const [x, y] = [(first_column - view.column) * cssPx, (first_row - view.row) * cssPx];
      const cell = frames_per_cell * cssPx;
      context.drawImage(painted.picture, x, y, columns * cell, rows * cell);
    }
    drawMarks(context, this.mapState, this.#side, this.framesPerCell);
  }

  #renderLegend(): void {
    const map = this.#whole?.map;
    if (map === undefined) return;
    const format = (value: number) => formatValue(this.kind, value).replace(/ px²?$/, "");
    const units: Record<MapKind, string> = { overlap: "probability", informativeness: "px", reward: "px²" };
    const title = [units[this.kind], map.logarithmic ? "logarithmic" : ""].filter((part) => part !== "").join(", ");
    this.#legend.replaceChildren(makeColourBar(title, map, this.#legendWidth, format));
  }
}

function paint(map: PairMap): Painted {
  const opened = open(map);
  const picture = new OffscreenCanvas(map.columns, map.rows);
  picture.getContext("2d")!.putImageData(new ImageData(colourCells(opened), map.columns, map.rows), 0, 0);
  return { ...opened, picture };
}
