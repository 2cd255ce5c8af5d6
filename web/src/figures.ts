// The small figures of the start page. Each draws into its element from the numbers of the view "story".

import { colour, encodingColour, isDark, ordered } from "./colours";
import { array, row, type Data, type Numbers } from "./data";
import { h, s } from "./dom";
import { apart, scale, tidy } from "./parts/chart";
import { colourKey } from "./parts/colour_key";
import { sub, v } from "./parts/formula";
import type { Opening } from "./opening";
import { both, shown, type Words } from "./words";

const SENTENCES = [["我", "爱", "你"], ["你", "爱", "我"]] as const;
const MEANINGS: Record<string, string> = { 我: "I", 爱: "love", 你: "you" };

export function blindness(place: HTMLElement, data: Data, { t, language }: Opening): void {
  let order = 0;
  const outputs = array(data, "outputs");
  const most = Math.max(...outputs.values.map(Math.abs));
  const dark = isDark(place);
  const cells = (values: ArrayLike<number>) => Array.from(values, (value) => {
    const cell = h("i", {});
    cell.style.background = colour("diverging", value, most, dark);
    return cell;
  });
  const words = SENTENCES[0].map((word, index) => h("div", { class: "token" }, h("b", { lang: "zh-CN" }, word), language === "en" && h("small", {}, MEANINGS[word]), h("span", { class: "result", "aria-hidden": "true" }, ...cells(row(outputs, index)))));
  const said = h("p", { class: "small", role: "status" });
  const strip = h("div", { class: "tokens", role: "img" }, ...words);
  const blind = data.facts["blind"] as Record<string, number>;
  function draw(): void {
    const now = SENTENCES[order]!;
    words.forEach((word, index) => {
      const to = now.indexOf(SENTENCES[0][index]!);
      word.style.transform = `translateX(${(to - index) * 100}%)`;
    });
    strip.setAttribute("aria-label", t(both(`Three words and what attention makes of each: ${now.join(" ")}`, `三个词和注意力对每个词算出的结果：${now.join(" ")}`)));
    said.textContent = t(both(
      `Below each word, what attention makes of it. Measured: no result changes when the words are swapped (rounding, ${shown(blind["nope"]!)}); with sinusoids some change by ${shown(blind["sinusoidal"]!, 2)}.`,
      `词下面的色条是注意力算出的结果。实测：词交换位置，结果不变（只有舍入误差 ${shown(blind["nope"]!)}）；加上正弦位置编码后，最大变化为 ${shown(blind["sinusoidal"]!, 2)}。`));
  }
  draw();
  place.append(strip);
  keyTo(place, most);
  place.append(h("div", { class: "row" }, h("button", { type: "button", class: "primary", "data-role": "swap", click: () => {
    order = 1 - order;
    draw();
  } }, t(both("Swap the words", "交换两个词")))), said);
}

export function integers(place: HTMLElement, _: Data, { t }: Opening): void {
  const vector = [0.6, -0.3, 0.9, -0.7, 0.2, -0.5];
  const svg = s("svg", { viewBox: "0 0 360 170", role: "img" });
  const said = h("p", { class: "small" });
  const draw = (p: number) => {
    const y = scale(-1, Math.max(1, p + 1), 158, 8);
    svg.replaceChildren(s("line", { class: "grid", x1: 0, x2: 360, y1: y.place(0), y2: y.place(0) }), ...vector.flatMap((value, index) => {
      const x = 14 + index * 58;
      const bar = (offset: number, from: number, to: number, kind: string) => s("rect", { x: x + offset, width: 20, y: Math.min(y.place(from), y.place(to)), height: Math.max(Math.abs(y.place(to) - y.place(from)), 0.5), class: kind });
      return [bar(0, 0, value, "word-bar"), bar(23, 0, value + p, "sum-bar")];
    }));
    svg.setAttribute("aria-label", t(both(`A word of six numbers between −1 and 1, and the same word plus ${p}`, `六个介于 −1 与 1 之间的数组成的词，以及它加上 ${p} 之后`)));
    said.textContent = t(both(`grey: the word · amber: the word plus its position, ${p}`, `灰：词本身 · 琥珀：词加上位置序号 ${p}`));
    return t(both(`the largest of the six numbers is ${shown(Math.max(...vector) + p, 1)}`, `六个数中最大的是 ${shown(Math.max(...vector) + p, 1)}`));
  };
  place.append(svg, slider(t(both("position", "位置")), 0, 500, 3, draw), said);
}

export function binary(place: HTMLElement, data: Data, { t }: Opening): void {
  const bits = array(data, "bits");
  const strip = h("div", { class: "bits", role: "img" });
  const draw = (p: number) => {
    const digits = [...row(bits, p)].reverse();
    strip.replaceChildren(...digits.map((bit, index) => h("span", { class: bit ? "bit on" : "bit" }, h("b", {}, bit), h("small", {}, t(both(`every ${2 ** (4 - index)}`, `每 ${2 ** (4 - index)} 步`))))));
    strip.setAttribute("aria-label", t(both(`A position in five binary digits: ${p} = ${digits.join("")}`, `五位二进制数表示的位置：${p} = ${digits.join("")}`)));
    return digits.join("");
  };
  place.append(strip, slider(t(both("position", "位置")), 0, 31, 6, draw));
}

