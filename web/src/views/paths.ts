// An encoding's rows as a path in a plane and as a map of likeness, and how both change while a model trains.

import { LINES, ordered } from "../colours";
import { array, row, type Data, type Numbers } from "../data";
import { fill, h, s, type Child } from "../dom";
import { lineChart } from "../parts/chart";
import { formula, fraction, put, sub, v } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { folded, plainTable } from "../parts/numbers";
import { player } from "../parts/player";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { number, own, type Stage, type View } from "../view";
import { both, shown } from "../words";
import styles from "./paths.css";

const OWN = { snapshot: own.whole(10, 0, 10), speed: own.real(2, 1, 100), p: own.whole(5, 0, 199), q: own.whole(6, 0, 199), distance: own.whole(1, 0, 31), seen: own.yes(false) };
const SINUSOIDAL = (state: State) => state["encoding"] === "sinusoidal";

export const paths: View = {
  name: "paths",
  title: both("Paths of positions", "位置走过的路"),
  idea: both(
    "Join the rows of an encoding from one position to the next and they make a path, drawn here in the plane in which its rows differ most. A formula fixes that path, FLOATER solves a differential equation for it, and a learned table starts as noise and finds what order it has in training.",
    "把一种编码的各行按位置依次连起来，就成了一条路径；这里画的是各行差异最大的那个平面。公式编码的路径是固定的，FLOATER 靠解微分方程得到路径，可学习的位置表则从随机数开始，在训练中才逐渐有了次序。",
  ),
  notice: [
    both("The learned table: neighbouring rows grow alike, their mean cosine goes from 0.02 to 0.17 in 2000 steps, while rows half a table apart go from −0.02 to −0.10. Its path stays crumpled: two directions hold less than a quarter of what differs.", "可学习的位置表：相邻行逐渐变得相似，2000 步内平均余弦由 0.02 升到 0.17；相隔半张表以上的行则由 −0.02 降到 −0.10。它的路径始终是皱的：两个方向还占不到全部差异的四分之一。"),
    both("FLOATER's path is smooth before any training, since neighbours are 0.01 of its time apart; training stretches and bends it. It goes on past position 31 without a new parameter, dashed here.", "FLOATER 的路径在训练之前就是光滑的，因为相邻位置只相隔 0.01 的时间；训练把它拉长、弄弯。越过位置 31 之后路径仍可延续（虚线部分），不需要新的参数。"),
    both("With the learned table one head of eight ends on the token before it (0.99) and one mostly on the token two before (0.56); none looks at the start of the row. With FLOATER no head gives half to any distance: the four of layer 1 give 0.36 to 0.40 to the token before.", "用可学习位置表时，八个头里有一个最终几乎只看前一个词元（0.99），还有一个多半看向再前面一个（0.56）；没有一个看向行首。用 FLOATER 时，没有哪个头把一半注意力给某个固定的距离：第 1 层的四个头给前一个词元 0.36 到 0.40。"),
    both("The text is program code: whether heads look after a verb or back to an antecedent cannot be read from this record. posenc lab measures such links on Chinese sentences.", "训练文本是程序代码，因此看不出有没有头专门看动词之后的词或回指先行词；这类联系由 posenc lab 在汉语句子上测量。"),
  ],
  papers: [
    { text: "Liu et al. 2020, FLOATER", href: "https://arxiv.org/abs/2003.09229" },
    { text: "Gehring et al. 2017, learned positions", href: "https://arxiv.org/abs/1705.03122" },
  ],
  own: OWN,
  styles,
  controls: [
    { name: "encoding", label: both("encoding", "编码"), choices: { learned: both("learned table", "可学习位置表"), floater: both("FLOATER", "FLOATER"), sinusoidal: both("sinusoidal", "正弦") } },
    { name: "length", label: both("positions", "位置数"), when: SINUSOIDAL },
    { name: "d_model", label: both("channels", "通道数"), when: SINUSOIDAL },
    { name: "base", label: both("base", "底数"), scale: "log", when: SINUSOIDAL },
  ],
  build(stage) {
    const { t } = stage;
    const play = player(stage, { name: "snapshot", speed: "speed", parameter: OWN.snapshot });
    const slider = h("input", { type: "range", min: 0, max: OWN.snapshot.to!, step: 1, "aria-label": t(both("training step", "训练步")), "data-role": "scrub", input: () => stage.set({ snapshot: Number(slider.value) }) });
    const when = h("output", { "data-role": "when" });
    const scrubber = h("div", { class: "scrubber" }, play.element, h("label", { class: "scrub" }, slider), when);
    const plane = planeOf(stage);
    const map = heatMap(stage, { label: both("Cosine of two rows", "两行的余弦相似度"), rows: both("position p", "位置 p"), columns: both("position p′", "位置 p′"), around: 2, pick: (p, q) => stage.set({ p, q }) });
    const alike = lineChart(stage, { label: both("Mean cosine of rows while training", "训练中各行的平均余弦"), x: both("training step", "训练步"), y: both("cosine", "余弦"), height: 300, pick: (snapshot) => stage.set({ snapshot }) });
    const heads = headsOf(stage);
    const trained = h("div", { class: "training" }, h("h2", {}, t(both("While it trains", "训练过程"))), alike.element, heads.element);
    stage.root.append(scrubber, h("div", { class: "two" }, plane.element, map.element), trained);

    return (data, state) => {
      const { facts } = data;
      const steps = (facts["steps"] ?? [0]) as number[];
      const at = facts["trained"] ? Math.min(number(state, "snapshot"), steps.length - 1) : 0;
      const similarity = layer(array(data, "similarity"), at);
      const rows = similarity.shape[0]!;
      const [p, q] = [Math.min(number(state, "p"), rows - 1), Math.min(number(state, "q"), rows - 1)];
      scrubber.hidden = trained.hidden = !facts["trained"];
      plane.draw(data, at, p, q);
      map.draw({ numbers: similarity, cursor: [p, q] });
      const cosine = similarity.values[p * rows + q]!;
      if (facts["trained"]) {
        play.draw({ ...state, snapshot: at });
        slider.value = String(at);
        slider.setAttribute("aria-valuetext", t(both(`step ${steps[at]}`, `第 ${steps[at]} 步`)));
        const bits = array(data, "bits").values[at]!;
        fill(when, t(both("step ", "第 ")), h("b", { "data-value": steps[at]! }, `${steps[at]}`), t(both(` of ${steps.at(-1)}`, ` 步，共 ${steps.at(-1)} 步`)), Number.isFinite(bits) ? t(both(` · ${shown(bits, 2)} bits a byte`, ` · 每字节 ${shown(bits, 2)} 比特`)) : "");
        alike.draw({ series: [
          { name: t(both("neighbours", "相邻两行")), x: steps, y: array(data, "near").values, colour: LINES[0]!, dots: true },
          { name: t(both("half a table apart or more", "相隔半张表以上")), x: steps, y: array(data, "far").values, colour: LINES[1]!, dashed: true, dots: true },
        ], cursor: at });
        heads.draw(data, state, at);
      }
      fill(stage.formula, formula(...substituted(stage, data, at, p, q, cosine, state["encoding"] as string)));
      stage.announce(`${facts["trained"] ? `${t(both("step", "第"))} ${steps[at]}${t(both("", " 步"))}, ` : ""}${t(both("positions", "位置"))} ${p}, ${q}: ${t(both("cosine", "余弦"))} ${shown(cosine)}`);
      stage.code(`similarity[${at}, ${p}, ${q}]  # ${cosine}`);
    };
  },
};

