// One pair of channels of a query and a key as arrows. Both rotate, and their product depends on the position difference.

import { colour, inkOn, isDark } from "../colours";
import { array, row, type Data, type Numbers } from "../data";
import { fill, h, refill, s, say } from "../dom";
import { lineChart } from "../parts/chart";
import { controls } from "../parts/controls";
import { formula, put, sub, sup, v } from "../parts/formula";
import { atRest } from "../parts/linked";
import { folded, plainTable } from "../parts/numbers";
import { player } from "../parts/player";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { clamped, number, own, type Stage, type View } from "../view";
import { both, shown, SPLIT, type Words } from "../words";
import styles from "./rotary_pair.css";

const LAST = 40;
const OWN = { m: own.whole(2, 0, LAST), n: own.whole(0, 0, LAST), lock: own.yes(true), pair: own.whole(0, 0, 63), speed: own.real(5, 1, 100) };
const [Q, K] = ["var(--line-1)", "var(--line-2)"];
const REACH = 150; // of the longer arrow, in the picture's own units
const TURN = 2 * Math.PI;

export const view: View = {
  name: "rotary_pair",
  title: both("RoPE: only the difference counts", "RoPE：只有位置之差起作用"),
  idea: both(
    "RoPE rotates each pair of channels of q and k by position times frequency, and adds nothing to the embedding. The score depends only on the angle between the two rotated pairs, so it does not change when both words are shifted together.",
    "RoPE 不往词向量上加任何东西：它把查询和键的每对通道旋转一个角度，角度等于位置乘以该对的频率。分数只取决于旋转后两者的夹角，所以两个词一起平移时，分数不变。",
  ),
  notice: [
    both("While m − n is locked, the arrows rotate and the score changes by rounding only, less than 10⁻¹⁴ of |q||k|. Unlocked, the score changes.",
      "锁定 m − n 时，箭头旋转，分数的变化只是舍入误差，不到 |q||k| 的 10⁻¹⁴。解锁后，分数会变。"),
    both("On the curve by difference, +2 and −2 give different scores: the score depends on which word comes first. At 0 the rotations cancel and the score is q·k.",
      "在“分数随位置差”的曲线上，+2 与 −2 的分数不同：分数取决于哪个词在前。差为 0 时旋转互相抵消，分数是 q·k。"),
    both("Each pair rotates more slowly than the one before. With base 10000 and many channels, the last pair hardly rotates over these 41 positions.",
      "每个通道对都比前一对转得慢。底数为 10000、通道较多时，最后一对在这 41 个位置里几乎不转。"),
    both("The input of the softmax is this score divided by √d_head; the factor does not depend on positions.", "softmax 的输入是这个分数除以 √d_head；这个因子与位置无关。"),
  ],
  papers: [{ text: "Su et al. 2021, section 3.2", href: "https://arxiv.org/abs/2104.09864" }],
  own: OWN,
  controls: [
    { name: "sentence", label: both("your sentence", "你的句子"), as: "sentence", rule: SPLIT, examples: [
      "人工 智能 正在 快速 发展", "Artificial intelligence is rapidly growing", "the cat chases the mouse", "猫 追 老鼠",
    ] },
    { name: "d_head", label: both("channels of a head", "每头通道数") },
    { name: "base", label: both("base", "底数"), scale: "log" },
    { name: "asking", label: both("word that asks (from 0)", "提问的词（从 0 数）"), as: "number" },
  ],
  styles,
  build(stage) {
    let now = { m: 0, n: 0, lock: true };
    let before = -1;
    /** Where both stay within the positions; locked, they move together. */
    function move(to: State): void {
      let [m, n] = [(to["m"] as number) ?? now.m, (to["n"] as number) ?? now.n];
      if (now.lock) {
        const by = within(m !== now.m ? m - now.m : n - now.n, -Math.min(now.m, now.n), LAST - Math.max(now.m, now.n));
        [m, n] = [now.m + by, now.n + by];
      }
      stage.set({ m: clamped(m, OWN.m), n: clamped(n, OWN.n) });
    }
    /** m − n as asked, moving n, and m only where n would leave the positions. */
    function apart(lag: number, wanted: number, more: State = {}): void {
      const m = within(wanted, Math.max(lag, 0), LAST + Math.min(lag, 0));
      stage.set({ ...more, m, n: m - lag });
    }

    const sliders = controls([
      { name: "m", label: both("m, position of the query", "m：查询的位置") }, { name: "n", label: both("n, position of the key", "n：键的位置") },
      { name: "lock", label: both("lock m − n", "锁定 m − n") }], OWN,
        { t: stage.t, set: (to) => ("lock" in to ? stage.set(to) : move(to)), offered: () => null });
    const range = { ...OWN.m };
    const play = player({ ...stage, set: (to) => ("m" in to ? move(to) : stage.set(to)) },
      { name: "m", speed: "speed", parameter: range, end: () => range.to!, between: (value) => between(value) });
    let between = (_: number): void => {};
    const plane = planeOf(stage, (q, by) => move(q ? { m: clamped(now.m + by, OWN.m) } : { n: clamped(now.n + by, OWN.n) }));
    const parts = barsOf(stage, (pair) => stage.set({ pair }));
    const [asks, asked] = [h("h2", {}), h("p", { class: "hint" })];
    const words = h("div", { class: "words", role: "group", "aria-label": stage.t(both("The word whose key it is", "取哪个词的键")) });
    const sliding = lineChart(stage, { label: both("Score against m", "分数随 m 的变化"), x: both("m", "m"), y: both("score", "分数"), height: innerWidth < 640 ? 120 : 230,
      pick: (m) => move({ m }) });
    const lags = lineChart(stage, { label: both("Score against m − n", "分数随 m − n 的变化"), x: both("m − n", "m − n"), y: both("score", "分数"), height: 230,
      pick: (index) => apart(index - LAST, now.m) });
    const compared = h("div", {});
    const question = predict(stage, {
      question: both("One key is 2 positions before the query, then 2 positions after it. Is the score the same?", "同一个键，先放在查询之前 2 个位置，再放在之后 2 个位置。分数一样吗？"),
      choices: [both("Yes: the distance is 2 both times", "一样：距离都是 2"), both("No, in general", "一般不一样"), both("It depends on m", "取决于 m")], right: 1,
      because: both("Each position before the query adds ω to the angle from k to q, each position after it subtracts ω. With the key of 正在 (is) itself, the sentence with four channels gives −1.1553 two positions before and −0.6450 two positions after; at the same position the score is q·k = 0.15.",
        "键每向前一个位置，从 k 到 q 的夹角就增加 ω；每向后一个位置，就减少 ω。这个句子、四个通道，用“正在”自己的键：之前 2 个位置是 −1.1553，之后 2 个位置是 −0.6450，同一位置是 q·k = 0.15。"),
    });
    stage.root.append(h("div", { class: "split" }, plane.element,
      h("div", { class: "beside" }, sliders.element, play.element, section(stage, both("Both positions move, or one", "两个位置一起移动，或只移动一个"), sliding.element))),
      h("div", { class: "split" }, h("div", { class: "beside" }, parts.element, asks, words, asked), section(stage, both("By difference", "随位置之差"), lags.element)),
      question, section(stage, both("Addition and rotation", "相加与旋转"), compared));
    const beside = atRest(stage);
    let checkedOf: unknown = null;
    let byLag: Numbers = { shape: [0, 0], values: new Float64Array() };

    return (data, state) => {
      const omega = array(data, "omega").values as Float64Array;
      const pair = Math.min(number(state, "pair"), omega.length - 1);
      const [m, n] = [number(state, "m"), number(state, "n")];
      now = { m, n, lock: state["lock"] === true };
      const [from, to] = [now.lock ? Math.max(m - n, 0) : 0, now.lock ? LAST + Math.min(m - n, 0) : LAST];
      [range.from, range.to] = [from, to];
      sliders.draw(state);
      play.draw(state);
      if (checkedOf !== data) {
        checkedOf = data;
        stage.checked(...difference(data, omega));
        byLag = transposed(data);
      }
      const [two, twoK] = [twoOf(data, "q", pair), twoOf(data, "k", pair)];
      const turn = omega[pair]!;
      plane.draw(two, twoK, turn, m, n);
      between = (value) => plane.turn(value, now.lock ? value - (m - n) : n);

      const scores = array(data, "scores");
      const score = scores.values[m * (LAST + 1) + n]!;
      const lag = m - n;
      const ofPairs = row(byLag, lag + LAST) as Float64Array;
      parts.draw(ofPairs, pair, score);
      const of = data.facts as { words: string[]; asking: number; word: number };
      const who = of.words[of.asking]!;
      refill(asks, stage.t(both(`The sentence, “${who}” at m`, `整句话，“${who}”放在 m`)));
      refill(asked, stage.t(both(`Each word's score with “${who}”. Press a word to use its key.`, `每个词与“${who}”的分数。按一个词，就使用它的键。`)));
      drawWords(words, data, m, of.word, (word, asking) => apart(asking - word, now.m, { word }));
      drawCharts(m, n, pair);
      beside(() => drawTable(m, lag));
      drawFormula(m, n, pair, score);
      const ofPair = before >= 0 && before !== pair ? `${stage.t(both("pair", "通道对"))} ${pair}: ${shown(ofPairs[pair]!)}, ` : "";
      before = pair;
      stage.announce(`${ofPair}m ${m}, n ${n}: ${stage.t(both("score", "分数"))} ${shown(score)}`);
      stage.code(`\nscores[${m}, ${n}]  # ${score}\npair_scores[${pair}, ${m} - ${n} + ${LAST}]  # ${ofPairs[pair]}`);

      function drawCharts(m: number, n: number, pair: number): void {
        const x = Float64Array.from({ length: LAST + 1 }, (_, at) => at);
        const along = (name: string, place: (at: number) => number) => x.map((at) => (place(at) >= 0 && place(at) <= LAST ? array(data,
          name).values[at * (LAST + 1) + place(at)]! : NaN));
        sliding.draw({ cursor: m, series: [
          { name: stage.t(both("RoPE, both move", "RoPE，一起移动")), x, y: along("scores", (at) => at - lag), colour: "var(--line-4)" },
          { name: stage.t(both("RoPE, n fixed", "RoPE，n 固定")), x, y: along("scores", () => n), colour: "var(--line-6)" },
          { name: stage.t(both("added, both move", "相加，一起移动")), x, y: along("added_scores", (at) => at - lag), colour: "var(--line-2)",
            dashed: true }] });
        const k = Float64Array.from({ length: 2 * LAST + 1 }, (_, at) => at - LAST);
        lags.draw({ cursor: lag + LAST, marks: [{ x: 0, word: "q·k" }], series: [
          { name: stage.t(both("all pairs", "全部通道对")), x: k, y: array(data, "lag_scores").values, colour: "var(--line-4)" },
          { name: `${stage.t(both("pair", "通道对"))} ${pair}`, x: k, y: row(array(data, "pair_scores"), pair), colour: "var(--line-5)",
            dashed: true }] });
      }

      function drawTable(m: number, lag: number): void {
        /** By how much a score changes where m − n stays, over |q||k|. */
        const spread = (name: string) => {
          const { values } = array(data, name);
          const along = Array.from({ length: LAST + 1 - Math.abs(lag) },
            (_, step) => values[(step + Math.max(lag, 0)) * (LAST + 1) + step - Math.min(lag, 0)]!);
          return (Math.max(...along) - Math.min(...along)) / (Math.hypot(...array(data, "q").values) * Math.hypot(...array(data, "k").values));
        };
        const length = array(data, "lengths").values;
        const table = plainTable(stage.t(both("The same q and k, and positions of the same frequencies", "同样的 q 与 k，同样的频率")),
          ["", stage.t(both("added: q + PE(m)", "相加：q + PE(m)")), stage.t(both("turned: R(m)q", "旋转：R(m)q"))], [
            [stage.t(both("length of q without a position", "没有位置时 q 的长度")), length[0]!, length[0]!],
            [stage.t(both("length of q at m", "位置 m 处 q 的长度")), array(data, "added_lengths").values[m]!, length[m]!],
            [stage.t(both("change of the score over all shifts of both positions, divided by |q||k|", "两个位置一起移动时分数的最大变化 ÷ |q||k|")), spread("added_scores"),
              spread("scores")],
            [stage.t(both("the values v", "值向量 v")), stage.t(both("contain the position", "含有位置")),
              stage.t(both("do not change", "不变"))]]);
        const cells = table.querySelectorAll<HTMLElement>("tbody tr:nth-child(3) td");
        cells[0]!.dataset["role"] = "added-spread";
        cells[1]!.dataset["role"] = "spread";
        refill(compared, table);
      }

      function drawFormula(m: number, n: number, pair: number, score: number): void {
        const [angleQ, angleK] = [angle(two), angle(twoK)];
        const vector = ([x, y]: [number, number]) => `(${shown(x, 3)}, ${shown(y, 3)})`;
        const position = (p: number) => put(p, "position");
        const speed = () => put(shown(turn), "channel");
        const [hatQ, hatK] = [at(data, "q_turned", m, pair), at(data, "k_turned", n, pair)];
        const opposite = array(data, "lag_scores").values[LAST - lag]!;
        refill(stage.formula, formula(
          ["(R(", v("m"), ")", v("q"), ") · (R(", v("n"), ")", v("k"), ") = ", v("q"), " · R(", v("n"), " − ", v("m"), ")", v("k"), ",  ", v("ω"), sub("i"),
            " = base", sup("−2i/d")],
          [stage.t(both("turned, pair ", "旋转后，通道对 ")), put(pair, "channel"), stage.t(both(": ", "：")), put(vector(hatQ)), " · ", put(vector(hatK)), " = ",
            h("output", { "data-role": "pair-score", "data-value": hatQ[0] * hatK[0] + hatQ[1] * hatK[1] }, shown(hatQ[0] * hatK[0] + hatQ[1] * hatK[1], 6))],
          [stage.t(both("from the difference: ", "只用位置差：")), put(vector(two)), " · R((", position(n), " − ", position(m), ") · ", speed(), ")",
            put(vector(twoK)), " = ", h("output", { "data-role": "pair-score-of-difference", "data-value": ofPairs[pair]! }, shown(ofPairs[pair]!, 6))],
          ["|", v("q"), "||", v("k"), "| cos(", v("φ"), sub("q"), " − ", v("φ"), sub("k"), " + (", v("m"), " − ", v("n"), ")", v("ω"), ") = ",
            put(shown(Math.hypot(...two))), " · ", put(shown(Math.hypot(...twoK))), " · cos(", put(shown(angleQ)), " − ", put(signed(shown(angleK))), " + ",
            put(signed(shown(lag, 0)), "position"), " · ", speed(), ")"],
          [stage.t(both("all pairs together: ", "全部通道对相加：")), v("q̂"), sub("m"), " · ", v("k̂"), sub("n"), " = ",
            h("output", { "data-role": "score", "data-value": score }, shown(score, 6))],
          [stage.t(both("columns: ", "列向量：")), v("q̂"), sub("i"), " · ", v("k̂"), sub("j"), " = ", v("q"), sub("i"), sup("T"), " R(", v("j"), " − ", v("i"),
            ") ", v("k"), sub("j"),
            stage.t(both(";  rows: ", "；行向量：")), v("q"), sub("i"), " R(", v("i"), " − ", v("j"), ") ", v("k"), sub("j"), sup("T")],
        ), h("p", { class: "small" }, stage.t(both(
          "Which way round? Here R acts on columns and turns by +p·ω. Written with rows it is the transpose, which turns the other way, so the difference changes its sign too and the score stays. Mix the two and you get the score of the opposite difference, here ",
          "R 里写哪个差？这里 R 作用于列向量，转过 +p·ω。写成行向量时用的是它的转置，转向相反，差也跟着变号，分数不变。两种写法混用，得到的就是相反位置差的分数，此处为 ")),
          h("b", { "data-role": "opposite", "data-value": opposite }, shown(opposite)), stage.t(both(".", "。"))));
      }
    };
  },
};

