// The story: one chapter at a time, by its address #/story?chapter=3.
//
//   next ─► the answer ─► next ─► the next chapter        back ─► the chapter before        1 … 9 ─► any

import { parsed } from "../address";
import { fill, h } from "../dom";
import { missingNotice } from "../missing";
import type { Frame, Opened } from "../opened";
import { codeCard } from "../parts/code";
import { plainTable } from "../parts/numbers";
import { MARGIN, origin, savePicture } from "../parts/picture";
import { pointing } from "../parts/told";
import { VIEWS } from "all-views";
import { both, phrased } from "../words";
import type { Drawn } from "./chapter";
import { CHAPTERS, chapterAddress } from "./chapters";
import { saveFilm } from "./film";
import { partsOf } from "./parts";

/** Of a reader's visit: which chapters were answered, and what was moved in them. */
const answered = new Map<number, number | null>();
const kept = new Map<number, object>();

const [FILM, FILMED] = [both("Save as film", "保存为动画"), both("Pictures taken:", "已画图片：")];
const SWIPE = 70; // pixels
const NARROW = 700;

export function story(main: HTMLElement, frame: Frame): Opened {
  const { t, source, address } = frame;
  let chapter = 0;
  const leave: (() => void)[] = [];
  let drawn: Drawn | null = null;
  /** Gives the answer of the chapter that is open; null where the reader gave none. */
  let tell: (answer: number | null) => void = () => {};
  let stored: Record<string, any> | null = null;
  let width = 0;
  const done = () => {
    for (const one of leave.splice(0)) one();
  };
  frame.leaving(done);

  /** The chapter of the address, or what of it is impossible. */
  function asked(): number | string {
    const { view, given } = parsed(address.read());
    if (view && view !== "story") return 0; // of a view that there is no more
    const odd = Object.keys(given).find((name) => name !== "chapter");
    const [name, text] = odd ? [odd, given[odd]!] : ["chapter", given["chapter"] ?? "0"];
    const number = /^\d+$/.test(text) ? Number(text) : -1;
    return !odd && CHAPTERS[number] ? number : t(odd ? both(`${name} = ${text.slice(0, 40)} (no setting of this view)`, `${name} = ${text.slice(0, 40)}（这个视图没有此设置）`)
      : both(`${name} = ${text.slice(0, 40)} (a whole number from 0 to ${CHAPTERS.length - 1})`, `${name} = ${text.slice(0, 40)}（0 到 ${CHAPTERS.length - 1} 的整数）`));
  }

  function open(): void {
    done();
    drawn = null;
    const found = asked();
    if (typeof found === "string") return miss(found);
    chapter = found;
    const about = CHAPTERS[chapter]!;
    const isTold = () => answered.has(chapter);
    const parts = partsOf(t, about, (answer) => tell(answer));
    const { heading, need, question, figure, caption, onward } = parts;
    const code = codeCard(t);
    const table = h("div", {});
    const count = () => {
      if (!drawn || !numbers.open) return;
      const { head, rows } = drawn.numbers();
      fill(table, plainTable(t(about.found), head.map(t), rows));
    };
    const numbers = h("details", { class: "numbers", toggle: count }, h("summary", {}, t(both("Numbers of this picture", "这幅图的数值"))), table);
    const foot = () => origin(source.version, address.link(chapterAddress(chapter).slice(1)));
    const picture = h("button", { type: "button", "data-role": "save", click: () => void savePicture({ stage: section, foot: foot(), margin: MARGIN, without: ".ask, .need, .failure, .with, .closer, .play" }, `chapter-${chapter}`) }, t(both("Save as picture", "保存为图片")));
    const film = h("button", { type: "button", "data-role": "film", click: () => void shoot() }, t(FILM));
    async function shoot(): Promise<void> {
      film.disabled = true;
      const taken = (count: number) => void (film.textContent = `${t(FILMED)} ${count}`);
      await saveFilm(chapter, about, { t, language: frame.language, root: main.closest<HTMLElement>(".posenc")!, narrow, stored: stored!, foot: foot(), taken });
      film.disabled = false;
      film.textContent = t(FILM);
    }
    const with_ = h("div", { class: "with" }, numbers, picture, film);
    const closer = h("details", { class: "closer", toggle: () => drawn && code.draw(drawn.python()) }, h("summary", {}, t(both("Look closer", "再看仔细些"))),
      h("ul", {}, ...about.views.map((name) => h("li", {}, h("a", { href: `#/${name}` }, phrased(t(VIEWS.find((view) => view.name === name)!.title)))))), code.element);
    const section = h("section", { class: `story view-story chapter-${chapter}`, "data-chapter": chapter }, heading, need, question.element, figure, caption, onward, with_, closer);
    fill(main, section, steps());
    pointing(section);
    tell = (answer) => {
      if (isTold()) return;
      answered.set(chapter, answer);
      reveal();
      drawn?.tell();
      frame.announce(question.element.textContent!);
    };
    function reveal(): void {
      parts.reveal(answered.get(chapter) ?? null);
      section.classList.add("told");
      main.querySelector(".story-steps")?.replaceWith(steps());
    }
    width = main.clientWidth;
    const narrow = width < NARROW;
    if (isTold()) reveal();
    drawn = about.draw({
      t, language: frame.language, figure, width: figure.clientWidth, narrow, stored: stored!, told: isTold, tell: () => tell(null),
      height: Math.min(Math.max(innerHeight - figure.getBoundingClientRect().top - scrollY - (narrow ? 215 : 190), narrow ? 250 : 280), 560),
      keep<T extends object>(initial: T): T {
        if (!kept.has(chapter)) kept.set(chapter, initial);
        return kept.get(chapter) as T;
      },
      say(next) {
        parts.say(next);
        count();
      },
      leaving: (one) => void leave.push(one),
    });
    document.title = `${t(about.title)} · posenc`;
    main.dataset["ready"] = "true";
    frame.drawn?.("story", { chapter });
  }

  /** Names the chapter that there is not; the address stays. */
  function miss(text: string): void {
    const notice = missingNotice(t);
    notice.say({ asked: text, impossible: true, address: address.read(), nearest: { text: t(CHAPTERS[0]!.title), address: chapterAddress(0).slice(2) } });
    fill(main, h("section", { class: "story view-story" }, notice.element));
    main.dataset["ready"] = "true";
  }

  /** The answer first, then the next chapter; after the last one the views. */
  function steps(): HTMLElement {
    const before = CHAPTERS[chapter - 1];
    const next = CHAPTERS[chapter + 1];
    const isTold = answered.has(chapter);
    const following = () => (next ? [h("span", { class: "whole" }, `${chapter + 1}. ${t(next.title)}`), h("span", { class: "brief" }, t(both("Next", "下一章")))] : [t(both("From the start", "从头再看"))]);
    return h("nav", { class: "story-steps", "aria-label": t(both("Step by step", "逐步阅读")) },
      before ? h("a", { class: "back", rel: "prev", href: chapterAddress(chapter - 1), "aria-label": t(both(`Back: ${before.title.en}`, `返回：${before.title.zh}`)) }, h("span", {}, t(before.title))) : h("span", {}),
      h("span", { class: "count" }, `${chapter} / ${CHAPTERS.length - 1}`),
      h("button", { type: "button", class: "next", "data-role": "next", click: forward }, ...(isTold ? following() : [t(both("Show the answer", "看答案"))])));
  }
  function forward(): void {
    if (!answered.has(chapter)) tell(null);
    else go((chapter + 1) % CHAPTERS.length);
    main.querySelector<HTMLElement>("[data-role=next]")?.focus({ preventScroll: true });
  }
  const go = (to: number) => to >= 0 && to < CHAPTERS.length && address.go(chapterAddress(to).slice(1));

  // Arrow keys and swipes step, where nothing else takes them.
  const keys = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
    if ((event.composedPath()[0] as Element).closest?.("input, select, textarea, [role=slider], dialog")) return;
    if (event.key === "ArrowRight") forward();
    if (event.key === "ArrowLeft") go(chapter - 1);
  };
  const home = main.getRootNode() === document ? document : main;
  home.addEventListener("keydown", keys as EventListener);
  let from: Touch | null = null;
  const begin = (event: TouchEvent) => void (from = (event.target as Element).closest(".drag, [data-drag], .scroll") || event.touches.length > 1 ? null : event.touches[0]!);
  const end = (event: TouchEvent) => {
    const to = event.changedTouches[0]!;
    if (!from || Math.abs(to.clientX - from.clientX) < SWIPE || Math.abs(to.clientY - from.clientY) > SWIPE / 2) return;
    if (to.clientX < from.clientX) forward();
    else go(chapter - 1);
  };
  main.addEventListener("touchstart", begin, { passive: true });
  main.addEventListener("touchend", end);
  const resized = new ResizeObserver(() => {
    if (stored && Math.abs(main.clientWidth - width) > 1) open();
  });
  resized.observe(main);
  frame.leaving(() => {
    home.removeEventListener("keydown", keys as EventListener);
    main.removeEventListener("touchstart", begin);
    main.removeEventListener("touchend", end);
    resized.disconnect();
  });
  source.ask("story", {}).then(({ facts }) => {
    stored = facts;
    open();
  }, (error: Error) => {
    fill(main, h("p", { class: "trouble", role: "alert" }, error.message));
    main.dataset["ready"] = "true";
  });
  return {
    redraw: () => void (stored && open()),
    reread() {
      if (!stored) return;
      open();
      if (home === document) scrollTo(0, 0);
      frame.announce(main.querySelector("h1, [role=alert]")!.textContent!);
    },
  };
}
