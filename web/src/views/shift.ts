// PE(p + k) = M_k · PE(p): dragging p moves the row, dragging k changes the matrix.

import { array, type Data } from "../data";
import { fill, h, refill, s } from "../dom";
import { lineChart } from "../parts/chart";
import { formula, put, sub, v } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { folded, plainTable } from "../parts/numbers";
import { predict } from "../parts/predict";
import type { Parameter } from "../source";
import { clamped, number, own, type Stage, type View } from "../view";
import { both, shown } from "../words";
import styles from "./shift.css";

const OWN = { row: own.whole(2, 0, 127), column: own.whole(2, 0, 127) };

export const view: View = {
  name: "shift",
  title: both("A shift is a rotation", "平移就是旋转"),
  idea: both(
    "A shift by k positions rotates every pair of channels by the angle k·ω, so one matrix Mₖ maps the row of p to the row of p + k. The matrix does not contain p, so the same matrix holds at every position.",
    "平移 k 个位置，就是把每对通道旋转角度 k·ω，所以一个矩阵 Mₖ 就能把位置 p 的行变成位置 p + k 的行。矩阵中不含 p，因此同一个矩阵适用于所有位置。",
  ),
  notice: [
    both("Mₖ is made of 2 × 2 rotations along the diagonal, one for each pair; everything else is zero.", "Mₖ 由对角线上的 2 × 2 旋转块组成，每对通道一块，其余全为零。"),
    both("Drag p: the two hands move together, and the angle between them does not change. Drag k: only that angle changes.", "拖动 p：两根指针一起转，夹角不变。拖动 k：变的只有夹角。"),
    both(
      "The remaining difference is rounding error. It grows with p because p·ω is rounded: with 64 pairs and k = 3 it is near 1e−15 at p = 10 and near 1e−10 at a million.",
      "剩下的差是舍入误差。p·ω 要舍入，所以误差随 p 增大：64 个通道对、k = 3 时，p = 10 处约为 1e−15，一百万处约为 1e−10。",
    ),
    both(
      "The matrix multiplies column vectors. For row vectors use its transpose: PE(p) · Mₖᵀ. The transpose is also M₋ₖ, the shift by −k.",
      "这里矩阵乘列向量。写成行向量时用它的转置：PE(p) · Mₖᵀ。转置也等于 M₋ₖ，即平移 −k。",
    ),
  ],
  papers: [{ text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" }],
  own: OWN,
  styles,
  controls: [
    { name: "p", label: both("position p", "位置 p"), scale: "log" },
    { name: "k", label: both("shift k", "平移量 k") },
    { name: "pairs", label: both("pairs (d / 2)", "通道对数量（d / 2）") },
    { name: "base", label: both("base", "底数"), scale: "log" },
  ],
  build(stage) {
    const { t } = stage;
    const pairs = h("select", { "data-role": "pair", change: () => stage.set({ row: 2 * pairs.selectedIndex, column: 2 * pairs.selectedIndex }) });
    const dial = circle(stage);
    const turned = h("p", { class: "small" });
    const map = heatMap(stage, { label: both("The matrix of the shift", "平移矩阵"), rows: both("channel of PE(p + k)", "PE(p + k) 的通道"),
      columns: both("channel of PE(p)", "PE(p) 的通道"), around: 2, tallest: 30, pick: (row, column) => stage.set({ row, column }) });
    const same = h("p", { class: "small", "data-role": "unchanged" });
    const error = h("p", { class: "error" });
    const chart = lineChart(stage, {
      label: both("Error by position, both axes logarithmic", "误差随位置的变化，两轴均取对数"), x: both("position p", "位置 p"),
      y: both("error: the largest of ten positions from p on", "误差：从 p 起 10 个位置中的最大值"), xScale: "log", yScale: "log", height: 230,
    });
    const rows = h("div", {});
    const numbers = folded(t(both("Both rows in numbers", "两行的数值")), rows);
    const question = predict(stage, {
      question: both("You drag p from 10 to a million. What happens to the matrix Mₖ?", "把 p 从 10 一直拖到一百万，矩阵 Mₖ 会怎样？"),
      choices: [both("every block changes", "每一块都变"), both("the fast pairs change", "只有高频的通道对变"), both("nothing changes", "完全不变")],
      right: 2,
      because: both(
        "Nothing changes: its entries are cos kω and sin kω and do not contain p. Drag p on the circle; the largest change of an entry is printed beside Mₖ.",
        "完全不变：矩阵的元素是 cos kω 与 sin kω，不含 p。在圆上拖动 p，Mₖ 右边会显示元素的最大变化。",
      ),
    });
    stage.root.append(h("div", { class: "both" },
      h("div", { class: "turning" }, h("label", { class: "pick" }, t(both("pair", "通道对")), pairs), dial.element, turned, error),
      h("div", {}, h("div", { class: "card-head" }, h("h2", {}, "M", sub("k")), same), map.element)), question, chart.element, numbers);
    let known: Data | null = null;
    let before = "";
    let table = () => {};
    numbers.addEventListener("toggle", () => table());
    const seen = { key: "", matrix: null as ArrayLike<number> | null, positions: new Set<number>(), moved: 0 };

    return (data, state) => {
      const values = (name: string) => array(data, name).values as Float64Array;
      const [omega, matrix, here] = [values("omega"), values("matrix"), values("here")];
      const [there, moved] = [values("there"), values("moved")];
      const { p, k, error: left } = data.facts as { p: number; k: number; error: number };
      const d = here.length;
      const [row, column] = [Math.min(number(state, "row"), d - 1), Math.min(number(state, "column"), d - 1)];
      const pair = column >> 1;
      if (known !== data) {
        known = data;
        stage.checked(here.reduce((worst, value, c) => Math.max(worst, Math.abs((c % 2 ? Math.cos : Math.sin)(p * omega[c >> 1]!) - value)), 0), d);
        if (pairs.options.length !== omega.length) fill(pairs, ...[...omega.keys()].map((i) => h("option", {}, i)));
        const key = `${k} ${state["base"]} ${d}`;
        if (seen.key !== key) Object.assign(seen, { key, matrix, positions: new Set(), moved: 0 });
        seen.positions.add(p);
        seen.moved = matrix.reduce((worst, value, index) => Math.max(worst, Math.abs(value - seen.matrix![index]!)), seen.moved);
        const [count, move] = [seen.positions.size, h("b", {}, shown(seen.moved))];
        same.dataset["value"] = String(seen.moved);
        same.dataset["positions"] = String(count);
        refill(same, ...(count > 1 ? [t(both(`Asked for at ${count} positions; largest change of an entry: `, `已在 ${count} 个位置计算；元素的最大变化：`)),
          move] : [t(both("Move p and see whether any entry changes.", "移动 p，看看有没有元素发生变化。"))]));
        fill(error, "‖PE(p + k) − Mₖ · PE(p)‖ = ", h("output", { "data-role": "error", "data-value": left }, left ? shown(left, 4) : "0"),
          h("span", {}, t(both(" in fp64, rounding only", "（fp64，只有舍入误差）"))));
        chart.element.hidden = k === 0;
        const [decades, errors] = [values("decades"), values("errors")];
        if (k) chart.draw({ series: [{ name: t(both("error", "误差")), x: decades, y: errors, colour: "var(--line-1)", dots: true }],
          marks: [{ x: p, word: `p = ${p}` }], yFrom: Math.min(...errors) / 3, yTo: Math.max(...errors) * 5 });
      }
      pairs.selectedIndex = pair;
      map.draw({ numbers: array(data, "matrix"), cursor: [row, column] });
      const angle = values("turned")[pair]!;
      dial.draw({ p: number(state, "p"), k: number(state, "k"), turn: k * omega[pair]!, omega: omega[pair]!, here: [here[2 * pair + 1]!, here[2 * pair]!],
        there: [there[2 * pair + 1]!, there[2 * pair]!] });
      refill(turned, t(both("Angle from the row of p to the row of p + k, measured on the rows: ", "从 p 的行到 p + k 的行的夹角（由两行量出）：")),
        h("b", { "data-role": "turned", "data-value": angle }, shown(angle, 6)), t(both(". k·ω is ", "。k·ω 为 ")), h("b", {}, shown(k * omega[pair]!, 6)),
        t(Math.abs(k * omega[pair]!) > Math.PI ? both(", whole turns left out above.", "，前者略去了整圈。") : both(".", "。")));
      const [cos, sin] = [matrix[2 * pair * d + 2 * pair]!, matrix[2 * pair * d + 2 * pair + 1]!];
      refill(stage.formula, formula(
        [v("PE"), "(p + k) = ", v("M"), sub("k"), " · ", v("PE"), "(p):  sin((p + k)ω) = cos(kω) · sin(pω) + sin(kω) · cos(pω)"],
        ["sin((", put(p, "position"), k < 0 ? " − " : " + ", put(Math.abs(k)), ") · ", put(shown(omega[pair]!, 6), "channel"), ") = ", put(shown(cos)),
          " · ", put(shown(here[2 * pair]!), "position"), sin < 0 ? " − " : " + ", put(shown(Math.abs(sin))), " · ",
          put(shown(here[2 * pair + 1]!), "position"), " = ",
          h("output", { "data-role": "moved", "data-value": moved[2 * pair]! }, shown(moved[2 * pair]!, 6))],
        [t(both("this cell: ", "这一格：")), v("M"), sub("k"), "[", put(row, "channel"), ", ", put(column, "channel"), "] = ",
          h("output", { "data-role": "cell", "data-value": matrix[row * d + column]! }, shown(matrix[row * d + column]!, 6))],
      ));
      table = () => {
        if (!numbers.matches("[open]")) return;
        const head = both("channel|PE(p)|Mₖ · PE(p)|PE(p + k)|difference", "通道|PE(p)|Mₖ · PE(p)|PE(p + k)|差");
        refill(rows, plainTable(t(both(`p = ${p}, k = ${k}`, `p = ${p}，k = ${k}`)), t(head).split("|"),
          [...here.keys()].map((c) => [String(c), here[c]!, moved[c]!, there[c]!, there[c]! - moved[c]!])));
      };
      table();
      const cell = `${row} ${column}`;
      if (before && before !== cell) stage.announce(t(both(`row ${row}, column ${column} of the matrix: ${shown(matrix[row * d + column]!, 6)}`, `矩阵第 ${row} 行第 ${column} 列：${shown(matrix[row * d + column]!, 6)}`)));
      before = cell;
      stage.code(`matrix[${row}, ${column}]  # ${matrix[row * d + column]}`);
    };
  },
};

interface Turn {
  /** What is asked for by now, which the numbers may not have reached. */
  p: number;
  k: number;
  omega: number;
  /** k·ω. */
  turn: number;
  /** cos and sin, as Python computed them. */
  here: [number, number];
  there: [number, number];
}

const R = 100; // where p's hand ends; the hand of p + k is longer, so that the two never cover one another
const OUTER = 132;

/** One pair as a point on a circle, before and after the shift; both ends can be dragged or moved by keys. */
function circle(stage: Stage): { element: HTMLElement; draw(turn: Turn): void } {
  const { t } = stage;
  const picture = s("svg", { class: "circle", viewBox: "-160 -160 320 320", role: "group",
    "aria-label": t(both("One pair of channels on a circle", "一对通道在圆上的位置")) });
  const arc = s("path", { class: "sweep" });
  const hands = [s("line", { class: "hand here" }), s("line", { class: "hand there" })] as const;
  const ends = [end("p", R), end("k", OUTER)] as const;
  picture.append(s("circle", { class: "rim", r: R }), s("circle", { class: "rim outer", r: OUTER }), arc, ...hands, s("circle", { class: "hub", r: 4 }),
    ...ends);
  let last: Turn | null = null;

  function end(name: "p" | "k", radius: number): SVGGElement {
    const bounds = stage.source.schemas["shift"]![name]!;
    const knob = s("g", { class: `end ${name}`, role: "slider", tabindex: 0, "data-end": name, "aria-valuemin": bounds.from, "aria-valuemax": bounds.to,
      "aria-label": name === "p" ? t(both("position p", "位置 p")) : t(both("shift k", "平移量 k")) },
      s("circle", { class: "reach", r: 24 }), s("circle", { class: "knob", r: 16 }), s("text", { "text-anchor": "middle", y: 4 }, name === "p" ? "p" : "p+k"));
    let from: { value: number; angle: number; swept: number } | null = null;
    const angleOf = (event: PointerEvent) => {
      const box = picture.getBoundingClientRect();
      return Math.atan2(box.top + box.height / 2 - event.clientY, event.clientX - box.left - box.width / 2);
    };
    knob.addEventListener("pointerdown", (event) => {
      if (!last) return;
      knob.setPointerCapture(event.pointerId);
      knob.focus({ preventScroll: true });
      from = { value: number(stage.state(), name), angle: angleOf(event), swept: 0 };
      event.preventDefault();
    });
    knob.addEventListener("pointermove", (event) => {
      if (!from || !last || !(event.buttons & 1)) return;
      const angle = angleOf(event);
      const step = angle - from.angle;
      from.swept += step - 2 * Math.PI * Math.round(step / (2 * Math.PI));
      from.angle = angle;
      move(stage, name, Math.round(from.value + from.swept / last.omega), bounds);
    });
    for (const over of ["pointerup", "pointercancel"]) knob.addEventListener(over, () => (from = null));
    knob.addEventListener("keydown", (event) => {
      if (!last || event.ctrlKey || event.metaKey || event.altKey) return;
      const now = number(stage.state(), name);
      const next = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, PageDown: now - 100, PageUp: now + 100,
        Home: bounds.from!, End: bounds.to! }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const [among, way] = [held(stage, name), Math.sign(next - now)];
      move(stage, name, among ? (among.filter((one) => (one - now) * way > 0).at(way > 0 ? 0 : -1) ?? now) : next, bounds);
    });
    knob.dataset["radius"] = String(radius);
    return knob;
  }

  function draw(turn: Turn): void {
    last = turn;
    [turn.here, turn.there].forEach(([cos, sin], index) => {
      const knob = ends[index]!;
      const radius = Number(knob.dataset["radius"]);
      const [x, y] = [(radius * cos).toFixed(2), (-radius * sin).toFixed(2)];
      hands[index]!.setAttribute("x2", x);
      hands[index]!.setAttribute("y2", y);
      knob.setAttribute("transform", `translate(${x} ${y})`);
      const value = index ? turn.k : turn.p;
      knob.setAttribute("aria-valuenow", String(value));
      knob.setAttribute("aria-valuetext", index ? `k = ${value}` : `p = ${value}`);
    });
    arc.setAttribute("d", spiral(Math.atan2(turn.here[1], turn.here[0]), turn.turn));
  }
  return { element: h("div", {}, picture,
    h("p", { class: "hint" }, t(both("Drag p or p+k round the circle, or use the arrow keys.", "在圆上拖动 p 或 p+k，也可以用方向键。")))), draw };
}

/** From an angle on by so much, three turns at most, wider as it goes. */
function spiral(from: number, by: number): string {
  const swept = Math.sign(by) * Math.min(Math.abs(by), 6 * Math.PI);
  const steps = Math.max(2, Math.ceil(Math.abs(swept) / 0.08));
  return Array.from({ length: steps + 1 }, (_, index) => {
    const [angle, radius] = [from + (swept * index) / steps, 40 + (5 * Math.abs(swept) * index) / steps / Math.PI];
    return `${index ? "L" : "M"}${(radius * Math.cos(angle)).toFixed(1)} ${(-radius * Math.sin(angle)).toFixed(1)}`;
  }).join("");
}

/** A file holds some positions and shifts only: these, in order; null where any can be asked for. */
function held(stage: Stage, name: "p" | "k"): number[] | null {
  const offered = stage.source.offered("shift");
  return offered && [...new Set(offered.map((one) => one[name] as number))].sort((a, b) => a - b);
}

function move(stage: Stage, name: "p" | "k", wanted: number, bounds: Parameter): void {
  const nearest = held(stage, name)?.reduce((best, one) => (Math.abs(one - wanted) < Math.abs(best - wanted) ? one : best));
  const value = nearest ?? (clamped(wanted, bounds) as number);
  stage.set({ [name]: value });
  stage.announce(`${name} = ${value}`);
}
