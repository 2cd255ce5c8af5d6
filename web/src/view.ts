// The type of a view: texts, parameters, and a function that builds its drawing once and then draws every state.
//
//   Python's parameters ─► numbers ─┐
//   the page's own parameters ──────┴─► draw(data, state) ─► set({…}) when the reader moves something

import type { Data } from "./data";
import type { Parameter, Source, State, Value } from "./source";
import type { Language, Words } from "./words";

/** A parameter's control above the drawing. Parameters that are changed in the drawing need none. */
export interface Control {
  name: string;
  label: Words;
  /** Sliders move evenly over the numbers, or over their logarithms. */
  scale?: "log";
  /** What choices are called, if not by their names. */
  choices?: Record<string, Words>;
  /** Texts that are offered where one can be typed. */
  examples?: string[];
  /** How a typed text is read; said below the drawing. */
  rule?: Words;
  /** Another way to give it than its kind suggests: `lines` is for long texts, `sentence` for a line of words. */
  as?: "number" | "lines" | "sentence";
  /** Whether the control is shown in this state. */
  when?: (state: State) => boolean;
}

export interface Paper {
  text: string;
  href: string;
}

export interface View {
  /** As in Python and in the address. */
  name: string;
  title: Words;
  /** Two sentences. */
  idea: Words;
  notice: Words[];
  papers?: Paper[];
  /** Parameters that only the page knows: cursors, speeds, switches. */
  own: Record<string, Parameter>;
  controls: Control[];
  /** Rules of this view alone: import styles from "./name.css"; every selector begins with .view-name. */
  styles?: string;
  /** Called once for each opening and each change of language; `stage.root` is empty. */
  build(stage: Stage): Draw;
}

/** Called after every change, with the same `data` as long as Python's parameters are the same. */
export type Draw = (data: Data, state: State) => void;

/** What every drawing needs, on whatever page it is. */
export interface Around {
  t(words: Words): string;
  /** Announces a text to screen readers (aria-live polite). */
  announce(text: string): void;
  /** Runs when the view is left. */
  leaving(done: () => void): void;
}

export interface Stage extends Around {
  root: HTMLElement;
  /** The card below the drawing: the formula with the numbers substituted. */
  formula: HTMLElement;
  language: Language;
  source: Source;
  /** What is set now. Its numbers may still be on their way, while `draw` shows those of an earlier state. */
  state(): State;
  /** Changes parameters, Python's or the page's own; `draw` follows. Numbers are kept within their bounds. */
  set(changes: State): void;
  /** Lines after Python's; the whole must run as printed. */
  code(lines: string): void;
  /** The largest difference between the page's own arithmetic and Python's, and over how many numbers. */
  checked(difference: number, count: number): void;
  /** False where the reader prefers less motion. */
  motion: boolean;
}

export function number(state: State, name: string): number {
  return state[name] as number;
}

export function clamped(value: Value, parameter: Parameter): Value {
  if (typeof value !== "number") return value;
  const step = parameter.step ?? 1;
  const whole = parameter.kind === "integer" ? Math.round(value / step) * step : value;
  return Math.min(Math.max(whole, parameter.from ?? -Infinity), parameter.to ?? Infinity);
}

/** Shorthands for `own`. */
export const own = {
  whole: (initial: number, from: number, to: number): Parameter => ({ kind: "integer", default: initial, from, to }),
  real: (initial: number, from: number, to: number): Parameter => ({ kind: "number", default: initial, from, to }),
  yes: (initial: boolean): Parameter => ({ kind: "boolean", default: initial }),
  choice: (initial: string, ...choices: string[]): Parameter => ({ kind: "choice", default: initial, choices }),
  text: (initial: string, longest: number): Parameter => ({ kind: "string", default: initial, longest }),
};
