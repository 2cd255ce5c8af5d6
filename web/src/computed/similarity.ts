import { real, stacked, type Data, type Numbers } from "../data";
import { rotary } from "../math/frequencies";
import { range, rowsOf, type Matrix } from "../math/matrix";
import { Generator } from "../math/random";
import { bound } from "../math/rotation";
import { similarity } from "../math/sinusoid";
import { float, program } from "../program";
import template from "../../../src/posenc/explorer/views/similarity.txt";

const ROWS = 256;

type Kind = "sinusoidal" | "rope" | "random";

export function data({ kind, d, base, reach }: { kind: Kind; d: number; base: number; reach: number }): Data {
  const lags = range(-reach, reach + 1);
  const omega = rotary(d, base);
  const falling = (of: (lag: number) => number) => Float64Array.from(lags, of);
  const curves: Record<string, Float64Array> = kind === "sinusoidal" ? { similarity: falling((lag) => similarity(lag, omega)) }
    : kind === "rope" ? { score: falling((lag) => 2 * similarity(lag, omega)), bound: falling((lag) => bound(lag, omega)) } : {};
  const rises = Object.fromEntries(Object.entries(curves).map(([name, curve]) => [name, firstRise(curve.subarray(reach))]));
  const one = Float64Array.from({ length: d }, (_, c) => (kind === "rope" ? 1 : 1 - (c % 2)));
  const drawn = kind === "random" ? ofRandomVectors(d, base, reach) : { vectors: stacked([one, one]) };
  return {
    arrays: { lags: real(lags), omega: real(omega), ...drawn, ...Object.fromEntries(Object.entries(curves).map(([name, curve]) => [name, real(curve)])) },
    python: program(template, [kind], { first: -reach, beyond: reach + 1, d, base: float(base), pairs: d / 2, rows: ROWS }),
    facts: { rises, rows: ROWS },
  };
}

/** The first index whose successor is larger by more than rounding. */
function firstRise(curve: Float64Array): number | null {
  const rounding = 1e-12 * curve.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const at = curve.findIndex((value, n) => curve[n + 1]! - value > rounding);
  return at < 0 ? null : at;
}

/** Of the last width, which the other sliders do not move. */
let kept = { d: 0, q: [] as Matrix, k: [] as Matrix };

function ofRandomVectors(d: number, base: number, reach: number): Record<string, Numbers> {
  if (kept.d !== d) {
    const random = new Generator(0);
    const [q, k] = [random.normal(ROWS * d), random.normal(ROWS * d)];
    kept = { d, q: rowsOf(q, d), k: rowsOf(k, d) };
  }
  const { q, k } = kept;
  const unlike = pairs(q, k);
  const alike = sum(pairs(q, q), d);
  const omega = rotary(d, base);
  const n = 2 * reach + 1;
  const [independent, spread, one, equal] = Array.from({ length: 4 }, () => new Float64Array(n)) as [Float64Array, Float64Array, Float64Array, Float64Array];
  const [scores, opposite, cos, sin] = [new Float64Array(ROWS), new Float64Array(ROWS), new Float64Array(d / 2), new Float64Array(d / 2)];
  // A lag and its opposite have the same cosines.
  for (let lag = 0; lag <= reach; lag++) {
    omega.forEach((w, i) => {
      cos[i] = Math.cos(lag * w);
      sin[i] = Math.sin(lag * w);
    });
    for (let row = 0; row < ROWS; row++) {
      const [even, odd] = evenAndOdd(unlike, row * d, cos, sin);
      scores[row] = even - odd;
      opposite[row] = even + odd;
    }
    const [even, odd] = evenAndOdd(alike, 0, cos, sin);
    for (const [at, all, same] of [[reach + lag, scores, even - odd], [reach - lag, opposite, even + odd]] as const) {
      [independent[at], spread[at]] = meanAndSpread(all);
      one[at] = all[0]!;
      equal[at] = same / ROWS;
    }
  }
  return { vectors: stacked([q[0]!, k[0]!]), independent: real(independent), spread: real(spread), one: real(one), equal: real(equal) };
}

/** Σ a cos and Σ b sin over the pairs (a, b) of a row. */
function evenAndOdd(pairs: Float64Array, from: number, cos: Float64Array, sin: Float64Array): [number, number] {
  let [even, odd] = [0, 0];
  for (let i = 0, at = from; i < cos.length; i++, at += 2) {
    even += pairs[at]! * cos[i]!;
    odd += pairs[at + 1]! * sin[i]!;
  }
  return [even, odd];
}

function meanAndSpread(all: Float64Array): [number, number] {
  const mean = all.reduce((a, b) => a + b, 0) / all.length;
  return [mean, Math.sqrt(all.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (all.length - 1))];
}

/** q̃·k̃* of each row and pair of channels, real and imaginary part. */
function pairs(q: Matrix, k: Matrix): Float64Array {
  const d = q[0]!.length;
  const out = new Float64Array(q.length * d);
  q.forEach((row, r) => {
    const other = k[r]!;
    for (let c = 0; c < d; c += 2) {
      out[r * d + c] = row[c]! * other[c]! + row[c + 1]! * other[c + 1]!;
      out[r * d + c + 1] = row[c + 1]! * other[c]! - row[c]! * other[c + 1]!;
    }
  });
  return out;
}

/** The sum of all rows of so many numbers. */
function sum(flat: Float64Array, d: number): Float64Array {
  const out = new Float64Array(d);
  flat.forEach((x, n) => void (out[n % d]! += x));
  return out;
}
