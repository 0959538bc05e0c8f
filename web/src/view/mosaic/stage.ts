/** The canvas of the mosaic: the picture of the frames, marks above it; drawn when something changed. */
import { rampColour, shareOf } from "../../model/colour";
import type { State } from "../../model/messages";
import type { Mask } from "../../model/mosaicmask";
import { asAffine } from "../../model/mosaicview";
import type { Size } from "../../model/polygon";
import type { App } from "../../state/app";
import { drawOverlay, type Overlay } from "./overlay";
import { Painter, type Appearance } from "./painter";
import { Scene } from "./scene";

/** Of 256. */
const TINT = 184;

export class Stage {
  readonly scene = new Scene();
  readonly #painter: Painter;
  readonly #context: CanvasRenderingContext2D;
  readonly #observer: ResizeObserver;
  #sources = ""; // of the pictures: they are fetched again only where these are others
  #content = 0; // counts what changes the look of frames that do not move
  #screen: Size = { width: 1, height: 1 };
  #density = 1;
  #request = 0;
  #tints: { key: string; colours: Uint32Array } | null = null;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly app: App,
    private readonly overlay: () => Overlay,
  ) {
    this.#context = canvas.getContext("2d", { alpha: false })!;
    const failed = (explanation: string) => app.say(`${explanation}; reload the page.`, "warning");
    this.#painter = new Painter(() => this.redraw(), failed);
    this.#observer = new ResizeObserver(() => this.#resize());
    this.#observer.observe(canvas);
  }

  get screen(): Size {
    return this.#screen;
  }

  /** Where frames show the scene; null where they do so everywhere, and before that is known. */
  get mask(): Mask | null {
    return this.#painter.mask;
  }

  /** Fetch the pictures of a sequence that has been prepared. */
  show(state: State, numbers: readonly number[]): void {
    const sources = JSON.stringify([state.sheets, state.width, state.height, state.usable, state.folder, state.masked]);
    if (sources === this.#sources) return;
    this.#sources = sources;
    this.#painter.open(state, numbers, this.app.api);
  }

  /** Draw soon; what is asked for until then is drawn together. */
  redraw(): void {
    this.#request ||= requestAnimationFrame((now) => this.#tick(now));
  }

  /** Frames look otherwise than they did. */
  repaint(): void {
    this.#content++;
    this.redraw();
  }

  drawThumbnail(place: number, canvas: HTMLCanvasElement): void {
    this.#painter.drawThumbnail(place, canvas);
  }

  stop(): void {
    cancelAnimationFrame(this.#request);
    this.#observer.disconnect();
    this.#painter.stop();
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    this.#screen = { width, height };
    this.#density = this.#painter.densityFor(this.#screen);
    this.canvas.width = Math.round(width * this.#density);
    this.canvas.height = Math.round(height * this.#density);
    this.scene.resize(this.#screen);
    // At once: a canvas that was resized is empty.
    this.#tick(performance.now());
  }

  #tick(now: number): void {
    cancelAnimationFrame(this.#request);
    this.#request = 0;
    this.scene.advance(now);
    if (this.scene.mosaic !== null) this.#painter.suit(this.#appearance(), this.scene.view, this.#screen);
    this.#compose();
    if (this.scene.moving) this.redraw();
  }

  #compose(): void {
    const context = this.#context;
    const { scene } = this;
    const overlay = this.overlay();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = overlay.theme.ground;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.#painter.show(context, scene.view, this.#density);
    context.setTransform(this.#density, 0, 0, this.#density, 0, 0);
    // Marks where the picture has the frames, which may lag behind by a moment.
    const quads = this.#painter.quads?.length === scene.quads.length ? this.#painter.quads : scene.quads;
    const plane = { quads, view: scene.view, field: this.#painter.field };
    if (scene.mosaic !== null) drawOverlay(context, plane, scene.mosaic, overlay, this.#screen);
    this.canvas.dataset.screenFromMosaic = asAffine(scene.view).join(",");
  }

  #appearance(): Appearance {
    const { scene } = this;
    const { mode, theme } = this.overlay();
    const uncertain = mode === "uncertainty";
    const version = `${scene.version} ${this.#content} ${uncertain}`;
    const tints = uncertain ? this.#tintsOf() : null;
    return { quads: scene.quads, version, blank: packColour(theme.line), tints, tint: TINT, moving: scene.moving };
  }

  /** Colours of the frames by their uncertainty. */
  #tintsOf(): Uint32Array {
    const { mosaic } = this.scene;
    const { sigma } = this.overlay();
    const key = `${mosaic?.revision} ${JSON.stringify(sigma)}`;
    if (this.#tints?.key !== key) {
      const colours = (mosaic?.sigma_px ?? []).map((value) => pack(...rampColour(shareOf(value, sigma))));
      this.#tints = { key, colours: Uint32Array.from(colours) };
    }
    return this.#tints.colours;
  }
}

/** A colour as the painter wants it, from a style's rgb(…). */
function packColour(style: string): number {
  const [red, green, blue] = (style.match(/[\d.]+/g) ?? ["128", "128", "128"]).map(Number);
  return pack(red, green, blue);
}

function pack(red: number, green: number, blue: number): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
