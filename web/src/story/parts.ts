// What a chapter consists of, as it is read and as it is filmed: heading, question, picture, and the sentence with its numbers.

import { fill, h } from "../dom";
import { ask, type Ask } from "../parts/ask";
import { told, type Values } from "../parts/told";
import { phrased, type Words } from "../words";
import type { Chapter } from "./chapter";

export interface Parts {
  heading: HTMLElement;
  need: HTMLElement;
  question: Ask;
  figure: HTMLElement;
  caption: HTMLElement;
  onward: HTMLElement;
  /** Sets the numbers of all sentences. */
  say(values: Values): void;
  /** The verdict on an answer, and what was found. */
  reveal(answer: number | null): void;
}

export function partsOf(t: (words: Words) => string, about: Chapter, answered: (answer: number) => void): Parts {
  const heading = h("h1", { tabindex: -1 }, phrased(t(about.title)));
  const need = h("p", { class: "need" });
  const question = ask(t, about, answered);
  const caption = h("p", { class: "caption", "aria-live": "polite" });
  const onward = h("p", { class: "failure" });
  const sayNeed = told(need, t(about.need));
  let say = told(caption, t(about.before));
  let values: Values = {};
  return {
    heading, need, question, figure: h("figure", { "data-role": "picture" }), caption, onward,
    say(next) {
      values = { ...values, ...next };
      say(values);
      question.set(values);
      sayNeed(values);
    },
    reveal(answer) {
      question.reveal(answer);
      fill(heading, phrased(t(about.found)));
      say = told(caption, t(about.after));
      say(values);
      told(onward, t(about.next))(values);
    },
  };
}