function section(stage: Stage, title: Words, ...children: HTMLElement[]): HTMLElement {
  return h("section", {}, h("h2", {}, stage.t(title)), ...children);
}

/** A number within a sum. */
function signed(text: string): string {
  return text.startsWith("−") ? `(${text})` : text;
}

function within(value: number, from: number, to: number): number {
  return Math.min(Math.max(value, from), to);
}

/** The two channels of a pair: of a vector, or of a row of turned ones. */
function twoOf(data: Data, name: "q" | "k", pair: number): [number, number] {
  const { values } = array(data, name);
  return [values[2 * pair]!, values[2 * pair + 1]!];
}
function at(data: Data, name: string, position: number, pair: number): [number, number] {
  const one = row(array(data, name), position);
  return [one[2 * pair]!, one[2 * pair + 1]!];
}
function angle([x, y]: [number, number]): number {
  return Math.atan2(y, x);
}
function turned([x, y]: [number, number], by: number): [number, number] {
  const [cos, sin] = [Math.cos(by), Math.sin(by)];
  return [x * cos - y * sin, y * cos + x * sin];
}

/** pair_scores with the differences as rows. */
function transposed(data: Data): { shape: number[]; values: Float64Array } {
  const { shape, values } = array(data, "pair_scores");
  const [pairs, lags] = [shape[0]!, shape[1]!];
  return { shape: [lags, pairs], values: Float64Array.from({ length: pairs * lags },
    (_, index) => values[(index % pairs) * lags + Math.floor(index / pairs)]!) };
}

