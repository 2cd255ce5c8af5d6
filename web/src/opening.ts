// What the figures of the start page are given to draw with.

import type { Source } from "./source";
import type { Language, Words } from "./words";

export interface Opening {
  t(words: Words): string;
  language: Language;
  source: Source;
  /** Every drawing of the page, again: the colours have changed. */
  redrawn(draw: () => void): void;
}
