// A multiple-choice question: the reader answers before the result is shown.

import { fill, h } from "../dom";
import type { Stage } from "../view";
import type { Words } from "../words";

export interface Question {
  question: Words;
  choices: Words[];
  right: number;
  /** Said after any choice. */
  because: Words;
}

/** `revealed` runs after the choice, for drawings that wait for it. */
export function predict(stage: Stage, { question, choices, right, because }: Question, revealed: () => void = () => {}): HTMLElement {
  const answer = h("p", { class: "answer", role: "status" });
  const buttons = choices.map((words, index) =>
    h("button", { type: "button", class: "choice", click: () => {
      buttons.forEach((button, other) => {
        button.setAttribute("aria-pressed", String(other === index));
        button.classList.toggle("right", other === right);
      });
      const verdict = index === right ? { en: "Yes. ", zh: "正确。" } : { en: "Not quite. ", zh: "不完全正确。" };
      fill(answer, h("b", {}, stage.t(verdict)), stage.t(because));
      revealed();
    } }, stage.t(words)));
  return h("section", { class: "predict" }, h("h2", {}, stage.t(question)), h("div", { class: "choices" }, ...buttons), answer);
}