/** One snapshot of a stack of matrices; a view, not a copy. The same object for the same numbers, so that a map is painted once. */
const layers = new WeakMap<Numbers, Map<number, Numbers>>();
function layer(numbers: Numbers, at: number): Numbers {
  const known = layers.get(numbers) ?? new Map<number, Numbers>();
  layers.set(numbers, known);
  const shape = numbers.shape.slice(1);
  const size = shape.reduce((product, n) => product * n, 1);
  const found = known.get(at) ?? { shape, values: numbers.values.subarray(at * size, (at + 1) * size) };
  known.set(at, found);
  return found;
}

function substituted({ t }: Stage, data: Data, at: number, p: number, q: number, cosine: number, encoding: string): Child[][] {
  const norm = row(array(data, "norm"), at);
  const [first, second] = [put(p, "position"), put(q, "position")];
  const x = (of: Child) => [v("x"), sub(of)];
  const lines: Child[][] = [[
    "cos(", ...x(first), ", ", ...x(second), ") = ", fraction(h("span", {}, ...x(put(p, "position")), " · ", ...x(put(q, "position"))), h("span", {}, "‖", ...x(put(p, "position")), "‖ ‖", ...x(put(q, "position")), "‖")), " = ",
    fraction(put(shown(cosine * norm[p]! * norm[q]!, 3)), h("span", {}, put(shown(norm[p]!, 3)), " · ", put(shown(norm[q]!, 3)))), " = ", h("output", { "data-role": "value", "data-value": cosine }, shown(cosine)),
  ]];
  const moved = row(array(data, "moved"), at);
  if (p < moved.length) {
    const far = h("output", { "data-role": "moved", "data-value": moved[p]! }, shown(moved[p]!));
    if (encoding === "floater") {
      const step = data.facts["step"] as number;
      const time = (position: number) => shown(position * step, 2);
      lines.push(
        [v("x"), "(", v("p"), " + Δ) = ", v("x"), "(", v("p"), ") + ∫ ", v("h"), "(τ, ", v("x"), "(τ)) dτ", t(both(",  τ from ", "，τ 从 ")), `${step}·`, v("p"), t(both(" to ", " 到 ")), `${step}·(`, v("p"), " + Δ)"],
        ["‖", v("x"), "(", put(p + 1, "position"), ") − ", v("x"), "(", put(p, "position"), ")‖ = ‖∫", v("h"), " dτ‖", t(both(" from ", "，从 ")), put(time(p), "position"), t(both(" to ", " 到 ")), put(time(p + 1), "position"), " = ", far]);
    } else lines.push(["‖", ...x(put(p + 1, "position")), " − ", ...x(put(p, "position")), "‖ = ", far]);
  }
  return lines;
}

