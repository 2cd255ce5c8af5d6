import { real, stacked, type Data } from "../data";
import { weights } from "../math/attention";
import { dot, eye, largest, matrix, minus, plus, products, range, rowsOf, times, type Matrix, type Row } from "../math/matrix";
import { Generator, oneDecimal } from "../math/random";
import { sinusoids } from "../math/sinusoid";
import { sines } from "../math/transformer_xl";
import { wordsOf } from "../math/words";
import { float, program, tuple } from "../program";
import template from "../../../src/posenc/explorer/views/terms.txt";

const D = 4;

export interface Asked {
  sentence: string;
  projection: "drawn" | "identity";
  base: number;
  shift: number;
  seed: number;
}

export function data(asked: Asked): Data {
  const words = wordsOf(asked.sentence);
  const here = termsOf(asked, words);
  const unmoved = asked.shift ? termsOf({ ...asked, shift: 0 }, words) : here;
  const { x, p, w_q, w_k, w_r, q_x, q_p, k_x, k_p, r, stages, absolute_score, relative_score } = here;
  const facts = stages.map((terms, n) => ({
    moved: terms.map((term, of) => largest(minus(term, unmoved.stages[n]![of]!))), along_diagonals: terms.map(alongDiagonals),
  }));
  const whole = { 0: absolute_score, 3: relative_score };
  for (const [stage, score] of Object.entries(whole)) Object.assign(facts[Number(stage)]!, { difference: largest(minus(plus(...stages[Number(stage)]!), score)) });
  return {
    arrays: {
      ...Object.fromEntries(Object.entries({ x, p, w_q, w_k, w_r, q_x, q_p, k_x, k_p, r, absolute_score, relative_score }).map(([name, rows]) => [name, stacked(rows)])),
      u: real(here.u), v: real(here.v), stages: stacked(stages), absolute_weights: stacked(weights(absolute_score)), relative_weights: stacked(weights(relative_score)),
    },
    python: printed(asked, words, "terms"),
    facts: { words, stages: facts },
  };
}

export function printed({ projection, seed, shift, base }: Asked, words: string[], ...parts: string[]): string {
  return program(template, [projection, ...parts], { seed, words: tuple(words), count: words.length, shift, base: float(base) });
}

/** Words, positions and projections, and what is projected. */
export function setup({ projection, base, shift, seed }: Asked, words: string[]) {
  const random = new Generator(seed);
  const drawn = (count: number) => rowsOf(random.normal(count * D).map(oneDecimal), D);
  const vectors = new Map<string, Row>();
  for (const word of new Set(words)) vectors.set(word, drawn(1)[0]!);
  const x = words.map((word) => vectors.get(word)!);
  const [u, v] = drawn(2) as [Row, Row];
  const all = projection === "drawn" ? drawn(3 * D) : [...eye(D), ...eye(D), ...eye(D)];
  const [w_q, w_k, w_r] = [0, 1, 2].map((n) => all.slice(n * D, (n + 1) * D)) as [Matrix, Matrix, Matrix];
  const p = rowsOf(sinusoids(words.length, D, base, shift), D);
  return { x, u, v, w_q, w_k, w_r, p, q_x: times(x, w_q), q_p: times(p, w_q), k_x: times(x, w_k), k_p: times(p, w_k) };
}

function termsOf(asked: Asked, words: string[]) {
  const all = setup(asked, words);
  const { x, u, v, w_q, w_k, w_r, p, q_x, q_p, k_x, k_p } = all;
  const t = words.length;
  const over = (a: Matrix, b: Matrix) => products(a, b, 1 / Math.sqrt(D));
  const r = times(range(1 - t, t).map((distance) => sines(distance, D, asked.base)), w_r);
  const between = (of: (i: number) => Row) => matrix(t, t, (i, j) => dot(of(i), r[i - j + t - 1]!) / Math.sqrt(D));
  const absolute = [over(q_x, k_x), over(q_x, k_p), over(q_p, k_x), over(q_p, k_p)] as const;
  const [byWord, byPlace] = [between((i) => q_x[i]!), between((i) => q_p[i]!)];
  const [ofWord, ofDistance] = [matrix(t, t, (_, j) => dot(u, k_x[j]!) / Math.sqrt(D)), between(() => v)];
  const stages = [
    [...absolute],
    [absolute[0], byWord, absolute[2], byPlace],
    [absolute[0], byWord, ofWord, byPlace],
    [absolute[0], byWord, ofWord, ofDistance],
  ];
  // (q_i + u)·k_j + (q_i + v)·W_R R_{i-j}, not from the terms
  const relativeScore = plus(over(besides(q_x, u), k_x), between((i) => besides(q_x, v)[i]!));
  return { ...all, r, stages, absolute_score: over(times(plus(x, p), w_q), times(plus(x, p), w_k)), relative_score: relativeScore };
}

/** The vector added to every row. */
function besides(rows: Matrix, one: Row): Matrix {
  return rows.map((row) => row.map((x, c) => x + one[c]!));
}

/** The largest difference between entries with the same i - j. */
function alongDiagonals(term: Matrix): number {
  const t = term.length;
  return Math.max(...range(1 - t, t).map((apart) => {
    const along = range(Math.max(apart, 0), Math.min(t, t + apart)).map((i) => term[i]![i - apart]!);
    return Math.max(...along) - Math.min(...along);
  }));
}
