// Which angles training has shown each pair of channels, which it has not, and what was measured beyond the trained length.

import { array, row, type Data } from "../data";
import { fill, h, s, type Child } from "../dom";
import { controls } from "../parts/controls";
import { formula, fraction, put, sub, sup, v } from "../parts/formula";
import { folded, plainTable } from "../parts/numbers";
import type { State } from "../source";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./extrapolation.css";
import { measured, MEASURED } from "./extrapolation_measured";

const METHODS = ["none", "linear", "ntk", "yarn", "llama3", "config"];
const NAMES: Record<string, Words> = {
  none: both("as trained", "不改动"), linear: both("linear interpolation", "线性插值"), ntk: both("NTK-aware", "NTK-aware"),
  yarn: both("YaRN", "YaRN"), llama3: both("Llama 3", "Llama 3"), config: both("the file's own", "文件自身的设置"),
};
const OWN = { pair: own.whole(50, 0, 255), method: own.choice("none", ...METHODS), ...MEASURED };
const TURN = 2 * Math.PI;
const NO_FILE = (state: State) => !String(state["config"]).trim();

interface Method {
  name: string;
  cos_sin_scale: number;
  cos_sin_scale_from: string;
  softmax_scale: number;
}

export const extrapolation: View = {
  name: "extrapolation",
  title: both("Beyond the trained length", "超出训练长度"),
  idea: both(
    "A frequency never changes, but a slow pair of channels has not turned once by the end of the longest training text, so a longer text brings it angles that it has never met. Below, the part of each circle that training covered and the part that is new, for five settings of the frequencies; under that, what trained models lost at greater lengths.",
    "频率本身从不改变，但转得慢的通道对直到最长的训练文本结束也没转满一圈，文本再长，就会遇到从未见过的角度。下面先画出五种频率设置下每个圆里训练覆盖的部分与新出现的部分，再给出训练好的模型在更长文本上实测的损失。",
  ),
  notice: [
    both("At base 10 000 with 128 channels and 4096 positions, 18 of 64 pairs never finish a turn. The other 46 have seen their whole circle, whatever the length.", "底数 10000、128 个通道、4096 个位置时，64 对里有 18 对转不满一圈；其余 46 对早已见过整个圆，文本再长也没有新角度。"),
    both("Interpolation, YaRN and Llama 3 leave no angle new at s·L here. NTK-aware scaling leaves some: only its slowest pair slows by the whole factor.", "在这里，线性插值、YaRN 和 Llama 3 在 s·L 处都没有新角度；NTK-aware 仍有一些，因为它只有最慢的一对真正放慢了 s 倍。"),
    both("No new angles is not the whole story: interpolation also turns the fast pairs s times more slowly, so neighbours lie closer than ever in training. In the measured curves it is worse than YaRN at every greater length.", "没有新角度并不等于万事大吉：线性插值把快的通道对也放慢了 s 倍，相邻位置之间的角度比训练时更小。实测中，它在每个更长的长度上都不如 YaRN。"),
    both("A sinusoidal table has the same frequencies, with d_model in the place of the head's width.", "正弦位置编码表用的是同一组频率，只是宽度 d 换成 d_model。"),
  ],
  papers: [
    { text: "Chen et al. 2023, interpolation", href: "https://arxiv.org/abs/2306.15595" },
    { text: "Peng et al. 2023, YaRN", href: "https://arxiv.org/abs/2309.00071" },
    { text: "Llama 3", href: "https://arxiv.org/abs/2407.21783" },
    { text: "Press et al. 2021, ALiBi", href: "https://arxiv.org/abs/2108.12409" },
  ],
  own: OWN,
  styles,
  controls: [
    { name: "d", label: both("channels of a head, d", "每个头的通道数 d"), when: NO_FILE },
    { name: "base", label: both("base", "底数"), scale: "log", when: NO_FILE },
    { name: "trained", label: both("trained length L", "训练长度 L"), scale: "log", when: NO_FILE },
    { name: "factor", label: both("times as long, s", "长度倍数 s"), scale: "log" },
  ],
  build(stage) {
    const { t } = stage;
    const said = h("p", { class: "said" });
    const file = controls([{ name: "config", label: both("config.json", "config.json"), as: "lines" }], stage.source.schemas["extrapolation"]!, { t, set: stage.set, offered: () => null });
    const pasted = folded(t(both("Or paste a model's config.json: its frequencies and trained length", "或粘贴某个模型的 config.json：用它的频率和训练长度")), file.element);
    pasted.hidden = stage.source.offered("extrapolation") !== null;
    const strips = stripChart(stage);
    const ring = h("div", { class: "ring", role: "img" });
    const table = h("div", {});
    const all = h("div", {});
    const details = folded(t(both("All pairs of the chosen method", "所选方法的全部通道对")), all);
    const beyond = measured(stage);
    stage.root.append(pasted, said, h("div", { class: "phases" }, strips.element, ring), table, details, beyond.element);
    let last: (() => void) | null = null;
    details.addEventListener("toggle", () => last?.());

    return (data, state) => {
      const { facts } = data;
      file.draw(state);
      const omega = array(data, "omega");
      const pairs = omega.shape[1]!;
      const methods = facts["methods"] as Method[];
      const pair = Math.min(number(state, "pair"), pairs - 1);
      const chosen = Math.max(methods.findIndex((one) => one.name === state["method"]), 0);
      const of = reader(data);
      const factor = number(state, "factor");
      fill(said, facts["family"] ? h("b", {}, `${facts["family"]}: `) : null,
        t(both("", "训练长度 ")), h("b", {}, `${facts["trained"]}`), t(both(" positions in training: ", "：")),
        h("b", { "data-role": "unfinished", "data-value": facts["unfinished"] }, `${facts["unfinished"]}`),
        t(both(` of ${pairs} pairs never finish a turn.`, ` 对（共 ${pairs} 对）转不满一圈。`)),
        h("span", { class: "key" }, h("i", { class: "covered" }), t(both("seen in training", "训练中见过")), h("i", { class: "new" }), t(both(`new at ${tidy(facts["trained"] * factor)}`, `到 ${tidy(facts["trained"] * factor)} 时新出现`))));
      strips.draw(data, methods, pair, chosen);
      drawRing(ring, of, chosen, pair, stage);
      fill(table, plainTable(`${t(both("Pair", "第"))} ${pair}${t(both("", " 对"))}`, [
        t(both("frequencies", "频率设置")), t(both("ω′, radians a position", "ω′（弧度／位置）")), t(both("turns in training", "训练中转的圈数")), t(both(`turns at ${tidy(factor)}·L`, `${tidy(factor)}·L 处的圈数`)),
        t(both("new, of a turn", "新增（圈）")), t(both("pairs with new angles", "有新角度的对数")), t(both("cos/sin ×", "cos/sin 乘以")), t(both("softmax scale ×", "softmax 缩放乘以")),
      ], methods.map((one, m) => [
        t(NAMES[one.name]!), shown(of.omega(m, pair), 6), of.trained(pair) / TURN, of.target(m, pair) / TURN, of.fresh(m, pair) / TURN, String(of.count(m)), one.cos_sin_scale, one.softmax_scale,
      ])));
      table.querySelectorAll("tbody tr").forEach((line, m) => m === chosen && line.setAttribute("aria-current", "true"));
      last = () => {
        if (!details.matches("[open]")) return;
        const rows = Array.from({ length: pairs }, (_, n) => [String(n), of.omega(chosen, n), of.trained(n), of.target(chosen, n), of.fresh(chosen, n)]);
        fill(all, plainTable(t(NAMES[methods[chosen]!.name]!), [t(both("pair", "对")), "ω′", t(both("angle at L", "L 处的角度")), t(both("angle at s·L", "s·L 处的角度")), t(both("new angle", "新增角度"))], rows));
      };
      last();
      fill(stage.formula, h("h2", {}, t(NAMES[methods[chosen]!.name]!)), substituted(stage, facts, methods[chosen]!, of, chosen, pair, factor));
      beyond.draw(data, state);
      stage.announce(`${t(NAMES[methods[chosen]!.name]!)}, ${t(both("pair", "第"))} ${pair}${t(both("", " 对"))}: ${t(both("new", "新增"))} ${shown(of.fresh(chosen, pair) / TURN)} ${t(both("of a turn", "圈"))}`);
      stage.code(`new[${chosen}, ${pair}]  # ${of.fresh(chosen, pair)} radians, ${methods[chosen]!.name}`);
    };
  },
};

