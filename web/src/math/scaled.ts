// Ways to let RoPE read s times the trained length L, from its frequencies ω_i:
//
//   PI       ω_i / s                                 every clock slower
//   NTK      base·s^(d/(d-2)) for the base           the slowest clock s times slower, the fastest as it was
//   YaRN     ω_i(1 - γ_i) + ω_i/s·γ_i                clocks of less than one turn in L slower, those of 32 turns as they were
//   Llama 3  ω_i(1 - κ_i)/s + ω_i·κ_i                the same by turns in L: κ from 0 at one turn to 1 at four

import { rotary } from "./frequencies";

export type Scaling = "none" | "pi" | "ntk" | "yarn" | "llama3";

const [FAST, SLOW] = [32, 1]; // YaRN's turns in L
export const [FEW, MANY] = [1, 4]; // Llama 3's

export function scaled(how: Scaling, d: number, base: number, s: number, trained: number): Float64Array {
  const omega = rotary(d, base);
  if (how === "pi") return omega.map((one) => one / s);
  if (how === "ntk") return rotary(d, ntkBase(d, base, s));
  if (how === "none") return omega;
  const [low, high] = yarnRange(d, base, trained);
  return omega.map((one, i) => {
    if (how === "yarn") {
      const gamma = clipped((i - low) / (high - low));
      return one * (1 - gamma) + (one / s) * gamma;
    }
    const kappa = clipped(((trained * one) / (2 * Math.PI) - FEW) / (MANY - FEW));
    return ((1 - kappa) * one) / s + kappa * one;
  });
}

export function ntkBase(d: number, base: number, s: number): number {
  return base * s ** (d / (d - 2));
}

/** The pairs at which YaRN's γ begins to rise, and is 1. */
export function yarnRange(d: number, base: number, trained: number): [number, number] {
  const pair = (turns: number) => (d * Math.log(trained / (2 * Math.PI * turns))) / (2 * Math.log(base));
  const low = Math.max(Math.floor(pair(FAST)), 0);
  const high = Math.min(Math.ceil(pair(SLOW)), d - 1);
  return [low, high === low ? high + 0.001 : high];
}

/** What YaRN multiplies cosines and sines with. */
export function yarnMagnitude(s: number): number {
  return s <= 1 ? 1 : 0.1 * Math.log(s) + 1;
}

function clipped(x: number): number {
  return Math.min(Math.max(x, 0), 1);
}
