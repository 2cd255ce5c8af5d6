// clock i has turned pω_i at position p; training showed 0 … Lω_i, all of a turn where Lω_i ≥ 2π
//
//   dials    the angles of training (marked) and those beyond it, of every clock of a head
//   mended   the same with other frequencies: PI, NTK, YaRN (math/scaled.ts)

import { encodingColour } from "../colours";
import { s, set } from "../dom";
import { rotary } from "../math/frequencies";
import { scaled, type Scaling } from "../math/scaled";
import { draggable } from "../parts/drag";
import { animate, clamp, ease, mix } from "../parts/motion";
import { both, type Words } from "../words";
import type { Chapter, Drawn, Scene } from "./chapter";

const TAU = 2 * Math.PI;
const [D, BASE, TRAINED, MOST] = [32, 10000, 128, 8];
const OMEGA = rotary(D, BASE);
type Way = Exclude<Scaling, "llama3">;
const WAYS: Way[] = ["none", "pi", "ntk", "yarn"];
const NAMES: Record<Way, Words> = { none: both("RoPE as trained", "原样的 RoPE"), pi: both("PI: all clocks slower", "PI：所有的钟都放慢"), ntk: both("NTK: a larger base", "NTK：更大的底数"), yarn: both("YaRN: only slow clocks slower", "YaRN：只把慢的钟放慢") };

