/** An image file as pixels. */
import type { Point } from "../../model/affine";
import type { Size } from "../../model/polygon";

/** Fetch an image and return pieces of it, each of one size, as pixels that follow each other, in another size.
 *
 * Pixels are whole numbers, red in the lowest byte.
 */
export async function readPixels(
  address: string,
  places: readonly Point[],
  piece: Size,
  size: Size,
  signal: AbortSignal,
): Promise<Uint32Array> {
  const response = await fetch(address, { signal });
  if (!response.ok) throw new Error(`${address} cannot be loaded: Smalti answered with code ${response.status}`);
  const image = await createImageBitmap(await response.blob());
  // One below the other: so the pixels of a piece follow each other.
  const canvas = new OffscreenCanvas(size.width, size.height * places.length);
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.imageSmoothingQuality = "high";
  places.forEach(({ x, y }, k) => {
    context.drawImage(image, x, y, piece.width, piece.height, 0, k * size.height, size.width, size.height);
  });
  image.close();
  return new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
}
