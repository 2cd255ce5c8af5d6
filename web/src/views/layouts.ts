// The two layouts of RoPE, the conversion between them, and the errors if weights and code use different layouts.

import { ordered } from "../colours";
import { array, type Data, type Numbers } from "../data";
import { fill, h, refill, s } from "../dom";
import { lineChart } from "../parts/chart";
import { controls } from "../parts/controls";
import { formula, put, sub, sup, v } from "../parts/formula";
import { heatMap, type HeatMap } from "../parts/heatmap";
import { folded, plainTable } from "../parts/numbers";
import { player } from "../parts/player";
import { predict } from "../parts/predict";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./layouts.css";

type Layout = "half" | "interleaved";

const OWN = {
  pair: own.whole(1, 0, 15), member: own.choice("x", "x", "y"), row: own.choice("half", "half", "interleaved"),
  m: own.whole(5, 0, 11), n: own.whole(2, 0, 11), speed: own.real(2, 1, 100),
};
const CALLED: Record<Layout, Words> = { half: both("half", "前后两半（half）"), interleaved: both("interleaved", "相邻交错（interleaved）") };
const WRONG_FROM = 1e-9; // of a score; what is smaller is rounding
const NARROWEST = 28;

export const view: View = {
  name: "layouts",
  title: both("Two layouts of RoPE", "RoPE 的两种布局"),
  idea: both(
    "RoPE rotates pairs of channels, by one of two conventions: neighbours, or a channel of each half. If weights and code use the same convention, both give the same scores; if not, the scores are wrong and no error is raised.",
    "RoPE 旋转通道对，通道配对有两种约定：相邻的两个通道，或者前一半与后一半中对应的两个通道。权重与代码用同一种约定时，分数相同；不一致时，分数是错的，而且程序不报错。",
  ),
  notice: [
    both("With code for the other layout, the scores with m = n are correct, because both vectors rotate by the same angle. The error first grows with the distance.",
      "代码用错布局时，m = n 的分数仍然正确，因为两个向量转过同样的角度。误差起初随距离增大。"),
    both("If both q and k are converted, the scores are the same up to rounding. If only one is converted, even position 0 is wrong, because channels that do not correspond are multiplied.",
      "q 和 k 都转换时，分数只差舍入误差。只转换一个时，连位置 0 也错，因为相乘的通道互不对应。"),
    both("The order of a cosine cache depends on the layout: c₀ c₁ … c₀ c₁ … for half, c₀ c₀ c₁ c₁ … for interleaved. The numbers below the channels show it.",
      "cos 缓存的次序取决于布局：前后两半是 c₀ c₁ … c₀ c₁ …，相邻交错是 c₀ c₀ c₁ c₁ …。每个通道下面的 ω 编号显示了这一点。"),
  ],
  papers: [
    { text: "Su et al. 2021, section 3.2", href: "https://arxiv.org/abs/2104.09864" },
    { text: "Black et al. 2022 (GPT-NeoX)", href: "https://arxiv.org/abs/2204.06745" },
  ],
  own: OWN,
  controls: [
    { name: "d_head", label: both("channels of a head", "每头通道数") },
    { name: "base", label: both("base", "底数"), scale: "log" },
  ],
  styles,
  build(stage) {
    const t = stage.t;
    let pairs = 1;
    const play = player(stage, { name: "pair", speed: "speed", parameter: OWN.pair, end: () => pairs - 1 });
    const drawn = channels(stage, (row, pair, member) => stage.set({ row, pair, member }));
    const switches = controls([
      { name: "weights", label: both("layout of q and k", "q 和 k 的布局"), choices: CALLED },
      { name: "code", label: both("layout of the code", "代码的布局"), choices: CALLED },
      { name: "convert_q", label: both("convert q", "转换 q") },
      { name: "convert_k", label: both("convert k", "转换 k") }], stage.source.schemas["layouts"]!, { t, set: stage.set, offered: () => null });
    const verdict = h("p", { class: "verdict", role: "status", "data-role": "verdict" });
    /** A map whose window of numbers bears its name. */
    function mapOf(label: Words): HeatMap {
      const map = heatMap(stage, {
        label, rows: both("m, query", "m：查询"), columns: both("n, key", "n：键"), around: 2, tallest: 24, pick: (m, n) => stage.set({ m, n }) });
      map.element.querySelector(".scroll")!.setAttribute("aria-label", t(label));
      return map;
    }
    const [outcome, errors] = [both("Computed scores", "得到的分数"), both("Minus the right scores", "减去正确的分数")];
    const [gotMap, errorMap] = [mapOf(outcome), mapOf(errors)];
    const far = lineChart(stage, {
      label: both("Error by distance", "误差随距离的变化"), x: both("distance |m − n|", "距离 |m − n|"), y: both("error / size of a score", "误差 / 分数大小"),
        height: 240 });
    const rows = h("div", { class: "split rows" });
    const models = h("div", {});
    const question = predict(stage, {
      question: both("The code rotates the other pairs with the same frequencies. Which scores are still correct?", "代码用同样的频率，但旋转另一种配对。哪些分数仍然正确？"),
      choices: [both("All: a score is a sum over channels", "全部：分数是各通道之和"), both("Those with m = n", "m = n 的那些"), both("None", "一个也没有")], right: 1,
      because: both("For m = n both vectors rotate by the same angles, whatever the pairs are, and the score is q·k. For m ≠ n frequencies are applied to the wrong channels. See below; converting both q and k corrects it.",
        "m = n 时，不论怎样配对，两个向量转过同样的角度，分数就是 q·k。m ≠ n 时，频率用在了错误的通道上。见下图；把 q 和 k 都转换就正确了。"),
    }, () => stage.set({ weights: "half", code: "interleaved", convert_q: false, convert_k: false }));
    stage.root.append(drawn.element, play.element, question,
      h("section", {}, h("h2", {}, t(both("Weights of one layout, code of the other", "权重一种布局，代码另一种"))), switches.element, verdict,
        h("div", { class: "split" }, h("section", {}, h("h3", {}, t(outcome)), gotMap.element), h("section", {}, h("h3", {}, t(errors)), errorMap.element))),
      h("div", { class: "split" },
        h("section", {}, h("h2", {}, t(both("Error by distance", "误差随距离的变化"))), far.element),
        h("section", {}, h("h2", {}, t(both("Models and their layout", "各模型的布局"))), models)),
      h("section", {}, h("h2", {}, t(both("What posenc convert does to a checkpoint", "posenc convert 怎样转换权重"))), rows));
    let data_: Data | null = null;
    let before = "";

    return (data, state) => {
      const omega = array(data, "omega").values;
      pairs = omega.length;
      const d = 2 * pairs;
      const pair = Math.min(number(state, "pair"), pairs - 1);
      const [m, n] = [number(state, "m"), number(state, "n")];
      const second = state["member"] === "y" ? 1 : 0;
      const row = state["row"] as Layout;
      const weights = state["weights"] as Layout;
      const other: Layout = weights === "half" ? "interleaved" : "half";
      const place = (layout: Layout, i: number, member: number) => array(data, layout).values[2 * i + member]!;
      play.draw({ ...state, pair });
      switches.draw(state);
      drawn.draw(data, weights, other, row, pair, second);

      const [right, got, error] = [array(data, "right"), array(data, "got"), array(data, "difference")];
      const worst = largest(error);
      const wrong = worst > WRONG_FROM;
      verdict.className = `verdict ${wrong ? "bad" : "good"}`;
      verdict.dataset["value"] = String(worst);
      fill(verdict, h("b", {}, wrong ? t(both("⚠ Wrong scores. ", "⚠ 分数错了。")) : t(both("✓ The same scores. ", "✓ 分数相同。"))), wrong
        ? t(both(`The largest error is ${shown(worst)}; the largest correct score is ${shown(largest(right))}. No error is raised, because the shapes match.`,
          `最大误差 ${shown(worst)}；正确分数的最大值是 ${shown(largest(right))}。形状一致，所以不会报错。`))
        : t(both(`The largest difference is ${shown(worst)}.`, `最大差异 ${shown(worst)}。`)));
      gotMap.draw({ numbers: got, cursor: [m, n], limit: largest(right) });
      errorMap.draw({ numbers: error, cursor: [m, n], limit: largest(right) });
      const distances = Float64Array.from(array(data, "by_distance").values, (_, distance) => distance);
      far.draw({ cursor: Math.abs(m - n), yFrom: 0, yTo: Math.max(1.6, ...array(data, "by_distance").values), series: [
        { name: t(both("64 random heads", "64 个随机的头")), x: distances, y: array(data, "by_distance").values, colour: "var(--line-2)", dots: true }] });
      if (data_ !== data) {
        data_ = data;
        drawRows(rows, stage, data, weights, other);
        drawModels(models, stage, data);
      }

      const channel = place(row, pair, second);
      const partner = place(row, pair, 1 - second);
      const query = array(data, "query").values.subarray(m * d, (m + 1) * d);
      const [x, y] = [query[place(weights, pair, 0)]!, query[place(weights, pair, 1)]!];
      const turned = array(data, "turned").values[m * d + place(weights, pair, second)]!;
      const angle = () => [put(m, "position"), " · ", put(shown(omega[pair]!, 6), "channel")];
      const term = (value: number) => put(value < 0 ? `(${shown(value)})` : shown(value));
      const there = row === "half" ? [put(channel, "channel"), channel < pairs ? " + " : " − ", put(pairs)] : [put(channel, "channel"),
        channel % 2 ? " − 1" : " + 1"];
      refill(stage.formula, formula(
        [t(both(`${row}: channel `, `${t(CALLED[row])}：通道 `)), put(channel, "channel"), ` ${t(both("is", "是"))} `, v(second ? "y" : "x"),
          sub(put(pair, "channel")), t(both("; its partner is ", "，与它成对的是 ")),
          ...there, " = ", h("output", { "data-role": "partner", "data-value": partner }, String(partner)),
          t(both(`; in ${row === "half" ? "interleaved" : "half"} it is channel `, `；换成${t(CALLED[row === "half" ? "interleaved" : "half"])}是通道 `)),
          h("output", { "data-role": "moved-to", "data-value": place(row === "half" ? "interleaved" : "half", pair, second) },
            String(place(row === "half" ? "interleaved" : "half", pair, second)))],
        [v("ω"), sub(put(pair, "channel")), " = ", put(shown(state["base"] as number, 0)), sup("−2·", put(pair, "channel"), "/", put(d)), " = ",
          h("output", { "data-role": "omega", "data-value": omega[pair]! }, shown(omega[pair]!, 6))],
        second
          ? [v("y"), "′ = ", v("y"), " cos ", v("mω"), " + ", v("x"), " sin ", v("mω"), " = ", term(y), " · cos(", ...angle(), ") + ", term(x), " · sin(",
            ...angle(), ") = ", h("output", { "data-role": "turned", "data-value": turned }, shown(turned, 6))]
          : [v("x"), "′ = ", v("x"), " cos ", v("mω"), " − ", v("y"), " sin ", v("mω"), " = ", term(x), " · cos(", ...angle(), ") − ", term(y), " · sin(",
            ...angle(), ") = ", h("output", { "data-role": "turned", "data-value": turned }, shown(turned, 6))],
        [t(both("score of ", "分数（")), v("m"), " = ", put(m, "position"), ", ", v("n"), " = ", put(n, "position"), t(both(": right ", "）：正确 ")),
          put(shown(at(right, m, n), 6)), t(both(", got ", "，所得 ")),
          h("output", { "data-role": "got", "data-value": at(got, m, n) }, shown(at(got, m, n), 6))],
      ));
      const cell = `${m} ${n}`;
      if (before && before !== cell) stage.announce(t(both(`m = ${m}, n = ${n}: right ${shown(at(right, m, n), 6)}, got ${shown(at(got, m, n), 6)}`, `m = ${m}，n = ${n}：正确 ${shown(at(right, m, n), 6)}，所得 ${shown(at(got, m, n), 6)}`)));
      else stage.announce(`${row}, ${t(both("channel", "通道"))} ${channel}, ${t(both("partner", "同对通道"))} ${partner}. ${verdict.textContent}`);
      before = cell;
      stage.code(`\n${row}[${pair}]  # ${place(row, pair, 0)}, ${place(row, pair, 1)}\ndifference[${m}, ${n}]  # ${at(error, m, n)}`);
    };
  },
};

