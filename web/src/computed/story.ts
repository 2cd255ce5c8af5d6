import { real, stacked, type Data } from "../data";
import { slopes as slopesOf } from "../math/alibi";
import { attended, masked, weights } from "../math/attention";
import { rotary } from "../math/frequencies";
import { largest, matrix, minus, norm, plus, products, range, rowsOf, times, transposed, type Matrix } from "../math/matrix";
import { wordVectors } from "../math/random";
import { turned } from "../math/rotation";
import { shiftMatrix, sinusoids } from "../math/sinusoid";
import { wordsOf } from "../math/words";
import { program, tuple } from "../program";
import template from "../../../src/posenc/explorer/views/story.txt";

const [D, BASE, LENGTH, STARTS, SHIFTS, HEADS] = [8, 100, 64, 33, 9, 8];

export function data({ sentence }: { sentence: string }): Data {
  const words = wordsOf(sentence);
  const count = words.length;
  const [q, k, v] = [1, 2, 0].map((seed) => wordVectors(words, D, seed)) as [Matrix, Matrix, Matrix];
  const scores = (queries: Matrix, keys: Matrix) => products(queries, keys, 1 / Math.sqrt(D));
  /** Of the words as written, and backwards. */
  const both = (attention: (q: Matrix, k: Matrix, v: Matrix) => Matrix) => [attention(q, k, v), attention(q.toReversed(), k.toReversed(), v.toReversed())];
  const omega = rotary(D, BASE);
  const table = rowsOf(sinusoids(LENGTH, D, BASE), D);
  const rotated = range(0, STARTS).map((start) => {
    const [at, to] = [q, k].map((one) => one.map((row, n) => turned(row, start + n, omega))) as [Matrix, Matrix];
    return scores(at, to);
  });
  const added = range(0, STARTS).map((start) => {
    const rows = table.slice(start, start + count);
    return scores(plus(q, rows), plus(k, rows));
  });
  const slopes = [0, ...slopesOf(HEADS)];
  const penalised = (slope: number) => (queries: Matrix, keys: Matrix) => masked(plus(scores(queries, keys), matrix(count, count, (i, j) => -slope * Math.abs(i - j))));
  const logits = slopes.map((slope) => penalised(slope)(q, k));
  return {
    arrays: {
      bag: stacked(both((a, b, values) => attended(scores(a, b), values))), omega: real(omega), table: stacked(table), closest: real([closest(table)]),
      missed: real(range(0, SHIFTS).map((shift) => missed(table, shift))), rotated: stacked(rotated), added: stacked(added), slopes: real(slopes),
      logits: stacked(logits), weights: stacked(logits.map(weights)), seen: stacked(slopes.map((slope) => both((a, b, values) => attended(penalised(slope)(a, b), values)))),
    },
    python: program(template, [], { words: tuple(words) }),
    facts: { words },
  };
}

function closest(table: Matrix): number {
  return Math.min(...table.flatMap((one, n) => table.slice(n + 1).map((other) => norm(one.map((x, c) => x - other[c]!)))));
}

/** max|M_k·PE(p) - PE(p + k)| */
function missed(table: Matrix, shift: number): number {
  const moved = times(table.slice(0, 55), transposed(rowsOf(shiftMatrix(shift, D, BASE), D)));
  return largest(minus(moved, table.slice(shift, 55 + shift)));
}
