/** Which frames lie where, and what of them is on the screen: both move to their new places in a short while. */
import type { LensNumbers, LiveMosaic } from "../../model/messages";
import { boxOfAll, ease, interpolate, layOut, sameFrames, type Quads } from "../../model/mosaic";
import { fit, pan, viewBetween, zoomAbout, type View } from "../../model/mosaicview";
import type { Point } from "../../model/affine";
import type { Size } from "../../model/polygon";

const DURATION_MS = 600;
const MARGIN = 14;
/** CSS px a pixel of the mosaic. */
const CLOSEST = 8;

export class Scene {
  mosaic: LiveMosaic | null = null;
  /** As drawn now. */
  quads: Quads = new Float64Array();
  view: View = { scale: 1, x: 0, y: 0 };
  frame: Size = { width: 1, height: 1 };
  /** Counts what moves frames, so that others see that they have to paint anew. */
  version = 0;

  #screen: Size = { width: 1, height: 1 };
  #reserved = 0;
  #target: Quads = this.quads;
  #motion: { began: number; quads: Quads; view: View } | null = null;
  /** The whole mosaic is shown, also when it grows, until the person looks at a part of it. */
  #whole = true;

  get moving(): boolean {
    return this.#motion !== null;
  }

  /** Take the frames' new places; they move there, unless the person wants no motion or they are other frames. */
  take(mosaic: LiveMosaic, frame: Size, lens: LensNumbers | null, now: number): void {
    const same = this.mosaic !== null && sameFrames(this.mosaic, mosaic);
    if (this.mosaic === mosaic && this.frame.width === frame.width && this.frame.height === frame.height) return;
    this.mosaic = mosaic;
    this.frame = frame;
    this.#target = layOut(mosaic, frame, lens);
    this.#motion = same && !prefersStillness() ? { began: now, quads: this.quads, view: this.view } : null;
    if (!same) this.#whole = true;
    if (this.#motion === null) {
      this.quads = this.#target;
      if (this.#whole) this.view = this.#fitted();
    }
    this.version++;
  }

  resize(screen: Size): void {
    // What was in the middle stays there.
    this.view = pan(this.view, (screen.width - this.#screen.width) / 2, (screen.height - this.#screen.height) / 2);
    this.#screen = screen;
    if (this.#whole) this.view = this.#fitted();
  }

  /** Keep the whole mosaic clear of so many CSS px at the bottom of the screen. */
  reserve(px: number): void {
    this.#reserved = px;
    if (this.#whole) this.view = this.#fitted();
  }

  /** Go on with the motion. */
  advance(now: number): void {
    if (this.#motion === null) return;
    const share = ease((now - this.#motion.began) / DURATION_MS);
    this.quads = interpolate(this.#motion.quads, this.#target, share);
    if (this.#whole) this.view = viewBetween(this.#motion.view, this.#fitted(), share);
    if (share >= 1) this.#motion = null;
    this.version++;
  }

  pan(dx: number, dy: number): void {
    this.#whole = false;
    this.view = pan(this.view, dx, dy);
  }

  zoom(at: Point, factor: number): void {
    if (this.mosaic === null) return;
    this.#whole = false;
    this.view = zoomAbout(this.view, at, factor, [Math.min(0.5 * this.#fitted().scale, CLOSEST), CLOSEST]);
  }

  showAll(): void {
    this.#whole = true;
    this.view = this.#fitted();
  }

  #fitted(): View {
    if (this.mosaic === null || this.#target.length === 0) return this.view;
    const { width, height } = this.#screen;
    return fit(boxOfAll(this.#target), { width, height: height - this.#reserved }, MARGIN);
  }
}

function prefersStillness(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
