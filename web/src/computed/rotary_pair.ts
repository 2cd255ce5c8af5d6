import { real, stacked, type Data } from "../data";
import { rotary } from "../math/frequencies";
import { dot, norm, products, range, rowsOf, type Matrix, type Row } from "../math/matrix";
import { Generator, wordVectors } from "../math/random";
import { scoresOfPairs, turned } from "../math/rotation";
import { sinusoids } from "../math/sinusoid";
import { wordsOf } from "../math/words";
import { AI_IS_GROWING, KEYS, QUERY } from "../math/worked";
import { float, program, tuple } from "../program";
import template from "../../../src/posenc/explorer/views/rotary_pair.txt";

const LENGTH = 41;
/** 正在 */
const ASKING = 2;

interface Asked {
  sentence: string;
  d_head: number;
  base: number;
  asking: number;
  word: number;
}

export function data(asked: Asked): Data {
  const { d_head: d, base } = asked;
  const words = wordsOf(asked.sentence);
  const [asking, word] = [asked.asking, asked.word].map((n) => Math.min(n, words.length - 1)) as [number, number];
  const ofTheNote = asking === ASKING && AI_IS_GROWING.includes(words.join(" "));
  const [part, q, keys] = !ofTheNote ? (["words", wordVectors([words[asking]!], d)[0]!, wordVectors(words, d, 1)] as const)
    : d === QUERY.length ? (["note", QUERY, KEYS] as const) : drawn(d);
  const k = keys[word]!;
  const omega = rotary(d, base);
  const places = range(0, LENGTH);
  const [qTurned, kTurned] = [q, k].map((one) => places.map((p) => turned(one, p, omega))) as [Matrix, Matrix];
  const ofPairs = range(1 - LENGTH, LENGTH).map((lag) => scoresOfPairs(q, k, lag, omega));
  const table = rowsOf(sinusoids(LENGTH, d, base), d);
  const added = (one: Row) => table.map((row) => row.map((x, c) => x + one[c]!));
  const around = places.map((m) => Float64Array.from(keys, (key, n) => dot(turned(key, m + n - asking, omega), qTurned[m]!)));
  return {
    arrays: {
      q: real(q), k: real(k), omega: real(omega), q_turned: stacked(qTurned), k_turned: stacked(kTurned), scores: stacked(products(qTurned, kTurned)),
      pair_scores: stacked(range(0, d / 2).map((pair) => Float64Array.from(ofPairs, (all) => all[pair]!))),
      lag_scores: real(ofPairs.map((all) => all.reduce((a, b) => a + b, 0))), sentence: stacked(around), lengths: real(qTurned.map(norm)),
      added_scores: stacked(products(added(q), added(k))), added_lengths: real(added(q).map(norm)),
    },
    python: program(template, [part], {
      words: tuple(words), word, key_word: words[word]!, asking, asking_word: words[asking]!, after_asking: asking + 1,
      first: -asking, last: words.length - asking, count: words.length, d, pairs: d / 2, base: float(base),
    }),
    facts: { words, asking, word },
  };
}

function drawn(d: number): readonly ["drawn", Row, Matrix] {
  const [q, ...keys] = rowsOf(new Generator(0).normal(6 * d), d);
  return ["drawn", q!, keys];
}
