/** The mask of the frames, fetched once: its outline, and frames without what it hides. */
import { fieldOf } from "../model/field";
import type { State } from "../model/messages";
import type { Polygon } from "../model/polygon";
import { outlineOf } from "../model/polygon";
import type { Api } from "./api";

export class FieldOfView {
  #outline: Promise<Polygon> | null = null;
  #mask: ImageBitmap | null = null;
  readonly #cut = new WeakMap<ImageBitmap, ImageBitmap>();

  constructor(private readonly api: Api) {}

  /** Return the outline of what frames show; the whole frame where there is no mask. */
  outline(state: State): Promise<Polygon> {
    if (!state.masked) return Promise.resolve(outlineOf(state));
    this.#outline ??= this.#fetch(state).catch(() => {
      // Asked again with the next pair; this one is shown whole.
      this.#outline = null;
      return outlineOf(state);
    });
    return this.#outline;
  }

  /** Return a frame that is transparent where it does not show the scene. */
  cut(picture: ImageBitmap): ImageBitmap {
    if (this.#mask === null) return picture;
    const known = this.#cut.get(picture);
    if (known !== undefined) return known;
    const { width, height } = picture;
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d")!;
    context.drawImage(this.#mask, 0, 0, width, height);
    context.globalCompositeOperation = "source-in";
    context.drawImage(picture, 0, 0);
    const cut = canvas.transferToImageBitmap();
    this.#cut.set(picture, cut);
    return cut;
  }

  async #fetch(state: State): Promise<Polygon> {
    const response = await fetch(this.api.maskAddress);
    if (!response.ok) throw new Error(`the mask cannot be had: ${response.status}`);
    const mask = await createImageBitmap(await response.blob());
    const canvas = new OffscreenCanvas(mask.width, mask.height);
    const context = canvas.getContext("2d")!;
    context.drawImage(mask, 0, 0);
    const pixels = context.getImageData(0, 0, mask.width, mask.height);
    const showing = Array.from({ length: mask.width * mask.height }, (_, k) => pixels.data[4 * k]! > 127);
    // White and black become opaque and transparent.
    showing.forEach((shows, k) => (pixels.data[4 * k + 3] = shows ? 255 : 0));
    context.putImageData(pixels, 0, 0);
    this.#mask = canvas.transferToImageBitmap();
    return fieldOf(showing, mask, state);
  }
}
