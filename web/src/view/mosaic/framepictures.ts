/** Pictures of frames: small ones of all, cut from sheets and decoded once; whole ones of the few in a near view. */
import { areaOf, type Quads } from "../../model/mosaic";
import { Levels, type Level } from "../../model/mosaiclevels";
import { measureMask, type Mask } from "../../model/mosaicmask";
import { readPixels } from "./decoding";
import type { Opening } from "./paintmessages";

/** Px of all small pictures, four bytes each and a third more for the smaller sizes; they are reduced to fit. */
const MOST_SMALL_PX = 8e6;
/** Px of all whole frames, likewise. */
const MOST_WHOLE_PX = 6e6;
const AT_ONCE = 3;
/** Pixels of the screen a pixel of a picture from which a better one is worth fetching. */
const COARSE = 1.3;
/** Pixels of a frame that must be seen for that. */
const FEWEST_SEEN = 600;

export interface FramePictures {
  /** Where the pictures show the scene; null where they do so everywhere. */
  readonly mask: Mask | null;
  /** The picture of a frame, for a width on the screen; null where it is not here yet. */
  pick(place: number, width: number): Level | null;
  /** Fetch whole frames where the small pictures are too coarse, those first of which most is seen. */
  lookCloser(seen: Uint32Array, scale: number, quads: Quads): void;
  close(): void;
}

export function openFramePictures(
  { sheets, frame, sheetAddresses, maskAddress, frameAddresses }: Opening,
  arrived: () => void,
  failed: (explanation: string) => void,
): FramePictures {
  const usable = frameAddresses.length;
  const reduction = Math.min(1, Math.sqrt(MOST_SMALL_PX / (usable * sheets.width * sheets.height)));
  const small = { width: Math.floor(sheets.width * reduction), height: Math.floor(sheets.height * reduction) };
  const cut: (Levels | undefined)[] = [];
  const whole = new Map<number, Levels>();
  const refused = new Set<number>(); // a frame that cannot be had keeps its small picture
  const ending = new AbortController();
  let mask: Mask | null = null;
  let wanted: number[] = [];
  let fetching = 0;

  const fetchMask = async (address: string) => {
    const pixels = await readPixels(address, [{ x: 0, y: 0 }], sheets, sheets, ending.signal);
    const showing = Array.from(pixels, (pixel) => (pixel & 255) > 127);
    mask = measureMask(showing, sheets.width, sheets.height);
  };

  const fetchSheets = async () => {
    // Before any picture, so that none hides another by its dark part.
    if (maskAddress !== null) await fetchMask(maskAddress);
    for (const [k, address] of sheetAddresses.entries()) {
      const count = Math.min(sheets.per_sheet, usable - k * sheets.per_sheet);
      const places = Array.from({ length: count }, (_, cell) => ({
        x: (cell % sheets.columns) * sheets.width,
        y: Math.floor(cell / sheets.columns) * sheets.height,
      }));
      const pixels = await readPixels(address, places, sheets, small, ending.signal);
      cut[k] = new Levels(pixels, count, small.width, small.height);
      arrived();
    }
  };
  fetchSheets().catch((error: unknown) => {
    if (!ending.signal.aborted) failed(error instanceof Error ? error.message : String(error));
  });

  // At most as large as leaves room for a dozen.
  const shrink = Math.min(1, Math.sqrt(MOST_WHOLE_PX / 12 / (frame.width * frame.height)));
  const shrunk = (px: number) => Math.max(1, Math.floor(px * shrink));
  const large = { width: shrunk(frame.width), height: shrunk(frame.height) };
  const mostWhole = Math.max(12, Math.floor(MOST_WHOLE_PX / (large.width * large.height)));

  const fetchWhole = async (place: number) => {
    fetching++;
    try {
      const pixels = await readPixels(frameAddresses[place], [{ x: 0, y: 0 }], frame, large, ending.signal);
      whole.set(place, new Levels(pixels, 1, large.width, large.height));
      for (const kept of whole.keys()) if (whole.size > mostWhole && !wanted.includes(kept)) whole.delete(kept);
      arrived();
    } catch {
      refused.add(place);
    }
    fetching--;
    fetchNext();
  };
  const fetchNext = () => {
    while (fetching < AT_ONCE && wanted.length > 0 && !ending.signal.aborted) {
      const place = wanted.shift()!;
      if (!whole.has(place) && !refused.has(place)) void fetchWhole(place);
    }
  };

  return {
    get mask() {
      return mask;
    },
    pick(place, width) {
      const near = width > COARSE * small.width ? whole.get(place) : undefined;
      const sheet = cut[Math.floor(place / sheets.per_sheet)];
      return near?.pick(0, width) ?? sheet?.pick(place % sheets.per_sheet, width) ?? null;
    },
    lookCloser(seen, scale, quads) {
      if (maskAddress !== null && mask === null) return;
      const coarse = (place: number) => {
        const enlarged = Math.sqrt(areaOf(quads, place) / (frame.width * frame.height));
        return scale * enlarged * frame.width > COARSE * small.width;
      };
      const places = [...seen.keys()].filter((place) => seen[place] >= FEWEST_SEEN && coarse(place));
      wanted = places.sort((one, other) => seen[other] - seen[one]).slice(0, mostWhole);
      fetchNext();
    },
    close: () => ending.abort(),
  };
}
