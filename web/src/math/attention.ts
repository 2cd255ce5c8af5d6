// softmax(q·k/√d + bias)·v of a few dozen words.

import { matrix, plus, products, times, transposed, type Matrix, type Row } from "./matrix";
import type { Method } from "./methods";

export function softmax(row: Row): Row {
  const most = Math.max(...row);
  const powers = row.map((x) => Math.exp(x - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}

/** Keys after the query get -∞, where words stand at positions `at`. */
export function masked(scores: Matrix, at: number[]): Matrix {
  return scores.map((row, i) => row.map((x, j) => (at[j]! > at[i]! ? -Infinity : x)));
}

export function weights(scores: Matrix): Matrix {
  return scores.map(softmax);
}

export function attended(scores: Matrix, values: Matrix): Matrix {
  return times(weights(scores), values);
}

/** The channels of a head. */
export function headOf(rows: Matrix, h: number, width: number): Matrix {
  return rows.map((row) => row.subarray(h * width, (h + 1) * width));
}

/** The heads' channels side by side. */
export function beside(heads: Matrix[]): Matrix {
  const width = heads[0]![0]!.length;
  return matrix(heads[0]!.length, heads.length * width, (i, c) => heads[Math.floor(c / width)]![i]![c % width]!);
}

/** All heads of one layer: their weights, and the mixed values. */
export function attention(q: Matrix, k: Matrix, v: Matrix, heads: number, method: Method, at: number[], causal: boolean): { weights: Matrix[]; mixed: Matrix } {
  const width = q[0]!.length / heads;
  const all: Matrix[] = [];
  const mixed: Matrix[] = [];
  for (let h = 0; h < heads; h++) {
    const [own, keys] = [q, k].map((rows) => headOf(rows, h, width).map((row, i) => method.turned?.(row, at[i]!) ?? row)) as [Matrix, Matrix];
    let scores = products(own, keys, 1 / Math.sqrt(width));
    if (method.bias) scores = plus(scores, method.bias({ h, q: own, k: keys }, at));
    const probabilities = weights(causal ? masked(scores, at) : scores);
    const values = products(probabilities, transposed(headOf(v, h, width)));
    all.push(probabilities);
    mixed.push(method.value ? plus(values, method.value(probabilities, at)) : values);
  }
  return { weights: all, mixed: beside(mixed) };
}
