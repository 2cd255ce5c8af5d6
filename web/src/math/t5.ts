// T5: b[bucket(i - j)].  Of N buckets a side e = ⌊N/2⌋ hold one distance each; bucket e + m begins where
// (n/e)^(N-e) ≥ (max/e)^m, in whole numbers n^(N-e) ≥ max^m · e^(N-e-m).

export interface Buckets {
  exact: number;
  /** The first distances of the buckets e + 1, e + 2, … */
  starts: number[];
  of(distance: number): number;
}

/** `distance` is i - j. Bidirectional: keys after the query have the other half; otherwise they share bucket 0. */
export function bucketsOf(count: number, farthest: number, bidirectional: boolean): Buckets {
  const side = bidirectional ? count >> 1 : count;
  const exact = side >> 1;
  if (farthest <= exact) throw new Error(`n_buckets, max_distance: ${side} buckets a side need max_distance > ${exact} >= 1, got ${farthest}`);
  const starts = startsOf(side - exact, exact, farthest);
  const begun = [...Array.from({ length: exact }, (_, n) => n + 1), ...starts];
  return {
    exact, starts,
    of(distance) {
      const apart = bidirectional ? Math.abs(distance) : Math.max(distance, 0);
      return begun.filter((start) => start <= apart).length + (bidirectional && distance < 0 ? side : 0);
    },
  };
}

function startsOf(logarithmic: number, exact: number, farthest: number): number[] {
  const starts: number[] = [];
  let n = exact;
  for (let m = 1; m < logarithmic; m++) {
    const least = BigInt(farthest) ** BigInt(m) * BigInt(exact) ** BigInt(logarithmic - m);
    while (n < farthest && BigInt(n) ** BigInt(logarithmic) < least) n++;
    starts.push(n);
  }
  return starts;
}
