// Shaw: q_i·a[c] / √d,  c = clip(j - i, -k, k): row c + k of a table of 2k + 1 vectors.

export function clipped(distance: number, k: number): number {
  return Math.min(Math.max(-distance, -k), k) + 0; // + 0: no -0
}
