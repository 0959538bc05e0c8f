/** What the mosaic's canvas and its painter, who works in a thread of its own, say to each other. */
import type { Sheets } from "../../model/messages";
import type { Quads } from "../../model/mosaic";
import type { Mask } from "../../model/mosaicmask";
import type { View } from "../../model/mosaicview";
import type { Size } from "../../model/polygon";

/** A picture of the frames to be painted. */
export interface Commission {
  readonly number: number;
  readonly quads: Quads;
  /** In pixels of the picture. */
  readonly view: View;
  readonly width: number;
  readonly height: number;
  readonly blank: number;
  readonly tints: Uint32Array | null;
  readonly tint: number;
  /** The view rests: whole frames are worth fetching where small pictures are too coarse. */
  readonly still: boolean;
}

export interface Thumbnail {
  readonly number: number;
  readonly place: number;
  readonly width: number;
  readonly height: number;
}

/** Where the pictures of a sequence are. */
export interface Opening {
  readonly kind: "open";
  readonly sheets: Sheets;
  readonly frame: Size;
  readonly sheetAddresses: string[];
  /** Null where frames show the scene everywhere. */
  readonly maskAddress: string | null;
  /** Of the usable frames, in their order. */
  readonly frameAddresses: string[];
}

export type Order =
  | Opening
  | { readonly kind: "paint"; readonly commission: Commission }
  | { readonly kind: "thumbnail"; readonly thumbnail: Thumbnail };

export type Reply =
  | { readonly kind: "painted"; readonly number: number; readonly pixels: Uint32Array<ArrayBuffer> }
  /** Pictures have come that the last painting did not have; the mask is null where frames have none. */
  | { readonly kind: "arrived"; readonly mask: Mask | null }
  | { readonly kind: "failed"; readonly explanation: string }
  | { readonly kind: "thumbnail"; readonly number: number; readonly pixels: Uint32Array<ArrayBuffer> };
