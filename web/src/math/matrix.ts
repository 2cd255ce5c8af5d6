// Matrices as rows, of sentences with a few dozen words.

export type Row = Float64Array;
export type Matrix = Row[];

export function matrix(rows: number, columns: number, of: (i: number, j: number) => number): Matrix {
  return Array.from({ length: rows }, (_, i) => Float64Array.from({ length: columns }, (_, j) => of(i, j)));
}

/** Numbers one after the other, cut into rows. */
export function rowsOf(flat: Float64Array, columns: number): Matrix {
  return Array.from({ length: flat.length / columns }, (_, i) => flat.subarray(i * columns, (i + 1) * columns));
}

export function dot(a: Row, b: Row): number {
  let sum = 0;
  for (let n = 0; n < a.length; n++) sum += a[n]! * b[n]!;
  return sum;
}

export function norm(a: Row): number {
  return Math.sqrt(dot(a, a));
}

/** A·Bᵀ, times a factor. */
export function products(a: Matrix, b: Matrix, factor = 1): Matrix {
  return a.map((one) => Float64Array.from(b, (other) => dot(one, other) * factor));
}

export function transposed(a: Matrix): Matrix {
  return matrix(a[0]!.length, a.length, (i, j) => a[j]![i]!);
}

/** A·B */
export function times(a: Matrix, b: Matrix): Matrix {
  return products(a, transposed(b));
}

export function plus(...all: Matrix[]): Matrix {
  const [first] = all;
  return first!.map((row, i) => row.map((_, j) => all.reduce((sum, one) => sum + one[i]![j]!, 0)));
}

export function minus(a: Matrix, b: Matrix): Matrix {
  return a.map((row, i) => row.map((x, j) => x - b[i]![j]!));
}

export function scaled(a: Matrix, factor: number): Matrix {
  return a.map((row) => row.map((x) => x * factor));
}

export function eye(size: number): Matrix {
  return matrix(size, size, (i, j) => Number(i === j));
}

/** max |a|; 0 of an empty one. */
export function largest(a: Matrix): number {
  return a.reduce((most, row) => row.reduce((so, x) => Math.max(so, Math.abs(x)), most), 0);
}

/** The whole numbers from … to - 1. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n);
}
