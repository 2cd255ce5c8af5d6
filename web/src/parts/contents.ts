// All pages in one list, behind one button: the chapters, then the shelves, with whole titles.

import { h } from "../dom";
import { ENCODINGS, numberOf, SHELVES } from "../shelves";
import { CHAPTERS, chapterAddress } from "../story/chapters";
import { both, phrased, type Words } from "../words";

export function contents(t: (words: Words) => string, open: string): { button: HTMLElement; element: HTMLDialogElement } {
  const entry = (number: number | string, title: Words, href: string, current: boolean) =>
    h("li", {}, h("a", { href, ...(current ? { "aria-current": "page" } : {}) }, h("span", {}, String(number)), phrased(t(title))));
  const shelf = (title: Words, ...entries: HTMLElement[]) => h("section", {}, h("h2", {}, t(title)), h("ul", {}, ...entries));
  const close = h("button", { type: "button", "data-role": "close", click: () => element.close() }, t(both("Close", "关闭")));
  const element: HTMLDialogElement = h("dialog", { class: "contents", "aria-label": t(both("Contents", "目录")), click: (event: MouseEvent) => {
    if (event.target === element || (event.target as Element).closest("a")) element.close();
  } },
    shelf(both("The story", "故事"), ...CHAPTERS.map(({ title }, n) => entry(n, title, chapterAddress(n), false))),
    ...SHELVES.map(({ title, views }, n) => shelf(title, ...views.map((view) => entry(numberOf(view), view.title, `#/${view.name}`, view.name === open)),
      ...(n === SHELVES.length - 1 ? [entry("", ENCODINGS, "#/encoding", open === "encoding")] : []))),
    close);
  const button = h("button", { type: "button", "data-role": "contents", "aria-haspopup": "dialog", click: () => element.showModal() }, t(both("Contents", "目录")));
  return { button, element };
}
