// The start page: the story in order, which is also the map of the views.
//
//   blindness ─► integers ─► binary ─► sinusoid ─► rotation ─► relative ─► bias ─► extrapolation

import type { Data } from "./data";
import { fill, h, type Child } from "./dom";
import * as figures from "./figures";
import type { Opening } from "./opening";
import { VIEWS } from "./views";
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
      "Attention compares every word with every word and adds up what it finds. Nothing in that sum says who came first: 我爱你, I love you, and 你爱我, you love me, are the same three words out of one bag. Change their places, and every word just carries its own result along.",
      "注意力让每个词与所有词比较，再把结果加起来。这个和里没有任何东西说明谁先谁后：我爱你与你爱我，不过是从同一只袋子里取出的三个词。交换位置，每个词只是带着自己的结果换了座位。",
    ),
    views: ["order", "attention"],
    figure: figures.blindness,
  },
  {
    title: both("First idea: number the places", "第一个念头：给位置编号"),
    text: both(
      "Add the number of the place to every word. But numbers grow and drown the words, and a network that has met 0 to 500 knows nothing of 5000. Dividing by the length is no way out: one step would then mean something else in every text.",
      "把位置的号码加到每个词上。可号码越来越大，会把词淹没；只见过 0 到 500 的网络，对 5000 一无所知。除以总长度也行不通：这样一来，“一步”在每篇文章里的大小都不一样。",
    ),
    views: [],
    figure: figures.integers,
  },
  {
    title: both("Binary: many rhythms", "二进制：许多种节奏"),
    text: both(
      "In binary no digit ever exceeds 1. The last digit flips at every step, the one before it at every second, then at every fourth: together they do not repeat for a long time. But each flip is a jump, and networks prefer what changes smoothly.",
      "写成二进制，每一位都不超过 1。最后一位每步翻转一次，前一位每两步，再前一位每四步：合在一起，很久都不会重复。只是每次翻转都是一次跳变，而网络更喜欢平滑的变化。",
    ),
    views: ["binary"],
    figure: figures.binary,
  },
  {
    title: both("Sinusoids: smooth digits", "正弦波：平滑的数位"),
    text: both(
      "Let hands of clocks turn instead of digits flip, from fast to slow, and write down the sine and the cosine of each. Fast hands tell neighbours apart; slow hands tell far places apart; one alone would come round again. The row of numbers is added to the word.",
      "让指针转动来代替数位翻转，由快到慢，记下每根指针的正弦与余弦。快针区分近邻，慢针区分远处；单独一根转一圈就会重复。这一行数加到词向量上。",
    ),
    views: ["table", "wavelengths", "precision", "audit"],
    figure: figures.sinusoid,
  },
  {
    title: both("A shift is a rotation", "平移就是旋转"),
    text: both(
      "Going on by k places turns each hand by the same angle, wherever it stood before. So one fixed matrix leads from every row to the row k further on. A network can learn “three to the left” once, for all places.",
      "向后走 k 个位置，每根指针转过的角度都一样，与它原来指向哪里无关。所以同一个矩阵能把任意一行变成 k 个位置之后的那一行。“往左数第三个”，网络只需学一次，处处可用。",
    ),
    views: ["shift", "similarity", "paths"],
    figure: figures.rotation,
  },
  {
    title: both("Relative: turn the words themselves", "相对位置：直接旋转词"),
    text: both(
      "RoPE adds nothing. It turns queries and keys by the angles of their places, and a product of two arrows sees only the angle between them: the difference of the places. So the map of scores is the same along every diagonal.",
      "RoPE 什么也不加。它按位置旋转查询和键，而两支箭头的乘积只看夹角，也就是位置之差。所以在下面的分数图里，每条对角线上的值都相同。",
    ),
    views: ["rotary_pair", "layouts", "terms"],
    figure: figures.relative,
  },
  {
    title: both("Bias: say it directly", "偏置：直接说出来"),
    text: both(
      "Or lower the score itself, the more the further away. ALiBi subtracts a straight line with a slope for each head: steep heads see only what is near, flat heads see far. T5 learns one number for each range of distances.",
      "也可以直接降低分数，越远降得越多。ALiBi 给每个头一条斜率不同的直线：斜率大的头只看近处，斜率小的头看得远。T5 则为每一段距离学一个数。",
    ),
    views: ["bias", "compare"],
    figure: figures.bias,
  },
  {
    title: both("Beyond the trained length", "超出训练长度"),
    text: both(
      "Then read on, further than any text in training. Slow hands reach angles that nobody has met, and a model that relied on them goes astray; a straight line that simply goes on does not mind. This is not a promise but a measurement.",
      "接着读下去，读得比训练中的任何文章都长。慢针到了谁也没见过的角度，依赖它们的模型就迷失了；而一条照样延伸的直线不受影响。这不是承诺，而是测量结果。",
    ),
    views: ["extrapolation"],
    figure: figures.beyond,
  },
];

