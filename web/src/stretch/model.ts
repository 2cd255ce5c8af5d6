// The lab's Transformer on bytes (explorer/stretch.py), in fp64 as there: RMSNorm, attention with ALiBi or RoPE, GELU, and a
// cache of keys and values. Bytes that are read together go through each layer together.

import { slopes } from "../math/alibi";
import { gelu } from "../math/gelu";
import { scaled, yarnMagnitude } from "../math/scaled";
import { D, MOST_SCORES, WIDTH, type Kernel } from "./kernel";

export const [HEADS, LAYERS, BYTES, WIDENING] = [D / WIDTH, 4, 256, 4];
export const [TRAINED, LONGEST] = [128, 1024];
const [BASE, EPSILON] = [10000, 2 ** -52];

export type Weights = Record<string, Float64Array>;

/** RoPE for texts of `factor` times the trained length is YaRN. */
export type Positions = { kind: "alibi" } | { kind: "rope"; factor: number };

/** What all models write into while they read. */
export class Desk {
  readonly x: Float64Array;
  readonly h: Float64Array;
  readonly seen: Float64Array;
  readonly qkv: Float64Array;
  readonly wide: Float64Array;
  readonly logits: Float64Array;

  constructor(kernel: Kernel) {
    const rows = (columns: number) => kernel.room(LONGEST * columns);
    [this.x, this.h, this.seen] = [rows(D), rows(D), rows(D)];
    [this.qkv, this.wide, this.logits] = [rows(3 * D), rows(WIDENING * D), rows(BYTES)];
  }
}

const DESK = LONGEST * (3 * D + 3 * D + WIDENING * D + BYTES);
const CACHE = 2 * LAYERS * LONGEST * D;

/** Numbers that so many models with these weights need. */
export function needs(models: number, weights: Weights[]): number {
  const count = (all: Weights) => Object.values(all).reduce((sum, one) => sum + one.length + 1, 0);
  return DESK + models * CACHE + weights.map(count).reduce((a, b) => a + b, 0) + MOST_SCORES;
}

export class Model {
  private readonly keys: Float64Array[];
  private readonly values: Float64Array[];
  private readonly slopes = slopes(HEADS);
  private omega: Float64Array = new Float64Array();
  private magnitude = 1;
  private positions: Positions = { kind: "alibi" };
  /** Bytes that have been read. */
  length = 0;

  /** The weights lie in the kernel's memory. */
  constructor(private readonly kernel: Kernel, private readonly desk: Desk, private readonly weights: Weights) {
    const cache = () => Array.from({ length: LAYERS }, () => kernel.room(LONGEST * D));
    [this.keys, this.values] = [cache(), cache()];
  }

  /** Forgets what it has read. */
  begin(positions: Positions): void {
    this.length = 0;
    this.positions = positions;
    if (positions.kind === "alibi") return;
    this.omega = scaled(positions.factor === 1 ? "none" : "yarn", WIDTH, BASE, positions.factor, TRAINED);
    this.magnitude = yarnMagnitude(positions.factor);
  }

  /** Logits of the byte after each of these, [t][256]; until the next call. */
  read(bytes: ArrayLike<number>): Float64Array {
    const { kernel, weights, length } = this;
    const { h, seen, qkv, wide, logits } = this.desk;
    const t = bytes.length;
    const x = this.desk.x.subarray(0, t * D);
    for (let p = 0; p < t; p++) x.set(weights["embedding.weight"]!.subarray(bytes[p]! * D, (bytes[p]! + 1) * D), p * D);
    for (let n = 0; n < LAYERS; n++) {
      const of = (name: string) => weights[`layers.${n}.${name}`]!;
      const [keys, values] = [this.keys[n]!, this.values[n]!];
      normed(x, of("before_attention.gain"), h);
      kernel.linear(h, of("qkv.weight"), t, D, 3 * D, qkv);
      if (this.positions.kind === "rope") this.turn(qkv, t);
      for (let p = 0; p < t; p++) {
        keys.set(qkv.subarray((3 * p + 1) * D, (3 * p + 2) * D), (length + p) * D);
        values.set(qkv.subarray((3 * p + 2) * D, (3 * p + 3) * D), (length + p) * D);
      }
      for (let head = 0; head < HEADS; head++) {
        const [start, slope] = [head * WIDTH, this.positions.kind === "alibi" ? this.slopes[head]! : 0];
        kernel.attend(qkv.subarray(start), keys.subarray(start), values.subarray(start), t, length, 3 * D, slope, seen.subarray(start));
      }
      kernel.linear(seen, of("out.weight"), t, D, D, h);
      add(h, x);
      normed(x, of("before_mlp.gain"), h);
      kernel.linear(h, of("up.weight"), t, D, WIDENING * D, wide);
      for (let i = 0; i < t * WIDENING * D; i++) wide[i] = gelu(wide[i]!);
      kernel.linear(wide, of("down.weight"), t, WIDENING * D, D, h);
      add(h, x);
    }
    normed(x, weights["last_norm.gain"]!, h);
    kernel.linear(h, weights["head.weight"]!, t, D, BYTES, logits);
    this.length += t;
    return logits.subarray(0, t * BYTES);
  }

  /** Pairs of neighbouring channels of the queries, then of the keys. */
  private turn(qkv: Float64Array, t: number): void {
    for (let p = 0; p < t; p++) {
      this.omega.forEach((omega, i) => {
        const angle = (this.length + p) * omega;
        const [cos, sin] = [Math.cos(angle) * this.magnitude, Math.sin(angle) * this.magnitude];
        for (let head = 0; head < 2 * HEADS; head++) {
          const at = p * 3 * D + head * WIDTH + 2 * i;
          const [a, b] = [qkv[at]!, qkv[at + 1]!];
          qkv[at] = a * cos - b * sin;
          qkv[at + 1] = a * sin + b * cos;
        }
      });
    }
  }
}

function add(from: Float64Array, to: Float64Array): void {
  for (let i = 0; i < to.length; i++) to[i]! += from[i]!;
}

function normed(x: Float64Array, gain: Float64Array, y: Float64Array): void {
  for (let start = 0; start < x.length; start += D) {
    let sum = 0;
    for (let n = 0; n < D; n++) sum += x[start + n]! * x[start + n]!;
    const scale = 1 / Math.sqrt(sum / D + EPSILON);
    for (let n = 0; n < D; n++) y[start + n] = x[start + n]! * scale * gain[n]!;
  }
}

/** The most probable byte after the p-th. */
export function best(logits: Float64Array, p: number): number {
  let found = 0;
  for (let n = 1; n < BYTES; n++) if (logits[p * BYTES + n]! > logits[p * BYTES + found]!) found = n;
  return found;
}

/** -log₂ of the probability of every byte but the first. */
export function bitsOf(logits: Float64Array, bytes: ArrayLike<number>): Float64Array {
  return Float64Array.from({ length: bytes.length - 1 }, (_, p) => {
    const row = logits.subarray(p * BYTES, (p + 1) * BYTES);
    const most = row.reduce((a, b) => Math.max(a, b));
    const sum = row.reduce((all, one) => all + Math.exp(one - most), 0);
    return (most + Math.log(sum) - row[bytes[p + 1]!]!) / Math.LN2;
  });
}
