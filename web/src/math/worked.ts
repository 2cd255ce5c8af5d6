// Numbers of the founding notes' worked example 人工 智能 正在 快速 发展 (posenc.learn.walk).

import type { Matrix, Row } from "./matrix";

export const AI_IS_GROWING = ["人工 智能 正在 快速 发展", "Artificial intelligence is rapidly growing"];
export const QUERY: Row = Float64Array.of(1, 0.5, -0.3, 0.8);
export const KEYS: Matrix = [
  Float64Array.of(0.6, -0.2, 0.9, 0.4), Float64Array.of(0.3, 0.8, -0.5, 0.2), Float64Array.of(0.7, 0.1, 0.4, -0.6),
  Float64Array.of(-0.4, 0.9, 0.2, 0.5), Float64Array.of(0.2, -0.7, 0.6, 0.3),
];
