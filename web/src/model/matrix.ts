/** Small dense matrices, row by row in flat arrays. */

export type Matrix = readonly number[];

export function identity(size: number): number[] {
  return Array.from({ length: size * size }, (_, k) => (k % (size + 1) === 0 ? 1 : 0));
}

/** Return A B for A (rows, inner) and B (inner, columns). */
export function multiply(a: Matrix, b: Matrix, inner: number): number[] {
  const [rows, columns] = [a.length / inner, b.length / inner];
  const product = new Array<number>(rows * columns).fill(0);
  for (let row = 0; row < rows; row++) {
    for (let k = 0; k < inner; k++) {
      const factor = a[row * inner + k]!;
      for (let column = 0; column < columns; column++) {
        product[row * columns + column]! += factor * b[k * columns + column]!;
      }
    }
  }
  return product;
}

/** Return A⁻¹ for A (size, size), by elimination with pivots. */
export function invertMatrix(a: Matrix, size: number): number[] {
  const left = [...a];
  const right = identity(size);
  for (let column = 0; column < size; column++) {
    let pivot = column;
    for (let row = column + 1; row < size; row++) {
      if (Math.abs(left[row * size + column]!) > Math.abs(left[pivot * size + column]!)) pivot = row;
    }
    for (const side of [left, right]) swapRows(side, size, pivot, column);
    const by = 1 / left[column * size + column]!;
    for (const side of [left, right]) for (let k = 0; k < size; k++) side[column * size + k]! *= by;
    for (let row = 0; row < size; row++) {
      const factor = left[row * size + column]!;
      if (row === column || factor === 0) continue;
      for (const side of [left, right]) {
        for (let k = 0; k < size; k++) side[row * size + k]! -= factor * side[column * size + k]!;
      }
    }
  }
  return right;
}

export function add(a: Matrix, b: Matrix): number[] {
  return a.map((entry, k) => entry + b[k]!);
}

/** Return the sum of the diagonal of a square matrix. */
export function trace(a: Matrix): number {
  const size = Math.round(Math.sqrt(a.length));
  let sum = 0;
  for (let k = 0; k < size; k++) sum += a[k * (size + 1)]!;
  return sum;
}

export function dot(a: Matrix, b: Matrix): number {
  return a.reduce((sum, entry, k) => sum + entry * b[k]!, 0);
}

function swapRows(matrix: number[], size: number, one: number, other: number): void {
  if (one === other) return;
  for (let k = 0; k < size; k++) {
    const kept = matrix[one * size + k]!;
    matrix[one * size + k] = matrix[other * size + k]!;
    matrix[other * size + k] = kept;
  }
}
