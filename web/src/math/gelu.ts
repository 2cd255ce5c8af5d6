// GELU: x/2·(1 + erf(x/√2)).  erf by its Taylor series of degree 7 around the nearest 1/64, where a table holds it: to 1e-16.
//
//   f₁ = 2/√π·e^(-z²),  fₙ₊₁ = -2z fₙ - 2(n - 1) fₙ₋₁        erf(z + δ) = erf(z) + Σ fₙ δⁿ/n!

const [STEPS, END] = [64, 6];
const OVER = Float64Array.from({ length: 8 }, (_, n) => 1 / (n + 1));
const KNOWN = Float64Array.from({ length: STEPS * END + 1 }, (_, n) => series(n / STEPS));
const SLOPE = Float64Array.from({ length: STEPS * END + 1 }, (_, n) => (2 / Math.sqrt(Math.PI)) * Math.exp(-((n / STEPS) ** 2)));

export function gelu(x: number): number {
  return (x / 2) * (1 + erf(x * Math.SQRT1_2));
}

export function erf(x: number): number {
  const size = Math.abs(x);
  if (size >= END) return Math.sign(x);
  const at = Math.round(size * STEPS);
  const z = at / STEPS;
  const delta = size - z;
  let before = 0;
  let now = SLOPE[at]!;
  let power = delta;
  let sum = KNOWN[at]!;
  for (let n = 1; n <= 7; n++) {
    sum += now * power;
    const next = -2 * (z * now + (n - 1) * before);
    before = now;
    now = next;
    power *= delta * OVER[n]!;
  }
  return x < 0 ? -sum : sum;
}

/** 2/√π·e^(-z²) Σ 2ⁿ z^(2n + 1) / (1·3·5 … (2n + 1)) */
function series(z: number): number {
  let [term, sum] = [z, z];
  for (let n = 1; term > 1e-18 * sum; n++) sum += term *= (2 * z * z) / (2 * n + 1);
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-z * z) * sum;
}
