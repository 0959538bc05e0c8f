/** The picture of the frames behind the screen, and those who paint the next one.
 *
 * The picture is larger than the screen. A pan or a zoom shows it moved or stretched at once; when it no longer
 * reaches, or is stretched, or frames have changed, the next is ordered, and takes its place when it comes.
 */
import type { State } from "../../model/messages";
import type { Quads } from "../../model/mosaic";
import { fieldInSquare, SQUARE } from "../../model/field";
import type { Polygon } from "../../model/polygon";
import type { Mask } from "../../model/mosaicmask";
import { pan, type View } from "../../model/mosaicview";
import type { Size } from "../../model/polygon";
import type { Api } from "../../state/api";
import type { Order, Reply } from "./paintmessages";

/** What the frames look like, apart from where they are seen from. */
export interface Appearance {
  quads: Quads;
  /** Two of the same version look the same. */
  version: string;
  blank: number;
  tints: Uint32Array | null;
  tint: number;
  moving: boolean;
}

/** Of the screen, on each side. */
const MARGIN = 0.15;
const MOST_PX = 6e6;
/** While frames move: what is seen for a moment need not be sharp, but must come quickly. */
const MOST_MOVING_PX = 1e6;

interface Picture {
  readonly number: number;
  /** Of a screen as large as the picture, CSS px. */
  readonly view: View;
  readonly size: Size;
  /** Px of the picture a CSS px. */
  readonly ratio: number;
  readonly quads: Quads;
  readonly version: string;
}

export class Painter {
  readonly #worker = new Worker(new URL("./paintworker.ts", import.meta.url), { type: "module" });
  readonly #canvas = new OffscreenCanvas(1, 1);
  readonly #context = this.#canvas.getContext("2d")!;
  readonly #thumbnails = new Map<number, (pixels: Uint32Array<ArrayBuffer>) => void>();
  #shown: Picture | null = null;
  #ordered: Picture | null = null;
  #orders = 0;
  #arrivals = 0;
  #mask: Mask | null = null;
  #field = SQUARE;