// The path ------------------------------------------------------------------------------------------------------------------

function planeOf(stage: Stage) {
  const { t } = stage;
  const figure = h("div", { class: "plane", tabindex: 0, role: "application", "aria-roledescription": t(both("path", "路径")), "aria-label": t(both("The rows as a path in the plane of their first two principal components. Left and right move along it.", "各行在前两个主成分平面上的路径。左右键沿路径移动。")) });
  const word = h("p", { class: "small" });
  const table = h("div", {});
  const details = folded(t(both("Numbers of this path", "这条路径的数值")), table);
  const element = h("div", { class: "path" }, figure, word, details);
  let last: [Data, number, number, number] | null = null;
  let spots: [number, number][] = [];
  let rows = 1;

  function draw(data: Data, at: number, p: number, q: number): void {
    last = [data, at, p, q];
    const all = array(data, "paths");
    const { values } = layer(all, at);
    const count = all.shape[1]!;
    rows = array(data, "similarity").shape[1]!;
    const width = Math.max(figure.clientWidth, 240);
    const height = Math.round(Math.min(width * 0.95, 560));
    const { middle, scale } = fitted(all, width - 60, height - 50);
    const place = (x: number, y: number): [number, number] => [width / 2 + (x - middle[0]) * scale, height / 2 - (y - middle[1]) * scale];
    const [zeroX, zeroY] = place(0, 0);
    spots = Array.from({ length: count }, (_, n) => place(values[2 * n]!, values[2 * n + 1]!));
    const line = (from: number, to: number) => `M${spots.slice(from, to).map((spot) => spot.map((part) => part.toFixed(1)).join(" ")).join("L")}`;
    const label = (n: number, name: string) => s("text", { class: name, x: spots[n]![0] + (spots[n]![0] > width - 40 ? -9 : 9), y: spots[n]![1] + (spots[n]![1] < 20 ? 14 : -7), "text-anchor": spots[n]![0] > width - 40 ? "end" : "start" }, n);
    const ends = [0, rows - 1, count - 1].filter((n, index, list) => list.indexOf(n) === index && n !== p && n !== q);
    figure.replaceChildren(s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
      s("line", { class: "grid", x1: 0, x2: width, y1: zeroY, y2: zeroY }), s("line", { class: "grid", x1: zeroX, x2: zeroX, y1: 0, y2: height }),
      s("path", { class: "track", d: line(0, rows) }), count > rows ? s("path", { class: "track beyond", d: line(rows - 1, count) }) : "",
      ...spots.map(([x, y], n) => s("circle", { cx: x, cy: y, r: n < rows ? 4 : 2.5, fill: n < rows ? ordered(n, rows) : "var(--muted)" })),
      ...ends.map((n) => label(n, "end")),
      s("circle", { class: "other", cx: spots[q]![0], cy: spots[q]![1], r: 7 }), s("circle", { class: "here", cx: spots[p]![0], cy: spots[p]![1], r: 7 }),
      ...(p === q ? [] : [label(q, "other")]), label(p, "here")));
    const share = array(data, "shown").values[at]!;
    fill(word, t(both("This plane shows ", "这个平面占各行全部差异的 ")), h("b", { "data-role": "share", "data-value": share }, `${(share * 100).toFixed(1)} %`),
      t(count > rows ? both(` of what differs between the rows; dashed beyond the trained length ${rows}.`, `；虚线部分超出训练长度 ${rows}。`) : both(" of what differs between the rows.", "。")),
      data.facts["trained"] ? t(both(" It is the last step's plane at every step, at one scale.", "各步都投影到最后一步的平面，比例相同。")) : "");
    if (details.matches("[open]")) numbers();
  }
  function numbers(): void {
    if (!last) return;
    const [data, at] = last;
    const { values, shape } = layer(array(data, "paths"), at);
    const moved = row(array(data, "moved"), at);
    fill(table, plainTable(t(both("Path", "路径")), [t(both("position", "位置")), t(both("1st component", "第一主成分")), t(both("2nd component", "第二主成分")), t(both("distance to the next row", "到下一行的距离"))],
      Array.from({ length: shape[0]! }, (_, n) => [String(n), values[2 * n]!, values[2 * n + 1]!, moved[n] ?? NaN])));
  }
  details.addEventListener("toggle", () => details.matches("[open]") && numbers());
  function at(event: PointerEvent): void {
    const box = figure.getBoundingClientRect();
    const far = ([x, y]: [number, number]) => Math.hypot(x - (event.clientX - box.left), y - (event.clientY - box.top));
    const known = spots.slice(0, rows);
    stage.set({ p: known.reduce((best, spot, n) => (far(spot) < far(known[best]!) ? n : best), 0) });
  }
  figure.addEventListener("pointerdown", at);
  figure.addEventListener("pointermove", (event) => event.buttons & 1 && at(event));
  figure.addEventListener("keydown", (event) => {
    if (!last || event.ctrlKey || event.metaKey || event.altKey) return;
    const p = last[2];
    const next = { ArrowLeft: p - 1, ArrowDown: p - 1, ArrowRight: p + 1, ArrowUp: p + 1, PageUp: p + 10, PageDown: p - 10, Home: 0, End: rows - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    stage.set({ p: Math.min(Math.max(next, 0), rows - 1) });
  });
  const watch = new ResizeObserver(() => last && draw(...last));
  watch.observe(figure);
  stage.leaving(() => watch.disconnect());
  return { element, draw };
}

