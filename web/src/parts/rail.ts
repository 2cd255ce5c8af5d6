// The chapters of the story in the header of every page: the current one with its title, and those that were seen.

import { h } from "../dom";
import { CHAPTERS, chapterAddress } from "../story/chapters";
import { both, type Words } from "../words";

export interface Rail {
  element: HTMLElement;
  /** The open chapter, or the one that leads to the open view. */
  draw(chapter?: number, open?: boolean): void;
}

export function rail(t: (words: Words) => string, seen: Set<string>): Rail {
  const links = CHAPTERS.map(({ title }, n) => h("a", { href: chapterAddress(n), title: t(title) }, h("span", {}, String(n)), " ", h("small", {}, t(title))));
  return {
    element: h("nav", { class: "rail", "aria-label": t(both("Chapters", "章节")) }, h("ol", {}, ...links.map((link) => h("li", {}, link)))),
    draw(chapter, open = false) {
      links.forEach((link, n) => {
        const done = seen.has(`chapter-${n}`);
        link.classList.toggle("done", done);
        if (n === chapter) link.setAttribute("aria-current", open ? "page" : "step");
        else link.removeAttribute("aria-current");
        const called = `${n} ${t(CHAPTERS[n]!.title)}`;
        link.setAttribute("aria-label", done ? `${called} (${t(both("seen", "已看过"))})` : called);
      });
    },
  };
}
