/** The painter's thread: keeps the pictures and paints what is ordered, so that the page never waits for it. */
import { drawFrames, type Raster } from "../../model/mosaicraster";
import { outlineOf, type Size } from "../../model/polygon";
import { openFramePictures, type FramePictures } from "./framepictures";
import type { Commission, Order, Reply, Thumbnail } from "./paintmessages";

let framePictures: FramePictures | null = null;
let frame: Size = { width: 1, height: 1 };

addEventListener("message", ({ data: order }: MessageEvent<Order>) => {
  if (order.kind === "paint") paint(order.commission);
  else if (order.kind === "thumbnail") reduce(order.thumbnail);
  else {
    framePictures?.close();
    frame = order.frame;
    const arrived = () => reply({ kind: "arrived", mask: framePictures?.mask ?? null });
    const failed = (explanation: string) => reply({ kind: "failed", explanation });
    framePictures = openFramePictures(order, arrived, failed);
  }
});

function paint({ number, quads, view, width, height, blank, tints, tint, still }: Commission): void {
  const raster = makeRaster(width, height);
  const pictureOf = (place: number, across: number) => framePictures?.pick(place, across) ?? null;
  const shown = drawFrames(raster, view, quads, frame, { pictureOf, blank, tints, tint, mask: framePictures?.mask ?? null });
  if (still) framePictures?.lookCloser(shown, view.scale, quads);
  reply({ kind: "painted", number, pixels: raster.pixels }, [raster.pixels.buffer]);
}

/** A frame alone, all of it. */
function reduce({ number, place, width, height }: Thumbnail): void {
  const raster = makeRaster(width, height);
  const scale = Math.min(width / frame.width, height / frame.height);
  const view = { scale, x: (width - scale * (frame.width - 1)) / 2, y: (height - scale * (frame.height - 1)) / 2 };
  const pictureOf = (_: number, across: number) => framePictures?.pick(place, across) ?? null;
  const paints = { pictureOf, blank: 0, tints: null, tint: 0, mask: null };
  drawFrames(raster, view, Float64Array.from(outlineOf(frame).flatMap(({ x, y }) => [x, y])), frame, paints);
  reply({ kind: "thumbnail", number, pixels: raster.pixels }, [raster.pixels.buffer]);
}

function makeRaster(width: number, height: number): Raster & { pixels: Uint32Array<ArrayBuffer> } {
  return { pixels: new Uint32Array(width * height), width, height };
}

function reply(message: Reply, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}
