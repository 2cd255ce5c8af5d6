import { real, stacked, type Data } from "../data";
import { attention } from "../math/attention";
import { largest, minus, plus, products, range, rowsOf, type Matrix, type Row } from "../math/matrix";
import { METHODS, type Method, type Sizes } from "../math/methods";
import { Generator, wordVectors } from "../math/random";
import { wordsOf } from "../math/words";
import { program, quoted, tuple } from "../program";
import { Said, both } from "../words";
import template from "../../../src/posenc/explorer/views/order.txt";

const [D, HEADS, MOST_AT_ONCE] = [16, 4, 5];

interface Asked {
  sentence: string;
  encoding: string;
  causal: boolean;
  layers: number;
  asked: string;
}

/** Query, key, value and output, [out][in]. */
type Layer = [Matrix, Matrix, Matrix, Matrix];

/** Other encodings are Python's. */
export const only = { encoding: Object.keys(METHODS) };

export function data({ sentence, encoding, causal, layers: count, asked }: Asked): Data {
  if (!/^(\d+(,\d+)*)?$/.test(asked)) throw refused(asked);
  const words = wordsOf(sentence);
  const t = words.length;
  const written = range(0, t);
  const x = wordVectors(words, D);
  const random = new Generator(1);
  const layers = range(0, count).map(() => layer(random));
  const sizes: Sizes = { d_model: D, d_head: D / HEADS, heads: HEADS, base: 10000, causal, most: 2048, buckets: [32, 128], reach: 16 };
  const method = METHODS[encoding]!(sizes, (rows, columns) => rowsOf(random.normal(rows * columns).map((one) => one / 2), columns));

  const asks = t > MOST_AT_ONCE ? some(t, asked) : [...permutations(written)];
  const read = new Map<string, number[]>();
  for (const order of asks) {
    const text = JSON.stringify(order.map((i) => words[i]));
    if (!read.has(text)) read.set(text, order);
  }
  const orders = [...read.values()];
  const take = (rows: Matrix, order: number[]) => order.map((i) => rows[i]!);
  const run = (order: number[], at = written) => output(take(x, order), at, layers, HEADS, method, causal);
  const before = run(written);
  const after = orders.map((order) => run(order));
  const apart = (added: Matrix, order: number[]) => largest(minus(added, take(before.added, order)));
  return {
    arrays: {
      orders: real(orders.flat(), orders.length, t), before: stacked(before.added), after: stacked(after.map(({ added }) => added)),
      weights_before: stacked(before.weights), weights_after: stacked(after.map(({ weights }) => weights)),
      distance: stacked(Float64Array.from(orders, (order, n) => apart(after[n]!.added, order))),
      together: stacked(Float64Array.from(orders, (order) => apart(run(order, order).added, order))),
      rnn: stacked(recurrent(x, orders)),
    },
    python: program(template, [count === 2 ? "two" : "one"], {
      words: tuple(words), causal, layers: count, encoding, own: encoding === "t5" ? `, bidirectional=${causal ? "False" : "True"}` : "", requested: "",
      orders: t > MOST_AT_ONCE ? `[${asks.map((order) => `(${order.join(", ")})`).join(", ")}]` : "itertools.permutations(range(len(words)))",
    }),
    facts: { words },
  };
}

/** As Python's pattern says it. */
function refused(asked: string): Said {
  const said = `asked: String should match pattern '^(\\d+(,\\d+)*)?$', got ${quoted(asked)}`;
  return new Said(both(said, said));
}

function layer(random: Generator): Layer {
  return [0, 1, 2, 3].map(() => normal(random)) as Layer;
}

function normal(random: Generator): Matrix {
  return rowsOf(random.normal(D * D).map((one) => one / Math.sqrt(D)), D);
}

/** What the last layer adds to words that stand at positions `at`, and its weights. */
function output(x: Matrix, at: number[], layers: Layer[], heads: number, method: Method, causal: boolean): { added: Matrix; weights: Matrix[] } {
  if (method.added) x = plus(x, method.added(at));
  let found = { added: x, weights: [] as Matrix[] };
  layers.forEach(([w_q, w_k, w_v, w_o], n) => {
    const { weights, mixed } = attention(products(x, w_q), products(x, w_k), products(x, w_v), heads, method, at, causal);
    found = { added: products(mixed, w_o), weights };
    if (n < layers.length - 1) x = plus(x, found.added);
  });
  return found;
}

/** How far a recurrent network's last state, and attention's mean without positions, lie from those of the written order. */
function recurrent(x: Matrix, orders: number[][]): Matrix {
  const random = new Generator(0);
  const [w, u] = [normal(random), normal(random)];
  const blind = [layer(random)];
  const read = products(x, w);
  const state = (order: number[]) => order.reduce<Row>((h, i) => {
    const kept = products([h], u)[0]!;
    return read[i]!.map((one, n) => Math.tanh(one + kept[n]!));
  }, new Float64Array(D));
  const pooled = (order: number[]) => {
    const { added } = output(order.map((i) => x[i]!), range(0, order.length), blind, 1, { own: {} }, false);
    return Float64Array.from({ length: D }, (_, c) => added.reduce((sum, row) => sum + row[c]!, 0) / order.length);
  };
  const [written] = orders;
  const [last, mean] = [state(written!), pooled(written!)];
  return orders.map((order) => Float64Array.of(largest(minus([state(order)], [last])), largest(minus([pooled(order)], [mean]))));
}

function* permutations(left: number[]): Generator_ {
  if (!left.length) yield [];
  for (const one of left) for (const rest of permutations(left.filter((other) => other !== one))) yield [one, ...rest];
}
type Generator_ = globalThis.Generator<number[], void, unknown>;

/** Orders of a long sentence: as written, reversed, all but the last reversed, and the one that is asked for. */
function some(t: number, asked: string): number[][] {
  const written = range(0, t);
  const typed = asked ? asked.split(",").map(Number) : [];
  const all = [written, [...written].reverse(), [...written.slice(0, -1).reverse(), t - 1]];
  if ([...typed].sort((a, b) => a - b).join() === written.join()) all.push(typed);
  return [...new Map(all.map((order) => [order.join(), order])).values()];
}