type Reader = ReturnType<typeof reader>;

function reader(data: Data) {
  const [omega, target, fresh] = [array(data, "omega"), array(data, "at_target"), array(data, "new")];
  const [trained, covered] = [array(data, "in_training").values, array(data, "covered").values];
  return {
    omega: (m: number, n: number) => row(omega, m)[n]!,
    target: (m: number, n: number) => row(target, m)[n]!,
    fresh: (m: number, n: number) => row(fresh, m)[n]!,
    trained: (n: number) => trained[n]!,
    covered: (n: number) => covered[n]!,
    /** Pairs that meet more than a rounding error's worth of new angles. */
    count: (m: number) => row(fresh, m).filter((angle) => angle > 1e-9).length,
  };
}

// One strip a method, one bar a pair -------------------------------------------------------------------------------------

const [LEFT, RIGHT, HIGH, LABEL, TOP, FOOT] = [10, 10, 46, 24, 22, 38];

function stripChart(stage: Stage) {
  const { t } = stage;
  const element = h("div", { class: "strips", tabindex: 0, role: "application", "aria-roledescription": t(both("chart", "图")), "aria-label": t(both("Angles covered in training and new beyond it, by pair and method. Left and right move over pairs, up and down over methods.", "各方法、各通道对在训练中覆盖的角度与新出现的角度。左右键换通道对，上下键换方法。")) });
  let now = { pairs: 1, methods: [] as Method[], pair: 0, chosen: 0 };
  let drawn: { data: Data; width: number } | null = null;
  let last: [Data, Method[], number, number] | null = null;
  const cursor = s("path", { class: "cursor-bar" });
  const frame = s("rect", { class: "chosen" });
  const width = () => Math.max(element.clientWidth, 260);
  const bar = () => (width() - LEFT - RIGHT) / now.pairs;
  const top = (m: number) => TOP + m * (HIGH + LABEL) + LABEL;

  function build(data: Data): void {
    const of = reader(data);
    const wide = width();
    const height = top(now.methods.length - 1) + HIGH + FOOT;
    const picture = s("svg", { viewBox: `0 0 ${wide} ${height}`, width: wide, height, "aria-hidden": "true" });
    const gap = bar() > 4 ? 1 : 0;
    now.methods.forEach((method, m) => {
      const floor = top(m) + HIGH;
      const box = (n: number, from: number, to: number) => `M${(LEFT + n * bar() + gap / 2).toFixed(2)} ${(floor - (from / TURN) * HIGH).toFixed(2)}h${(bar() - gap).toFixed(2)}V${(floor - (to / TURN) * HIGH).toFixed(2)}h${(gap - bar()).toFixed(2)}Z`;
      let [old, fresh] = ["", ""];
      for (let n = 0; n < now.pairs; n++) {
        old += box(n, 0, of.covered(n));
        if (of.fresh(m, n) > 0) fresh += box(n, of.covered(n), of.covered(n) + of.fresh(m, n));
      }
      const count = of.count(m);
      picture.append(
        s("rect", { class: "ground", x: LEFT, y: top(m), width: wide - LEFT - RIGHT, height: HIGH }), s("path", { class: "covered", d: old }), s("path", { class: "new", d: fresh }),
        s("text", { class: "name", x: LEFT, y: top(m) - 7 }, t(NAMES[method.name]!)),
        s("text", { class: count ? "many" : "", x: wide - RIGHT, y: top(m) - 7, "text-anchor": "end", "data-role": "new-pairs", "data-method": method.name, "data-value": count },
          count ? t(both(`new angles on ${count} pairs`, `${count} 对有新角度`)) : t(both("no new angle", "没有新角度"))));
    });
    const unfinished = data.facts["unfinished"] as number;
    const edge = LEFT + (now.pairs - unfinished) * bar();
    if (unfinished) picture.append(s("line", { class: "mark", x1: edge, x2: edge, y1: TOP - 4, y2: height - FOOT }), s("text", { class: "mark", x: edge - 5, y: TOP - 9, "text-anchor": "end" }, t(both("turned at least once ", "转满过一圈"))), s("text", { class: "mark", x: edge + 5, y: TOP - 9 }, t(both("never", "未转满"))));
    for (const n of ticks(now.pairs)) picture.append(s("text", { x: LEFT + (n + 0.5) * bar(), y: height - FOOT + 16, "text-anchor": "middle" }, n));
    picture.append(s("text", { x: wide / 2, y: height - 4, "text-anchor": "middle" }, t(both("pair of channels, fast → slow; a full bar is one turn", "通道对，由快到慢；满格为一整圈"))), frame, cursor);
    element.replaceChildren(picture);
    drawn = { data, width: wide };
  }
  function draw(data: Data, methods: Method[], pair: number, chosen: number): void {
    last = [data, methods, pair, chosen];
    now = { pairs: array(data, "omega").shape[1]!, methods, pair, chosen };
    if (drawn?.data !== data || drawn.width !== width()) build(data);
    const x = LEFT + pair * bar();
    cursor.setAttribute("d", methods.map((_, m) => `M${x - 1.5} ${top(m) - 2}h${bar() + 3}v${HIGH + 4}h${-bar() - 3}Z`).join(""));
    for (const [name, value] of Object.entries({ x: LEFT - 5, y: top(chosen) - LABEL + 2, width: width() - LEFT - RIGHT + 10, height: HIGH + LABEL + 2, rx: 6 })) frame.setAttribute(name, String(value));
  }
  function at(event: PointerEvent): void {
    const box = element.getBoundingClientRect();
    const pair = Math.min(Math.max(Math.floor((event.clientX - box.left - LEFT) / bar()), 0), now.pairs - 1);
    const m = Math.min(Math.max(Math.floor((event.clientY - box.top - TOP) / (HIGH + LABEL)), 0), now.methods.length - 1);
    stage.set({ pair, method: now.methods[m]!.name });
  }
  element.addEventListener("pointerdown", at);
  element.addEventListener("pointermove", (event) => event.buttons & 1 && at(event));
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pair = { ArrowLeft: now.pair - 1, ArrowRight: now.pair + 1, PageUp: now.pair - 10, PageDown: now.pair + 10, Home: 0, End: now.pairs - 1 }[event.key];
    const m = { ArrowUp: now.chosen - 1, ArrowDown: now.chosen + 1 }[event.key];
    if (pair === undefined && m === undefined) return;
    event.preventDefault();
    if (pair !== undefined) stage.set({ pair: Math.min(Math.max(pair, 0), now.pairs - 1) });
    else stage.set({ method: now.methods[Math.min(Math.max(m!, 0), now.methods.length - 1)]!.name });
  });
  const watch = new ResizeObserver(() => last && drawn?.width !== width() && draw(...last));
  watch.observe(element);
  stage.leaving(() => watch.disconnect());
  return { element, draw };
}

