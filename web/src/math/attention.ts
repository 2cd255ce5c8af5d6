// softmax(q·k/√d + bias)·v of a few dozen words.

import { times, type Matrix, type Row } from "./matrix";

export function softmax(row: Row): Row {
  const most = Math.max(...row);
  const powers = row.map((x) => Math.exp(x - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}

/** Keys after the query get -∞. */
export function masked(scores: Matrix): Matrix {
  return scores.map((row, i) => row.map((x, j) => (j > i ? -Infinity : x)));
}

export function weights(scores: Matrix): Matrix {
  return scores.map(softmax);
}

export function attended(scores: Matrix, values: Matrix): Matrix {
  return times(weights(scores), values);
}
