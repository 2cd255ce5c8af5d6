// What a chapter is: a need, one picture, one prediction to click before seeing, and what was found.

import type { Question } from "../parts/ask";
import type { Values } from "../parts/told";
import { own, type View } from "../view";
import type { Language, Words } from "../words";

export interface Chapter extends Question {
  /** In the rail and above the picture; it does not give the answer away. */
  title: Words;
  /** Takes the title's place with the answer. */
  found: Words;
  /** What is needed, and how the picture is moved. */
  need: Words;
  /** The sentence below the picture, before and after the answer; {name} is a number of the picture. */
  before: Words;
  after: Words;
  /** What this does not solve: it leads to the next chapter. */
  next: Words;
  /** Views that show more of it. */
  views: string[];
  /** Draws the picture once; what the reader moved before is in `scene.keep`. */
  draw(scene: Scene): Drawn;
}

export interface Drawn {
  /** The answer was given: shows it in the picture. */
  tell(): void;
  /** A motion for a film, where the answer itself has none. */
  move?(): void;
  /** The numbers of the sentence, made by the library: the names are those of the sentence. */
  python(): string;
  /** What the picture draws now, as a table; the first column names the row. */
  numbers(): { head: Words[]; rows: (string | number)[][] };
}

export interface Scene {
  t(words: Words): string;
  language: Language;
  /** Empty; the picture goes in here. */
  figure: HTMLElement;
  /** Of the figure, in pixels. */
  width: number;
  narrow: boolean;
  /** What the picture may take of the window, in pixels. */
  height: number;
  /** What Python has stored for the story. */
  stored: Record<string, any>;
  /** Whether the answer was given. */
  told(): boolean;
  /** The picture gives the answer: the reader has done what the question asks about. */
  tell(): void;
  /** What the reader has moved, kept while the page is open. */
  keep<T extends object>(initial: T): T;
  /** Sets the numbers of the sentence and of the question. */
  say(values: Values): void;
  /** Runs when the chapter is left or drawn anew. */
  leaving(done: () => void): void;
}

/** The address and the parameters of the story, as views have them. */
export const STORY: Pick<View, "name" | "own"> = { name: "story", own: { chapter: own.whole(0, 0, 9) } };
