// The data and functions passed to the figures of the start page.

import type { Source } from "./source";
import type { Language, Words } from "./words";

export interface Opening {
  t(words: Words): string;
  language: Language;
  source: Source;
  /** Redraws every drawing of the page after a change of colours. */
  redrawn(draw: () => void): void;
  /** Runs when the page is left. */
  leaving(done: () => void): void;
  /** A chapter to scroll to; 0 for none. */
  chapter: number;
}
