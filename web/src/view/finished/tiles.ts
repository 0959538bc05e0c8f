/** Paints a pyramid of tiles on a canvas, and loads the tiles that are missing. */
import type { TilePyramid } from "../../model/messages";
import type { Size } from "../../model/polygon";
import type { Camera, Tile } from "../../model/pyramid";
import { levelFor, partOf, placeOnScreen, visibleTiles } from "../../model/pyramid";

/** Decoded tiles that are kept: about a quarter of a megabyte each. */
const MOST_TILES = 600;
/** From this size on, a pixel of the mosaic is drawn as a square. */
const SQUARES_FROM = 3;

export class TileLayer {
  readonly #tiles = new Map<string, ImageBitmap | "coming" | "failed">();
  #isEnded = false;

  constructor(
    readonly pyramid: TilePyramid,
    private readonly addressOf: (tile: Tile) => string,
    private readonly onLoad: () => void,
    private readonly onFailure: () => void,
  ) {}

  /** Draw what the camera sees, and return whether all of it is there. */
  paint(context: CanvasRenderingContext2D, camera: Camera, screen: Size): boolean {
    const { pyramid } = this;
    context.imageSmoothingEnabled = camera.zoom / pyramid.scale < SQUARES_FROM;
    context.imageSmoothingQuality = "high";
    let isComplete = true;
    for (const tile of visibleTiles(pyramid, levelFor(pyramid, camera.zoom), camera, screen)) {
      const { left, top, right, bottom } = placeOnScreen(pyramid, tile, camera, screen);
      if (this.#load(tile) === null) isComplete = false;
      for (let up = 0; ; up++) {
        const part = partOf(pyramid, tile, up);
        if (part === null) break;
        const picture = up === 0 ? this.#picture(tile) : this.#picture(part.tile);
        if (picture === null) continue;
        const { left: x, top: y, width, height } = part;
        context.drawImage(picture, x, y, width, height, left, top, right - left, bottom - top);
        break;
      }
    }
    return isComplete;
  }

  end(): void {
    this.#isEnded = true;
    for (const tile of this.#tiles.values()) if (tile instanceof ImageBitmap) tile.close();
    this.#tiles.clear();
  }

  #picture(tile: Tile): ImageBitmap | null {
    const found = this.#tiles.get(keyOf(tile));
    return found instanceof ImageBitmap ? found : null;
  }

  #load(tile: Tile): ImageBitmap | null {
    const key = keyOf(tile);
    const found = this.#tiles.get(key);
    if (found === undefined) {
      this.#tiles.set(key, "coming");
      void this.#fetch(tile, key);
      return null;
    }
    // The least recently used one is the first.
    this.#tiles.delete(key);
    this.#tiles.set(key, found);
    return found instanceof ImageBitmap ? found : null;
  }

  async #fetch(tile: Tile, key: string): Promise<void> {
    try {
      const response = await fetch(this.addressOf(tile));
      if (!response.ok) throw new Error(String(response.status));
      const picture = await createImageBitmap(await response.blob());
      if (this.#isEnded) return picture.close();
      this.#tiles.set(key, picture);
      this.#forget();
      this.onLoad();
    } catch {
      if (this.#isEnded) return;
      this.#tiles.set(key, "failed");
      this.onFailure();
    }
  }

  #forget(): void {
    for (const [key, tile] of this.#tiles) {
      if (this.#tiles.size <= MOST_TILES) return;
      if (!(tile instanceof ImageBitmap)) continue;
      tile.close();
      this.#tiles.delete(key);
    }
  }
}

function keyOf({ level, column, row }: Tile): string {
  return `${level}/${column}_${row}`;
}