export const tooLong: Chapter = {
  title: both("What breaks in a text that is too long", "文本太长时坏了什么"),
  found: both("Slow clocks reach angles that training never showed", "慢的钟转到了训练中没有的角度"),
  need: both(
    "These are the {pairs} clocks of RoPE in the model of chapter 0, the fastest first. Yellow: the angles that they showed in training, on {trained} bytes. Red: angles that they never showed. Drag the length.",
    "这是第 0 章那个模型里 RoPE 的 {pairs} 个钟，最快的在前。黄色：训练时（{trained} 字节）出现过的角度。红色：从未出现过的角度。拖动长度。",
  ),
  question: both("At {most} times the length, which clocks show angles that they never showed in training?", "长度到 {most} 倍时，哪些钟会出现训练时没有的角度？"),
  answers: [both("the fast ones", "快的"), both("the slow ones", "慢的"), both("all of them", "全部")],
  right: 1,
  verdict: both("The slow ones: they did not turn once in training. The fast ones had been everywhere.", "慢的：训练时它们没有转满一圈，快的每个角度都出现过。"),
  before: both("At {times} times the trained length, {unseen} of the {pairs} clocks show new angles.", "到训练长度的 {times} 倍时，{pairs} 个钟里有 {unseen} 个出现新的角度。"),
  after: both(
    "{way}, at {times} times the trained length: {unseen} of the {pairs} clocks show new angles. From byte to byte the fastest clock turns {step} % of what it did in training. Choose a way to mend it.",
    "{way}，训练长度的 {times} 倍：{pairs} 个钟里有 {unseen} 个出现新的角度。每过一个字节，最快的钟转动的幅度是训练时的 {step}%。选一种修补办法。",
  ),
  next: both("PI also blurs neighbours, NTK leaves some new angles; YaRN treats fast and slow clocks differently. Which of all these do models use?", "PI 让相邻的位置变得模糊，NTK 还留下一些新角度；YaRN 对快钟慢钟区别对待。那么，模型实际用的是哪些？"),
  views: ["extrapolation"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const state = scene.keep({ times: 1, way: "none" as Way });
  const columns = narrow ? 4 : 8;
  const apart = width / columns;
  const r = narrow ? Math.min(apart / 2 - 9, clamp((scene.height - 170) / 8 - 9, 22, 40)) : Math.min(apart / 2 - 12, clamp((scene.height - 150) / 4 - 12, 38, 60));
  const step = 2 * r + (narrow ? 12 : 20);
  const dials = OMEGA.length;
  const rows = dials / columns;
  const top = narrow ? 96 : 44;
  const line = top + rows * step + 26;
  const height = line + 42;
  const [left, right] = [10, width - (narrow ? 14 : 20)];
  const X = (times: number) => left + ((times - 1) / (MOST - 1)) * (right - left);
  const arc = (x: number, y: number, from: number, to: number, radius: number) => {
    const end = Math.min(to, from + TAU);
    const at = (angle: number) => `${(x + Math.cos(angle) * radius).toFixed(2)} ${(y - Math.sin(angle) * radius).toFixed(2)}`;
    const half = (angle: number) => `A${radius} ${radius} 0 0 0 ${at(angle)}`; // in halves, whose centre no rounding moves
    return end <= from ? "" : `M${x} ${y}L${at(from)}${half((from + end) / 2)}${half(end)}Z`;
  };
  const ways = WAYS.map((way, n) => {
    const [x, y] = narrow ? [(n % 2) * (width / 2), 14 + Math.floor(n / 2) * 40] : [n * (width / 4), 16];
    const label = s("text", { x, y: y + 5, class: "way" }, t(NAMES[way]));
    const group = s("g", { class: "choose", "data-drag": true, tabindex: 0, role: "button", style: `--c: ${colour(way)}` }, s("rect", { x: x - 4, y: y - 16, width: (narrow ? width / 2 : width / 4) - 8, height: narrow ? 40 : 34, class: "hit" }), label);
    const choose = () => {
      state.way = way;
      show();
    };
    group.addEventListener("click", choose);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    return { way, group, label };
  });
  const clocks = Array.from(OMEGA, (_, i) => {
    const [x, y] = [(i % columns) * apart + apart / 2, top + Math.floor(i / columns) * step + r];
    const [seen, beyond, hand] = [s("path", { class: "seen" }), s("path", { class: "beyond" }), s("path", { class: "hand", style: "stroke: var(--c)" })];
    return { x, y, seen, beyond, hand, element: s("g", {}, s("circle", { cx: x, cy: y, r, class: "hair" }), s("g", { "data-part": "trained unseen pairs" }, seen), s("g", { "data-part": "unseen" }, beyond), s("g", { "data-part": i ? "times" : "times step" }, hand)) };
  });
  const text = s("path", { class: "text" });
  const end = s("g", {}, s("circle", { class: "grip", r: narrow ? 14 : 11, cy: line }), s("text", { class: "on-grip", y: line + 4, "text-anchor": "middle" }, "↔"));
  const length = s("text", { class: "strong", y: line + 32 });
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": t(both("Angles of RoPE's clocks", "RoPE 各个钟的角度")) }, ...ways.map(({ group }) => group), ...clocks.map(({ element }) => element),
    s("text", { x: apart / 2 - r, y: top - 5 }, t(both("fastest", "最快"))), s("text", { x: width - apart / 2 + r, y: top + (rows - 1) * step + 2 * r + 14, "text-anchor": "end" }, t(both("slowest", "最慢"))),
    s("path", { d: `M${left} ${line}H${right}`, class: "hair" }), text, length, end);
  figure.append(svg);

  function show(): void {
    const times = Math.round(state.times * 10) / 10;
    const omega = scaled(state.way, D, BASE, times, TRAINED);
    svg.style.setProperty("--c", colour(state.way));
    const unseen = clocks.filter(({ x, y, seen, beyond, hand, element }, i) => {
      element.dataset["value"] = String(omega[i]);
      const [before, now] = [OMEGA[i]! * TRAINED, omega[i]! * TRAINED * times];
      const isNew = before < TAU && now > before * (1 + 1e-9);
      set(seen, { d: arc(x, y, 0, before, r) });
      set(beyond, { d: isNew ? arc(x, y, before, Math.min(now, TAU), r) : "" });
      set(hand, { d: `M${x} ${y}L${x + Math.cos(now) * (r - 4)} ${y - Math.sin(now) * (r - 4)}` });
      return isNew;
    }).length;
    for (const { way, group, label } of ways) {
      group.style.display = scene.told() ? "" : "none";
      group.setAttribute("aria-pressed", String(way === state.way));
      label.classList.toggle("here", way === state.way);
    }
    set(text, { d: `M${left} ${line}H${X(state.times)}` });
    set(end, { transform: `translate(${X(state.times)} 0)` });
    set(length, { x: clamp(X(state.times), 30, width - 40), "text-anchor": "middle" });
    length.textContent = `${times}×`;
    scene.say({ pairs: String(dials), trained: String(TRAINED), most: String(MOST), times: String(times), unseen: String(unseen), way: t(NAMES[state.way]).split(/[:：]/)[0]!, step: ((100 * omega[0]!) / OMEGA[0]!).toFixed(1) });
  }
  let stop = () => {};
  scene.leaving(() => stop());
  const say = draggable(end, svg, {
    label: t(both("Length of the text", "文本的长度")), from: 1, to: MOST, now: () => state.times, value: () => t(both(`${state.times} times the trained length`, `训练长度的 ${state.times} 倍`)), start: () => stop(),
    move({ x }) {
      state.times = clamp(Math.round((1 + ((x - left) / (right - left)) * (MOST - 1)) * 10) / 10, 1, MOST);
      show();
    },
    key(by) {
      state.times = clamp(state.times + by / 2, 1, MOST);
      show();
    },
  });
  show();
  return {
    tell() {
      const from = state.times;
      stop = animate(1800, (share) => {
        state.times = mix(from, MOST, ease(share));
        if (share === 1) state.times = MOST;
        show();
        say();
      });
    },
    numbers() {
      const times = Math.round(state.times * 10) / 10;
      const omega = scaled(state.way, D, BASE, times, TRAINED);
      return { head: [both("clock", "钟"), both("turns in training", "训练时转的圈数"), both("turns now", "现在转的圈数")], rows: Array.from(OMEGA, (one, i) => [String(i + 1), (one * TRAINED) / TAU, (omega[i]! * TRAINED * times) / TAU]) };
    },
    python: () => `from math import pi

from posenc import frequencies

trained, most, times = ${TRAINED}, ${MOST}, ${Math.round(state.times * 10) / 10}
rope = frequencies.rotary(${D}, ${BASE}.0)
scaled = ${{ none: "rope", pi: "frequencies.linear(rope, times)", ntk: "frequencies.ntk(rope, times)", yarn: "frequencies.yarn(rope, times, trained)" }[state.way]}
pairs, step = len(rope), 100 * scaled[0] / rope[0]
new = (old * trained < 2 * pi and now * trained * times > old * trained * (1 + 1e-9) for old, now in zip(rope, scaled))
unseen = sum(new)`,
  };
}

function colour(way: Way): string {
  return { none: encodingColour("rope"), pi: "var(--line-4)", ntk: "var(--line-3)", yarn: encodingColour("yarn") }[way];
}