/** One scale for both axes and all snapshots, so that growth is seen as growth. */
const fits = new WeakMap<Numbers, [number, number, number, number]>();
function fitted(all: Numbers, width: number, height: number): { middle: [number, number]; scale: number } {
  let box = fits.get(all);
  if (!box) {
    box = [Infinity, -Infinity, Infinity, -Infinity];
    for (let index = 0; index < all.values.length; index += 2) {
      const [x, y] = [all.values[index]!, all.values[index + 1]!];
      box = [Math.min(box[0], x), Math.max(box[1], x), Math.min(box[2], y), Math.max(box[3], y)];
    }
    fits.set(all, box);
  }
  const [left, right, low, high] = box;
  return { middle: [(left + right) / 2, (low + high) / 2], scale: Math.min(width / (right - left || 1), height / (high - low || 1)) };
}

// Where heads look ------------------------------------------------------------------------------------------------------------

const MOSTLY = 0.5;

function headsOf(stage: Stage) {
  const { t } = stage;
  const chart = lineChart(stage, { label: both("Attention by distance, a line for each head", "各头按距离的注意力"), x: both("distance to the token that is looked at", "与被关注词元的距离"), y: both("mean probability", "平均概率"), height: 300, pick: (distance) => stage.set({ distance }) });
  const table = h("div", {});
  const said = h("p", { "data-role": "heads" });
  const from = h("p", { class: "small" });
  const body = h("div", {}, chart.element, said, table, from);
  const question = predict(stage, {
    question: both("The model with the learned table has eight heads. After training, how many give more than half of their attention to the token just before?", "用可学习位置表的模型有八个头。训练之后，有几个头把一半以上的注意力给了前一个词元？"),
    choices: [both("none", "没有"), both("one", "一个"), both("all eight", "八个都是")],
    right: 1,
    because: both("One: head 4 of layer 1 rises from 0.11 to 0.99 within 1300 steps, most of it between steps 200 and 500.", "一个：第 1 层第 4 个头在 1300 步之内从 0.11 升到 0.99，主要发生在第 200 到 500 步之间。"),
  }, () => stage.set({ seen: true }));
  const skip = h("button", { type: "button", "data-role": "show", click: () => stage.set({ seen: true }) }, t(both("Show without guessing", "直接看结果")));
  const element = h("div", { class: "heads" }, h("h3", {}, t(both("Where heads look", "各头看向哪里"))), question, skip, body);

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
    const name = (n: number) => t(both(`layer ${Math.floor(n / perLayer) + 1}, head ${(n % perLayer) + 1}`, `第 ${Math.floor(n / perLayer) + 1} 层第 ${(n % perLayer) + 1} 头`));
    const x = Array.from({ length: distances }, (_, distance) => distance);
    const profile = (n: number) => lines.subarray(n * distances, (n + 1) * distances);
    chart.draw({
      series: [...Array.from({ length: count }, (_, n) => ({ name: name(n), x, y: profile(n), colour: LINES[n % perLayer]!, dashed: n >= perLayer })), { name: t(both("if all were alike", "若一视同仁")), x, y: even, colour: "var(--muted)" }],
      cursor: Math.min(number(state, "distance"), distances - 1), yFrom: 0, yTo: 1.08,
    });
    const previous = Array.from({ length: count }, (_, n) => profile(n)[1]!);
    const [before, start] = [previous.filter((share) => share > MOSTLY).length, Array.from(first).filter((share) => share > MOSTLY).length];
    const best = previous.indexOf(Math.max(...previous));
    const step = (data.facts["steps"] as number[])[at];
    fill(said, t(both(`At step ${step}, more than half on the token before: `, `第 ${step} 步，一半以上注意力给前一个词元的头：`)), h("b", { "data-role": "previous", "data-value": before }, t(both(`${before} of ${count} heads`, `${count} 个中有 ${before} 个`))),
      t(both(` (most: ${name(best)}, ${shown(previous[best]!, 2)}); on the first token of the row: `, `（最多的是${name(best)}，${shown(previous[best]!, 2)}）；给行首词元的：`)), h("b", { "data-role": "first", "data-value": start }, t(both(`${start} of ${count}`, `${start} 个`))), t(both(` (most: ${shown(Math.max(...first), 2)}).`, `（最多 ${shown(Math.max(...first), 2)}）。`)));
    fill(table, plainTable(t(both("Mean probability by head", "各头的平均概率")), [t(both("head", "头")), t(both("token before", "前一个词元")), t(both("if all were alike", "若一视同仁")), t(both("first token", "行首词元")), t(both("if all were alike", "若一视同仁"))],
      Array.from({ length: count }, (_, n) => [name(n), previous[n]!, even[1]!, first[n]!, evenFirst])));
    const { settings, date, code } = data.facts as { settings: Record<string, any>; date: string; code: string };
    const size = settings["size"] as Record<string, number>;
    fill(from, t(both(
      `Held-out text at the trained length ${data.facts["trained"]}; the first token is counted from position ${data.facts["from"]} on. One model: seed ${settings["seed"]}, ${size["n_layers"]} layers, d_model ${size["d_model"]}, ${settings["training"]["steps"]} steps of ${settings["training"]["rows"]} rows, ${date}, code ${code.slice(0, 8)}.`,
      `取自训练长度 ${data.facts["trained"]} 的留出文本；行首词元从位置 ${data.facts["from"]} 起统计。只有一个模型：随机种子 ${settings["seed"]}，${size["n_layers"]} 层，d_model ${size["d_model"]}，共 ${settings["training"]["steps"]} 步，每步 ${settings["training"]["rows"]} 行，${date}，代码 ${code.slice(0, 8)}。`)));
  }
  return { element, draw };
}
