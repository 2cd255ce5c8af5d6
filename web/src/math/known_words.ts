// A sentence as words that small trained models know, by the rule of explorer/trained_words.py: a Chinese one is cut into the
// longest known words, with what is between them; an English one at spaces and punctuation.

import { quoted } from "../program";
import { both, Said } from "../words";
import { SPACE, short } from "./words";

export type Task = "descriptions" | "reviews" | "translation";

export interface Sentence {
  task: Task;
  words: string[];
}

const MOST = 24;
const STOPS: Record<Task, string> = { descriptions: "。", reviews: ".", translation: "." };
const SAME: Record<string, string> = { ",": "，", "!": "。", "！": "。", ".": "。" };

/** `vocabulary` of each task. Throws, for the reader, where the models know no word, and for too many or too long words. */
export function split(text: string, vocabulary: (task: Task) => string[]): Sentence {
  const known = (task: Task) => vocabulary(task).filter((word) => task !== "translation" || /^[\0-\x7f]*$/.test(word));
  const [task, read] = /[\u3000-\u9fff]/.test(text) ? (["descriptions", chinese(text, known("descriptions"))] as const) : english(text, known);
  const stop = STOPS[task];
  const words = read.at(-1) === stop ? read : [...read, stop];
  if (words.length > MOST) throw new Said(both(`sentence: expected at most ${MOST} words, got ${words.length}`, `句子：最多 ${MOST} 个词，现有 ${words.length} 个`));
  if (!words.some((word) => /^\p{L}/u.test(word) && known(task).includes(word))) {
    throw new Said(both("sentence: the models know none of these words; choose an example", "句子：模型不认识其中任何一个词；请选一个例句"));
  }
  if (words.length < 3) {
    const got = quoted(words.join(" "));
    throw new Said(both(`sentence: expected at least two words and a stop, got ${got}`, `句子：至少两个词和一个句号，现有 ${got}`));
  }
  return { task, words: short(words) };
}

function chinese(text: string, known: string[]): string[] {
  const plain = [...text].map((letter) => SAME[letter] ?? letter).join("").replace(new RegExp(SPACE, "gu"), "");
  const longest = [...known].sort((a, b) => [...b].length - [...a].length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return plain.split(new RegExp(`(${longest.join("|")})`, "u")).filter((word) => word);
}

function english(text: string, known: (task: Task) => string[]): [Task, string[]] {
  const plain = text.toLowerCase().replaceAll("’", "'").replaceAll("!", ".");
  const words = plain.match(new RegExp(`[\\p{L}\\p{N}_'-]+|(?!${SPACE})[^\\p{L}\\p{N}_]`, "gu")) ?? [];
  const count = (task: Task) => words.filter((word) => known(task).includes(word)).length;
  return [count("translation") > count("reviews") ? "translation" : "reviews", words];
}
