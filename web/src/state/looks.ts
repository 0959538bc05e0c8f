/** How the two frames are shown: channel, highlights, local contrast, light; of both or of each by itself. */
import type { Look } from "../model/contrast";
import { develop, isPlain, PLAIN } from "../model/contrast";
import type { Side } from "../model/messages";
import type { FieldOfView } from "./fieldofview";
import { Cell } from "./observable";

export type Sides = Side | "both";

export class Looks {
  readonly current = new Cell<Readonly<Record<Side, Look>>>({ i: PLAIN, j: PLAIN });
  /** Which frames the next change is about. */
  readonly sides = new Cell<Sides>("both");
  /** The latest look of each frame: to make one takes longer than to paint it. */
  readonly #developed = new WeakMap<ImageBitmap, { look: Look; picture: ImageBitmap }>();

  constructor(private readonly fieldOfView: FieldOfView) {}

  change(change: Partial<Look>): void {
    const { i, j } = this.current.value;
    const sides = this.sides.value;
    this.current.set({
      i: sides === "j" ? i : { ...i, ...change },
      j: sides === "i" ? j : { ...j, ...change },
    });
  }

  /** The look of the frames that the next change is about. */
  get shown(): Look {
    return this.current.value[this.sides.value === "j" ? "j" : "i"];
  }

  /** Switch local contrast of the frames that are chosen; returns whether it is on now. */
  toggleContrast(): boolean {
    const on = !this.shown.contrast;
    this.change({ contrast: on });
    return on;
  }

  /** Return a frame as it is to be shown on a side. */
  picture(side: Side, picture: ImageBitmap): ImageBitmap {
    const look = this.current.value[side];
    if (isPlain(look)) return picture;
    const known = this.#developed.get(picture);
    if (known?.look === look) return known.picture;
    const { width, height } = picture;
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d", { willReadFrequently: true })!;
    // What the mask hides must not count for the contrast.
    context.drawImage(this.fieldOfView.cut(picture), 0, 0);
    const pixels = context.getImageData(0, 0, width, height);
    develop(pixels.data, width, height, look);
    context.putImageData(pixels, 0, 0);
    const developed = canvas.transferToImageBitmap();
    this.#developed.set(picture, { look, picture: developed });
    return developed;
  }
}
