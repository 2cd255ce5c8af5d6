// Transformer-XL: q_i·k_j + q_i·W_R R_{i-j} + u·k_j + v·W_R R_{i-j},  R_n = (sin nω | cos nω), everything over √d.

import { rotary } from "./frequencies";
import type { Row } from "./matrix";

/** R_n */
export function sines(distance: number, d: number, base: number): Row {
  const omega = rotary(d, base);
  return Float64Array.from([...omega.map((one) => Math.sin(distance * one)), ...omega.map((one) => Math.cos(distance * one))]);
}
