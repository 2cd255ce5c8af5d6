// A matrix on whole pixels: where there are more columns than pixels, each pixel shows the mean of a block of columns.
//
//   7 columns, room for 4 pixels   │ 0 1 │ 2 3 │ 4 5 │ 6 │   blocks of 2, 4 cells of 1 pixel
//   3 columns, room for 7 pixels   │ 0 0 │ 1 1 │ 2 2 │       blocks of 1, 3 cells of 2 pixels
//
// Sampling single columns instead would show stripes that the matrix does not have.

import type { Numbers } from "../data";

export interface Grid {
  /** Rows or columns of the matrix in one cell. */
  block: number;
  cells: number;
  /** Device pixels of a cell: whole, unless it is so large that a part of one does not show. */
  pixels: number;
}

const LARGE = 8;

/** How `count` rows or columns are spread over at most `room` device pixels. */
export function grid(count: number, room: number): Grid {
  const block = Math.ceil(count / Math.max(Math.floor(room), 1));
  const cells = Math.ceil(count / block);
  const pixels = room / cells;
  return { block, cells, pixels: pixels < LARGE ? Math.floor(pixels) : pixels };
}

/** The mean of every cell, without those that are NaN. */
export function means({ values, shape }: Numbers, down: Grid, across: Grid): ArrayLike<number> {
  if (down.block === 1 && across.block === 1) return values;
  const [rows, columns] = [shape[0]!, shape[1]!];
  const found = new Float64Array(down.cells * across.cells);
  for (let row = 0; row < down.cells; row++)
    for (let column = 0; column < across.cells; column++) {
      let [count, sum] = [0, 0];
      for (let r = row * down.block; r < Math.min((row + 1) * down.block, rows); r++)
        for (let c = column * across.block; c < Math.min((column + 1) * across.block, columns); c++) {
          const value = values[r * columns + c]!;
          if (value !== value) continue;
          count += 1;
          sum += value;
        }
      found[row * across.cells + column] = count ? sum / count : NaN;
    }
  return found;
}
