import { real, type Data } from "../data";
import { rotary } from "../math/frequencies";
import { rounded, type Float } from "../math/rounding";
import { sinusoids } from "../math/sinusoid";
import { float, program } from "../program";
import template from "../../../src/posenc/explorer/views/table.txt";

type Layout = "interleaved" | "sin_cos" | "cos_sin";

export function data({ length, d_model: d, base, layout, dtype }: { length: number; d_model: number; base: number; layout: Layout; dtype: Float }): Data {
  const channels = arranged(d, layout);
  const interleaved = sinusoids(length, d, base);
  const table = interleaved.map((_, n) => rounded[dtype](interleaved[n - (n % d) + channels[n % d]!]!));
  return {
    arrays: { table: real(table, length, d), omega: real(rotary(d + (d % 2), base)) },
    python: program(template, [layout === "interleaved" ? layout : "halves"], { length, d_model: d, base: float(base), layout, dtype }),
    facts: {},
  };
}

/** Of every channel, the one of the interleaved layout that it holds. */
function arranged(d: number, layout: Layout): number[] {
  const all = Array.from({ length: d }, (_, c) => c);
  const [sin, cos] = [all.filter((c) => c % 2 === 0), all.filter((c) => c % 2)];
  return { interleaved: all, sin_cos: [...sin, ...cos], cos_sin: [...cos, ...sin] }[layout];
}