function at({ values, shape }: Numbers, row: number, column: number): number {
  return values[row * shape[1]! + column]!;
}

function largest({ values }: Numbers): number {
  let most = 0;
  for (const value of values) most = Math.max(most, Math.abs(value));
  return most;
}

interface Channels {
  element: HTMLElement;
  draw(data: Data, source: Layout, target: Layout, row: Layout, pair: number, second: number): void;
}

/** Two rows of channels, the source above, with an arrow from each channel to its place in the other layout. */
function channels(stage: Stage, pick: (row: Layout, pair: number, member: "x" | "y") => void): Channels {
  const { t } = stage;
  const picture = h("div", { class: "channels scroll", tabindex: 0, role: "application", "aria-roledescription": t(both("drawing", "图")),
    "aria-label": t(both("Channels of both layouts. Left and right move along a row, up and down change the row.", "两种布局的通道。左右方向键沿行移动，上下方向键换行。")) });
  const numbers = h("div", {});
  let last: Parameters<Channels["draw"]> | null = null;
  let seen = -1;
  let room = 0; // measured when it changes: to ask for it at every move costs a layout of the page

  function draw(...asked: Parameters<Channels["draw"]>): void {
    last = asked;
    const [data, source, target, row, pair, second] = asked;
    const from = array(data, "permutation").values;
    const d = from.length;
    const cell = Math.min(Math.max(Math.floor(((room ||= picture.clientWidth) - 2) / d), NARROWEST), 64);
    const tall = 40;
    const [top, bottom] = [50, 222];
    const [width, height] = [cell * d + 2, bottom + tall + 48];
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
    const middle = (channel: number) => 1 + (channel + 0.5) * cell;
    const of = (layout: Layout) => members(array(data, layout));
    const front: SVGElement[] = [];
    for (let channel = 0; channel < d; channel++) {
      const begin = from[channel]!;
      const [i] = of(target)[channel]!;
      const [x0, x1, half] = [middle(begin), middle(channel), (top + tall + bottom) / 2];
      const curve = s("path", { class: i === pair ? "move chosen" : "move", d: `M${x0} ${top + tall + 2}C${x0} ${half} ${x1} ${half} ${x1} ${bottom - 9}` });
      const tip = s("path", { class: i === pair ? "tip chosen" : "tip", d: `M${x1} ${bottom - 2}l-5 -9h10z` });
      for (const one of [curve, tip]) one.style.setProperty("--k", ordered(i, d / 2));
      if (i === pair) front.push(curve, tip);
      else svg.append(curve, tip);
    }
    svg.append(...front);
    for (const [layout, y, side] of [[source, top, -1], [target, bottom, 1]] as const) {
      svg.append(s("text", { class: "layout-name", x: 2, y: side < 0 ? 13 : height - 4 }, t(CALLED[layout])));
      const ends: number[] = [];
      of(layout).forEach(([i, member], channel) => {
        const mine = i === pair;
        if (mine) ends.push(middle(channel));
        const box = s("g", { class: `channel${mine ? " chosen" : ""}${mine && member === second && layout === row ? " current" : ""}`, "data-row": layout,
          "data-channel": channel, "data-pair": i, "data-member": member ? "y" : "x" },
          s("rect", { x: middle(channel) - cell / 2 + 1.5, y, width: cell - 3, height: tall, rx: 6 }),
          s("text", { class: "member", x: middle(channel), y: y + 17, "text-anchor": "middle" }, `${member ? "y" : "x"}${below(i)}`),
          s("text", { class: "speed", x: middle(channel), y: y + 33, "text-anchor": "middle" }, `ω${below(i)}`),
          s("text", { class: "index", x: middle(channel), y: side < 0 ? y - 5 : y + tall + 15, "text-anchor": "middle" }, String(channel)));
        box.style.setProperty("--k", ordered(i, d / 2));
        svg.append(box);
      });
      const [a, b] = [ends[0]!, ends[1]!];
      const out = side < 0 ? y - 24 : y + tall + 24;
      const bracket = s("path", { class: "bracket", d: `M${a} ${out - 4 * side}V${out}H${b}V${out - 4 * side}` });
      bracket.style.setProperty("--k", ordered(pair, d / 2));
      svg.append(bracket);
    }
    refill(picture, svg);
    const here = middle(array(data, row).values[2 * pair + second]!);
    if (here !== seen) picture.scrollLeft = Math.min(Math.max(picture.scrollLeft, here + cell - room), here - cell); // what is chosen is seen
    seen = here;
    const omega = array(data, "omega").values;
    refill(numbers, plainTable(t(both("Pairs and their channels", "通道对")),
      [t(both("pair", "通道对")), t(CALLED.half), t(CALLED.interleaved), "ω", t(both("wavelength", "波长"))],
      [...omega].map((speed, i) => [String(i),
        ...(["half", "interleaved"] as const).map((layout) => `${array(data, layout).values[2 * i]}, ${array(data, layout).values[2 * i + 1]}`), speed,
        (2 * Math.PI) / speed])));
  }
  picture.addEventListener("click", (event) => {
    const { row, pair, member } = ((event.target as Element).closest("[data-channel]") as SVGElement | null)?.dataset ?? {};
    if (row) pick(row as Layout, Number(pair), member as "x" | "y");
  });
  picture.addEventListener("keydown", (event) => {
    if (!last || event.ctrlKey || event.metaKey || event.altKey) return;
    const [data, source, target, row, pair, second] = last;
    const places = members(array(data, row));
    const now = array(data, row).values[2 * pair + second]!;
    const end = places.length - 1;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: end, ArrowUp: now, ArrowDown: now }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      pick(event.key === "ArrowUp" ? source : target, pair, second ? "y" : "x");
      return;
    }
    const [i, member] = places[Math.min(Math.max(to, 0), end)]!;
    pick(row, i, member ? "y" : "x");
  });
  const watch = new ResizeObserver(() => {
    room = picture.clientWidth;
    if (last) draw(...last);
  });
  watch.observe(picture);
  stage.leaving(() => watch.disconnect());
  return { element: h("div", { class: "drawn" }, picture, folded(t(both("Numbers of this drawing", "这幅图的数值")), numbers)), draw };
}

