import { real, stacked, type Data } from "../data";
import { attention, beside, headOf, masked } from "../math/attention";
import { eye, largest, matrix, minus, plus, products, range, rowsOf, times, type Matrix } from "../math/matrix";
import { METHODS, type Method, type Sizes } from "../math/methods";
import { Generator, oneDecimal, wordVectors } from "../math/random";
import { bucketsOf } from "../math/t5";
import { wordsOf } from "../math/words";
import * as worked from "../math/worked";
import { float, program, tuple } from "../program";
import template from "../../../src/posenc/explorer/views/attention.txt";

/** Where the methods act, and what the catalogue writes of them. */
const FACTS: Record<string, { formula: string; sites: string[] }> = {
  nope: { formula: "q·k/√d", sites: [] },
  sinusoidal: { formula: "x + [sin pω, cos pω]", sites: ["EMBED"] },
  learned: { formula: "x + table[p]", sites: ["EMBED"] },
  rope: { formula: "R(p)q · R(p')k", sites: ["ROTATE"] },
  alibi: { formula: "q·k - m|i-j|", sites: ["BIAS"] },
  t5: { formula: "q·k + b[bucket(i-j)]", sites: ["BIAS"] },
  shaw: { formula: "q·(k + a[j-i]), v + a'[j-i]", sites: ["BIAS", "VALUE"] },
  transformer_xl: { formula: "(q+u)·k + (q+v)·W_R R[i-j]", sites: ["BIAS"] },
};
const BUCKETS: [number, number] = [8, 16];
const REACH = 2;

interface Asked {
  sentence: string;
  encoding: string;
  n_heads: number;
  causal: boolean;
  base: number;
}

type Drawn = (rows: number, columns: number) => Matrix;

/** A worked example: x, and what differs of the three projections [head][m][d], which are drawn. */
interface Case {
  part: string;
  m: number;
  d: number;
  x(words: string[], drawn: Drawn): Matrix;
  projections?(projections: [Matrix[], Matrix[], Matrix[]]): void;
}

const CASES: [string[], Case][] = [
  [worked.CAT_EATS_FISH, { part: "cat_eats_fish", m: 4, d: 4, x: () => worked.EMBEDDINGS }],
  [worked.I_LIKE_CATS, { part: "i_like_cats", m: 3, d: 3, x: () => worked.NINE }],
  [["我 爱 你", "I love you"], { part: "i_love_you", m: 6, d: 4, x: (_, drawn) => drawn(3, 6) }],
  [worked.AI_IS_GROWING, {
    part: "ai_is_growing", m: 5, d: 4, x: () => eye(5),
    projections([w_q, w_k, w_v]) {
      w_q[0]![2] = worked.QUERY;
      w_k[0] = worked.KEYS;
      worked.VALUES.forEach((row, n) => w_v[0]![n]!.set(row));
    },
  }],
];
const TYPED: Case = { part: "typed", m: 4, d: 4, x: (words) => wordVectors(words, 4).map((row) => row.map(oneDecimal)) };

/** Other encodings are Python's. */
export const only = { encoding: Object.keys(METHODS) };

export function data({ sentence, encoding, n_heads: heads, causal, base }: Asked): Data {
  const words = wordsOf(sentence);
  const [t, every] = [words.length, range(0, heads)];
  const example = CASES.find(([said]) => said.includes(words.join(" ")))?.[1] ?? TYPED;
  const { part, m, d } = example;
  const random = new Generator(0);
  const drawn: Drawn = (rows, columns) => rowsOf(random.normal(rows * columns).map(oneDecimal), columns);
  const stack = (count: number) => {
    const all = drawn(count * m, d);
    return range(0, count).map((h) => all.slice(h * m, (h + 1) * m));
  };
  const x = example.x(words, drawn);
  const nine = part === "i_like_cats" ? [x, ...(heads > 1 ? stack(heads - 1) : [])] : null;
  const [w_q, w_k, w_v] = nine ? [nine, nine, nine] : [stack(heads), stack(heads), stack(heads)];
  example.projections?.([w_q, w_k, w_v]);

  const sizes: Sizes = { d_model: m, d_head: d, heads, base, causal, most: t, buckets: BUCKETS, reach: REACH };
  const method = METHODS[encoding]!(sizes, drawn);
  const at = range(0, t);
  const position = method.added?.(at);
  const embedded = position ? plus(x, position) : x;
  const of = (w: Matrix[]) => w.map((one) => times(embedded, one));
  const [q, k, v] = [of(w_q), of(w_k), of(w_v)];
  const turned = (all: Matrix[]) => all.map((rows) => rows.map((row, p) => method.turned?.(row, p) ?? row));
  const [q_hat, k_hat] = [turned(q), turned(k)];
  const scaled = every.map((h) => products(q_hat[h]!, k_hat[h]!, 1 / Math.sqrt(d)));
  const added = method.bias && every.map((h) => method.bias!({ h, q: q_hat[h]!, k: k_hat[h]! }, at));
  const scores = added ? scaled.map((one, h) => plus(one, added[h]!)) : scaled;
  const all = attention(beside(q), beside(k), beside(v), heads, method, at, causal);
  const mixed = all.weights.map((one, h) => times(one, v[h]!));
  const attended = every.map((h) => headOf(all.mixed, h, d));
  const blind = withoutPosition(x, [w_q, w_k, w_v], at, causal);

  const arrays = {
    x, embedded, w_q, w_k, w_v, q, k, v, products: scaled, scores, masked: causal ? scores.map((one) => masked(one, at)) : scores, weights: all.weights,
    mixed, attended, out: all.mixed, blind, changed: minus(all.mixed, blind), ...method.own, ...(position && { position }), ...(added && { added }),
    ...(method.turned && { q_hat, k_hat }), ...(method.value && { value_added: attended.map((one, h) => minus(one, mixed[h]!)) }),
    ...(method.terms && { terms: every.map((h) => method.terms!({ h, q: q[h]!, k: k[h]! }, at)).reduce<Matrix[][]>((terms, ofHead) => ofHead.map((one, n) => [...(terms[n] ?? []), one]), []) }),
    ...(encoding === "t5" && { bucket: matrix(t, t, (i, j) => bucketsOf(...BUCKETS, !causal).of(i - j)) }),
  };
  const { formula, sites } = FACTS[encoding]!;
  return {
    arrays: Object.fromEntries(Object.entries(arrays).map(([name, rows]) => [name, rows instanceof Float64Array ? real(rows) : stacked(rows)])),
    python: program(template, [part, ...parts(method, causal), encoding], {
      t, h: heads, m, d, words: tuple(words), query: method.turned ? "q_hat" : "q", key: method.turned ? "k_hat" : "k", masks: causal, requested: "",
      create: created(encoding, sizes),
    }),
    facts: {
      words, d_head: d, encoding, formula, base, n_heads: heads, sites, causal, printed: printed(part, encoding, base, arrays),
      // The weights and values again, one query after the other.
      difference: largest(minus(all.mixed, oneByOne(q_hat, k_hat, v, method, at, causal))),
    },
  };
}