export function sinusoid(place: HTMLElement, data: Data, { t }: Opening): void {
  const numbers = array(data, "table");
  const omega = array(data, "omega");
  const map = squares(numbers, 1, isDark(place));
  const mark = s("rect", { x: -0.2, width: 32.4, height: 1, class: "row-mark" });
  map.append(mark);
  map.setAttribute("aria-label", t(both("Thirty-two positions and their rows of sines and cosines", "三十二个位置，每个位置一行正弦与余弦")));
  const hands = h("div", { class: "hands", "aria-hidden": "true" });
  const draw = (p: number) => {
    mark.setAttribute("y", String(p));
    const shownPairs = [0, 3, 6, 9];
    hands.replaceChildren(...shownPairs.map((pair) => clock([{ angle: p * omega.values[pair]!, colour: "var(--channel)" }])));
    return t(both("sines of four hands: ", "四根指针的正弦：")) + shownPairs.map((pair) => shown(row(numbers, p)[2 * pair]!, 2)).join(", ");
  };
  place.append(h("div", { class: "map-and-hands" }, map, hands));
  keyTo(place, 1);
  place.append(slider(t(both("position", "位置")), 0, 31, 6, draw));
}

export function rotation(place: HTMLElement, data: Data, { t }: Opening): void {
  const omega = array(data, "omega").values[2]!;
  const [k, said, dial] = [3, h("p", { class: "formula" }), h("div", { class: "one-clock", role: "img" })];
  const draw = (p: number) => {
    dial.replaceChildren(clock([{ angle: p * omega, colour: "var(--position)" }, { angle: (p + k) * omega, colour: "var(--channel)" }], true));
    dial.setAttribute("aria-label", t(both(`Two hands ${k} positions apart`, `相距 ${k} 个位置的两根指针`)));
    const angle = `${shown(((p + k) * omega - p * omega) * 180 / Math.PI, 1)}°`;
    said.replaceChildren(`(${p} + ${k}) · `, v("ω"), " − ", `${p} · `, v("ω"), " = ", h("b", { class: "put" }, angle));
    return t(both(`${angle} between the hands`, `两根指针相差 ${angle}`));
  };
  place.append(dial, slider("p", 0, 31, 6, draw), said);
}

export function relative(place: HTMLElement, data: Data, { t }: Opening): void {
  const scores = array(data, "scores");
  const map = squares(scores, 1, isDark(place));
  const line = s("polyline", { class: "diagonal" });
  map.append(line);
  map.setAttribute("aria-label", t(both("Scores of query i with key j: the same along every diagonal", "查询 i 与键 j 的分数：每条对角线上的值相同")));
  const said = h("p", { class: "formula" });
  const draw = (lag: number) => {
    line.setAttribute("points", `${0.5},${lag + 0.5} ${23.5 - lag},${23.5}`);
    const score = shown(scores.values[lag * 24]!, 3);
    said.replaceChildren(v("i"), " − ", v("j"), ` = ${lag}:  `, h("b", { class: "put" }, score), " ", h("span", { class: "small" }, t(both(`at all ${24 - lag} positions`, `在全部 ${24 - lag} 个位置`))));
    return t(both(`score ${score}`, `分数 ${score}`));
  };
  place.append(map);
  keyTo(place, 1);
  place.append(slider(t(both("distance", "距离")), 0, 20, 3, draw), said);
}

export function bias(place: HTMLElement, data: Data, { t }: Opening): void {
  const [lines, lags] = [array(data, "bias"), array(data, "lags").values];
  const [x, y] = [scale(0, 32, 30, 350), scale(-16.5, 0, 158, 10)];
  const svg = s("svg", { viewBox: "0 0 360 170", role: "img", "aria-label": t(both("Eight straight lines down from zero, one for each head", "从零向下的八条直线，每个头一条")) });
  const said = h("p", { class: "formula" });
  const draw = (head: number) => {
    const one = (index: number) => s("polyline", { points: [...lags].map((lag, at) => `${x.place(lag)},${y.place(row(lines, index)[at]!)}`).join(" "), fill: "none", stroke: ordered(index, 8), "stroke-width": index === head ? 4 : 1.5, opacity: index === head ? 1 : 0.55 });
    svg.replaceChildren(...[0, -5, -10, -15].flatMap((value) => [s("line", { class: "grid", x1: 30, x2: 350, y1: y.place(value), y2: y.place(value) }), s("text", { x: 24, y: y.place(value) + 4, "text-anchor": "end" }, tidy(value))]),
      ...Array.from({ length: 8 }, (_, index) => one(index)).filter((_, index) => index !== head), one(head));
    const slope = -row(lines, head)[1]!;
    said.replaceChildren("− ", v("m"), sub(String(head + 1)), " · |", v("i"), " − ", v("j"), "|,  ", v("m"), sub(String(head + 1)), ` = ${slope === 0.5 ? "1/2" : `1/${Math.round(1 / slope)}`}`);
    return t(both(`slope ${slope}`, `斜率 ${slope}`));
  };
  place.append(svg, slider(t(both("head", "头")), 1, 8, 2, (head) => draw(head - 1)), said);
}

