import { real, whole, type Data } from "../data";
import { rotary } from "../math/frequencies";
import { distances, sinusoids, squaredDistances } from "../math/sinusoid";
import { float, program } from "../program";
import template from "../../../src/posenc/explorer/views/binary.txt";

const LENGTH = 4096;
const ROWS = 128;
const WIDTHS = [2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Of the last base: a slider of clocks does not move it. */
let kept = { base: NaN, closest: [] as number[] };

export function data({ clocks, base }: { clocks: number; base: number }): Data {
  const d = 2 * clocks;
  if (kept.base !== base) kept = { base, closest: closest(base) };
  return {
    arrays: {
      omega: real(rotary(d, base)), table: real(sinusoids(ROWS, d, base), ROWS, d), apart: real(distances(LENGTH, d, base)),
      one_apart: real(distances(LENGTH, 2, base)), widths: whole(WIDTHS), closest: real(kept.closest, WIDTHS.length, 2),
    },
    python: program(template, [], { d_model: d, base: float(base) }),
    facts: { length: LENGTH },
  };
}

/** Of every width the smallest distance of two rows, and how many positions lie between them. Twice the width keeps all frequencies. */
function closest(base: number): number[] {
  const squared = new Float64Array(LENGTH);
  return WIDTHS.flatMap((width) => {
    squaredDistances(LENGTH, rotary(width, base).filter((_, i) => width === 2 || i % 2), squared);
    let lag = 1;
    for (let k = 2; k < LENGTH; k++) if (squared[k]! < squared[lag]!) lag = k;
    return [Math.sqrt(squared[lag]!), lag];
  });
}
