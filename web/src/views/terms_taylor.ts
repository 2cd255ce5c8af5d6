// Taylor: a score ends with its second order, attention's output does not; how large each order is and what is left out.

import { LINES } from "../colours";
import { array, row, type Data } from "../data";
import { fill, h } from "../dom";
import { lineChart, type Series } from "../parts/chart";
import type { Stage } from "../view";
import { both, shown, type Words } from "../words";

interface Bar {
  role: string;
  name: Words;
  size: number;
  kind: "content" | "position" | "left";
}

export function taylorOf(stage: Stage): { element: HTMLElement; draw(data: Data, scale: number): void } {
  const { t } = stage;
  const [score, output] = [h("div", { class: "orders" }), h("div", { class: "orders" })];
  const said = h("p", { class: "small" });
  const chart = lineChart(stage, {
    label: both("What is left out, against the size of the positions", "舍去部分的大小随位置大小的变化"), x: both("ε, factor of every position", "ε：每个位置向量乘以的倍数"),
    y: both("size of what is left out", "舍去部分的大小"), xScale: "log", yScale: "log", height: 260, pick: (scale) => stage.set({ scale }),
  });
  const element = h("section", { class: "taylor" },
    h("h2", {}, t(both("Taylor: does it end after the second order?", "泰勒展开：到二阶为止吗？"))),
    h("p", {}, t(both(
      "A score has degree two in the positions: the four terms above are its value, its first and its second order, and nothing is left out. Softmax makes attention's output a function whose expansion has no end.",
      "分数是位置的二次式：上面四项就是它的零阶、一阶和二阶，什么也没有舍去。经过 softmax，注意力输出的展开没有尽头。",
    ))),
    h("div", { class: "split" }, h("div", {}, h("h3", {}, t(both("The scores", "分数"))), score, h("h3", {}, t(both("Attention's output", "注意力的输出"))), output, said), chart.element));

  let before = -1;

  function drawBars(place: HTMLElement, bars: Bar[], zero: Words): void {
    const most = Math.max(...bars.map((one) => one.size));
    fill(place, ...bars.map(({ role, name, size, kind }) => {
      const bar = h("i", { class: kind });
      bar.style.width = `${(size / most) * 100}%`;
      return h("div", {}, h("span", {}, t(name)), h("span", { class: "room", "aria-hidden": "true" }, bar),
        h("b", { "data-role": role, "data-value": size }, size ? shown(size) : t(zero)));
    }));
  }

  function draw(data: Data, scale: number): void {
    const epsilon = array(data, "epsilon").values;
    const e = epsilon[scale]!;
    const terms = array(data, "absolute");
    const cells = terms.values.length / 4;
    const norm = (...which: number[]) => Math.hypot(...Array.from({ length: cells }, (_, at) => which.reduce((sum, n) => sum + terms.values[n * cells + at]!, 0)));
    const nothing = both("0, exactly", "恰为 0");
    drawBars(score, [
      { role: "score-value", name: both("words alone: content · content", "只有词：内容 · 内容"), size: norm(0), kind: "content" },
      { role: "score-first", name: both("first order: one position", "一阶：一个位置"), size: e * norm(1, 2), kind: "position" },
      { role: "score-second", name: both("second order: position · position", "二阶：位置 · 位置"), size: e * e * norm(3), kind: "position" },
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
    fill(said, t(both(`At ε = ${shown(e, 2)}; sizes are roots of summed squares over all words and channels. Only the two-position term can see how far two words are apart: it is `,
      `ε = ${shown(e, 2)}；大小是所有词、所有通道的平方和的平方根。只有“两个位置”这一项能看到两个词相距多远：它占二阶的 `)),
      h("b", { "data-role": "mixed-share", "data-value": share }, `${shown(100 * share, 0)} %`), t(both(" of the second order.", "。")));
    const line = (name: Words, kind: number, colour: string, dashed = false): Series => ({ name: t(name), x: epsilon, y: left(kind), colour, dashed, dots: true });
    chart.draw({ cursor: scale, series: [
      line(both("after the first order, ∝ ε²", "一阶之后，∝ ε²"), 0, LINES[1]!),
      line(both("after the second order, ∝ ε³", "二阶之后，∝ ε³"), 1, LINES[0]!),
      line(both("second order without the factor ½, as in note 002, ∝ ε²", "二阶漏掉 ½，如笔记 002，∝ ε²"), 2, LINES[2]!, true),
    ] });
  }
  return { element, draw };
}