/** The largest difference between what the page turns and what Python turned, over all positions and pairs. */
function difference(data: Data, omega: Float64Array): [number, number] {
  let worst = 0;
  for (const name of ["q", "k"] as const)
    for (let p = 0; p <= LAST; p++)
      omega.forEach((turn, pair) => {
        const mine = turned(twoOf(data, name, pair), p * turn);
        const theirs = at(data, `${name}_turned`, p, pair);
        worst = Math.max(worst, Math.abs(mine[0] - theirs[0]), Math.abs(mine[1] - theirs[1]));
      });
  return [worst, 4 * (LAST + 1) * omega.length];
}

interface Plane {
  element: HTMLElement;
  draw(q: [number, number], k: [number, number], omega: number, m: number, n: number): void;
  /** Only the turning, also in between two positions. */
  turn(m: number, n: number): void;
}

/** `moved` gets which of the two was moved, true for q, and by how many positions. */
function planeOf(stage: Stage, moved: (q: boolean, by: number) => void): Plane {
  let [q, k]: [number, number][] = [[1, 0], [1, 0]];
  let [omega, unit] = [1, 1];
  const position = [0, 0];
  const wedge = s("path", { class: "wedge" });
  const said = h("ul", { class: "legend said" });
  const picture = s("svg", { viewBox: "-176 -176 352 352", role: "group",
    "aria-label": stage.t(both("One pair of channels of q and k in the plane", "平面上 q 与 k 的一对通道")) },
    s("line", { class: "grid", x1: -172, x2: 172, y1: 0, y2: 0 }), s("line", { class: "grid", x1: 0, x2: 0, y1: -172, y2: 172 }));
  const hands = ([["q", Q, 0.36], ["k", K, 0.5]] as const).map(([name, ink, radius], index) => {
    const ring = s("circle", { class: "ring", stroke: ink });
    const ghost = s("line", { class: "ghost", x1: 0, y1: 0, stroke: ink });
    const arc = s("path", { class: "swept", stroke: ink });
    const arrow = s("line", { class: "arrow", x1: 0, y1: 0, stroke: ink });
    const handle = s("g", { class: "handle", tabindex: 0, role: "slider", "data-role": `handle-${name}`, "aria-valuemin": 0, "aria-valuemax": LAST,
      "aria-label": stage.t(index ? both("position n of the key", "键的位置 n") : both("position m of the query", "查询的位置 m")) },
      s("g", { transform: `scale(${innerWidth < 640 ? 1.5 : 1})` }, // 44 pixels on a telephone
        s("circle", { class: "reach", r: 33 }), s("circle", { r: 13, fill: ink }), s("text", { y: 5, "text-anchor": "middle" }, name)));
    const mine = index === 0;
    handle.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -LAST, End: LAST }[event.key];
      if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      moved(mine, by);
    });
    handle.addEventListener("touchstart", (event) => event.preventDefault()); // the finger turns, the page stays
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
    });
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const box = picture.getBoundingClientRect();
      const pointed = Math.atan2(box.top + box.height / 2 - event.clientY, event.clientX - box.left - box.width / 2);
      const off = pointed - angle(mine ? q : k) - position[index]! * omega;
      const by = Math.round((off - TURN * Math.round(off / TURN)) / omega);
      if (by) moved(mine, by);
    });
    return { ring, ghost, arc, arrow, handle, radius, ink };
  });
  picture.append(wedge, ...hands.flatMap(({ ring, ghost, arc, arrow }) => [ring, ghost, arc, arrow]), ...hands.map(({ handle }) => handle));
  const element = h("div", { class: "plane" }, picture, said, folded(stage.t(both("Numbers of this picture", "这幅图的数值")), h("div", {})));
  const numbers = element.querySelector("details > div") as HTMLElement;

  function turn(m: number, n: number): void {
    [position[0], position[1]] = [m, n];
    [q, k].forEach((vector, index) => {
      const { arc, arrow, handle, radius } = hands[index]!;
      const by = position[index]! * omega;
      const [x, y] = turned(vector, by).map((part) => part * unit) as [number, number];
      arrow.setAttribute("x2", x.toFixed(2));
      arrow.setAttribute("y2", (-y).toFixed(2));
      handle.setAttribute("transform", `translate(${x.toFixed(2)} ${(-y).toFixed(2)})`);
      arc.setAttribute("d", arcOf(angle(vector), by % TURN, radius * REACH));
    });
    const start = angle(k) + n * omega;
    const open = angle(q) + m * omega - start;
    wedge.setAttribute("d", `M0 0L${arcOf(start, open - TURN * Math.round(open / TURN), 0.24 * REACH).slice(1)}Z`);
  }

  return {
    element,
    turn,
    draw(nextQ, nextK, nextOmega, m, n) {
      [q, k, omega] = [nextQ, nextK, nextOmega];
      unit = REACH / Math.max(Math.hypot(...q), Math.hypot(...k), 1e-9);
      [q, k].forEach((vector, index) => {
        const { ring, ghost, handle } = hands[index]!;
        ring.setAttribute("r", (Math.hypot(...vector) * unit).toFixed(2));
        ghost.setAttribute("x2", (vector[0] * unit).toFixed(2));
        ghost.setAttribute("y2", (-vector[1] * unit).toFixed(2));
        const p = index ? n : m;
        handle.setAttribute("aria-valuenow", String(p));
        handle.setAttribute("aria-valuetext", `${p}, ${degrees(p * omega)}`);
      });
      turn(m, n);
      const open = angle(q) + m * omega - angle(k) - n * omega;
      const line = (name: string, letter: string, p: number, ink: string) => {
        const swatch = h("i", {});
        swatch.style.setProperty("--k", ink);
        return h("li", {}, swatch, `${name}${letter}·ω = ${p} · ${shown(omega)} = `, h("b", {}, degrees(p * omega)));
      };
      refill(said, line(stage.t(both("q turned by ", "q 转过 ")), "m", m, Q), line(stage.t(both("k turned by ", "k 转过 ")), "n", n, K),
        h("li", {}, h("i", { class: "between" }), stage.t(both("angle from k to q: ", "从 k 到 q 的夹角：")),
          h("b", { "data-role": "angle", "data-value": open - TURN * Math.round(open / TURN) }, degrees(open - TURN * Math.round(open / TURN)))));
      refill(numbers, plainTable(stage.t(both("Before and after turning", "旋转前后")), ["", "x", "y", stage.t(both("length", "长度"))],
        ([["q", q], ["R(m)q", turned(q, m * omega)], ["k", k], ["R(n)k", turned(k, n * omega)]] as const).map(([name, vector]) => [name, ...vector,
          Math.hypot(...vector)])));
    },
  };
}

