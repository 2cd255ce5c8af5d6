// A prediction: a question whose answers are words in it. The verdict takes the question's place.

import { fill, h } from "../dom";
import { both, type Words } from "../words";
import { told, type Values } from "./told";

export interface Question {
  question: Words;
  answers: Words[];
  right: number;
  verdict: Words;
}

export interface Ask {
  element: HTMLElement;
  /** Sets the numbers of the question. */
  set(values: Values): void;
  /** The verdict on an answer; null where the reader gave none. */
  reveal(answer: number | null): void;
}

const [RIGHT, WRONG] = [both("Right. ", "答对了。"), both("No. ", "不对。")];

export function ask(t: (words: Words) => string, { question, answers, right, verdict }: Question, answered: (answer: number) => void): Ask {
  const asked = h("span", {});
  let set = told(asked, t(question));
  let values: Values = {};
  const element = h("p", { class: "ask", role: "status" }, asked, " ", h("span", { class: "answers" }, ...answers.map((answer, index) => h("button", { type: "button", class: "choice", "data-answer": index, click: () => answered(index) }, t(answer)))));
  return {
    element,
    set(next) {
      values = { ...values, ...next };
      set(values);
    },
    reveal(answer) {
      element.classList.add("pop");
      const said = h("span", {});
      set = told(said, t(verdict));
      set(values);
      fill(element, h("span", { class: "verdict" }, answer === null ? "" : t(answer === right ? RIGHT : WRONG), said));
    },
  };
}
