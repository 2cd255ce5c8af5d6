import { real, stacked, type Data } from "../data";
import { attended, weights } from "../math/attention";
import { largest, minus, plus, products, range, scaled, times, type Matrix } from "../math/matrix";
import { wordsOf } from "../math/words";
import { program } from "../program";
import { printed, setup, type Asked } from "./terms";
import template from "../../../src/posenc/explorer/views/taylor.txt";

const D = 4;

export function data(asked: Asked): Data {
  const words = wordsOf(asked.sentence);
  const { x, p, w_q, w_k } = setup(asked, words);
  const score = (a: Matrix, b: Matrix) => products(times(a, w_q), times(b, w_k), 1 / Math.sqrt(D));
  const attention = weights(score(x, x));
  const mean = (of: Matrix) => of.map((row, i) => row.reduce((sum, one, j) => sum + one * attention[i]![j]!, 0));
  const less = (of: Matrix, by: number[]) => of.map((row, i) => row.map((one) => one - by[i]!));
  const weighted = (of: Matrix) => of.map((row, i) => row.map((one, j) => one * attention[i]![j]!));

  /** The coefficients of ε⁰, ε¹ and ε² where every position is multiplied by ε. */
  function orders(at: Matrix): [Matrix, Matrix, Matrix] {
    const towards = plus(score(x, at), score(at, x));
    const slope = less(towards, mean(towards));
    const curve = plus(score(at, at), slope.map((row) => row.map((one) => one ** 2 / 2)));
    const [w1, w2] = [weighted(slope), weighted(less(curve, mean(curve)))];
    return [times(attention, x), plus(times(attention, at), times(w1, x)), plus(times(w1, at), times(w2, x))];
  }
  const output = (at: Matrix) => times(weights(score(at, at)), at);

  const [value, first, second] = orders(p);
  const own = plus(...range(0, words.length).map((m) => orders(p.map((row, n) => (n === m ? row : new Float64Array(D))))[2]));
  const mixed = minus(second, own);
  const epsilon = range(0, 9).map((n) => 10 ** (-2 + n / 4));
  const after = epsilon.map((e) => {
    const afterFirst = minus(minus(output(plus(x, scaled(p, e))), value), scaled(first, e));
    return [afterFirst, minus(afterFirst, scaled(second, e ** 2)), minus(afterFirst, scaled(plus(own, second), e ** 2))] as const;
  });
  const terms = [score(x, x), plus(score(x, p), score(p, x)), score(p, p)];
  return {
    arrays: {
      orders: real([value, first, own, mixed, after.at(-1)![1]].map(size)), score: real(terms.map(size)), epsilon: real(epsilon),
      left_out: stacked([0, 1, 2].map((n) => Float64Array.from(after, (all) => size(all[n]!)))),
    },
    python: `${printed(asked, words)}\n\n${program(template, [], { count: words.length })}`,
    // Against the sum of the terms, as Python's against its library.
    facts: { words, output_difference: largest(minus(output(plus(x, p)), attended(plus(terms[0]!, terms[1]!, terms[2]!), plus(x, p)))) },
  };
}


function size(a: Matrix): number {
  return Math.hypot(...a.map((row) => Math.hypot(...row)));
}
