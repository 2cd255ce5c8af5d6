// Sentences in the two languages of the page.

export type Language = "en" | "zh";

export interface Words {
  en: string;
  zh: string;
}

/** An error that is said to the reader in the language of the page. */
export class Said extends Error {
  constructor(readonly words: Words) {
    super(words.en);
  }
}

export function both(en: string, zh: string): Words {
  return { en, zh };
}

/** A number for people: four digits, a true minus sign, no -0; a dash where there is none. */
export function shown(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : String(value).replace("Infinity", "∞").replace("-", "−");
  const size = Math.abs(value);
  if (size === 0) return "0";
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(2).replace("e+", "e") : size >= 1000 ? String(Math.round(value)) : value.toFixed(digits);
  return text.replaceAll("-", "−");
}

/** A title with an opportunity for a line break between Chinese words only, never inside one such as 如何. */
export function phrased(title: string): HTMLElement {
  const span = document.createElement("span");
  if (!/[\u4e00-\u9fff]/u.test(title) || !("Segmenter" in Intl)) {
    span.textContent = title;
    return span;
  }
  span.className = "phrased";
  let first = true;
  for (const { segment } of new Intl.Segmenter("zh", { granularity: "word" }).segment(title)) {
    if (!first && !/^[的了吗呢着过\p{P}\s]/u.test(segment)) span.append(document.createElement("wbr"));
    span.append(segment);
    first = false;
  }
  return span;
}

export function firstSentence(text: string): string {
  return /^.*?[.。](?=\s|[^0-9.]|$)/su.exec(text)?.[0] ?? text;
}

/** Words as one writes them: Chinese ones side by side, others with spaces. */
export function joined(words: string[]): string {
  return words.join(words.every((word) => /^[\u3400-\u9fff]+$/.test(word)) ? "" : " ");
}

/** How words are split: said wherever a sentence can be typed. */
export const SPLIT: Words = both(
  "Up to 24 words. Words end at spaces and punctuation, an emoji is a word, and without spaces every Chinese character is one; “by words” writes the spaces. Each word gets a random vector, always the same one.",
  "最多 24 个词。词在空格和标点处断开，一个表情符号算一个词；没有空格时，每个汉字算一个词；“按词”会加上空格。每个词对应一个随机向量，同一个词总是同一个。",
);

/** About how wide a word is, in widths of a Chinese character. */
export function widthOf(word: string): number {
  return [...word].reduce((sum, letter) => sum + (/[\u2e80-\uffef]/.test(letter) ? 1 : /[mwMW]/.test(letter) ? 0.9 : 0.58), 0);
}