function ticks(pairs: number): number[] {
  const every = [1, 2, 4, 8, 16, 32, 64].find((n) => pairs / n <= 9) ?? pairs;
  return Array.from({ length: Math.ceil(pairs / every) }, (_, n) => n * every);
}

// The circle of the pair under the cursor ---------------------------------------------------------------------------------

function drawRing(place: HTMLElement, of: Reader, m: number, pair: number, stage: Stage): void {
  const { t } = stage;
  const [size, r] = [220, 82];
  const middle = size / 2;
  const point = (angle: number, far: number): [number, number] => [middle + far * Math.cos(angle), middle - far * Math.sin(angle)];
  const covered = of.covered(pair);
  const end = covered + of.fresh(m, pair);
  const hand = (angle: number, name: string) => {
    const [x, y] = point(angle, r + 13);
    return s("line", { class: name, x1: middle, y1: middle, x2: x, y2: y });
  };
  const [trained, target] = [of.trained(pair) / TURN, of.target(m, pair) / TURN];
  const words = `${t(both("Pair", "第"))} ${pair}${t(both("", " 对"))}`;
  fill(place, s("svg", { viewBox: `0 0 ${size} ${size}`, width: size, height: size, "aria-hidden": "true" },
    s("circle", { class: "empty", cx: middle, cy: middle, r }), s("path", { class: "arc covered", d: arc(point, 0, covered, r) }), s("path", { class: "arc new", d: arc(point, covered, end, r) }),
    hand(of.trained(pair), "hand at-trained"), hand(of.target(m, pair), "hand at-target"), s("circle", { class: "hub", cx: middle, cy: middle, r: 3 })),
    h("div", { class: "ring-words" }, h("p", {}, h("b", {}, words)), h("p", {}, h("i", { class: "covered" }), t(both("at L: ", "L 处：")), h("b", { "data-role": "turns-trained", "data-value": trained }, shown(trained, 3)), t(both(" turns", " 圈"))),
      h("p", {}, h("i", { class: "new" }), t(both("at s·L: ", "s·L 处：")), h("b", { "data-role": "turns-target", "data-value": target }, shown(target, 3)), t(both(" turns", " 圈"))),
      h("p", {}, t(both("new: ", "新增：")), h("b", { "data-role": "new", "data-value": of.fresh(m, pair) }, shown(of.fresh(m, pair) / TURN, 3)), t(both(" of a turn", " 圈")))));
  place.setAttribute("aria-label", `${words}: ${t(both("turns at L", "L 处的圈数"))} ${shown(trained, 3)}, ${t(both("at s·L", "s·L 处"))} ${shown(target, 3)}, ${t(both("new", "新增"))} ${shown(end - covered, 3)}`);
}

