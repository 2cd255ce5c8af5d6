// What the numbers of every method are called, and how they are read.

import { array, row, type Data } from "../data";
import { both, type Words } from "../words";

export const METHODS = ["none", "linear", "ntk", "yarn", "llama3", "config"];
export const NAMES: Record<string, Words> = {
  none: both("as trained", "不改动"), linear: both("linear interpolation", "线性插值"), ntk: both("NTK-aware", "NTK-aware"),
  yarn: both("YaRN", "YaRN"), llama3: both("Llama 3", "Llama 3"), config: both("the file's own", "文件自身的设置"),
};
export const TURN = 2 * Math.PI;

export interface Method {
  name: string;
  cos_sin_scale: number;
  cos_sin_scale_from: string;
  softmax_scale: number;
}

export type Reader = ReturnType<typeof reader>;

export function reader(data: Data) {
  const [omega, target, fresh] = [array(data, "omega"), array(data, "at_target"), array(data, "new")];
  const [trained, covered] = [array(data, "in_training").values, array(data, "covered").values];
  return {
    omega: (m: number, n: number) => row(omega, m)[n]!,
    target: (m: number, n: number) => row(target, m)[n]!,
    fresh: (m: number, n: number) => row(fresh, m)[n]!,
    trained: (n: number) => trained[n]!,
    covered: (n: number) => covered[n]!,
    /** Pairs that meet more than a rounding error's worth of new angles. */
    count: (m: number) => row(fresh, m).filter((angle) => angle > 1e-9).length,
  };
}

/** At most six digits, a true minus sign. */
export function tidy(value: number): string {
  return String(Number(value.toPrecision(6))).replaceAll("-", "−");
}
