/** Paints at most once a frame of the screen, and only after a change. */
import type { Size } from "../../model/polygon";

export class Repainting {
  #pending = 0;

  constructor(private readonly paint: () => void) {}

  request(): void {
    if (this.#pending !== 0) return;
    this.#pending = requestAnimationFrame(() => {
      this.#pending = 0;
      this.paint();
    });
  }
}

/** Fit a canvas to its element and return its context, in CSS pixels. */
export function prepare(canvas: HTMLCanvasElement): Size & { context: CanvasRenderingContext2D } {
  const { clientWidth: width, clientHeight: height } = canvas;
  const density = window.devicePixelRatio;
  const [columns, rows] = [Math.round(width * density), Math.round(height * density)];
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns;
    canvas.height = rows;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}
