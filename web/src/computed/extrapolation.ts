import { real, stacked, type Data } from "../data";
import { rotary } from "../math/frequencies";
import { FEW, MANY, ntkBase, scaled, yarnMagnitude, yarnRange, type Scaling } from "../math/scaled";
import { float, general, program } from "../program";
import { once, type Records } from "../records";
import type { State } from "../source";
import template from "../../../src/posenc/explorer/views/extrapolation.txt";

const TURN = 2 * Math.PI;

interface Asked {
  d: number;
  base: number;
  trained: number;
  factor: number;
  task: string;
}

interface Arm {
  cells: { mean?: number; seeds?: number[]; interval?: [number, number] }[];
}

interface Task {
  name: string;
  experiment: string;
  lengths: number[];
  arms: Arm[];
  after: Arm[];
}

interface Digest {
  tasks: Task[];
  experiments: { name: string }[];
}

const digest = once("catalogue/measured.json", async (bytes): Promise<Digest> => JSON.parse(new TextDecoder().decode(bytes)));

/** Configurations are read by Python. */
export function can({ config }: State): boolean {
  return !String(config).trim();
}

export async function data({ d, base, trained, factor, task: name }: Asked, records: Records): Promise<Data> {
  const { tasks, experiments } = await digest(records);
  const task = tasks.find((one) => one.name === name)!;
  const plain = rotary(d, base);
  const ways = methods(d, base, trained, factor);
  const omega = ways.map(({ how }) => scaled(how, d, base, factor, trained));
  const covered = plain.map((one) => Math.min(one * trained, TURN));
  const atTarget = omega.map((way) => way.map((one) => one * trained * factor));
  const [arms, after] = [curves(task.arms, task.lengths.length), curves(task.after, task.lengths.length)];
  return {
    arrays: {
      omega: stacked(omega), in_training: real(plain.map((one) => one * trained)), at_target: stacked(atTarget), covered: real(covered),
      new: stacked(atTarget.map((way) => way.map((angle, i) => Math.max(Math.min(angle, TURN) - covered[i]!, 0)))),
      ...arms, changed: after.mean!, changed_seeds: after.seeds!,
    },
    python: program(template, [], { d, base: float(base), trained, factor: float(factor), task: name }),
    facts: {
      d, base, trained, family: "", unfinished: plain.filter((one) => TURN / one > trained).length, ntk_base: ntkBase(d, base, factor), ramp: yarnRange(d, base, trained),
      llama3: [FEW, MANY], methods: ways.map(({ how: _, ...way }) => way), task, measured: experiments.find((one) => one.name === task.experiment)!,
    },
  };
}

/** Each way, and what Python says of its numbers. */
function methods(d: number, base: number, trained: number, factor: number) {
  const [start, s, none] = [`rotary(d=${d}, base=${general(base)})`, general(factor), "none asked for"];
  const way = (how: Scaling, name: string, then: string) => ({
    how, name, cos_sin_scale: 1, cos_sin_scale_from: none, softmax_scale: 1, softmax_scale_from: none, values_from: then ? `${start}, ${then}` : start,
  });
  return [
    way("none", "none", ""), way("pi", "linear", `linear(factor=${s})`), way("ntk", "ntk", `ntk(factor=${s}): base ${general(ntkBase(d, base, factor), 8)}`),
    { ...way("yarn", "yarn", `yarn(factor=${s}, trained_length=${trained}, beta_fast=32, beta_slow=1, truncate=True)`), cos_sin_scale: yarnMagnitude(factor), cos_sin_scale_from: `yarn, 1 + 0.1·ln(factor=${s})` },
    way("llama3", "llama3", `llama3(factor=${s}, low_freq_factor=${FEW}, high_freq_factor=${MANY}, trained_length=${trained})`),
  ];
}

/** By arm and length, and by arm, seed and length; NaN where nothing was measured. */
function curves(arms: Arm[], lengths: number): Data["arrays"] {
  const several = Math.max(0, ...arms.flatMap(({ cells }) => cells.map(({ seeds }) => seeds?.length ?? 0)));
  const [mean, low, high, seeds] = [1, 1, 1, several].map((of) => new Float64Array(arms.length * of * lengths).fill(NaN)) as [Float64Array, Float64Array, Float64Array, Float64Array];
  arms.forEach(({ cells }, a) => cells.forEach((cell, n) => {
    const at = a * lengths + n;
    if (cell.mean !== undefined) mean[at] = cell.mean;
    cell.seeds?.forEach((value, seed) => void (seeds[(a * several + seed) * lengths + n] = value));
    if (cell.interval) [low[at], high[at]] = cell.interval;
  }));
  const shape = [arms.length, lengths] as const;
  return { mean: real(mean, ...shape), low: real(low, ...shape), high: real(high, ...shape), seeds: real(seeds, arms.length, several, lengths) };
}
