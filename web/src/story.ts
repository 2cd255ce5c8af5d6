// The start page: the scene, the views by the steps that lead to them, and questions.

import { h, type Child } from "./dom";
import { openView, type Frame, type Opened, type Parts } from "./opened";
import { SCENE, thumbnails } from "./scene";
import { stepAddress, STEPS, stepOf } from "./steps";
import type { View } from "./view";
import { VIEWS } from "all-views";
import { both, firstSentence, phrased, type Words } from "./words";

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

export function start(main: HTMLElement, frame: Frame): Opened {
  const { t } = frame;
  const small = thumbnails();
  const cards = STEPS.map(({ name, title }, index) => h("a", { class: "thumbnail", href: stepAddress(name) }, small.elements[index]!, h("h3", {}, `${index + 1}. `, phrased(t(title)))));
  const view: View = {
    ...SCENE,
    build(stage) {
      const draw = SCENE.build(stage);
      return (data, state) => {
        draw(data, state);
        small.draw(data, state);
        cards.forEach((card, index) => (card.href = stepAddress(STEPS[index]!.name, String(state["sentence"]))));
      };
    },
  };
  const links = (views: View[]) => h("ul", {}, ...views.map(({ name, title, idea }) => h("li", {}, h("a", { href: `#/${name}` }, phrased(t(title))), h("p", {}, firstSentence(t(idea))))));
  const arranged = ({ controls, trouble, stage, exported, code, take }: Parts): Child[] => [h("div", { class: "start" },
    h("h1", {}, phrased(t(view.title))), h("p", { class: "lead" }, t(view.idea)), controls, trouble, stage, exported, h("p", { class: "onward" }, take),
    h("section", { class: "all-views" }, h("h2", {}, t(both("All views", "全部视图"))), links(VIEWS.filter(({ name }) => !stepOf(name))),
      ...STEPS.map((step, index) => h("section", { class: "of-step" }, cards[index]!, links(VIEWS.filter(({ name }) => step.views.includes(name)))))),
    h("section", { class: "questions" }, h("h2", {}, t(both("Check your understanding", "检查一下你的理解"))), ...QUESTIONS.map(([question, answer]) => h("details", {}, h("summary", {}, phrased(t(question))), h("p", {}, t(answer))))),
    code)];
  return openView(view, main, frame, arranged);
}
