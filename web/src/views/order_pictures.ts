// What the order of words does, drawn: weights, outputs, distances, envelopes, a chain of states.

import { colour, inkOn, isDark } from "../colours";
import { h, s } from "../dom";
import type { Stage } from "../view";
import { both, shown, widthOf, type Words } from "../words";

const ROUNDING = 1e-12;

/** Attention weights: a row for each query, a column for each key; those of the chosen word are marked. */
export function weightTable(stage: Stage, role: string, caption: string, words: string[], weights: ArrayLike<number>, chosen: number): HTMLElement {
  const dark = isDark(stage.root);
  const mark = (index: number) => (index === chosen ? "chosen" : "");
  const cell = (i: number, j: number) => {
    const value = weights[i * words.length + j]!;
    const one = h("td", { class: i === chosen || j === chosen ? "marked" : "", "data-value": value }, value ? shown(value, 2) : "–");
    if (value) [one.style.background, one.style.color] = [colour("amount", value, 1, dark), inkOn("amount", value, 1, dark)];
    return one;
  };
  const line = (name: string, i: number) => h("tr", {}, h("th", { scope: "row", class: mark(i) }, name), ...words.map((_, j) => cell(i, j)));
  return h("table", { class: "weights", "data-role": `weights-${role}` }, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, h("td", {}), ...words.map((name, j) => h("th", { scope: "col", class: mark(j) }, name)))),
    h("tbody", {}, ...words.map(line)));
}

export interface Output {
  word: string;
  before: ArrayLike<number>;
  after: ArrayLike<number>;
  apart: number;
}

/** A word's two outputs as strips of colour, and how far they are apart. */
export function outputTable(stage: Stage, outputs: Output[], chosen: number): HTMLElement {
  const t = stage.t;
  const dark = isDark(stage.root);
  const limit = Math.max(...outputs.flatMap(({ before, after }) => [...Array.from(before), ...Array.from(after)]).map(Math.abs));
  const strip = (values: ArrayLike<number>) => h("div", { class: "strip", "aria-hidden": "true" }, ...Array.from(values, (value) => {
    const one = h("i", {});
    one.style.background = colour("diverging", value, limit, dark);
    return one;
  }));
  const heads = [both("word", "词"), both("before", "调换前"), both("after", "调换后"), both("largest difference", "最大差异")];
  const line = ({ word, before, after, apart }: Output, index: number) => {
    const choose = h("button", { type: "button", "aria-pressed": String(index === chosen), click: () => stage.set({ word: index }) }, word);
    return h("tr", { class: index === chosen ? "chosen" : "" }, h("th", { scope: "row" }, choose), h("td", {}, strip(before)), h("td", {}, strip(after)),
      h("td", { "data-role": "word-difference", "data-value": apart }, shown(apart)));
  };
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t(both("Each word's output", "每个词的输出")) },
    h("table", { class: "outputs" }, h("thead", {}, h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, t(name))))), h("tbody", {}, ...outputs.map(line))));
}

/** Numbers between rounding and one as bars over their powers of ten: what it is called in the page, its name, the number. */
export function distances(stage: Stage, rows: [string, Words, number][]): HTMLElement {
  const share = (value: number) => (value > 0 ? Math.min(Math.max((Math.log10(value) + 17) / 18, 0.02), 1) : 0);
  const line = ([role, name, value]: [string, Words, number]) => {
    const bar = h("i", {});
    bar.style.width = `${share(value) * 100}%`;
    return h("div", { class: value < ROUNDING ? "same" : "other" }, h("dt", {}, stage.t(name)),
      h("dd", { class: "bar-place", "aria-hidden": "true" }, bar), h("dd", { "data-role": role, "data-value": value }, shown(value)));
  };
  const ends = [both("10⁻¹⁶: rounding", "10⁻¹⁶：舍入误差"), both("1: another output", "1：另一个输出")];
  return h("div", {}, h("dl", { class: "gauge" }, ...rows.map(line)), h("p", { class: "gauge-scale" }, ...ends.map((words) => h("span", {}, stage.t(words)))));
}

/** Numbered envelopes in two orders, and the bag that holds either: a multiset, in which repeats count. */
export function envelopes(stage: Stage, before: string[], after: string[]): SVGElement {
  const counts = new Map<string, number>();
  for (const word of before) counts.set(word, (counts.get(word) ?? 0) + 1);
  const envelope = (x: number, y: number, word: string, ...more: (SVGElement | null)[]) => s("g", { transform: `translate(${x} ${y})` },
    s("rect", { class: "envelope", width: 58, height: 40, rx: 4 }), s("path", { class: "flap", d: "M1 2L29 19L57 2" }),
    s("text", { class: "word", x: 29, y: 34, "text-anchor": "middle", style: `font-size: ${Math.min(17, 54 / widthOf(word)).toFixed(1)}px` }, word), ...more);
  const numbered = (y: number, words: string[]) => words.map((word, place) =>
    envelope(4 + place * 66, y, word, s("text", { class: "stamp", x: 53, y: 14, "text-anchor": "end" }, place)));
  const [beside, size] = [Math.max(before.length - 4, 0) * 66, counts.size > 3 ? 0.7 : 1];
  const loose = [...counts].map(([word, times], index) => s("g", { transform: `translate(${302 + beside} ${32 + index * 46 * size}) scale(${size})` },
    envelope(0, 0, word, times > 1 ? s("text", { class: "times", x: 62, y: 26 }, `×${times}`) : null)));
  const bag = [...counts].map(([word, times]) => `${word} ×${times}`).join(", ");
  const label = both(
    `Rows: ${before.join(" ")}, then ${after.join(" ")}. Bag of both: ${bag}.`,
    `一排：${before.join(" ")}；调换后：${after.join(" ")}。两者的袋子：${bag}。`,
  );
  return s("svg", { class: "picture", viewBox: `0 0 ${420 + beside} 184`, role: "img", "aria-label": stage.t(label) },
    ...numbered(22, before), ...numbered(112, after), s("path", { class: "arrow", d: `M${4 + before.length * 33} 70v32m-5 -7l5 7l5 -7` }),
    s("path", { class: "bag", transform: `translate(${beside} 0)`, d: "M290 20q46 14 98 0l14 130q4 28 -24 28h-78q-28 0 -24 -28z" }), ...loose);
}

/** A recurrent network: each state is made of the one before and the next word. */
export function chain(stage: Stage, words: string[]): SVGElement {
  const x = (index: number) => 26 + index * 92;
  const label = both(
    `A chain of states, each made of the one before and the next word: ${words.join(", ")}`,
    `一串状态，每个由前一个状态和下一个词得到：${words.join("，")}`,
  );
  const read = (word: string, index: number) => [
    s("path", { class: "arrow", d: `M${x(index) + 22} 26h46m-7 -5l7 5l-7 5M${x(index + 1)} 76v-26m-5 7l5 -7l5 7` }),
    s("text", { class: "word", x: x(index + 1), y: 94, "text-anchor": "middle", style: `font-size: ${Math.min(17, 84 / widthOf(word)).toFixed(1)}px` }, word),
  ];
  const states = ["", ...words].flatMap((_, index) => [
    s("circle", { class: "state", cx: x(index), cy: 26, r: 20 }), s("text", { x: x(index), y: 30, "text-anchor": "middle" }, `h${[...String(index)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]).join("")}`),
  ]);
  return s("svg", { class: "picture", viewBox: `0 0 ${Math.max(420, x(words.length) + 26)} 104`, role: "img", "aria-label": stage.t(label) }, ...words.flatMap(read), ...states);
}
