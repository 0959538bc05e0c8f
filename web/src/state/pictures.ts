/** Frames as decoded pictures, the latest ones kept. */
import type { Api } from "./api";
import { RefusedError, UnreachableError } from "./api";

/** 24 Mpx are 96 MB once decoded; the pair on the screen and the next are kept whatever their size. */
const MOST_PIXELS = 24e6;
const FEWEST_KEPT = 4;

export class Pictures {
  readonly #kept = new Map<number, Promise<ImageBitmap>>();
  readonly #ready = new Map<number, ImageBitmap>();

  constructor(private readonly api: Api) {}

  load(frame: number): Promise<ImageBitmap> {
    const known = this.#kept.get(frame);
    if (known !== undefined) {
      // To the end of the order, so that it goes last.
      this.#kept.delete(frame);
      this.#kept.set(frame, known);
      return known;
    }
    const loading = this.#fetch(frame);
    this.#kept.set(frame, loading);
    return loading;
  }

  /** Return the picture if it is already there. */
  ready(frame: number): ImageBitmap | null {
    return this.#ready.get(frame) ?? null;
  }

  async #fetch(frame: number): Promise<ImageBitmap> {
    try {
      const picture = await createImageBitmap(await this.#download(frame));
      this.#ready.set(frame, picture);
      this.#makeRoom();
      return picture;
    } catch (error) {
      this.#kept.delete(frame);
      throw error;
    }
  }

  async #download(frame: number): Promise<Blob> {
    let response: Response;
    try {
      response = await fetch(this.api.frameAddress(frame));
    } catch {
      throw new UnreachableError();
    }
    if (!response.ok) throw new RefusedError(response.status, `frame ${frame} cannot be shown`);
    return response.blob();
  }

  #makeRoom(): void {
    let pixels = [...this.#ready.values()].reduce((sum, { width, height }) => sum + width * height, 0);
    for (const frame of this.#kept.keys()) {
      if (pixels <= MOST_PIXELS || this.#ready.size <= FEWEST_KEPT) return;
      const picture = this.#ready.get(frame);
      if (picture === undefined) continue;
      pixels -= picture.width * picture.height;
      this.#ready.delete(frame);
      this.#kept.delete(frame);
      // Not closed: it may be on the screen; the browser frees it when nobody holds it.
    }
  }
}
