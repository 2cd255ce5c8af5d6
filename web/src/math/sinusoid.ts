// PE(p) = (sin pω_0, cos pω_0, sin pω_1, cos pω_1, …)      PE(p + k) = M_k PE(p)      PE(p)·PE(p + k) = Σ cos kω_i

import { rotary } from "./frequencies";

/** Rows start … start + length - 1, one after the other; an odd width drops its last cosine. */
export function sinusoids(length: number, d: number, base: number, start = 0): Float64Array {
  const omega = rotary(d, base);
  const table = new Float64Array(length * d);
  for (let p = 0; p < length; p++) {
    for (let c = 0; c < d; c++) {
      const angle = (start + p) * omega[c >> 1]!;
      table[p * d + c] = c % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return table;
}

/** M_k, d × d: a block (cos kω, sin kω; -sin kω, cos kω) for each pair. */
export function shiftMatrix(k: number, d: number, base: number): Float64Array {
  const matrix = new Float64Array(d * d);
  rotary(d, base).forEach((omega, i) => {
    const [at, cos, sin] = [2 * i * (d + 1), Math.cos(k * omega), Math.sin(k * omega)];
    matrix[at] = matrix[at + d + 1] = cos;
    matrix[at + 1] = sin;
    matrix[at + d] = -sin;
  });
  return matrix;
}

/** Σ cos kω_i */
export function similarity(lag: number, omega: Float64Array): number {
  let sum = 0;
  for (const one of omega) sum += Math.cos(lag * one);
  return sum;
}

/** ‖PE(p + k) - PE(p)‖ = √Σ 4 sin²(kω_i/2) for k = 0 … count - 1: of an even width, the same at every p. */
export function distances(count: number, d: number, base: number): Float64Array {
  return squaredDistances(count, rotary(d, base), new Float64Array(count)).map(Math.sqrt);
}

const BLOCK = 64;

/** Adds 4 sin²(kω_i/2), with sin(a + b) = sin a cos b + cos a sin b: sines and cosines of a block and of the blocks' starts. */
export function squaredDistances(count: number, omega: Float64Array, squared: Float64Array): Float64Array {
  const [sines, cosines] = [new Float64Array(BLOCK), new Float64Array(BLOCK)];
  for (const one of omega) {
    for (let k = 0; k < BLOCK; k++) {
      sines[k] = 2 * Math.sin(k * (one / 2));
      cosines[k] = 2 * Math.cos(k * (one / 2));
    }
    for (let start = 0; start < count; start += BLOCK) {
      const [sin, cos, end] = [Math.sin(start * (one / 2)), Math.cos(start * (one / 2)), Math.min(BLOCK, count - start)];
      for (let k = 0; k < end; k++) squared[start + k]! += (sin * cosines[k]! + cos * sines[k]!) ** 2;
    }
  }
  return squared;
}
