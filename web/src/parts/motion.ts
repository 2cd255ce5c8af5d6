// Motion that a reader can do without: where less is wanted, only its end is drawn.

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Slow at both ends: 4x³, and the same from the other side. */
export const ease = (share: number) => (share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2);

export const mix = (from: number, to: number, share: number) => from + (to - from) * share;

export const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

/** Calls `draw` with 0 … 1 once a frame, then `then`. Returns what stops it. */
export function animate(milliseconds: number, draw: (share: number) => void, then: () => void = () => {}): () => void {
  if (still()) {
    draw(1);
    then();
    return () => {};
  }
  let frame = 0;
  let begun: number | null = null;
  const step = (now: number) => {
    begun ??= now;
    const share = Math.min((now - begun) / milliseconds, 1);
    draw(share);
    if (share < 1) frame = requestAnimationFrame(step);
    else then();
  };
  frame = requestAnimationFrame(step);
  return () => cancelAnimationFrame(frame);
}

/** `then` after a pause. Returns what stops it. */
export function after(milliseconds: number, then: () => void): () => void {
  const timer = setTimeout(then, milliseconds);
  return () => clearTimeout(timer);
}
