import { real, stacked, type Data } from "../data";
import { slopes } from "../math/alibi";
import { dot, range, rowsOf, type Matrix } from "../math/matrix";
import { Generator } from "../math/random";
import { clipped } from "../math/shaw";
import { bucketsOf } from "../math/t5";
import { program } from "../program";
import template from "../../../src/posenc/explorer/views/bias.txt";

const D_HEAD = 64;

type Method = "alibi" | "t5" | "shaw";

interface Asked {
  method: Method;
  n_heads: number;
  length: number;
  causal: boolean;
  n_buckets: number;
  max_distance: number;
  bidirectional: boolean;
  k: number;
  seed: number;
}

interface Found {
  bias: Matrix;
  index: number[];
  more?: Data["arrays"];
  facts?: Data["facts"];
}

const METHODS: Record<Method, (asked: Asked, distance: number[]) => Found> = {
  alibi({ n_heads: heads }, distance) {
    const of = slopes(heads);
    const horizon = of.map((slope) => Math.log(100) / slope);
    return { bias: of.map((slope) => Float64Array.from(distance, (one) => -slope * Math.abs(one))), index: distance.map(Math.abs), more: { slopes: real(of), horizon: real(horizon) } };
  },
  t5({ n_heads: heads, n_buckets: count, max_distance: farthest, bidirectional, seed }, distance) {
    const buckets = bucketsOf(count, farthest, bidirectional);
    const table = drawn(seed, count, heads);
    const index = distance.map(buckets.of);
    return { bias: range(0, heads).map((h) => Float64Array.from(index, (row) => table[row]![h]!)), index, facts: { starts: [...range(0, buckets.exact + 1), ...buckets.starts] } };
  },
  shaw({ n_heads: heads, k, seed }, distance) {
    const keys = drawn(seed, 2 * k + 1, D_HEAD);
    const index = distance.map((one) => clipped(one, k));
    const of = rowsOf(new Generator(seed).normal(heads * D_HEAD), D_HEAD).map((q) => keys.map((key) => dot(q, key) / Math.sqrt(D_HEAD)));
    return { bias: of.map((row) => Float64Array.from(index, (c) => row[c + k]!)), index, facts: { starts: range(0, k + 1) } };
  },
};

/** Other methods are Python's. */
export const only = { method: Object.keys(METHODS) };

export function data(asked: Asked): Data {
  const { method, causal, length } = asked;
  const start = causal ? 0 : 1 - length;
  const distance = range(start, length);
  const { bias, index, more, facts } = METHODS[method](asked, distance);
  const weight = bias.map((row) => {
    const most = row.reduce((a, b) => Math.max(a, b));
    return row.map((x) => Math.exp(x - most));
  });
  return {
    arrays: { distance: real(distance), index: real(index), bias: stacked(bias), weight: stacked(weight), ...more },
    python: program(template, [method], { ...asked, start }),
    facts: { method, ...facts },
  };
}

/** posenc.laws.draw_parameters: N(0, .5²) in float32. */
function drawn(seed: number, rows: number, columns: number): Matrix {
  return rowsOf(new Generator(seed).normal32(rows * columns).map((x) => Math.fround(x * 0.5)), columns);
}