const QUESTIONS: [Words, Words][] = [
  [both("Why are 我爱你 and 你爱我 the same without positions?", "没有位置信息时，为什么我爱你与你爱我是一样的？"),
    both("Each word's result is a sum over all words, and a sum does not know the order of what it adds. The words change seats and take their results with them.", "每个词的结果都是对所有词求和，而求和不管先后。词换了座位，结果也跟着走。")],
  [both("Why many frequencies?", "为什么要许多种频率？"),
    both("One fast hand repeats after a few places, one slow hand hardly moves between neighbours. Together, fast for near and slow for far, they give every place its own row.", "一根快针走几步就重复，一根慢针在相邻位置之间几乎不动。快的看近、慢的看远，合在一起，每个位置都有独一无二的一行。")],
  [both("Why is a shift a rotation?", "为什么平移就是旋转？"),
    both("Because (p + k)·ω = p·ω + k·ω: whatever p is, the hand turns by k·ω more, and turning by a fixed angle is a fixed matrix.", "因为 (p + k)·ω = p·ω + k·ω：无论 p 是多少，指针总是再转 k·ω，而转过固定角度就是乘以固定的矩阵。")],
  [both("What does RoPE change?", "RoPE 改变了什么？"),
    both("It adds nothing to the words. It turns queries and keys, so that their product depends on the difference of their places and on nothing else of them; lengths stay as they are.", "它不往词上加任何东西，只旋转查询和键，使二者的乘积只取决于位置之差；向量的长度不变。")],
  [both("What do ALiBi's slopes do?", "ALiBi 的斜率起什么作用？"),
    both("They say how far each head can see: after the softmax a steep line leaves only near words, a flat one leaves far words as well.", "斜率决定每个头能看多远：经过 softmax 之后，陡的直线只留下近处的词，平的直线连远处的词也留下。")],
  [both("What breaks beyond training?", "超出训练长度后，什么会出问题？"),
    both("Not the frequencies: they stay. The slow pairs arrive at angles that training never showed; a learned table simply ends; a line that goes on keeps its meaning.", "不是频率，频率始终不变。是慢的那些通道转到了训练中从未出现过的角度；可学习的表到头就没有了；而一直延伸的直线含义不变。")],
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
    h("h1", {}, t(both("How a Transformer knows where words stand", "Transformer 如何知道词的位置"))),
    h("p", { class: "lead" }, t(both(
      "Eight short chapters, from a bag of words to what happens beyond the trained length. Each opens views to touch; all numbers come from the posenc library.",
      "八个小章节，从一袋没有顺序的词，讲到超出训练长度之后会怎样。每一章都通向可以动手的图；所有数值都来自 posenc 库。"))),
    trouble, ...chapters,
    h("section", { class: "questions" }, h("h2", {}, t(both("Can you say it now?", "现在说得出来吗？"))), ...QUESTIONS.map(([question, answer]) => h("details", {}, h("summary", {}, t(question)), h("p", {}, t(answer))))),
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

