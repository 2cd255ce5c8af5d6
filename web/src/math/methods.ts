// Where each method of the story enters attention: what it adds to the words, how it turns queries and keys, what it adds to
// the scores and to the values. Learned numbers are drawn, in the order in which Python's modules hold them.

import { slopes } from "./alibi";
import { rotary } from "./frequencies";
import { dot, matrix, plus, products, range, type Matrix, type Row } from "./matrix";
import { turned } from "./rotation";
import { clipped } from "./shaw";
import { sinusoids } from "./sinusoid";
import { bucketsOf } from "./t5";
import { sines } from "./transformer_xl";

/** Of one head, its queries and keys. */
export interface Head {
  h: number;
  q: Matrix;
  k: Matrix;
}

/** Words stand at the positions `at`; the results are for them in that order. */
export interface Method {
  added?(at: number[]): Matrix;
  turned?(row: Row, p: number): Row;
  bias?(head: Head, at: number[]): Matrix;
  /** The four terms of a score, q·k among them. */
  terms?(head: Head, at: number[]): Matrix[];
  /** To the mixed values. */
  value?(weights: Matrix, at: number[]): Matrix;
  /** What the picture of the steps shows of it. */
  own: Record<string, Matrix | Matrix[] | Row>;
}

export interface Sizes {
  d_model: number;
  d_head: number;
  heads: number;
  base: number;
  causal: boolean;
  /** Rows of a learned table. */
  most: number;
  /** T5's buckets, and where the last begins. */
  buckets: [number, number];
  /** Shaw's largest distance. */
  reach: number;
}

type Drawn = (rows: number, columns: number) => Matrix;

export const METHODS: Record<string, (sizes: Sizes, drawn: Drawn) => Method> = {
  nope: () => ({ own: {} }),
  sinusoidal: ({ d_model, base }) => ({ added: (at) => at.map((p) => sinusoids(1, d_model, base, p)), own: {} }),
  learned({ d_model, most }, drawn) {
    const table = drawn(most, d_model);
    return { added: (at) => at.map((p) => table[p]!), own: {} };
  },
  rope({ d_head, base }) {
    const omega = rotary(d_head - (d_head % 2), base);
    return { turned: (row, p) => turned(row, p, omega), own: { omega } };
  },
  alibi({ heads }) {
    const all = Float64Array.from(slopes(heads));
    return { bias: ({ h }, at) => between(at, (distance) => -all[h]! * Math.abs(distance)), own: { slopes: all } };
  },
  t5({ heads, causal, buckets: [count, farthest] }, drawn) {
    const table = drawn(count, heads);
    const { of } = bucketsOf(count, farthest, !causal);
    return { bias: ({ h }, at) => between(at, (distance) => table[of(distance)]![h]!), own: { table } };
  },
  shaw({ d_head: d, reach }, drawn) {
    const [keys, values] = [drawn(2 * reach + 1, d), drawn(2 * reach + 1, d)];
    const row = (distance: number) => clipped(distance, reach) + reach;
    return {
      bias: ({ q }, at) => between(at, (distance, i) => dot(q[i]!, keys[row(distance)]!) / Math.sqrt(d)),
      value: (weights, at) => weights.map((all, i) => range(0, d).reduce((sum, c) => {
        all.forEach((weight, j) => void (sum[c]! += weight * values[row(at[i]! - at[j]!)]![c]!));
        return sum;
      }, new Float64Array(d))),
      own: { key_vectors: keys, value_vectors: values },
    };
  },
  transformer_xl({ d_model, d_head: d, heads, base }, drawn) {
    const wide = d_model + (d_model % 2);
    const [u, v, all] = [drawn(heads, d), drawn(heads, d), drawn(heads * d, wide)];
    const known = new Map<string, Row>();
    /** W_R R of a head and a distance. */
    const toward = (h: number, distance: number) => {
      const name = `${h} ${distance}`;
      if (!known.has(name)) known.set(name, products([sines(distance, wide, base)], all.slice(h * d, (h + 1) * d))[0]!);
      return known.get(name)!;
    };
    const over = Math.sqrt(d);
    const terms = ({ h, q, k }: Head, at: number[]) => [
      products(q, k, 1 / over),
      between(at, (distance, i) => dot(q[i]!, toward(h, distance)) / over),
      matrix(at.length, at.length, (_, j) => dot(u[h]!, k[j]!) / over),
      between(at, (distance) => dot(v[h]!, toward(h, distance)) / over),
    ];
    return { terms, bias: (head, at) => plus(...terms(head, at).slice(1)), own: {} };
  },
};

/** Of i - j, for every query and key. */
function between(at: number[], of: (distance: number, i: number, j: number) => number): Matrix {
  return matrix(at.length, at.length, (i, j) => of(at[i]! - at[j]!, i, j));
}
