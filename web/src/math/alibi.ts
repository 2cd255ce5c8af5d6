// ALiBi: -m_h·|i - j|,  m_h = 2^(-8h/n) for h = 1 … n heads.

/** Where n is no power of two: those of the power below, then every other one of the power above. */
export function slopes(heads: number): number[] {
  const power = 2 ** Math.floor(Math.log2(heads));
  const own = Array.from({ length: power }, (_, h) => 2 ** ((-8 * (h + 1)) / power));
  return power === heads ? own : [...own, ...slopes(2 * power).filter((_, h) => h % 2 === 0)].slice(0, heads);
}
