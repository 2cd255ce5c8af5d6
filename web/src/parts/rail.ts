// The views before the story and its chapters, in the header of every page: the current one, and those whose views were all seen.

import { VIEWS } from "all-views";
import { CHAPTERS, chapterOf } from "../chapters";
import { h } from "../dom";
import type { Words } from "../words";

export function rail(t: (words: Words) => string, view: string, seen: Set<string>): HTMLElement {
  const current = chapterOf(view);
  const before = VIEWS.filter(({ name }) => chapterOf(name) === undefined).map(({ name, title }) => h("li", { class: "before" }, h("a", {
    href: `#/${name}`, class: seen.has(name) ? "done" : "", title: t(title), "aria-current": name === view && "step", "aria-label": t(title),
  }, "↔")));
  const link = (index: number) => {
    const { title, views } = CHAPTERS[index]!;
    const done = views.length ? views.every((view) => seen.has(view)) : seen.has(`chapter-${index + 1}`);
    const name = `${index + 1}. ${t(title)}`;
    return h("a", {
      href: `#/${views[0] ?? `?chapter=${index + 1}`}`, class: done ? "done" : "", title: name, "aria-current": index === current && "step",
      "aria-label": done ? `${name} (${t({ en: "seen", zh: "已看过" })})` : name,
    }, index + 1);
  };
  return h("nav", { class: "rail", "aria-label": t({ en: "Chapters", zh: "章节" }) }, h("ol", {}, ...before, ...CHAPTERS.map((_, index) => h("li", {}, link(index)))));
}
