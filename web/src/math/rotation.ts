// RoPE: pair i of a query or a key at position p turns by the angle pω_i.
//
//   (x, y) ─► (x cos pω - y sin pω, x sin pω + y cos pω)        q̂_m·k̂_n depends on m - n alone

import type { Row } from "./matrix";

/** Pairs are neighbouring channels. */
export function turned(x: Row, p: number, omega: Float64Array): Row {
  const out = new Float64Array(x.length);
  omega.forEach((one, i) => {
    const [cos, sin, a, b] = [Math.cos(p * one), Math.sin(p * one), x[2 * i]!, x[2 * i + 1]!];
    out[2 * i] = a * cos - b * sin;
    out[2 * i + 1] = a * sin + b * cos;
  });
  return out;
}

/** q̂·k̂ of each pair, the query `lag` positions after the key. */
export function scoresOfPairs(q: Row, k: Row, lag: number, omega: Float64Array): Float64Array {
  return omega.map((one, i) => {
    const [a, b, c, d] = [q[2 * i]!, q[2 * i + 1]!, k[2 * i]!, k[2 * i + 1]!];
    return (a * c + b * d) * Math.cos(lag * one) - (b * c - a * d) * Math.sin(lag * one);
  });
}

/** (2/d) Σ |S_i|, S_i = Σ_{j ≤ i} e^(i·lag·ω_j): what the bound on the score has of the lag. */
export function bound(lag: number, omega: Float64Array): number {
  let [re, im, sum] = [0, 0, 0];
  for (const one of omega) {
    re += Math.cos(lag * one);
    im += Math.sin(lag * one);
    sum += Math.hypot(re, im);
  }
  return sum / omega.length;
}
