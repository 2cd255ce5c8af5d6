// The start page: the story in order, which is also the map of the views.
//
//   blindness ─► integers ─► binary ─► sinusoid ─► rotation ─► relative ─► bias ─► extrapolation

import type { Data } from "./data";
import { fill, h, type Child } from "./dom";
import * as figures from "./figures";
import type { Opening } from "./opening";
import { VIEWS } from "all-views";
import { both, type Words } from "./words";

interface Chapter {
  title: Words;
  text: Words;
  views: string[];
  /** Draws into the place; called anew when the colours change. */
  figure(place: HTMLElement, data: Data, opening: Opening): void;
}

const CHAPTERS: Chapter[] = [
  {
    title: both("Attention is blind to order", "注意力看不见顺序"),
    text: both(
      "Attention compares every word with every other word and sums the results. The sum does not depend on order: 我爱你 (I love you) and 你爱我 (you love me) are the same set of three words. If you reorder the words, each word keeps its own result.",
      "注意力让每个词与所有词比较，再对结果求和。求和与次序无关：我爱你与你爱我是同样的三个词。把词重新排列，每个词的结果不变。",
    ),
    views: ["order", "attention"],
    figure: figures.blindness,
  },
  {
    title: both("First idea: number the positions", "第一种做法：给位置编号"),
    text: both(
      "Add the position number to every word vector. The numbers grow and become larger than the word vectors, and a network trained on positions 0 to 500 has never seen 5000. Dividing by the length does not help: one step then has a different size in every text.",
      "把位置编号加到每个词向量上。编号越来越大，会盖过词向量；只训练过 0 到 500 的网络没有见过 5000。除以总长度也不行：一步的大小会随文章长度而变。",
    ),
    views: [],
    figure: figures.integers,
  },
  {
    title: both("Binary: many frequencies", "二进制：许多种频率"),
    text: both(
      "In binary no digit exceeds 1. The last digit flips at every step, the digit before it at every second step, the next at every fourth. Together they repeat only after many steps. But each flip is a jump, and networks learn smooth functions more easily.",
      "写成二进制，每一位都不超过 1。最后一位每步翻转一次，前一位每两步翻转一次，再前一位每四步。合在一起，要过很多步才会重复。但每次翻转都是跳变，而网络更容易学习平滑的函数。",
    ),
    views: ["binary"],
    figure: figures.binary,
  },
  {
    title: both("Sinusoids: smooth digits", "正弦波：平滑的数位"),
    text: both(
      "Replace the digits by clock hands that turn at different speeds, from fast to slow, and write down the sine and cosine of each hand. Fast hands separate neighbouring positions; slow hands separate distant positions. One hand alone would repeat. The resulting row of numbers is added to the word vector.",
      "用转速不同的指针代替数位，由快到慢，记下每根指针的正弦与余弦。快针区分相邻的位置，慢针区分相距很远的位置；单独一根转一圈就会重复。得到的一行数加到词向量上。",
    ),
    views: ["table", "wavelengths", "precision", "audit"],
    figure: figures.sinusoid,
  },
  {
    title: both("A shift is a rotation", "平移就是旋转"),
    text: both(
      "Moving by k positions turns each hand by a fixed angle, whatever its angle was before. So one fixed matrix maps every row to the row k positions later. A network can learn “three to the left” once for all positions.",
      "向后移动 k 个位置，每根指针转过固定的角度，与原来的角度无关。所以同一个矩阵能把任意一行变成 k 个位置之后的那一行。“往左数第三个”，网络只需学一次，对所有位置都适用。",
    ),
    views: ["shift", "similarity", "paths"],
    figure: figures.rotation,
  },
  {
    title: both("Relative: rotate queries and keys", "相对位置：旋转查询和键"),
    text: both(
      "RoPE adds nothing to the word vectors. It rotates queries and keys by angles that depend on their positions. The product of two arrows depends only on the angle between them, so the score depends only on the difference of the positions. In the map below, values are equal along each diagonal.",
      "RoPE 不往词向量上加任何东西。它按位置旋转查询和键。两支箭头的乘积只取决于夹角，所以分数只取决于位置之差。在下面的分数图里，每条对角线上的值都相同。",
    ),
    views: ["rotary_pair", "layouts", "terms"],
    figure: figures.relative,
  },
  {
    title: both("Bias: add it to the score", "偏置：直接加到分数上"),
    text: both(
      "Or lower the score itself: the larger the distance, the larger the penalty. ALiBi subtracts a straight line with a different slope for each head. Heads with a steep slope see only nearby words; heads with a flat slope see far. T5 learns one number for each range of distances.",
      "也可以直接降低分数：距离越大，降得越多。ALiBi 给每个头一条斜率不同的直线：斜率大的头只看近处的词，斜率小的头看得远。T5 为每一段距离学一个数。",
    ),
    views: ["bias", "compare"],
    figure: figures.bias,
  },
  {
    title: both("Beyond the trained length", "超出训练长度"),
    text: both(
      "Now read texts longer than any in training. Slow hands reach angles not seen in training, and a model that relies on them makes errors. A straight line continues unchanged. The curves below are measured.",
      "现在读比训练时更长的文章。慢针会转到训练中没有见过的角度，依赖它们的模型就会出错；而直线照样延伸，不受影响。下面的曲线是测量结果。",
    ),
    views: ["extrapolation"],
    figure: figures.beyond,
  },
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
      h("div", { class: "chapter-words" }, h("span", { class: "chapter-number", "aria-hidden": "true" }, index + 1), h("h2", {}, t(chapter.title)), h("p", {}, t(chapter.text)), links(chapter.views, t)),
      places[index]!));
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  fill(main, h("div", { class: "start" },
    h("h1", {}, t(both("How a Transformer knows the order of words", "Transformer 如何知道词的次序"))),
    h("p", { class: "lead" }, t(both(
      "Eight short chapters, from a set of words without order to what happens beyond the trained length. Each chapter links to interactive views; all numbers come from the posenc library.",
      "八个小章节，从没有次序的一组词，讲到超出训练长度之后会怎样。每一章都链接到可以操作的图；所有数值都来自 posenc 库。"))),
    trouble, ...chapters,
    h("section", { class: "questions" }, h("h2", {}, t(both("Check your understanding", "检查一下你的理解"))), ...QUESTIONS.map(([question, answer]) => h("details", {}, h("summary", {}, t(question)), h("p", {}, t(answer))))),
    h("section", { class: "all-views" }, h("h2", {}, t(both("All views", "全部视图"))), h("ol", {}, ...VIEWS.map((view) => h("li", {}, h("a", { href: `#/${view.name}` }, t(view.title)), h("p", {}, first(t(view.idea)))))))));
  source.ask("story", {}).then(
    (data) => {
      const draw = () => CHAPTERS.forEach((chapter, index) => {
        places[index]!.replaceChildren();
        chapter.figure(places[index]!, data, opening);
      });
      draw();
      opening.redrawn(draw);
      main.dataset["ready"] = "true";
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

function first(text: string): string {
  return /^.*?[.。](?=\s|[^0-9.]|$)/su.exec(text)?.[0] ?? text;
}

