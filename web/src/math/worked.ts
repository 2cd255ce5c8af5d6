// Numbers of the founding notes' worked example 人工 智能 正在 快速 发展 (posenc.learn.walk).

import type { Matrix, Row } from "./matrix";

export const AI_IS_GROWING = ["人工 智能 正在 快速 发展", "Artificial intelligence is rapidly growing"];
export const QUERY: Row = Float64Array.of(1, 0.5, -0.3, 0.8);
export const KEYS: Matrix = [
  Float64Array.of(0.6, -0.2, 0.9, 0.4), Float64Array.of(0.3, 0.8, -0.5, 0.2), Float64Array.of(0.7, 0.1, 0.4, -0.6),
  Float64Array.of(-0.4, 0.9, 0.2, 0.5), Float64Array.of(0.2, -0.7, 0.6, 0.3),
];
export const VALUES: Matrix = [[1, 0], [0, 1], [0.5, 0.5], [1, 1], [0, 0]].map((row) => Float64Array.from(row));
export const CAT_EATS_FISH = ["猫 吃 鱼", "cat eats fish"];
export const EMBEDDINGS: Matrix = [[0.5, 0.2, -0.1, 0.3], [0.3, -0.4, 0.6, 0.1], [-0.2, 0.7, 0.4, -0.5]].map((row) => Float64Array.from(row));
export const PRINTED_TABLE = [["0.0", "1.0", "0.0", "1.0"], ["0.841", "0.540", "0.0998", "0.995"], ["0.909", "-0.416", "0.198", "0.980"]];
export const PRINTED_SUMS = [["0.5", "1.2", "-0.1", "1.3"], ["1.141", "0.140", "0.700", "1.095"], ["0.709", "0.284", "0.598", "0.480"]];
export const I_LIKE_CATS = ["我 喜欢 猫", "I like cats"];
export const NINE: Matrix = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]].map((row) => Float64Array.from(row));
export const PRINTED_Q = [["0.30", "0.38", "0.46"], ["0.60", "0.77", "0.94"], ["0.90", "1.16", "1.33"]];

/** Whether a note's digits are the number rounded, cut off, or another one (posenc.learn.notes). */
export function compared(digits: string, right: number): "same" | "truncated" | "different" {
  const unit = 10 ** -(digits.split(".")[1]?.length ?? 0);
  const shown = Number(digits);
  if (Math.abs(shown - right) <= (unit / 2) * (1 + 1e-9)) return "same";
  const rest = Math.abs(right) - Math.abs(shown);
  return shown * right >= 0 && rest >= 0 && rest < unit ? "truncated" : "different";
}
