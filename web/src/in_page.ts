// The views that the page computes by itself, where no server is. Python stays the truth: tests hold these against it
// (tests/explorer/test_computed.py).

import type { Data } from "./data";
import type { Records } from "./records";
import type { State, Value } from "./source";
import { COMPUTED } from "all-computed";

/** What hears of numbers that are not complete yet; and ends the rest. */
export interface Progress {
  partly?(data: Data): void;
  signal?: AbortSignal;
}

/** As a file of computed/ exports it. */
export interface Computed {
  /** The arrays, program and facts of Python's view. Throws what Python refuses. */
  data(asked: any, records: Records, progress: Progress): Data | Promise<Data>;
  /** The values of a choice that are computed; left out where all are. */
  only?: Record<string, readonly string[]>;
  /** Whether a state of these is computed; left out where all are. */
  can?(asked: State): boolean;
}

/** Whether some states of this view are. */
export function computed(view: string): boolean {
  return view in COMPUTED;
}

export function computes(view: string, asked: State): boolean {
  const one = COMPUTED[view];
  return !!one && Object.entries(one.only ?? {}).every(([name, values]) => values.includes(String(asked[name]))) && (one.can?.(asked) ?? true);
}

/** Whether no state with this value is computed. */
export function beyond(view: string, name: string, value: Value): boolean {
  return COMPUTED[view]?.only?.[name]?.includes(String(value)) === false;
}

export async function compute(view: string, asked: State, records: Records, progress: Progress = {}): Promise<Data> {
  return COMPUTED[view]!.data(asked, records, progress);
}
