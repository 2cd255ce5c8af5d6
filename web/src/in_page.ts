// The views that the page computes by itself, where no server is. Python stays the truth: tests hold these against it
// (tests/explorer/test_computed.py).

import type { Data } from "./data";
import type { State } from "./source";
import { COMPUTED } from "all-computed";

/** As a file of computed/ exports it. */
export interface Computed {
  /** The arrays, program and facts of Python's view. Throws what Python refuses. */
  data(asked: any): Data;
  /** Whether this state is computed; left out where all are. */
  can?(asked: State): boolean;
}

/** Whether some states of this view are. */
export function computed(view: string): boolean {
  return view in COMPUTED;
}

export function computes(view: string, asked: State): boolean {
  const one = COMPUTED[view];
  return !!one && (one.can?.(asked) ?? true);
}

export function compute(view: string, asked: State): Data {
  return COMPUTED[view]!.data(asked);
}
