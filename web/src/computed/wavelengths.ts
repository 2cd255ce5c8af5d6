import { real, type Data } from "../data";
import { rotary } from "../math/frequencies";
import { float, program } from "../program";
import type { State } from "../source";
import template from "../../../src/posenc/explorer/views/wavelengths.txt";

/** Configurations are read by Python. */
export function can({ config }: State): boolean {
  return !String(config).trim();
}

export function data({ d_model: d, base, length }: { d_model: number; base: number; length: number }): Data {
  const omega = rotary(d, base);
  const wavelength = omega.map((one) => (2 * Math.PI) / one);
  return {
    arrays: { omega: real(omega), wavelength: real(wavelength), sine_at_end: real(omega.map((one) => Math.sin(one * length))) },
    python: program(template, [], { d_model: d, base: float(base), length }),
    facts: { length, unfinished: wavelength.filter((one) => one > length).length },
  };
}
