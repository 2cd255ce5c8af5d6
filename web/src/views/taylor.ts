// Taylor: a score ends with its second order, attention's output does not; how large each order is and what is left out.

import { LINES } from "../colours";
import { array, row } from "../data";
import { h, refill } from "../dom";
import { lineChart, type Series } from "../parts/chart";
import { formula, put, sub, sup, v } from "../parts/formula";
import { number, own, type View } from "../view";
import { both, shown, SPLIT, type Words } from "../words";
import styles from "./taylor.css";

const OWN = { scale: own.whole(8, 0, 8) };

interface Bar {
  role: string;
  name: Words;
  size: number;
  kind: "content" | "position" | "left";
}

export const view: View = {
  name: "taylor",
  title: both("Taylor: where does it end?", "泰勒展开：到哪里为止？"),
  idea: both(
    "Make all positions smaller by a factor ε, and see what each order of a Taylor expansion explains. A score has degree two in the positions and ends after the second order; attention's output has no last order, because of the softmax.",
    "把所有位置向量乘以 ε 缩小，看泰勒展开的每一阶解释了多少。分数是位置的二次式，到二阶就结束；注意力的输出因为 softmax 没有最后一阶。",
  ),
  notice: [
    both("Only the term of two different positions can see how far two words are apart: the mixed part of the second order. Terms of one position cannot.", "只有含两个不同位置的项才能看到两个词相距多远，即二阶中的混合部分；只含一个位置的项看不到。"),
    both("After the second order, what is left out falls with ε³: ten times smaller positions leave out a thousand times less.", "二阶之后舍去的部分按 ε³ 下降：位置缩小到十分之一，舍去的部分缩小到千分之一。"),
    both("The notes from which posenc began leave out the factor ½ of the second order. With their formula the rest falls with ε² only: the dashed line.", "posenc 最初的笔记在二阶漏掉了系数 ½。照笔记的公式，余下的部分只按 ε² 下降：图中的虚线。"),
  ],
  own: OWN,
  styles,
  controls: [
    { name: "sentence", label: both("your sentence", "你的句子"), as: "sentence", rule: SPLIT },
    { name: "projection", label: both("projections", "投影矩阵"), choices: { drawn: both("random", "随机"), identity: both("identity", "单位矩阵") } },
    { name: "seed", label: both("random seed", "随机种子"), as: "number" },
    { name: "shift", label: both("shift of all positions", "整体后移") },
    { name: "base", label: both("base", "底数"), scale: "log" },
  ],
  build(stage) {
    const { t } = stage;
    const [score, output] = [h("div", { class: "orders" }), h("div", { class: "orders" })];
    const said = h("p", { class: "small" });
    const chart = lineChart(stage, {
      label: both("What is left out, against the size of the positions", "舍去部分的大小随位置大小的变化"), x: both("ε, factor of every position", "ε：每个位置向量乘以的倍数"),
      y: both("size of what is left out", "舍去部分的大小"), xScale: "log", yScale: "log", height: 380, pick: (scale) => stage.set({ scale }),
    });
    stage.root.append(h("div", { class: "split" }, chart.element, h("div", {}, h("h2", {}, t(both("The scores", "分数"))), score, h("h2", {}, t(both("Attention's output", "注意力的输出"))), output, said)));

    let before = -1;

    function drawBars(place: HTMLElement, bars: Bar[], zero: Words): void {
      const most = Math.max(...bars.map((one) => one.size));
      refill(place, ...bars.map(({ role, name, size, kind }) => {
        const bar = h("i", { class: kind });
        bar.style.width = `${(size / most) * 100}%`;
        return h("div", {}, h("span", {}, t(name)), h("span", { class: "room", "aria-hidden": "true" }, bar),
          h("b", { "data-role": role, "data-value": size }, size ? shown(size) : t(zero)));
      }));
    }

    return (data, state) => {
      const scale = number(state, "scale");
      const epsilon = array(data, "epsilon").values;
      const e = epsilon[scale]!;
      const [none, one, two] = Array.from(array(data, "score").values) as [number, number, number];
      const nothing = both("0, exactly", "恰为 0");
      drawBars(score, [
        { role: "score-value", name: both("words alone: word · word", "只有词：词 · 词"), size: none, kind: "content" },
        { role: "score-first", name: both("first order: one position", "一阶：一个位置"), size: e * one, kind: "position" },
        { role: "score-second", name: both("second order: position · position", "二阶：位置 · 位置"), size: e * e * two, kind: "position" },
        { role: "score-left", name: both("left out", "舍去"), size: 0, kind: "left" },
      ], nothing);
      const [value, first, own, mixed] = Array.from(array(data, "orders").values) as [number, number, number, number];
      const left = (kind: number) => row(array(data, "left_out"), kind);
      drawBars(output, [
        { role: "order-value", name: both("words alone", "只有词"), size: value, kind: "content" },
        { role: "order-first", name: both("first order: one position", "一阶：一个位置"), size: e * first, kind: "position" },
        { role: "order-own", name: both("second order: a position with itself", "二阶：一个位置与它自己"), size: e * e * own, kind: "position" },
        { role: "order-mixed", name: both("second order: two positions", "二阶：两个位置"), size: e * e * mixed, kind: "position" },
        { role: "order-left", name: both("left out after the second order", "二阶之后舍去"), size: left(1)[scale]!, kind: "left" },
      ], nothing);
      if (before >= 0 && before !== scale)
        stage.announce(t(both(`ε = ${shown(e, 2)}: left out after the first order ${shown(left(0)[scale]!)}, after the second ${shown(left(1)[scale]!)}`,
          `ε = ${shown(e, 2)}：一阶之后舍去 ${shown(left(0)[scale]!)}，二阶之后舍去 ${shown(left(1)[scale]!)}`)));
      before = scale;
      const share = mixed / (own + mixed);
      refill(said, t(both(`At ε = ${shown(e, 2)}; sizes are roots of summed squares over all words and channels. Only the two-position term can see how far two words are apart: it is `,
        `ε = ${shown(e, 2)}；大小是所有词、所有通道的平方和的平方根。只有“两个位置”这一项能看到两个词相距多远：它占二阶的 `)),
        h("b", { "data-role": "mixed-share", "data-value": share }, `${shown(100 * share, 0)} %`), t(both(" of the second order.", "。")));
      const line = (name: Words, kind: number, colour: string, dashed = false): Series => ({ name: t(name), x: epsilon, y: left(kind), colour, dashed, dots: true });
      chart.draw({ cursor: scale, series: [
        line(both("after the first order, ∝ ε²", "一阶之后，∝ ε²"), 0, LINES[1]!),
        line(both("after the second order, ∝ ε³", "二阶之后，∝ ε³"), 1, LINES[0]!),
        line(both("second order without the factor ½, ∝ ε²", "二阶漏掉 ½，∝ ε²"), 2, LINES[2]!, true),
      ] });
      const rest = left(1)[scale]!;
      refill(stage.formula, formula(
        [v("f"), "(X + ", v("ε"), "P) = ", v("f"), "(X) + ", v("ε"), " · ", t(both("first", "一阶")), " + ", v("ε"), sup("2"), " · (", t(both("own", "自身")), " + ", t(both("mixed", "混合")), ") + ", t(both("left out", "舍去"))],
        ["‖", t(both("left out", "舍去")), "‖", sub("ε"), t(both(" at ε = ", "，ε = ")), put(shown(e, 3)), ": ", h("output", { "data-role": "value", "data-value": rest }, shown(rest))]));
      stage.code(`left_out[1, ${scale}]  # ${rest}`);
    };
  },
};
