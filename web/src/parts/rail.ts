// The views before the story and its steps, in the header of every page: the current one, and those that were seen.

import { VIEWS } from "all-views";
import { h } from "../dom";
import { stepAddress, STEPS, stepOf } from "../steps";
import type { Words } from "../words";

export interface Rail {
  element: HTMLElement;
  /** The open view, or the step of the scene and its sentence, which the other steps keep. */
  draw(view: string, step?: string, sentence?: string): void;
}

export function rail(t: (words: Words) => string, seen: Set<string>): Rail {
  const before = VIEWS.filter(({ name }) => !stepOf(name)).map(({ name, title }) => ({ name, link: h("a", { href: `#/${name}`, title: t(title), "aria-label": t(title) }, "↔") }));
  const steps = STEPS.map(({ name, title }, index) => ({ name, called: `${index + 1}. ${t(title)}`, link: h("a", { title: `${index + 1}. ${t(title)}` }, index + 1) }));
  const mark = (link: HTMLElement, current: boolean, done: boolean) => {
    link.classList.toggle("done", done);
    if (current) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  };
  return {
    element: h("nav", { class: "rail", "aria-label": t({ en: "Steps", zh: "步骤" }) }, h("ol", {}, ...before.map(({ link }) => h("li", { class: "before" }, link)), ...steps.map(({ link }) => h("li", {}, link)))),
    draw(view, step = stepOf(view)?.name, sentence) {
      for (const { name, link } of before) mark(link, name === view, seen.has(name));
      for (const { name, called, link } of steps) {
        const done = seen.has(`step-${name}`);
        mark(link, name === step, done);
        link.href = stepAddress(name, sentence);
        link.setAttribute("aria-label", done ? `${called} (${t({ en: "seen", zh: "已看过" })})` : called);
      }
    },
  };
}