function parts(method: Method, causal: boolean): string[] {
  const sites = [method.added && "added", method.turned && "ROTATE", method.bias ? "BIAS" : "unbiased", method.value && "VALUE"];
  return [causal ? "causal" : "all", method.value ? "finish" : "softmax", ...sites.filter((one) => !!one).map(String)];
}

/** The arguments of posenc.create. */
function created(encoding: string, { d_model, d_head, heads, base, causal, most }: Sizes): string {
  const wide = d_model + (d_model % 2);
  const written: Record<string, string> = {
    sinusoidal: `d_model=${d_model}, base=${float(base)}`, learned: `d_model=${d_model}, max_positions=${most}`, shaw: `d_head=${d_head}, max_distance=${REACH}`,
    transformer_xl: `d_model=${wide}, n_heads=${heads}, d_head=${d_head}, base=${float(base)}`, alibi: `n_heads=${heads}`,
    t5: `n_heads=${heads}, n_buckets=${BUCKETS[0]}, max_distance=${BUCKETS[1]}, bidirectional=${causal ? "False" : "True"}`,
    rope: `d_head=${d_head}, base=${float(base)}, rotary_dim=${d_head - (d_head % 2)}`,
  };
  return [`"${encoding}"`, ...(written[encoding] ? [written[encoding]] : [])].join(", ");
}

function withoutPosition(x: Matrix, projections: Matrix[][], at: number[], causal: boolean): Matrix {
  const [q, k, v] = projections.map((w) => beside(w.map((one) => times(x, one)))) as [Matrix, Matrix, Matrix];
  return attention(q, k, v, projections[0]!.length, { own: {} }, at, causal).mixed;
}

function oneByOne(q: Matrix[], k: Matrix[], v: Matrix[], method: Method, at: number[], causal: boolean): Matrix {
  return beside(q.map((rows, h) => {
    const bias = method.bias?.({ h, q: rows, k: k[h]! }, at);
    const values = (weights: Matrix, i: number) => method.value?.(weights, at)[i];
    return rows.map((row, i) => {
      const sees = at.filter((j) => !causal || j <= i);
      const powers = at.map((j) => (sees.includes(j) ? Math.exp(products([row], [k[h]![j]!])[0]![0]! / Math.sqrt(row.length) + (bias?.[i]![j] ?? 0)) : 0));
      const whole = powers.reduce((a, b) => a + b, 0);
      const mean = row.map((_, c) => at.reduce((sum, j) => sum + (powers[j]! / whole) * v[h]![j]![c]!, 0));
      const more = values(at.map(() => Float64Array.from(powers, (one) => one / whole)), i);
      return more ? mean.map((one, c) => one + more[c]!) : mean;
    });
  }));
}

/** The numbers that note 004 prints, each with whether it is right. */
function printed(part: string, encoding: string, base: number, arrays: Record<string, unknown>): Record<string, [string, string][][]> {
  const digits: Record<string, string[][]> = part === "cat_eats_fish" && encoding === "sinusoidal" && base === 100 ? { position: worked.PRINTED_TABLE, embedded: worked.PRINTED_SUMS }
    : part === "i_like_cats" && encoding === "nope" ? { q: worked.PRINTED_Q } : {};
  return Object.fromEntries(Object.entries(digits).map(([name, rows]) => {
    const found = (name === "q" ? (arrays[name] as Matrix[])[0] : arrays[name]) as Matrix;
    return [name, rows.map((row, i) => row.map((one, c): [string, string] => [one, worked.compared(one, found[i]![c]!)]))];
  }));
}
