// How a sentence without spaces is cut into words: two buttons below its field, which write the spaces into it.
//
//   我喜欢猫和狗      by characters   我 | 喜 | 欢 | 猫 | 和 | 狗     as Python reads it
//   我 喜欢 猫 和 狗  by words        the browser's Intl.Segmenter; the link keeps the spaces, so it is the same everywhere

import { h } from "../dom";
import { both, type Words } from "../words";

const HAN = /[\u3400-\u4dbf\u4e00-\u9fff]/;
const RUN = /[\u3400-\u4dbf\u4e00-\u9fff]+/g;

/** The same sentence with spaces between the words of its Chinese. */
export function byWords(sentence: string): string {
  const words = new Intl.Segmenter("zh", { granularity: "word" });
  return spaced(sentence, (run) => Array.from(words.segment(run), ({ segment }) => segment));
}

/** The same sentence with a space after every Chinese character, or without any where it holds nothing else. */
export function byCharacters(sentence: string): string {
  const together = sentence.replaceAll(/\s+/g, "");
  return /[\p{L}\p{N}]/u.test(together.replaceAll(RUN, "")) ? spaced(sentence, (run) => [...run]) : together;
}

function spaced(sentence: string, cut: (run: string) => string[]): string {
  const joined = sentence.replaceAll(/(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff])/g, "");
  return joined.replaceAll(RUN, (run) => ` ${cut(run).join(" ")} `).replaceAll(/\s*([，。！？、；：])\s*/g, "$1").replaceAll(/\s+/g, " ").trim();
}

export interface Segmented {
  element: HTMLElement;
  draw(sentence: string): void;
}

/** `set` gets the sentence that the reader has chosen the words of. */
export function segmented(t: (words: Words) => string, set: (sentence: string) => void): Segmented {
  let sentence = "";
  const ways = [{ name: "characters", label: both("by characters", "按字"), cut: byCharacters }, ..."Segmenter" in Intl ? [{ name: "words", label: both("by words", "按词"), cut: byWords }] : []];
  const buttons = ways.map(({ name, label, cut }) => h("button", { type: "button", "data-cut": name, click: () => set(cut(sentence)) }, t(label)));
  const element = h("span", { class: "cut", role: "group", "aria-label": t(both("Cut Chinese", "汉语断词")) }, ...buttons);
  return {
    element,
    draw(now) {
      sentence = now;
      element.hidden = ways.length < 2 || !HAN.test(now) || ways[0]!.cut(now) === ways[1]!.cut(now);
      if (!element.hidden) buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(ways[at]!.cut(now) === now)));
    },
  };
}