  /** `changed`: there is something new to draw. */
  constructor(
    private readonly changed: () => void,
    private readonly failed: (explanation: string) => void,
  ) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => this.#hear(data));
    this.#worker.addEventListener("error", ({ message }) => this.failed(`the mosaic cannot be drawn: ${message}`));
  }

  open({ sheets, usable, width, height, masked }: State, numbers: readonly number[], api: Api): void {
    if (sheets === null || sheets === undefined || usable === 0) return;
    // A thread has no page that addresses could be relative to.
    const absolute = (address: string) => new URL(address, document.baseURI).href;
    this.#order({
      kind: "open",
      sheets,
      frame: { width, height },
      sheetAddresses: Array.from({ length: sheets.count }, (_, k) => absolute(api.sheetAddress(k))),
      // Beside the folder of the sheets.
      maskAddress: masked ? absolute(api.maskAddress) : null,
      frameAddresses: numbers.map((number) => absolute(api.frameAddress(number))),
    });
    this.#arrivals++;
  }

  /** How many px a CSS px can have on a screen. */
  densityFor(screen: Size): number {
    const larger = screen.width * screen.height * (1 + 2 * MARGIN) ** 2;
    return Math.min(2, devicePixelRatio, Math.sqrt(MOST_PX / larger));
  }

  /** The frames' corners as they are on the picture. */
  get quads(): Quads | null {
    return this.#shown?.quads ?? null;
  }

  /** Where frames show the scene; null where they do so everywhere, and before that is known. */
  /** What frames show, in the square of side 1 that each of them is. */
  get field(): Polygon {
    return this.#field;
  }

  get mask(): Mask | null {
    return this.#mask;
  }

  /** Order a picture if the one that is shown does not suit; one at a time. */
  suit(appearance: Appearance, view: View, screen: Size): void {
    const version = `${appearance.version} ${this.#arrivals}`;
    if (this.#ordered !== null || this.#suits(version, view, screen)) return;
    const margin = appearance.moving ? 0 : MARGIN;
    const quick = Math.sqrt(MOST_MOVING_PX / (screen.width * screen.height));
    const ratio = Math.min(this.densityFor(screen), appearance.moving ? quick : Infinity);
    const [left, top] = [margin * screen.width, margin * screen.height].map((px) => Math.round(px * ratio) / ratio);
    const width = Math.ceil((screen.width + 2 * left) * ratio);
    const height = Math.ceil((screen.height + 2 * top) * ratio);
    const { quads, blank, tints, tint, moving } = appearance;
    const number = ++this.#orders;
    const wide = pan(view, left, top);
    const size = { width: width / ratio, height: height / ratio };
    this.#ordered = { number, view: wide, size, ratio, quads, version };
    const inPx = { scale: ratio * wide.scale, x: ratio * wide.x, y: ratio * wide.y };
    const commission = { number, quads, view: inPx, width, height, blank, tints, tint, still: !moving };
    this.#order({ kind: "paint", commission });
  }

  /** Draw the picture as a view shows it, on a canvas of `density` px a CSS px. */
  show(context: CanvasRenderingContext2D, view: View, density: number): void {
    if (this.#shown === null) return;
    const { view: then, ratio } = this.#shown;
    const stretch = view.scale / then.scale;
    const [x, y] = [density * (view.x - stretch * then.x), density * (view.y - stretch * then.y)];
    const scale = (density * stretch) / ratio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    // A large picture is stretched coarsely: the sharp one is on its way.
    context.imageSmoothingEnabled = this.#canvas.width * this.#canvas.height < MOST_MOVING_PX;
    if (scale === 1) context.drawImage(this.#canvas, Math.round(x), Math.round(y));
    else context.drawImage(this.#canvas, x, y, scale * this.#canvas.width, scale * this.#canvas.height);
  }

  /** A frame's small picture, for a list. */
  drawThumbnail(place: number, canvas: HTMLCanvasElement): void {
    const { width, height } = canvas;
    const number = ++this.#orders;
    const context = canvas.getContext("2d")!;
    this.#thumbnails.set(number, (pixels) => context.putImageData(imageOf(pixels, width, height), 0, 0));
    this.#order({ kind: "thumbnail", thumbnail: { number, place, width, height } });
  }

  stop(): void {
    this.#worker.terminate();
  }

  #suits(version: string, view: View, screen: Size): boolean {
    const shown = this.#shown;
    if (shown === null || shown.version !== version || shown.view.scale !== view.scale) return false;
    if (shown.ratio !== this.densityFor(screen)) return false;
    const [x, y] = [view.x - shown.view.x, view.y - shown.view.y];
    return x <= 0 && y <= 0 && x + shown.size.width >= screen.width && y + shown.size.height >= screen.height;
  }

  #hear(reply: Reply): void {
    if (reply.kind === "arrived") {
      this.#arrivals++;
      if (reply.mask !== null && this.#mask === null) {
        this.#field = fieldInSquare(Array.from(reply.mask.depths, (depth) => depth >= 0), reply.mask);
      }
      this.#mask = reply.mask;
    } else if (reply.kind === "failed") this.failed(reply.explanation);
    else if (reply.kind === "thumbnail") {
      this.#thumbnails.get(reply.number)?.(reply.pixels);
      this.#thumbnails.delete(reply.number);
      return;
    } else if (reply.number === this.#ordered?.number) this.#hang(this.#ordered, reply.pixels);
    this.changed();
  }

  #hang(picture: Picture, pixels: Uint32Array<ArrayBuffer>): void {
    const width = Math.round(picture.size.width * picture.ratio);
    const height = Math.round(picture.size.height * picture.ratio);
    if (this.#canvas.width !== width) this.#canvas.width = width;
    if (this.#canvas.height !== height) this.#canvas.height = height;
    this.#context.putImageData(imageOf(pixels, width, height), 0, 0);
    this.#shown = picture;
    this.#ordered = null;
  }

  #order(order: Order): void {
    this.#worker.postMessage(order);
  }
}

function imageOf(pixels: Uint32Array<ArrayBuffer>, width: number, height: number): ImageData {
  return new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
}
