import { real, stacked, type Data } from "../data";
import { attention } from "../math/attention";
import { gelu } from "../math/gelu";
import { split, type Task } from "../math/known_words";
import { plus, products, range, rowsOf, type Matrix, type Row } from "../math/matrix";
import { METHODS, type Method } from "../math/methods";
import { archive, type Archive, type Stored } from "../npz";
import { program, quoted } from "../program";
import { once, type Records } from "../records";
import template from "../../../src/posenc/explorer/views/heads.txt";

const LINKS: Record<Task, string[]> = { descriptions: ["to_noun", "to_adjective"], reviews: ["to_noun", "to_adjective"], translation: ["to_translated"] };
const MOST_WORDS = 24;

interface About {
  tasks: Record<Task, { vocabulary: string[]; asked: string[]; training: unknown; settings: { held_out: number }; date: string }>;
  size: { d_model: number; n_heads: number; n_layers: number };
  steps: number[];
  seed: number;
  preset: string;
}

const trained = once("explorer/trained_words.npz", async (bytes) => {
  const file = archive(bytes);
  return { file, about: (await file.json("about")) as About };
});

export async function data({ sentence, encoding }: { sentence: string; encoding: string }, records: Records): Promise<Data> {
  const { file, about } = await trained(records);
  const { task, words } = split(sentence, (one) => about.tasks[one].vocabulary);
  const names = ["nope", encoding].map((one) => `${task}.${one}`);
  const [without, withPositions] = (await Promise.all(["nope", encoding].map(async (one) => read(await model(file, about, task, one), words)))) as [Read, Read];
  const both = async (name: string) => {
    const [first, second] = (await Promise.all(names.map((one) => file.array(`${one}.${name}`)))) as [Stored, Stored];
    return real([...first.values, ...second.values], 2, ...first.shape);
  };
  const { vocabulary, asked, training, settings, date } = about.tasks[task];
  const { steps, size, seed, preset } = about;
  const { values: uniform } = await file.array(`${task}.uniform`);
  return {
    arrays: {
      weights_without: stacked(without.weights), weights_with: stacked(withPositions.weights), chances_without: real(without.chances), chances_with: real(withPositions.chances),
      attention: await both("attention"), linked: await both("linked"), right: await both("right"), uniform: real(uniform),
    },
    python: program(template, [], { sentence: quoted(sentence), encoding }),
    facts: {
      task, unknown: byLetters([...new Set(words)].filter((word) => !vocabulary.includes(word))), reads: [without, withPositions].map(({ words, answers }) => ({ words, answers })),
      links: LINKS[task], asked, vocabulary, training, held_out: settings.held_out, date, steps, size, seed, preset,
    },
  };
}

/** As Python sorts texts: by their characters, not by JavaScript's halves of them. */
function byLetters(words: string[]): string[] {
  const points = (word: string) => [...word].map((letter) => letter.codePointAt(0)!.toString(16).padStart(6, "0")).join("");
  return words.sort((a, b) => (points(a) < points(b) ? -1 : 1));
}

interface Model {
  task: Task;
  vocabulary: string[];
  heads: number;
  layers: number;
  method: Method;
  weights: Map<string, Matrix>;
}

async function model(file: Archive, { size, tasks }: About, task: Task, encoding: string): Promise<Model> {
  const start = `${task}.${encoding}.`;
  const names = file.names.filter((name) => name.startsWith(start) && /weight$|gain$/.test(name));
  const weights = await Promise.all(names.map(async (name): Promise<[string, Matrix]> => {
    const { shape, values } = await file.array(name);
    return [name.slice(start.length), rowsOf(values as Float64Array, shape.at(-1)!)];
  }));
  const { d_model, n_heads: heads, n_layers: layers } = size;
  const method = METHODS[encoding]!({ d_model, d_head: d_model / heads, heads, base: 10000, causal: task === "translation", most: 0, buckets: [0, 0], reach: 0 }, () => []);
  return { task, vocabulary: tasks[task].vocabulary, heads, layers, method, weights: new Map(weights) };
}

interface Read {
  words: string[];
  /** [layer][head] */
  weights: Matrix[][];
  answers: string[];
  chances: number[];
}

/** A translation is written word by word, always the most probable one. */
function read(model: Model, words: string[]): Read {
  if (model.task === "translation") {
    words = [...words, "→"];
    while (words.at(-1) !== "。" && words.length < 2 * MOST_WORDS) words = [...words, look(model, words).answers.at(-1)!];
  }
  return look(model, words);
}

function look({ task, vocabulary, heads, layers, method, weights }: Model, words: string[]): Read {
  const w = (name: string) => weights.get(name)!;
  const gain = (name: string) => w(name)[0]!;
  const at = range(0, words.length);
  const table = w("embedding.weight");
  const blank = new Float64Array(table[0]!.length);
  let x = words.map((word) => table[vocabulary.indexOf(word)] ?? blank);
  if (method.added) x = plus(x, method.added(at));
  const seen = range(0, layers).map((n) => {
    const of = (name: string) => `layers.${n}.${name}`;
    const all = products(normed(x, gain(of("before_attention.gain"))), w(of("qkv.weight")));
    const [q, k, v] = [0, 1, 2].map((part) => all.map((row) => row.subarray((part * row.length) / 3, ((part + 1) * row.length) / 3))) as [Matrix, Matrix, Matrix];
    const found = attention(q, k, v, heads, method, at, task === "translation");
    x = plus(x, products(found.mixed, w(of("out.weight"))));
    const wide = products(normed(x, gain(of("before_mlp.gain"))), w(of("up.weight"))).map((row) => row.map(gelu));
    x = plus(x, products(wide, w(of("down.weight"))));
    return found.weights;
  });
  const logits = products(normed(x, gain("last_norm.gain")), w("head.weight"));
  const best = logits.map((row) => row.indexOf(Math.max(...row)));
  const chances = logits.map((row, i) => 1 / row.reduce((sum, one) => sum + Math.exp(one - row[best[i]!]!), 0));
  return { words, weights: seen, answers: best.map((n) => vocabulary[n]!), chances };
}

/** RMSNorm */
function normed(x: Matrix, gain: Row): Matrix {
  return x.map((row) => {
    const scale = 1 / Math.sqrt(row.reduce((sum, one) => sum + one * one, 0) / row.length + 2 ** -52);
    return row.map((one, n) => one * scale * gain[n]!);
  });
}
