// The nearest number of a shorter type, ties to even.

export type Float = "float64" | "float32" | "bfloat16" | "float16";

export const rounded: Record<Float, (x: number) => number> = {
  float64: (x) => x,
  float32: Math.fround,
  // torch converts by way of float32: two roundings
  bfloat16: (x) => shorter(Math.fround(x), 8, -126),
  float16: (x) => shorter(Math.fround(x), 11, -14),
};

/** A significand of so many bits; below 2^smallest the steps stay as they are there. */
function shorter(x: number, bits: number, smallest: number): number {
  if (x === 0) return x;
  const step = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(x))), smallest) + 1 - bits);
  return toEven(x / step) * step;
}

/** The nearest whole number; of two that are as near, the even one. */
export function toEven(x: number): number {
  const down = Math.floor(x);
  const rest = x - down;
  return rest > 0.5 || (rest === 0.5 && down % 2 !== 0) ? down + 1 : down;
}
