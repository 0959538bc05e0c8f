/** Mosaics that nothing joins yet stand beside each other, as pictures on a wall. */
import type { Point } from "./affine";
import type { Box } from "./mosaic";

/** How far to move each part; the first, the largest, is not moved, the others stand in columns to its right. */
export function shiftsOfParts(boxes: readonly Box[]): Point[] {
  if (boxes.length === 0) return [];
  const main = boxes[0];
  const wall = Math.max(...boxes.map((box) => box.bottom - box.top));
  const gap = GAP * Math.max(main.right - main.left, main.bottom - main.top);
  const shifts: Point[] = [{ x: 0, y: 0 }];
  let left = main.right + gap;
  let top = main.top;
  let widest = 0;
  for (const box of boxes.slice(1)) {
    const height = box.bottom - box.top;
    if (top > main.top && top + height > main.top + wall) {
      left += widest + gap;
      top = main.top;
      widest = 0;
    }
    shifts.push({ x: left - box.left, y: top - box.top });
    top += height + gap;
    widest = Math.max(widest, box.right - box.left);
  }
  return shifts;
}

/** Of the largest part's longer side. */
const GAP = 0.08;
