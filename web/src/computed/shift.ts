import { real, type Data } from "../data";
import { rotary } from "../math/frequencies";
import { dot, norm, range, rowsOf } from "../math/matrix";
import { shiftMatrix, sinusoids } from "../math/sinusoid";
import { float, program } from "../program";
import template from "../../../src/posenc/explorer/views/shift.txt";

const [DECADES, NEIGHBOURS] = [7, 10];

export function data({ p, k, pairs, base }: { p: number; k: number; pairs: number; base: number }): Data {
  const d = 2 * pairs;
  const [omega, matrix] = [rotary(d, base), shiftMatrix(k, d, base)];
  const rows = rowsOf(matrix, d);
  const row = (at: number) => sinusoids(1, d, base, at);
  const moved = (from: Float64Array) => Float64Array.from(rows, (line) => dot(line, from));
  const missed = (at: number) => {
    const [wanted, got] = [row(at + k), moved(row(at))];
    return norm(wanted.map((x, n) => x - got[n]!));
  };
  const [here, there] = [row(p), row(p + k)];
  const turned = omega.map((_, i) => {
    const [sin, cos, nextSin, nextCos] = [here[2 * i]!, here[2 * i + 1]!, there[2 * i]!, there[2 * i + 1]!];
    return Math.atan2(nextSin * cos - nextCos * sin, nextCos * cos + nextSin * sin);
  });
  const decades = range(0, DECADES).map((n) => 10 ** n);
  const errors = decades.map((first) => Math.max(...range(first, first + NEIGHBOURS).map(missed)));
  return {
    arrays: {
      omega: real(omega), matrix: real(matrix, d, d), here: real(here), there: real(there), moved: real(moved(here)), turned: real(turned),
      decades: real(decades), errors: real(errors),
    },
    python: program(template, [], { p, k, d_model: d, base: float(base) }),
    facts: { p, k, error: missed(p) },
  };
}
