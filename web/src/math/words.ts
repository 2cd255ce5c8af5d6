// A reader's sentence as words, by the rule of explorer/sentences.py: an emoji is a word, and so are letters and digits
// with ' and - between them; in a sentence without spaces every Chinese character is one.

import { quoted } from "../program";
import { both, Said } from "../words";

const [MOST, LONGEST] = [24, 24];
const PICTURE = "[\\u2300-\\u23ff\\u2600-\\u27bf\\u2b00-\\u2bff\\u{1f000}-\\u{1f1e5}\\u{1f200}-\\u{1faff}]";
const STYLED = `${PICTURE}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]*`;
const EMOJI = `[\\u{1f1e6}-\\u{1f1ff}]{2}|${STYLED}(?:\\u200d${STYLED})*`;
// Python's [^\W_] is letters and numbers; combining marks are none.
const WORD = new RegExp(`${EMOJI}|[\\p{L}\\p{N}]+(?:['’-][\\p{L}\\p{N}]+)*`, "gu");
const CHINESE = /[\u3400-\u4dbf\u4e00-\u9fff]|[^\u3400-\u4dbf\u4e00-\u9fff]+/gu;
// What Python's \s is; JavaScript's has the mark \ufeff, and lacks \x1c to \x1f and \x85.
export const SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const BETWEEN = new RegExp(`(?!${SPACE})[^]${SPACE}+(?!${SPACE})[^]`, "u");

/** At least two words. Throws, for the reader, where there are too few, too many or too long ones. */
export function wordsOf(sentence: string): string[] {
  let words: string[] = sentence.match(WORD) ?? [];
  if (!BETWEEN.test(sentence)) words = words.flatMap((word) => word.match(CHINESE) ?? []);
  if (words.length < 2 || words.length > MOST) {
    throw new Said(both(
      `sentence: expected 2 to ${MOST} words, got ${words.length}; words end at spaces and punctuation, without spaces at every Chinese character`,
      `句子：应有 2 到 ${MOST} 个词，现有 ${words.length} 个；词在空格和标点处断开，没有空格时每个汉字算一个词`,
    ));
  }
  return short(words);
}

/** The words. Throws for one that is too long to be drawn. */
export function short(words: string[]): string[] {
  const long = words.find((word) => [...word].length > LONGEST);
  if (long) {
    const start = quoted([...long].slice(0, 20).join(""));
    throw new Said(both(`sentence: expected words of at most ${LONGEST} characters, got ${start}`, `句子：一个词最多 ${LONGEST} 个字符，现有 ${start}`));
  }
  return words;
}
