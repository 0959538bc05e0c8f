/** The finished mosaic on a canvas: move, zoom to single pixels, compare with the mosaic by the chain alone. */
import type { Point } from "../../model/affine";
import type { FinishedMosaic } from "../../model/messages";
import type { Size } from "../../model/polygon";
import type { Box, Camera } from "../../model/pyramid";
import { boxOfPyramid, fitCamera, panCamera, pixelAt, unite, zoomCamera } from "../../model/pyramid";
import type { Api } from "../../state/api";
import { make } from "../make";
import { watchGestures } from "../mosaic/gestures";
import { TileLayer } from "./tiles";

export interface Shown {
  /** Of the screen's width: left of it is the mosaic by the chain alone. */
  readonly divider: number;
  /** Device pixels for each pixel of the mosaic. */
  readonly zoom: number;
  readonly pixel: Point | null;
  /** Whether everything on the screen is there in full detail. */
  readonly isComplete: boolean;
}

export class Stage {
  readonly canvas = make("canvas", { class: "finished-stage", tabindex: 0, "data-testid": "finished-mosaic" });
  readonly #context = this.canvas.getContext("2d")!;
  readonly #now: TileLayer;
  readonly #before: TileLayer | null;
  readonly #all: Box;
  readonly #resizing = new ResizeObserver(() => this.#resize());
  readonly #stopGestures: () => void;
  #camera: Camera | null = null;
  /** The person has not moved: the whole mosaic stays in the window, whatever its size. */
  #isWhole = true;
  #divider = 0;
  #pointer: Point | null = null;
  #frame = 0;

  constructor(
    { edition, now, before }: FinishedMosaic,
    api: Api,
    private readonly onShown: (shown: Shown) => void,
    onFailure: () => void,
  ) {
    const layer = (version: "now" | "before", pyramid: typeof now) =>
      new TileLayer(pyramid, (tile) => api.tileAddress(edition, version, tile), () => this.#paintSoon(), onFailure);
    this.#now = layer("now", now);
    this.#before = before === null ? null : layer("before", before);
    this.#all = before === null ? boxOfPyramid(now) : unite([boxOfPyramid(now), boxOfPyramid(before)]);
    this.canvas.setAttribute("aria-label", "the finished mosaic; arrows move it, + and - zoom");
    this.canvas.setAttribute("role", "img");
    this.#stopGestures = watchGestures(this.canvas, {
      pan: (dx, dy) => this.pan({ x: dx, y: dy }),
      zoom: (at, factor) => this.zoom(factor, at),
      tap: () => this.canvas.focus(),
      hover: (at) => {
        this.#pointer = at;
        this.#paintSoon();
      },
    });
    this.#resizing.observe(this.canvas);
  }

  end(): void {
    cancelAnimationFrame(this.#frame);
    this.#resizing.disconnect();
    this.#stopGestures();
    this.#now.end();
    this.#before?.end();
  }

  /** Show the mosaic by the chain alone on this share of the width. */
  divide(share: number): void {
    this.#divider = share;
    this.#paintSoon();
  }

  fit(): void {
    this.#isWhole = true;
    this.#camera = fitCamera(this.#divider > 0 ? this.#all : boxOfPyramid(this.#now.pyramid), this.#screen);
    this.#paintSoon();
  }

  /** Zoom such that a pixel of the mosaic is a pixel of the screen. */
  actual(): void {
    this.#zoomTo(this.#now.pyramid.scale, null);
  }

  /** Zoom about a place in CSS px; by default about the middle. */
  zoom(factor: number, at: Point | null = null): void {
    if (this.#camera !== null) this.#zoomTo(this.#camera.zoom * factor, at);
  }

  /** Move the mosaic by so many CSS px. */
  pan({ x, y }: Point): void {
    if (this.#camera === null) return;
    this.#isWhole = false;
    const ratio = window.devicePixelRatio;
    this.#camera = panCamera(this.#camera, { x: x * ratio, y: y * ratio }, this.#all);
    this.#paintSoon();
  }

  #zoomTo(zoom: number, at: Point | null): void {
    if (this.#camera === null) return;
    this.#isWhole = false;
    const ratio = window.devicePixelRatio;
    const screen = this.#screen;
    const place = at === null ? { x: screen.width / 2, y: screen.height / 2 } : { x: at.x * ratio, y: at.y * ratio };
    const least = Math.min(this.#now.pyramid.scale, fitCamera(this.#all, screen).zoom / 2);
    this.#camera = panCamera(zoomCamera(this.#camera, screen, place, zoom, least), { x: 0, y: 0 }, this.#all);
    this.#paintSoon();
  }

  get #screen(): Size {
    return { width: this.canvas.width, height: this.canvas.height };
  }

  #resize(): void {
    const ratio = window.devicePixelRatio;
    const { width, height } = this.canvas.getBoundingClientRect();
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    if (this.#isWhole) this.fit();
    this.#paint();
  }

  #paintSoon(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const [context, camera, screen] = [this.#context, this.#camera, this.#screen];
    if (camera === null) return;
    context.clearRect(0, 0, screen.width, screen.height);
    const edge = this.#before === null ? 0 : Math.round(this.#divider * screen.width);
    let isComplete = true;
    const paint = (layer: TileLayer, left: number, right: number) => {
      if (right <= left) return;
      context.save();
      context.beginPath();
      context.rect(left, 0, right - left, screen.height);
      context.clip();
      isComplete = layer.paint(context, camera, screen) && isComplete;
      context.restore();
    };
    paint(this.#now, edge, screen.width);
    if (this.#before !== null) paint(this.#before, 0, edge);
    const ratio = window.devicePixelRatio;
    const place = this.#pointer === null ? null : { x: this.#pointer.x * ratio, y: this.#pointer.y * ratio };
    const { pyramid } = this.#now;
    const pixel = place === null || place.x < edge ? null : pixelAt(pyramid, camera, screen, place);
    this.onShown({ divider: this.#divider, zoom: camera.zoom / pyramid.scale, pixel, isComplete });
  }
}