function degrees(angle: number): string {
  return `${((angle * 360) / TURN).toFixed(1)}°`.replace("-", "−");
}

/** From one angle on, counter-clockwise as in mathematics. */
function arcOf(start: number, by: number, radius: number): string {
  const point = (angle: number) => `${(radius * Math.cos(angle)).toFixed(2)} ${(-radius * Math.sin(angle)).toFixed(2)}`;
  return `M${point(start)}A${radius} ${radius} 0 ${Math.abs(by) > Math.PI ? 1 : 0} ${by > 0 ? 0 : 1} ${point(start + by)}`;
}

/** What each pair adds to the score, as bars; one of them is the pair in the plane. */
function barsOf(stage: Stage, pick: (pair: number) => void): { element: HTMLElement; draw(parts: Float64Array, pair: number, total: number): void } {
  let [count, chosen] = [1, 0];
  const bars = h("div", { class: "bars", tabindex: 0, role: "slider", "aria-valuemin": 0, "data-role": "pairs",
    "aria-label": stage.t(both("pair in the plane", "平面上画的通道对")) });
  const title = h("h2", {});
  const numbers = h("div", {});
  bars.addEventListener("keydown", (event) => {
    const to = { ArrowRight: chosen + 1, ArrowUp: chosen + 1, ArrowLeft: chosen - 1, ArrowDown: chosen - 1, Home: 0, End: count - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    pick(within(to, 0, count - 1));
  });
  const at = (event: PointerEvent) => {
    const box = bars.getBoundingClientRect();
    pick(within(Math.floor(((event.clientX - box.left) / box.width) * count), 0, count - 1));
  };
  bars.addEventListener("pointerdown", at);
  bars.addEventListener("pointermove", (event) => event.buttons & 1 && at(event));
  return {
    element: h("section", {}, title, bars, h("p", { class: "hint ends" }, h("span", {}, stage.t(both("← pair 0, fastest", "← 通道对 0，最快"))),
      h("span", {}, stage.t(both("slowest →", "最慢 →")))), folded(stage.t(both("Numbers of these bars", "这些柱子的数值")), numbers)),
    draw(parts, pair, total) {
      [count, chosen] = [parts.length, pair];
      refill(title, stage.t(both("Score by pair; together ", "每个通道对的分数；合计 ")),
        h("span", { class: "total", "data-role": "total", "data-value": total }, shown(total)));
      const limit = Math.max(...parts.map(Math.abs), 1e-12);
      refill(bars, ...[...parts].map((value, index) => {
        const bar = h("i", { class: value < 0 ? "minus" : "plus", "data-value": value });
        bar.style.height = `${(Math.abs(value) / limit) * 46}%`;
        return h("span", { class: index === pair ? "chosen" : "" }, bar);
      }));
      bars.setAttribute("aria-valuemax", String(count - 1));
      bars.setAttribute("aria-valuenow", String(pair));
      bars.setAttribute("aria-valuetext", `${pair}: ${shown(parts[pair]!)}`);
      refill(numbers, plainTable(stage.t(both("Score by pair", "每个通道对的分数")), [stage.t(both("pair", "通道对")), stage.t(both("score", "分数"))],
        [...parts].map((value, index) => [String(index), value])));
    },
  };
}

/** The sentence with the word that asks at m, and the score of each of its words; `pick` gets the word and which one asks. */
function drawWords(place: HTMLElement, data: Data, m: number, chosen: number, pick: (word: number, asking: number) => void): void {
  const { words, asking } = data.facts as { words: string[]; asking: number };
  if (place.dataset["of"] !== `${asking} ${words.join(" ")}`) {
    place.dataset["of"] = `${asking} ${words.join(" ")}`;
    fill(place, ...words.map((word, index) => h("button", { type: "button", class: index === asking ? "asking" : "", "data-word": index,
      click: () => pick(index, asking) },
      h("span", { class: "word" }, word), h("span", { class: "position" }), h("span", { class: "chip", "data-role": "word-score" }))));
  }
  const scores = row(array(data, "sentence"), m) as Float64Array;
  const limit = Math.max(...scores.map(Math.abs), 1e-9);
  const dark = isDark(place);
  [...place.children].forEach((button, index) => {
    const [, position, chip] = button.children as unknown as HTMLElement[];
    const value = scores[index]!;
    button.setAttribute("aria-pressed", String(index === chosen));
    say(position!, shown(m - asking + index, 0));
    say(chip!, shown(value));
    chip!.dataset["value"] = String(value);
    chip!.style.background = colour("diverging", value, limit, dark);
    chip!.style.color = inkOn("diverging", value, limit, dark);
  });
}
