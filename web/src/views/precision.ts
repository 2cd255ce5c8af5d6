// The error of each usual way to compute the table, and the positions that a dtype does not distinguish.

import { array, row, type Data } from "../data";
import { h, refill } from "../dom";
import { lineChart, type Series } from "../parts/chart";
import { formula, put, sub, v } from "../parts/formula";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { number, own, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./precision.css";

/** In the order of Python's recipes; dashed where the table is exact until its one rounding. */
const RECIPES: Record<string, { words: Words; short: Words; colour: string; dashed?: boolean }> = {
  float32: { words: both("rounded once to float32", "一次舍入到 float32"), short: both("float32, once", "float32，一次"), colour: "var(--line-1)", dashed: true },
  power: { words: both("numpy tutorial, float64 power", "numpy 教程写法（float64 求幂）"), short: both("numpy tutorial", "numpy 教程"), colour: "var(--line-6)" },
  "float32 angle": { words: both("angle in float32", "角度用 float32"), short: both("float32 angle", "float32 角度"), colour: "var(--line-4)" },
  textbook: { words: both("torch tutorial, float32 exp-log", "torch 教程写法（float32 exp-log）"), short: both("torch tutorial", "torch 教程"), colour: "var(--line-5)" },
  float16: { words: both("rounded once to float16", "一次舍入到 float16"), short: both("float16, once", "float16，一次"), colour: "var(--line-3)", dashed: true },
  "float16 positions": { words: both("positions cast to float16 first", "位置先转成 float16"), short: both("float16 positions", "float16 位置"), colour: "var(--line-3)" },
  bfloat16: { words: both("rounded once to bfloat16", "一次舍入到 bfloat16"), short: both("bfloat16, once", "bfloat16，一次"), colour: "var(--line-2)", dashed: true },
  "bfloat16 positions": { words: both("positions cast to bfloat16 first", "位置先转成 bfloat16"), short: both("bfloat16 positions", "bfloat16 位置"), colour: "var(--line-2)" },
};
const LEAST = 1e-9; // below it the chart draws nothing: the difference is float64's own
const EXACT = both("exact (float64)", "精确值（float64）");

export const view: View = {
  name: "precision",
  title: both("How many digits are left", "还剩几位有效数字"),
  idea: both(
    "At large positions a small rounding error of the position, the frequency or their product becomes a wrong angle. A table computed in float64 and rounded once is correct at any length; a table with rounded intermediate results is not.",
    "位置很大时，位置、频率或它们的乘积上小小的舍入误差，会变成错误的角度。用 float64 计算、只舍入一次的表，在任何长度上都正确；中间结果被舍入的表则不然。",
  ),
  notice: [
    both("The dashed lines are flat: a single rounding at the end gives the same error at position 1 and at position 1 000 000.", "虚线是平的：最后只舍入一次，在位置 1 与位置 1 000 000 的误差相同。"),
    both("The torch tutorial's float32 loses about one digit for every tenfold position: at 100 × 512 the error is 6.6e−6, with 8192 rows 4.7e−4.", "torch 教程写法用 float32，位置每增大十倍约损失一位：100 × 512 的表误差 6.6e−6，到 8192 行时为 4.7e−4。"),
    both("Cast to bfloat16 first, 4096 positions leave 769 different rows; the first two that coincide are 256 and 257. With float16 the first are 2048 and 2049.", "位置先转成 bfloat16，4096 个位置只剩 769 种不同的行；最先重合的是 256 与 257。float16 最先重合的是 2048 与 2049。"),
    both("Set an odd width: both tutorial codes stop with an error. From four channels on, an exact table rounded once keeps all rows apart up to 16 384, even in bfloat16.", "把通道数设成奇数：两种教程代码都会报错。通道数不少于 4 时，精确表只舍入一次，即使是 bfloat16，直到 16 384 行也互不相同。"),
  ],
  papers: [{ text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" }],
  own: { strip: own.choice("bfloat16", "bfloat16", "float16") },
  styles,
  controls: [
    { name: "position", label: both("position", "位置"), scale: "log" },
    { name: "channel", label: both("channel", "通道"), as: "number" },
    { name: "d_model", label: both("channels", "通道数"), as: "number" },
    { name: "base", label: both("base", "底数"), scale: "log" },
  ],
  build(stage) {
    let positions: ArrayLike<number> = [1];
    const chart = lineChart(stage, {
      label: both("Largest error up to a position", "到该位置为止的最大误差"), x: both("position", "位置"), y: both("largest error so far", "到此为止的最大误差"),
      xScale: "log", yScale: "log", pick: (index) => stage.set({ position: positions[index]! }),
    });
    const question = predict(stage, {
      question: both("Positions are cast to bfloat16, then encoded. Which is the first position whose row equals an earlier row?", "先把位置转成 bfloat16 再编码。第一个与前面某个位置的行相同的位置是哪个？"),
      choices: [both("257", "257"), both("4097", "4097"), both("65 537", "65 537"), both("none", "没有")],
      right: 0,
      because: both("bfloat16 keeps eight significant bits: 256 is the last whole number before gaps, and 257 becomes 256. The cursor above marks the current position.", "bfloat16 只有 8 位有效位：256 之后的整数开始有空缺，257 变成了 256。上面的光标已移到那里。"),
    }, () => stage.set({ position: 257, strip: "bfloat16" }));
    const steps = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": stage.t(both("Numbers at the position", "该位置的各步数值")) });
    const strip = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": stage.t(both("Neighbouring positions", "相邻的位置")) });
    const dtypes = h("div", { class: "dtypes", role: "group", "aria-label": stage.t(both("Cast to", "转换为")) }, ...["bfloat16", "float16"].map((name) =>
      h("button", { type: "button", class: "choice", "data-dtype": name, click: () => stage.set({ strip: name }) }, name)));
    const covered = h("p", { class: "small", "data-role": "covered" });
    stage.root.append(chart.element, covered,
      h("div", { class: "strip-head" }, h("h2", {}, stage.t(both("Integers after conversion to a dtype", "整数转换后的值"))), dtypes), strip,
      question, h("h2", {}, stage.t(both("The same cell, computed in each way", "同一个格子，各种算法的结果"))), steps);

    return (data, state) => {
      const grid = array(data, "positions").values;
      positions = grid;
      const errors = array(data, "errors");
      const recipes = data.facts["recipes"] as string[];
      const failed = data.facts["failed"] as Record<string, string>;
      const position = number(state, "position");
      const channel = data.facts["channel"] as number;
      const series: Series[] = recipes.flatMap((name, index) => {
        const { words, short, colour, dashed } = RECIPES[name]!;
        const y = Array.from(row(errors, index), (value) => (value >= LEAST ? value : NaN));
        return name in failed ? [] : [{ name: stage.t(words), end: stage.t(short), x: grid, y, colour, dashed: dashed === true }];
      });
      const pairs = coinciding(series);
      for (const [, under] of pairs) under.wide = true;
      series.sort((a, b) => Number(b.wide ?? false) - Number(a.wide ?? false));
      refill(covered, ...pairs.map(([over, under]) => stage.t(both(`“${over.name}” and “${under.name}” have the same errors: the narrow line lies on the wide one. `, `“${over.name}”与“${under.name}”误差完全相同：细线压在宽线上。`))));
      covered.hidden = pairs.length === 0;
      const here = nearest(grid, position);
      chart.draw({ series, cursor: here, marks: [{ x: 257, word: "257" }, { x: 2049, word: "2049" }], yFrom: LEAST, yTo: 100 });
      refill(steps, stepsTable(data, recipes, failed, stage.t));
      for (const button of dtypes.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset["dtype"] === state["strip"]));
      const became = stripTable(strip, data, state, position, stage.t);

      const exact = array(data, "steps").values;
      const [omega, angle, value] = [exact[1]!, exact[2]!, exact[3]!];
      const name = channel % 2 ? "cos" : "sin";
      const at = recipes.indexOf("bfloat16 positions") + 1;
      const other = exact.subarray(at * 5, at * 5 + 5);
      refill(stage.formula, formula(
        ["PE(", v("p"), ", ", v("c"), `) = ${name}(`, v("p"), " · ", v("ω"), sub("i"), `) = ${name}(`, put(position, "position"), " · ", put(shown(omega, 6), "channel"), `) = ${name} `, put(shown(angle, 4)), " = ",
          h("output", { "data-role": "value", "data-value": value }, shown(value, 6))],
        [stage.t(both("in bfloat16 the position is ", "转成 bfloat16 后位置是 ")), put(shown(other[0]!, 0), "position"), `:  ${name}(`, put(shown(other[0]!, 0), "position"), " · ", put(shown(omega, 6), "channel"), ") = ",
          h("output", { "data-role": "bfloat16", "data-value": other[3]! }, shown(other[3]!, 6))],
      ));
      const errorsHere = series.map(({ end, y }) => `${end} ${shown(y[here]!)}`).join("; ");
      stage.announce(`${stage.t(both("position", "位置"))} ${position}: ${errorsHere}; ${stage.t(both("as", "转成"))} ${state["strip"]} ${became}`);
      const cast = state["strip"] as string;
      stage.code(`torch.tensor(${position}).to(torch.${cast}).item()  # ${array(data, `as_${cast}`).values[array(data, "integers").values.indexOf(position)]}`);
    };
  },
};

/** Lines with the same numbers, two by two: the dashed or first one, and the one to draw under it. */
function coinciding(series: Series[]): [Series, Series][] {
  const same = (a: Series, b: Series) => Array.from(a.y).every((value, index) => Object.is(value, b.y[index]));
  return series.flatMap((one, index) => series.slice(index + 1).filter((other) => same(one, other)).map((other): [Series, Series] => (other.dashed ? [other, one] : [one, other])));
}

function nearest(grid: ArrayLike<number>, position: number): number {
  let best = 0;
  for (let index = 1; index < grid.length; index++) if (Math.abs(grid[index]! - position) < Math.abs(grid[best]! - position)) best = index;
  return best;
}

/** One row for every recipe: what it used, what came out, how many digits of it are right. */
function stepsTable(data: Data, recipes: string[], failed: Record<string, string>, t: (words: Words) => string): HTMLElement {
  const steps = array(data, "steps");
  const head = [both("method", "算法"), both("position used", "所用位置"), both("frequency used", "所用频率"), both("angle", "角度"), both("value", "值"), both("error", "误差"), both("correct digits", "正确位数")];
  const rows = ["exact", ...recipes].map((name, index) => {
    const [p, omega, angle, value, error] = row(steps, index) as unknown as [number, number, number, number, number];
    const about = RECIPES[name];
    const swatch = h("i", { class: about?.dashed ? "dashed" : "" });
    swatch.style.setProperty("--k", about?.colour ?? "var(--ink)");
    const title = h("th", { scope: "row" }, swatch, t(about?.words ?? EXACT));
    if (name in failed) return h("tr", { "data-recipe": name }, title, h("td", { colspan: 6, class: "failed" }, `${t(both("stops: ", "报错："))}${failed[name]}`));
    const cell = (number: number, text: string, kind = "") => h("td", { "data-value": number, class: kind }, text);
    return h("tr", { "data-recipe": name }, title, cell(p, plain(p), "position"), cell(omega, digits(omega), "channel"), cell(angle, digits(angle)), cell(value, digits(value)),
      index ? cell(error, error === 0 ? "0" : shown(error)) : h("td", {}, ""), index ? cell(right(error), rightText(error)) : h("td", {}, ""));
  });
  return h("table", { class: "plain steps" }, h("thead", {}, h("tr", {}, ...head.map((words) => h("th", { scope: "col" }, t(words))))), h("tbody", {}, ...rows));
}

function plain(value: number): string {
  return Number.isFinite(value) ? String(value) : shown(value);
}

function digits(value: number): string {
  return Number.isFinite(value) ? Number(value.toPrecision(9)).toString().replaceAll("-", "−").replace("e+", "e") : Number.isNaN(value) ? "NaN" : shown(value);
}

/** Decimal places that an error leaves intact. */
function right(error: number): number {
  return Number.isNaN(error) ? 0 : error === 0 ? 16 : Math.max(0, Math.floor(-Math.log10(2 * Math.abs(error))));
}

function rightText(error: number): string {
  return error === 0 ? "16" : String(right(error));
}

/** Neighbouring integers over the value that the dtype has for them; gives the value of the position. */
function stripTable(place: HTMLElement, data: Data, state: State, position: number, t: (words: Words) => string): string {
  const integers = array(data, "integers").values;
  const cast = array(data, `as_${state["strip"] as string}`).values;
  const groups: { value: number; count: number }[] = [];
  for (const value of cast) {
    const last = groups[groups.length - 1];
    if (last && Object.is(last.value, value)) last.count++;
    else groups.push({ value, count: 1 });
  }
  const above = Array.from(integers, (integer) => h("th", { scope: "col", "aria-current": integer === position && "true" }, integer));
  const below = groups.map(({ value, count }, index) =>
    h("td", { colspan: count, class: count > 1 ? "shared" : index % 2 ? "odd" : "", "data-value": value, "data-count": count }, plain(value)));
  const shared = groups.filter(({ count }) => count > 1).length;
  refill(place, h("table", { class: "strip", "data-role": "strip" },
    h("caption", {}, shared ? t(both(`${integers.length} positions, ${groups.length} rows of the table: cells that span several positions are collisions.`, `${integers.length} 个位置只有 ${groups.length} 种行：跨多列的格子就是重合的位置。`))
      : t(both(`${integers.length} positions, ${groups.length} rows of the table: none coincide here.`, `${integers.length} 个位置对应 ${groups.length} 种行：这里没有重合。`))),
    h("thead", {}, h("tr", {}, h("th", { scope: "row" }, t(both("position", "位置"))), ...above)),
    h("tbody", {}, h("tr", {}, h("th", { scope: "row" }, state["strip"] as string), ...below))));
  const current = place.querySelector<HTMLElement>("[aria-current]");
  if (current) place.scrollLeft = current.offsetLeft - place.clientWidth / 2;
  return plain(cast[integers.indexOf(position)]!);
}
