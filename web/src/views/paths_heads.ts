// The attention of a model's heads at a step of its training, in particular to the previous and to the first token.

import { LINES } from "../colours";
import { array, row, type Data } from "../data";
import { h, refill } from "../dom";
import { lineChart } from "../parts/chart";
import { plainTable } from "../parts/numbers";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { number, type Stage } from "../view";
import { both, shown } from "../words";
import { layer } from "./paths_plane";

const MOSTLY = 0.5;

export function headsOf(stage: Stage) {
  const { t } = stage;
  const chart = lineChart(stage, { label: both("Attention by distance, a line for each head", "各头按距离的注意力"),
    x: both("distance to the token that is looked at", "与被关注词元的距离"), y: both("mean probability", "平均概率"), height: 300,
    pick: (distance) => stage.set({ distance }) });
  const table = h("div", {});
  const said = h("p", { "data-role": "heads" });
  const from = h("p", { class: "small" });
  const body = h("div", {}, chart.element, said, table, from);
  const question = predict(stage, {
    question: both("The model with the learned table has eight heads. After training, how many give more than half of their attention to the token just before?",
      "用可学习位置表的模型有八个头。训练之后，有几个头把一半以上的注意力给了前一个词元？"),
    choices: [both("none", "没有"), both("one", "一个"), both("all eight", "八个都是")],
    right: 1,
    because: both("One: head 4 of layer 1 rises from 0.11 to 0.99 within 1300 steps, most of it between steps 200 and 500.",
      "一个：第 1 层第 4 个头在 1300 步之内从 0.11 升到 0.99，主要发生在第 200 到 500 步之间。"),
  }, () => stage.set({ seen: true }));
  const skip = h("button", { type: "button", "data-role": "show", click: () => stage.set({ seen: true }) }, t(both("Show without guessing", "直接看结果")));
  const element = h("div", { class: "heads" }, h("h3", {}, t(both("What heads attend to", "各头关注什么"))), question, skip, body);

  let announced = -1;
  function draw(data: Data, state: State, at: number): void {
    body.hidden = state["seen"] !== true;
    skip.hidden = !body.hidden;
    if (body.hidden) return;
    const attention = array(data, "attention");
    const [, layersCount, perLayer, distances] = attention.shape as [number, number, number, number];
    const count = layersCount * perLayer;
    const lines = layer(attention, at).values;
    const first = row({ shape: [attention.shape[0]!, count], values: array(data, "first").values }, at);
    const even = array(data, "even").values;
    const evenFirst = array(data, "even_first").values[0]!;
    const name = (n: number) => t(both(`layer ${Math.floor(n / perLayer) + 1}, head ${(n % perLayer) + 1}`,
      `第 ${Math.floor(n / perLayer) + 1} 层第 ${(n % perLayer) + 1} 头`));
    const x = Array.from({ length: distances }, (_, distance) => distance);
    const profile = (n: number) => lines.subarray(n * distances, (n + 1) * distances);
    chart.draw({
      series: [
        ...Array.from({ length: count }, (_, n) => ({ name: name(n), x, y: profile(n), colour: LINES[n % perLayer]!, dashed: n >= perLayer })),
        { name: t(both("uniform attention", "均匀注意力")), x, y: even, colour: "var(--muted)" },
      ],
      cursor: Math.min(number(state, "distance"), distances - 1), yFrom: 0, yTo: 1.08,
    });
    const distance = Math.min(number(state, "distance"), distances - 1);
    if (announced >= 0 && announced !== distance) stage.announce(`${t(both("distance", "距离"))} ${distance}: ${Array.from({ length: count }, (_, n) => `${name(n)} ${shown(profile(n)[distance]!, 2)}`).join("; ")}`);
    announced = distance;
    const previous = Array.from({ length: count }, (_, n) => profile(n)[1]!);
    const [before, start] = [previous.filter((share) => share > MOSTLY).length, Array.from(first).filter((share) => share > MOSTLY).length];
    const best = previous.indexOf(Math.max(...previous));
    const step = (data.facts["steps"] as number[])[at];
    refill(said, t(both(`At step ${step}, more than half on the token before: `, `第 ${step} 步，一半以上注意力给前一个词元的头：`)),
      h("b", { "data-role": "previous", "data-value": before }, t(both(`${before} of ${count} heads`, `${count} 个中有 ${before} 个`))),
      t(both(` (most: ${name(best)}, ${shown(previous[best]!, 2)}); on the first token of the row: `,
        `（最多的是${name(best)}，${shown(previous[best]!, 2)}）；给行首词元的：`)),
      h("b", { "data-role": "first", "data-value": start }, t(both(`${start} of ${count}`, `${start} 个`))),
      t(both(` (most: ${shown(Math.max(...first), 2)}).`, `（最多 ${shown(Math.max(...first), 2)}）。`)));
    refill(table, plainTable(t(both("Mean probability by head", "各头的平均概率")),
      [t(both("head", "头")), t(both("token before", "前一个词元")), t(both("uniform attention", "均匀注意力")), t(both("first token", "行首词元")),
      t(both("uniform attention", "均匀注意力"))],
      Array.from({ length: count }, (_, n) => [name(n), previous[n]!, even[1]!, first[n]!, evenFirst])));
    const { settings, date, code } = data.facts as { settings: Record<string, any>; date: string; code: string };
    const size = settings["size"] as Record<string, number>;
    refill(from, t(both(
      `Held-out text at the trained length ${data.facts["trained"]}; the first token is counted from position ${data.facts["from"]} on. One model: seed ${settings["seed"]}, ${size["n_layers"]} layers, d_model ${size["d_model"]}, ${settings["training"]["steps"]} steps of ${settings["training"]["rows"]} rows, ${date}, code ${code.slice(0, 8)}.`,
      `取自训练长度 ${data.facts["trained"]} 的留出文本；行首词元从位置 ${data.facts["from"]} 起统计。只有一个模型：随机种子 ${settings["seed"]}，${size["n_layers"]} 层，d_model ${size["d_model"]}，共 ${settings["training"]["steps"]} 步，每步 ${settings["training"]["rows"]} 行，${date}，代码 ${code.slice(0, 8)}。`)));
  }
  return { element, draw };
}