/** Counter-clockwise from the right, as angles are; a whole turn is drawn in two halves. */
function arc(point: (angle: number, far: number) => [number, number], from: number, to: number, r: number): string {
  if (to - from < 1e-9) return "";
  const half = (a: number, b: number) => `A${r} ${r} 0 ${b - a > Math.PI ? 1 : 0} 0 ${point(b, r).map((part) => part.toFixed(2)).join(" ")}`;
  const start = `M${point(from, r).map((part) => part.toFixed(2)).join(" ")}`;
  return to - from > TURN - 1e-6 ? start + half(from, from + Math.PI) + half(from + Math.PI, from + TURN) : start + half(from, to);
}

// The formula of the chosen method ------------------------------------------------------------------------------------------

function substituted(stage: Stage, facts: Record<string, any>, method: Method, of: Reader, m: number, pair: number, factor: number): HTMLElement {
  const { t } = stage;
  const [d, base, trained] = [facts["d"] as number, facts["base"] as number, facts["trained"] as number];
  const n = put(pair, "channel");
  const plain = put(shown(of.omega(0, pair), 6), "channel");
  const result = put(shown(of.omega(m, pair), 6), "channel");
  const power = (of: Child) => [of, sup("−2·", put(pair, "channel"), "/", put(d))];
  const omega = [v("ω"), sub(n)];
  const lines: Child[][] = [[...omega, " = base", sup("−2i/d"), " = ", ...power(put(tidy(base))), " = ", plain]];
  const slowed = [v("ω′"), sub(put(pair, "channel"))];
  if (method.name === "none") lines.push([...slowed, " = ", v("ω"), " = ", result]);
  if (method.name === "linear") lines.push([...slowed, " = ", v("ω"), "/", v("s"), " = ", fraction(put(shown(of.omega(0, pair), 6)), put(tidy(factor))), " = ", result]);
  if (method.name === "ntk") lines.push(
    ["base′ = base · ", v("s"), sup("d/(d−2)"), " = ", put(tidy(base)), " · ", put(tidy(factor)), sup(put(d), "/", put(d - 2)), " = ", put(tidy(facts["ntk_base"]))],
    [...slowed, " = base′", sup("−2i/d"), " = ", ...power(put(tidy(facts["ntk_base"]))), " = ", result]);
  if (method.name === "yarn") {
    const [low, high] = facts["ramp"] as [number, number];
    const gamma = Math.min(Math.max((pair - low) / (high - low), 0), 1);
    lines.push(
      [v("γ"), " = clip(", fraction("i − low", "high − low"), ", 0, 1) = clip(", fraction(span(put(pair, "channel"), " − ", put(tidy(low))), span(put(tidy(high)), " − ", put(tidy(low)))), ", 0, 1) = ", put(shown(gamma))],
      [...slowed, " = ", v("ω"), "(1 − ", v("γ"), ") + ", fraction(v("ω"), v("s")), v("γ"), " = ", result]);
  }
  if (method.name === "llama3") {
    const [low, high] = facts["llama3"] as [number, number];
    const turns = of.trained(pair) / TURN;
    const keep = Math.min(Math.max((turns - low) / (high - low), 0), 1);
    lines.push(
      [v("t"), " = ", v("L"), v("ω"), "/2π = ", put(shown(turns)), t(both(" turns in training", " 圈（训练中）")), ",  ", v("k"), " = clip(", fraction(span(put(shown(turns)), " − ", put(low)), span(put(high), " − ", put(low))), ", 0, 1) = ", put(shown(keep))],
      [...slowed, " = (1 − ", v("k"), ")", fraction(v("ω"), v("s")), " + ", v("k"), v("ω"), " = ", result]);
  }
  if (method.name === "config") lines.push([...slowed, " = ", result, h("span", { class: "small" }, t(both("  from the file", "（取自文件）")))]);
  lines.push(
    [t(both("in training: ", "训练中：")), v("ω"), v("L"), " = ", plain.cloneNode(true), " · ", put(trained, "position"), " = ", h("output", {}, shown(of.trained(pair))), t(both(" radians", " 弧度"))],
    [t(both("beyond: ", "超出后：")), v("ω′"), v("s"), v("L"), " = ", result.cloneNode(true), " · ", put(tidy(trained * factor), "position"), " = ", h("output", { "data-role": "angle", "data-value": of.target(m, pair) }, shown(of.target(m, pair))), t(both(" radians", " 弧度"))]);
  if (method.cos_sin_scale !== 1) lines.push(["cos, sin × ", put(shown(method.cos_sin_scale)), method.name === "yarn" ? span(" = 1 + 0.1·ln ", put(tidy(factor))) : null, t(both("; the logits get its square, ", "；注意力分数乘以其平方 ")), put(shown(method.cos_sin_scale ** 2))]);
  return formula(...lines);
}

function span(...children: Child[]): HTMLElement {
  return h("span", {}, ...children);
}

/** At most six digits, a true minus sign. */
function tidy(value: number): string {
  return String(Number(value.toPrecision(6))).replaceAll("-", "−");
}
