// Three ways to let RoPE read s times the trained length L, from its frequencies ω_i:
//
//   PI     ω_i / s                                   every clock slower
//   NTK    base·s^(d/(d-2)) for the base             the slowest clock s times slower, the fastest as it was
//   YaRN   ω_i(1 - γ_i) + ω_i/s·γ_i                  clocks of less than one turn in L slower, those of 32 turns as they were

import { rotary } from "./frequencies";

export type Scaling = "none" | "pi" | "ntk" | "yarn";

const [FAST, SLOW] = [32, 1]; // turns in L

export function scaled(how: Scaling, d: number, base: number, s: number, trained: number): Float64Array {
  const omega = rotary(d, base);
  if (how === "pi") return omega.map((one) => one / s);
  if (how === "ntk") return rotary(d, base * s ** (d / (d - 2)));
  if (how === "none") return omega;
  const pair = (turns: number) => (d * Math.log(trained / (2 * Math.PI * turns))) / (2 * Math.log(base));
  const low = Math.max(Math.floor(pair(FAST)), 0);
  const high = Math.min(Math.ceil(pair(SLOW)), d - 1);
  return omega.map((one, i) => {
    const gamma = Math.min(Math.max((i - low) / (high - low || 0.001), 0), 1);
    return one * (1 - gamma) + (one / s) * gamma;
  });
}