interface Measured {
  trained: number;
  lengths: number[];
  series: { name: string; title: Words; bits: (number | null)[] }[];
}

export function beyond(place: HTMLElement, data: Data, { t }: Opening): void {
  const measured = data.facts["measured"] as Measured;
  const all = measured.series.flatMap((one) => one.bits.filter((value) => value !== null));
  const times = (length: number) => length / measured.trained;
  const [x, y] = [scale(times(measured.lengths[0]!), times(measured.lengths.at(-1)!), 34, 262, "log2"), scale(Math.min(...all) - 0.2, Math.max(...all) + 0.2, 150, 12)];
  const labels = apart(measured.series.map((one) => y.place(one.bits.findLast((value) => value !== null)!)), 15);
  const svg = s("svg", { viewBox: "0 0 360 185", role: "img", "aria-label": t(both("Bits per byte by length: sinusoidal and RoPE rise, ALiBi stays flat", "每字节比特数随长度的变化：正弦编码与 RoPE 上升，ALiBi 保持平坦")) },
    ...y.ticks(4).flatMap((value) => [s("line", { class: "grid", x1: 34, x2: 262, y1: y.place(value), y2: y.place(value) }), s("text", { x: 28, y: y.place(value) + 4, "text-anchor": "end" }, tidy(value))]),
    ...measured.lengths.filter((length) => Number.isInteger(times(length))).map((length) => s("text", { x: x.place(times(length)), y: 170, "text-anchor": "middle" }, `${tidy(times(length))}×`)),
    ...measured.series.flatMap((one, index) => {
      const points = one.bits.flatMap((value, at) => (value === null ? [] : [[x.place(times(measured.lengths[at]!)), y.place(value)]]));
      const stroke = encodingColour(one.name);
      const [lastX] = points.at(-1)!;
      return [s("polyline", { points: points.map((point) => point.join()).join(" "), fill: "none", style: `stroke: ${stroke}`, "stroke-width": 2.5 }), ...points.map(([cx, cy]) => s("circle", { cx, cy, r: 3.5, style: `fill: ${stroke}` })), s("text", { x: lastX! + 9, y: labels[index]! + 4, style: `fill: ${stroke}` }, t(one.title))];
    }));
  place.append(svg, h("p", { class: "small" }, t(both(
    `Bits per byte of the same bytes, by the length of what is read; trained at 1×. Small models, three seeds each, by the lab of this library.`,
    `同一批字节的每字节比特数，横轴为读入的长度；训练长度为 1×。小模型，各三个随机种子，由本库的实验室测得。`))));
}

/** A clock face with hands; `arc` draws the angle between the first two. */
function clock(hands: { angle: number; colour: string }[], arc = false): SVGElement {
  const point = (angle: number, radius: number) => `${(50 + radius * Math.cos(angle)).toFixed(2)} ${(50 - radius * Math.sin(angle)).toFixed(2)}`;
  const svg = s("svg", { viewBox: "0 0 100 100", class: "clock" }, s("circle", { cx: 50, cy: 50, r: 45, class: "face" }));
  if (arc && hands.length > 1) {
    const [from, to] = [hands[0]!.angle, hands[1]!.angle];
    svg.append(s("path", { d: `M${point(from, 24)}A24 24 0 ${to - from > Math.PI ? 1 : 0} 0 ${point(to, 24)}`, class: "arc" }));
  }
  for (const { angle, colour: stroke } of hands) svg.append(s("path", { d: `M50 50L${point(angle, 40)}`, stroke, "stroke-width": 4, "stroke-linecap": "round" }));
  return svg;
}

/** A matrix as squares. */
function squares(numbers: Numbers, limit: number, dark: boolean): SVGSVGElement {
  const [rows, columns] = [numbers.shape[0]!, numbers.shape[1]!];
  const svg = s("svg", { viewBox: `-0.5 -0.5 ${columns + 1} ${rows + 1}`, role: "img", class: "squares", "shape-rendering": "crispEdges" });
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) svg.append(s("rect", { x: c, y: r, width: 1.02, height: 1.02, fill: colour("diverging", numbers.values[r * columns + c]!, limit, dark) }));
  return svg;
}

/** What the colours of a map from −limit to limit mean. */
function keyTo(place: HTMLElement, limit: number): void {
  const key = colourKey();
  place.append(key.element);
  key.draw("diverging", limit);
}

/** `moved` draws, and returns what a screen reader hears of it. */
function slider(label: string, from: number, to: number, start: number, moved: (value: number) => string): HTMLElement {
  const output = h("span", { class: "at" });
  const input = h("input", { type: "range", min: from, max: to, value: start, "aria-label": label, input: () => set(Number(input.value)) });
  const set = (value: number) => {
    output.textContent = String(value);
    input.setAttribute("aria-valuetext", `${value}: ${moved(value)}`);
  };
  set(start);
  return h("label", { class: "figure-slider" }, h("span", {}, label), input, output);
}
