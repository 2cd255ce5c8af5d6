// A number as a colour: blue −1, red +1, as maps have it, but on the story's paper.

export function cellColour(value: number): string {
  const share = Math.min(Math.abs(value), 1.5) / 1.5;
  return `color-mix(in oklab, var(--${value < 0 ? "minus" : "plus"}) ${Math.round(100 * share ** 0.8)}%, var(--soft))`;
}
