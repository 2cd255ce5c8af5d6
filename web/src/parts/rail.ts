// The chapters of the story, in the header of every page: the current one, and those whose views were all seen.

import { CHAPTERS } from "../chapters";
import { h } from "../dom";
import type { Words } from "../words";

export function rail(t: (words: Words) => string, current: number | undefined, seen: Set<string>): HTMLElement {
  const link = (index: number) => {
    const { title, views } = CHAPTERS[index]!;
    const done = views.length ? views.every((view) => seen.has(view)) : seen.has(`chapter-${index + 1}`);
    const name = `${index + 1}. ${t(title)}`;
    return h("a", {
      href: `#/${views[0] ?? `?chapter=${index + 1}`}`, class: done ? "done" : "", title: name, "aria-current": index === current && "step",
      "aria-label": done ? `${name} (${t({ en: "seen", zh: "已看过" })})` : name,
    }, index + 1);
  };
  return h("nav", { class: "rail", "aria-label": t({ en: "Chapters", zh: "章节" }) }, h("ol", {}, ...CHAPTERS.map((_, index) => h("li", {}, link(index)))));
}