function below(number: number): string {
  return String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]!);
}

/** For each channel its pair, and 0 or 1: x or y. */
function members({ values }: Numbers): [number, number][] {
  const found: [number, number][] = [];
  values.forEach((channel: number, index: number) => (found[channel] = [index >> 1, index % 2]));
  return found;
}

/** Rows of W_q of two heads before and after, a line from each to where it goes. */
function drawRows(place: HTMLElement, stage: Stage, data: Data, source: Layout, target: Layout): void {
  const { t } = stage;
  const from = array(data, "rows").values;
  const [before, after] = [members(array(data, source)), members(array(data, target))];
  const d = before.length;
  const tall = Math.min(Math.max(260 / from.length, 5), 14);
  const gap = 10;
  const y = (row: number) => 24 + row * tall + (row >= d ? gap : 0);
  const svg = s("svg", { viewBox: `0 0 300 ${y(2 * d) + 4}`, role: "img",
    "aria-label": t(both("Rows of W_q of two heads, before and after", "两个头的 W_q，转换前与转换后的行")) },
    s("text", { x: 62, y: 14, "text-anchor": "middle" }, `W_q, ${source}`), s("text", { x: 238, y: 14, "text-anchor": "middle" }, `W_q, ${target}`));
  from.forEach((begin: number, row: number) => {
    const [i] = after[row % d]!;
    const line = s("path",
      { class: "row-move", d: `M108 ${y(begin) + tall / 2}C150 ${y(begin) + tall / 2} 150 ${y(row) + tall / 2} 192 ${y(row) + tall / 2}` });
    const [left, right] = [[16, begin, before[begin % d]!], [192, row, after[row % d]!]].map(([x, at, [pair, member]]: any) =>
      s("rect", { class: member ? "weights second" : "weights", x, y: y(at) + 0.5, width: 92, height: Math.max(tall - 1, 3), rx: 2, "data-pair": pair }));
    for (const one of [line, left!, right!]) one.style.setProperty("--k", ordered(i, d / 2));
    svg.append(line, left!, right!);
  });
  for (const head of [0, 1]) svg.append(s("text", { class: "head-name",
    transform: `translate(11 ${(y(head * d) + y(head * d + d - 1) + tall) / 2}) rotate(-90)`, "text-anchor": "middle" }, `${t(both("head", "头"))} ${head}`));
  const off = array(data, "converted_matrices").values[0]!;
  fill(place, svg, h("div", {},
    h("p", {}, t(both("The rows of W_q and W_k are permuted within each head, with their biases and norms. No number changes; W_v and W_o stay the same. The scores of random tokens then differ by ",
      "W_q 与 W_k 的行在每个头内部重排，偏置和归一化参数同样重排。数值不变，W_v、W_o 不变。随机词元的分数因此只差 ")),
    h("b", { "data-role": "matrix-error", "data-value": off }, shown(off)), t(both(" of the largest.", "（相对于最大的分数）。"))),
    h("pre", { tabindex: 0, role: "region", "aria-label": t(both("Command", "命令")) }, h("code", {}, `posenc convert model model-${target} --to ${target}`)),
    folded(t(both("Numbers of this drawing", "这幅图的数值")), plainTable(t(both("Where each row comes from", "每一行从哪里来")),
      [`${t(both("row in", "行，"))} ${target}`, `${t(both("row in", "行，"))} ${source}`],
      [...from].map((begin, row) => [String(row), String(begin)])))));
}

function drawModels(place: HTMLElement, stage: Stage, data: Data): void {
  const { t } = stage;
  const named = (layout: Layout) => (data.facts["models"] as [string,
    Layout][]).filter(([, its]) => its === layout).map(([name]) => name).join(t(both(", ", "、")));
  refill(place, plainTable(t(both("By the code that each family is read with", "按各模型家族的代码")), [t(both("layout", "布局")), t(both("models", "模型"))], [
    [t(CALLED.half), named("half")],
    [t(CALLED.interleaved), `${named("interleaved")}${t(both("; Llama 1–3 as their authors published them", "；Llama 1–3 作者最初发布的权重"))}`]]),
    h("p", { class: "hint" }, t(both("Llama is in both rows: its authors' files use interleaved, the files on Hugging Face were permuted to half.",
      "Llama 两边都有：作者的文件是相邻交错的，Hugging Face 上的文件已换成前后两半。"))));
}
