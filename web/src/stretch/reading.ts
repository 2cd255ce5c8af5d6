// What the three models do with a text, in the order in which a reader sees it: first they read, then they write byte by byte.

import { archive } from "../npz";
import { compiled, plain, type Kernel } from "./kernel";
import { best, bitsOf, Desk, Model, needs, type Positions, type Weights } from "./model";

export const WRITTEN = 64; // bytes that a model writes

export interface Question {
  prompt: Uint8Array;
  /** The end of it, of the trained length. */
  short: Uint8Array;
  /** YaRN's */
  factor: number;
}

/** So far, of ALiBi, RoPE, and RoPE with YaRN. */
export interface Reading {
  /** Of every byte of the prompt but the first. */
  bits: Float64Array[];
  /** The same of the short prompt, where YaRN is RoPE. */
  short: Float64Array[];
  written: number[][];
}

export type Readings = (question: Question) => Generator<Reading>;

/** Of the models of stretch.npz. */
export async function opened(file: ArrayBuffer): Promise<Readings> {
  const stored = archive(file);
  const of = async (model: string): Promise<Weights> => {
    const names = stored.names.filter((name) => name.startsWith(`${model}.`));
    return Object.fromEntries(await Promise.all(names.map(async (name) => [name.slice(model.length + 1), (await stored.array(name)).values as Float64Array])));
  };
  const both = await Promise.all([of("alibi"), of("rope")]);
  const kernel = await compiled(needs(3, both)).catch(plain);
  const [alibi, rope] = both.map((weights) => placed(kernel, weights)) as [Weights, Weights];
  const desk = new Desk(kernel);
  const models = [alibi, rope, rope].map((weights) => new Model(kernel, desk, weights)) as [Model, Model, Model];
  return (question) => readings(models, question);
}

function placed(kernel: Kernel, weights: Weights): Weights {
  return Object.fromEntries(Object.entries(weights).map(([name, values]) => {
    const room = kernel.room(values.length);
    room.set(values);
    return [name, room];
  }));
}

function* readings(models: [Model, Model, Model], { prompt, short, factor }: Question): Generator<Reading> {
  const reading: Reading = { bits: [], short: [], written: [] };
  const read = (model: Model, positions: Positions, text: Uint8Array) => {
    model.begin(positions);
    return model.read(text);
  };
  const ways: Positions[] = [{ kind: "alibi" }, { kind: "rope", factor: 1 }, { kind: "rope", factor }];
  for (const n of [0, 1]) reading.short.push(bitsOf(read(models[n]!, ways[n]!, short), short));
  reading.short.push(reading.short[1]!);
  models.forEach((model, n) => {
    const logits = read(model, ways[n]!, prompt);
    reading.bits.push(bitsOf(logits, prompt));
    reading.written.push([best(logits, prompt.length - 1)]);
  });
  yield reading;
  for (let count = 1; count < WRITTEN; count++) {
    models.forEach((model, n) => reading.written[n]!.push(best(model.read([reading.written[n]!.at(-1)!]), 0)));
    yield reading;
  }
}
