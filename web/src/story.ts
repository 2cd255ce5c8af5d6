// The start page: the story in order, which is also the map of the views.

import { fill, h } from "./dom";
import type { Source } from "./source";
import { VIEWS } from "./views";
import type { Language, Words } from "./words";

export interface Opening {
  t(words: Words): string;
  language: Language;
  source: Source;
  root: HTMLElement;
}

/** What is to be done when it is left. */
export function start(main: HTMLElement, { t }: Opening): (() => void)[] {
  fill(main, h("h1", {}, t({ en: "Where position enters a Transformer", zh: "位置如何进入 Transformer" })), h("ol", {}, ...VIEWS.map((view) => h("li", {}, h("a", { href: `#/${view.name}` }, t(view.title))))));
  main.dataset["ready"] = "true";
  return [];
}
