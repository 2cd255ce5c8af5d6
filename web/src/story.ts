// The start page: a living table, then the story in order.

import type { Data } from "./data";
import { fill, h, type Child } from "./dom";
import * as figures from "./figures";
import { CHAPTERS, chapterOf } from "./chapters";
import { livingTable } from "./living_table";
import type { Opening } from "./opening";
import { VIEWS } from "all-views";
import { both, firstSentence, phrased, type Words } from "./words";

/** Of each chapter: draws into the place; called anew when the colours change. */
const FIGURES: ((place: HTMLElement, data: Data, opening: Opening) => void)[] = [
  figures.blindness, figures.integers, figures.binary, figures.sinusoid, figures.rotation, figures.relative, figures.bias, figures.beyond,
];

const QUESTIONS: [Words, Words][] = [
  [both("Why are 我爱你 and 你爱我 the same without positions?", "没有位置信息时，为什么我爱你与你爱我是一样的？"),
    both("Each word's result is a sum over all words, and a sum does not depend on order. If the words are reordered, the results are reordered in the same way.", "每个词的结果都是对所有词求和，而求和与次序无关。词重新排列，结果也同样重新排列。")],
  [both("Why many frequencies?", "为什么要许多种频率？"),
    both("A fast hand repeats after a few positions; a slow hand hardly moves between neighbours. Together they give every position its own row: fast hands for short distances, slow hands for long ones.", "快针走几步就重复，慢针在相邻位置之间几乎不动。快针区分近处，慢针区分远处，合在一起，每个位置都有不同的一行。")],
  [both("Why is a shift a rotation?", "为什么平移就是旋转？"),
    both("Because (p + k)·ω = p·ω + k·ω. For every p the hand turns by the same angle k·ω, and a rotation by a fixed angle is multiplication by a fixed matrix.", "因为 (p + k)·ω = p·ω + k·ω：无论 p 是多少，指针总是再转 k·ω，而转过固定角度就是乘以固定的矩阵。")],
  [both("What does RoPE change?", "RoPE 改变了什么？"),
    both("It adds nothing to the word vectors. It rotates queries and keys, so that their product depends on their positions only through the difference. Lengths do not change.", "它不往词上加任何东西，只旋转查询和键，使二者的乘积只取决于位置之差；向量的长度不变。")],
  [both("What do ALiBi's slopes do?", "ALiBi 的斜率起什么作用？"),
    both("They set how far each head can see. After the softmax, a steep slope leaves weight only on nearby words; a flat slope leaves weight on distant words as well.", "斜率决定每个头能看多远：经过 softmax 之后，斜率大时只有近处的词有权重，斜率小时远处的词也有权重。")],
  [both("What breaks beyond training?", "超出训练长度后，什么会出问题？"),
    both("The frequencies do not change. Slow channel pairs reach angles not seen in training; a learned table has no more rows; a linear bias continues unchanged.", "频率不变。慢的通道对会转到训练中没有出现过的角度；可学习的表没有更多的行；线性偏置照样延伸。")],
];

export function start(main: HTMLElement, opening: Opening): void {
  const { t, source } = opening;
  const places = CHAPTERS.map(() => h("div", { class: "figure" }));
  const chapters = CHAPTERS.map((chapter, index) =>
    h("section", { class: "chapter", id: `chapter-${index + 1}` },
      h("div", { class: "chapter-words" }, h("span", { class: "chapter-number", "aria-hidden": "true" }, index + 1), h("h2", { tabindex: -1 }, phrased(t(chapter.title))), h("p", {}, t(chapter.text)), links(chapter.views, t)),
      places[index]!));
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const hero = h("div", { class: "hero-place" });
  const toChapter = (chapter: number) => {
    const heading = main.querySelector<HTMLElement>(`#chapter-${chapter} h2`);
    heading?.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    heading?.focus({ preventScroll: true });
  };
  fill(main, h("div", { class: "start" },
    h("h1", {}, phrased(t(both("How a Transformer knows the order of words", "Transformer 如何知道词的次序")))),
    h("p", { class: "lead" }, t(both(
      "Eight short chapters, from words without order to what happens beyond the trained length.",
      "八个小章节，从没有次序的一组词，讲到超出训练长度之后会怎样。"))),
    trouble, hero,
    h("p", { class: "begin" }, h("button", { type: "button", class: "primary", "data-role": "begin", click: () => toChapter(1) }, t(both("Begin", "开始"))),
      ...VIEWS.filter(({ name }) => chapterOf(name) === undefined).map(({ name, title }) => h("a", { href: `#/${name}`, "data-role": "before" }, t(title)))),
    ...chapters,
    h("section", { class: "questions" }, h("h2", {}, t(both("Check your understanding", "检查一下你的理解"))), ...QUESTIONS.map(([question, answer]) => h("details", {}, h("summary", {}, phrased(t(question))), h("p", {}, t(answer))))),
    h("section", { class: "all-views" }, h("h2", {}, t(both("All views", "全部视图"))), h("ol", {}, ...VIEWS.map((view) => h("li", {}, h("a", { href: `#/${view.name}` }, phrased(t(view.title))), h("p", {}, firstSentence(t(view.idea)))))))));
  source.ask("story", {}).then(
    (data) => {
      const table = livingTable(opening, data);
      hero.append(table.element);
      const draw = () => {
        table.draw();
        FIGURES.forEach((figure, index) => {
          places[index]!.replaceChildren();
          figure(places[index]!, data, opening);
        });
      };
      draw();
      opening.redrawn(draw);
      main.dataset["ready"] = "true";
      if (opening.chapter) toChapter(opening.chapter); // what is not ready is hidden and cannot have the focus
    },
    (error: Error) => {
      trouble.textContent = error.message;
      trouble.hidden = false;
    },
  );
}

function links(names: string[], t: Opening["t"]): Child {
  const found = names.flatMap((name) => VIEWS.filter((view) => view.name === name));
  return found.length > 0 && h("p", { class: "links" }, ...found.map((view) => h("a", { href: `#/${view.name}` }, t(view.title))));
}
