// ω_i = base^(-2i/d): radians per position of each pair of channels, the fastest first.

export function rotary(d: number, base: number): Float64Array {
  return Float64Array.from({ length: Math.ceil(d / 2) }, (_, i) => base ** ((-2 * i) / d));
}
