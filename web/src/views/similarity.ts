// Scores by distance. The curves are Python's; the page turns the same vectors to absolute positions itself and finds them again.
//
//   on the line   ▁▃█▃▁       the words of a sentence at their distances from one of them, before it and after it
//   by distance   ╭╮          one curve for every p
//   by position   ╭╮  ╭╮  ╭╮  one hump for each p: dragging p moves the hump, and nothing else
//   by pair       ∿──────     what each pair adds at the distance of the cursor

import { array, row, type Data } from "../data";
import { type Child, fill, h, refill } from "../dom";
import { lineChart, type Series } from "../parts/chart";
import { formula, put, sub, sup, v } from "../parts/formula";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./similarity.css";

const OWN = { k: own.whole(3, -512, 512), p: own.whole(96, 0, 1536), revealed: own.yes(false), said: own.choice("film", "film", "car"), word: own.whole(3, 0, 8) };
/** The sentences of the founding notes, on the line of distances. */
const SENTENCES: Record<string, Words> = {
  film: both("this film is boring but the acting is brilliant", "这部 电影 很 无聊 但 演员 表演 精彩"), car: both("the red car is parked outside the building", "红色的 汽车 停在 建筑物 外面"),
};
const NEAR = 8; // what is shown before the reader has answered

const CURVE = { sinusoidal: "similarity", rope: "score", random: "one" } as const;
type Kind = keyof typeof CURVE;
const COLOURS = ["var(--position)", "var(--line-4)", "var(--line-5)"];
const TERM = both("its term", "该项");
const NAMES: Record<string, Words> = {
  similarity: both("PE(p)·PE(p+k)", "PE(p)·PE(p+k)"),
  score: both("RoPE score, q = k = ones", "RoPE 分数，q = k = 全 1"),
  one: both("one pair of random q, k", "一对随机的 q、k"),
  bound: both("bound on RoPE's score", "RoPE 分数的上界"),
  independent: both("random q, k: mean ± spread", "随机的 q、k：均值 ± 标准差"),
  equal: both("q = k: mean", "q = k：均值"),
};

export const view: View = {
  name: "similarity",
  title: both("Near and far", "近与远"),
  idea: both(
    "The product of two sinusoidal rows, or of q and k rotated by RoPE, depends only on the distance of their positions. It mostly falls with distance, but not at every step, and for independent random vectors it does not fall.",
    "正弦编码表两行的乘积，或经 RoPE 旋转的 q 与 k 的乘积，只取决于两个位置之间的距离。它大体上随距离下降，但并非每一步都下降；对互相独立的随机向量，它不下降。",
  ),
  notice: [
    both(
      "Drag p: its peak moves along the positions, and the curve by distance does not change. All positions have the same curve.",
      "拖动 p：峰沿着位置轴移动，按距离画出的曲线不变。所有位置的曲线相同。",
    ),
    both(
      "The sinusoid's curve is the same for k and −k, so this product does not show which of the two positions comes first.",
      "正弦编码的曲线关于 k 与 −k 对称，所以只看这个乘积，分不出哪个位置在前。",
    ),
    both(
      "It is not monotone. For base 10000 the first rise comes from 5 to 6 with d = 64, from 11 to 12 with d = 128, from 24 to 25 with d = 256; RoPE's bound with d = 128 first rises from 18 to 19.",
      "它并不单调。底数为 10000 时，第一次回升出现在：d = 64 时距离 5→6，d = 128 时 11→12，d = 256 时 24→25；d = 128 时 RoPE 的上界在 18→19 首次回升。",
    ),
    both(
      "“RoPE decays with distance” holds for similar vectors: the mean for q = k falls. For independent random q and k, the spread is the same at every distance.",
      "“RoPE 随距离衰减”对相似的向量成立：q = k 时均值下降。对互相独立的随机 q、k，各个距离上的离散程度相同。",
    ),
  ],
  papers: [
    { text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" },
    { text: "Su et al. 2021, section 3.4.3", href: "https://arxiv.org/abs/2104.09864" },
  ],
  own: OWN,
  controls: [
    { name: "kind", label: both("score of", "分数"), choices: {
      sinusoidal: both("two sinusoidal rows", "正弦编码的两行"),
      rope: both("RoPE, all ones, and its bound", "RoPE：全 1 向量与上界"),
      random: both("RoPE, random vectors", "RoPE：随机向量"),
    } },
    { name: "d", label: both("channels", "通道数") },
    { name: "base", label: both("base", "底数"), scale: "log" },
    { name: "reach", label: both("farthest distance", "最远距离"), scale: "log" },
    { name: "said", label: both("sentence", "句子"), choices: SENTENCES },
  ],
  styles,
  build(stage) {
    const t = stage.t;
    const question = predict(stage, {
      question: both("Two positions move apart, one step at a time. Does their score fall with every step?", "两个位置一步一步地远离。它们的分数是不是每一步都在下降？"),
      choices: [both("At every step", "每一步都下降"), both("On the whole, with rises between", "总体下降，中途有回升"), both("It has no trend", "没有趋势")],
      right: 1,
      because: both(
        "With d = 128 and base 10000 it rises for the first time from distance 11 to 12, and beyond that it oscillates around a falling mean.",
        "d = 128、底数 10000 时，从距离 11 到 12 第一次回升；更远处，它围绕不断下降的均值振荡。",
      ),
    }, () => stage.set({ revealed: true }));
    let lags: ArrayLike<number> = [];
    const byDistance = lineChart(stage, {
      label: both("Score by distance", "分数随距离的变化"), x: both("distance k", "距离 k"), y: both("relative score", "相对分数"), height: 220,
      pick: (index) => stage.set({ k: lags[index]! }),
    });
    const byPosition = lineChart(stage, {
      label: both("Score by position, for three p", "三个 p 的分数随位置的变化"), x: both("position", "位置"),
      y: both("relative score with the vector at p", "与 p 处向量的相对分数"), height: 240, pick: (p) => stage.set({ p }),
    });
    const byPair = lineChart(stage, {
      label: both("What each pair adds at distance k", "距离 k 处每一对通道的贡献"), x: both("pair i, fast to slow", "通道对 i，由快到慢"), y: TERM, height: 240,
    });
    const waiting = h("p", { class: "hint" }, t(both(
      `Distances up to ${NEAR} so far. Answer the question to see the others.`, `这里只画到距离 ${NEAR}。回答下面的问题，就能看到更远处。`,
    )));
    const below = h("p", { class: "below" });
    const same = h("p", { class: "same" });
    const sliding = h("div", { class: "split sliding" },
      h("div", {}, h("h2", {}, t(both("Drag p: the curve moves along, unchanged", "拖动 p：曲线整条平移，形状不变"))), byPosition.element, same),
      h("div", {}, h("h2", {}, t(both("Pair by pair at the cursor", "光标处逐对来看"))), byPair.element));
    const onTheLine = h("div", {
      class: "line-of-words", tabindex: 0, role: "application", "aria-roledescription": t(both("sentence", "句子")),
      "aria-label": t(both("A sentence on the line of distances. Left and right choose the word that looks.", "距离轴上的一句话。左右方向键选择作查询的词。")),
      keydown: (event: KeyboardEvent) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        stage.set({ word: Math.min(Math.max(lookingAt(stage.state()) + by, 0), wordsOf(stage.state()).length - 1) });
      },
    });
    stage.root.append(onTheLine, byDistance.element, waiting, question, below, sliding);
    let own_: Turned | null = null;
    let before: { k: number; p: number; word: number; data: Data } | null = null;
    const wordsOf = (state: State) => t(SENTENCES[state["said"] as string]!).split(" ");
    const lookingAt = (state: State) => Math.min(number(state, "word"), wordsOf(state).length - 1);

    return (data, state) => {
      const kind = state["kind"] as Kind;
      const [d, reach] = [number(state, "d"), number(state, "reach")];
      const last = 3 * reach;
      const k = Math.min(Math.max(number(state, "k"), -reach), reach);
      const p = Math.min(number(state, "p"), last);
      const norm = kind === "sinusoidal" ? d / 2 : d;
      const curve = array(data, CURVE[kind]).values;
      const open = state["revealed"] === true || kind !== "sinusoidal" || Math.abs(k) > NEAR;
      question.hidden = kind === "random";
      waiting.hidden = open;
      below.hidden = sliding.hidden = !open;
      const [from, to] = open ? [0, 2 * reach + 1] : [reach - NEAR, reach + NEAR + 1];
      lags = array(data, "lags").values.subarray(from, to);

      const [words, word] = [wordsOf(state), lookingAt(state)];
      drawLine(stage, onTheLine, words, word, k, (lag) => curve[lag + reach]! / norm);

      // The page's own: the query at every position, the key at p and at two others.
      if (own_?.data !== data) own_ = turned(data, last);
      const places = [p, Math.round(last / 6), Math.round((last * 5) / 6)];
      const humps = places.map((place, index) => ({ place, colour: COLOURS[index]!, scores: own_!.scores(place) }));
      const [worst, count] = compared(humps, curve, reach);
      if (before?.p !== p || before.data !== data) stage.checked(worst, count);

      const within = (name: string, by = norm) => Array.from(array(data, name).values.subarray(from, to), (value) => value / by);
      const series: Series[] = [];
      if (kind === "random") {
        const [middle, spread] = [within("independent"), within("spread")];
        const [low, high] = [middle.map((value, index) => value - spread[index]!), middle.map((value, index) => value + spread[index]!)];
        series.push({ name: t(NAMES["equal"]!), x: lags, y: within("equal"), colour: "var(--line-1)" });
        series.push({ name: t(NAMES["independent"]!), x: lags, y: middle, low, high, colour: "var(--line-2)" });
      }
      series.push({ name: t(NAMES[CURVE[kind]]!), x: lags, y: within(CURVE[kind]), colour: kind === "random" ? "var(--line-6)" : "var(--line-1)" });
      if (kind === "rope") series.push({ name: t(NAMES["bound"]!), x: lags, y: within("bound", array(data, "bound").values[reach]!), colour: "var(--line-2)" });
      if (open)
        for (const { place, colour, scores } of [...humps].reverse())
          series.push({ name: `p = ${place}`, x: lags, y: Array.from(lags, (lag) => (scores[place + lag] ?? NaN) / norm), colour, dashed: true });
      const rises = Object.entries(data.facts["rises"] as Record<string, number | null>);
      const mark = (rise: number) => (rises.length === 1 ? `${rise} → ${rise + 1}` : "");
      const marks = rises.flatMap(([, rise]) => (rise === null ? [] : [{ x: rise, word: mark(rise) }]));
      byDistance.draw({ series, cursor: k + reach - from, marks: open ? marks : [] });

      if (open) {
        const positions = Array.from({ length: last + 1 }, (_, q) => q);
        byPosition.draw({
          series: humps.map(({ place, colour, scores }) => ({ name: `p = ${place}`, x: positions, y: Array.from(scores, (value) => value / norm), colour })),
          cursor: p, marks: p + k >= 0 && p + k <= last ? [{ x: p + k, word: "p + k" }] : [],
        });
        byPair.draw({ series: [{ name: t(TERM), x: positions.slice(0, d / 2), y: own_.terms(k), colour: "var(--channel)" }] });
        fill(below, ...(kind === "random" ? spreads(stage, array(data, "spread").values, reach, d) : firstRises(stage, rises, reach)));
        refill(same, t(both("Largest difference between the three curves and that of the lag alone: ", "三条曲线与只按位置差算出的曲线之间的最大差异：")),
          h("b", { "data-role": "apart", "data-value": worst }, shown(worst)));
      }

      const value = curve[k + reach]!;
      refill(stage.formula, formula(...lines(stage, kind, { k, p, value, norm, data, reach })));
      if (before && before.p !== p) stage.announce(`p = ${p}: ${t(both("the curve stays", "曲线不变"))}, ${shown(worst)}`);
      else if (before && before.k !== k) stage.announce(`${t(both("distance", "距离"))} ${k}: ${shown(value / norm)}`);
      else if (before && before.word !== word) stage.announce(`${words[word]}: ${t(both("one position away", "相隔一个位置"))} ${shown(curve[1 + reach]! / norm, 2)}`);
      before = { k, p, word, data };
      const table = `table = posenc.sinusoidal_table(${Math.max(p, p + k) + 1}, ${d}, base=${state["base"]}, dtype=torch.float64)`;
      const rows = kind === "sinusoidal" && p + k >= 0 ? `\n${table}\n(table[${p}] @ table[${p + k}]).item()` : "";
      stage.code(`${CURVE[kind]}[lags == ${k}].item()  # ${value}${rows}`);
    };
  },
};

/** Each word's score with the chosen one as a bar above it, at its distance: before it to the left, after it to the right. */
function drawLine(stage: Stage, place: HTMLElement, words: string[], chosen: number, k: number, score: (lag: number) => number): void {
  const { t } = stage;
  const scores = words.map((_, index) => score(index - chosen));
  const most = Math.max(...scores.map(Math.abs));
  if (place.childElementCount !== words.length) fill(place, ...words.map((_, index) => h("div", { click: () => stage.set({ word: index }) }, h("span", { class: "bar-room" }, h("i", {})), h("output", {}), h("b", {}), h("small", {}))));
  [...place.children].forEach((column, index) => {
    const [bar, output, word, small] = [column.querySelector("i")!, column.querySelector("output")!, column.querySelector("b")!, column.querySelector("small")!];
    const lag = index - chosen;
    column.className = lag === 0 ? "asking" : lag < 0 ? "before" : "after";
    column.classList.toggle("here", lag === k);
    bar.style.height = `${(Math.abs(scores[index]!) / most) * 100}%`;
    bar.classList.toggle("minus", scores[index]! < 0);
    output.dataset["value"] = String(scores[index]);
    output.textContent = shown(scores[index]!, 2);
    word.textContent = words[index]!;
    small.textContent = lag === 0 ? t(both("looks", "查询")) : lag < 0 ? t(both(`${-lag} before`, `前 ${-lag}`)) : t(both(`${lag} after`, `后 ${lag}`));
  });
}

/** The largest difference between the page's scores and Python's curve, over all lags that both have. */
function compared(humps: { place: number; scores: Float64Array }[], curve: ArrayLike<number>, reach: number): [number, number] {
  let [worst, count] = [0, 0];
  for (const { place, scores } of humps)
    for (let lag = Math.max(-reach, -place); lag <= Math.min(reach, scores.length - 1 - place); lag++, count++)
      worst = Math.max(worst, Math.abs(scores[place + lag]! - curve[lag + reach]!));
  return [worst, count];
}

function firstRises(stage: Stage, rises: [string, number | null][], reach: number): Child[] {
  const none = stage.t(both(`none up to ${reach}`, `到 ${reach} 为止没有`));
  return [stage.t(both("First rise:", "首次回升：")), ...rises.map(([name, rise]) => {
    const called = stage.t(NAMES[name]!);
    if (rise === null) return h("span", {}, `${called}: ${none}`);
    const go = () => stage.set({ k: rise + 1 });
    return h("button", { type: "button", "data-role": `rise-${name}`, "data-value": rise, click: go }, `${called}: ${rise} → ${rise + 1}`);
  })];
}

function spreads(stage: Stage, spread: ArrayLike<number>, reach: number, d: number): Child[] {
  const words = both(`Spread ÷ square root of d, at distance 0 and ${reach}:`, `标准差与 d 的平方根之比，距离 0 与 ${reach} 处：`);
  return [stage.t(words), ...[0, reach].map((lag) => h("b", {}, shown(spread[lag + reach]! / Math.sqrt(d), 2)))];
}

interface Told {
  k: number;
  p: number;
  value: number;
  norm: number;
  data: Data;
  reach: number;
}

/** The formula in letters, then with the numbers. */
function lines(stage: Stage, kind: Kind, { k, p, value, norm, data, reach }: Told): Child[][] {
  const omega = array(data, "omega").values;
  const at = (name: string, lag = k) => array(data, name).values[lag + reach]!;
  const result = (role: string, number_: number) => h("output", { "data-role": role, "data-value": number_ }, shown(number_));
  const share = (whole: number, by: number): Child[] => [" = ", shown(whole / by), " · ", put(shown(by, by % 1 ? 2 : 0))];
  const cosine = (i: number): Child[] => ["cos(", put(k, "position"), "·", put(shown(omega[i]!), "channel"), ")"];
  const spelt = omega.length > 3 ? [cosine(0), cosine(1), ["…"], cosine(omega.length - 1)] : Array.from(omega, (_, i) => cosine(i));
  const sum = spelt.flatMap((one, index): Child[] => (index ? [" + ", ...one] : one));
  const over = sub("i < ", v("d"), "/2");
  const letters: Child[] = ["Σ", over, " cos(", v("k"), "·", v("ω"), sub("i"), "),  ", v("ω"), sub("i"), " = base", sup("−2i/d")];
  if (kind === "sinusoidal")
    return [
      ["PE(", v("p"), ")·PE(", v("p"), " + ", v("k"), ") = ", ...letters],
      ["PE(", put(p, "position"), ")·PE(", put(p + k, "position"), ") = ", ...sum, " = ", result("value", value), ...share(value, norm)],
    ];
  if (kind === "rope")
    return [
      [v("q̂"), "·", v("k̂"), " = 2 ", ...letters],
      ["= 2 [", ...sum, "] = ", result("value", value), ...share(value, norm)],
      [stage.t(both("bound: ", "上界：")), "(2/", v("d"), ") Σ", sub("i ≤ d/2"), " |Σ", sub("j < i"), " e", sup("ı k ω", sub("j")), "| = ",
        result("bound", at("bound")), ...share(at("bound"), at("bound", 0))],
    ];
  const tilde = (letter: string, ...more: Child[]) => [v(letter), sub("i"), ...more];
  const rows = data.facts["rows"] as number;
  return [
    [v("q̂"), "·", v("k̂"), " = Re Σ", over, " ", ...tilde("q̃"), " ", ...tilde("k̃", sup("*")), " e", sup("ı k ω", sub("i")), ",  ",
      ...tilde("q̃"), " = ", v("q"), sub("2i"), " + ı ", v("q"), sub("2i+1")],
    [stage.t(both(`over ${rows} pairs at distance `, `${rows} 组向量，距离 `)), put(k, "position"), stage.t(both(": independent ", "：互相独立 ")),
      result("value", at("independent")), " ± ", result("spread", at("spread")), stage.t(both(";  ", "；")), v("q"), " = ", v("k"), "  ",
      result("equal", at("equal")), ...share(at("equal"), norm)],
  ];
}

interface Turned {
  data: Data;
  /** The query at every position with the key at p. */
  scores(p: number): Float64Array;
  /** What each pair adds at distance k. */
  terms(k: number): number[];
}

/** Python's two vectors, turned by the page to any position. */
function turned(data: Data, last: number): Turned {
  const [query, key, omega] = [row(array(data, "vectors"), 0), row(array(data, "vectors"), 1), array(data, "omega").values];
  const d = query.length;
  const at = (vector: ArrayLike<number>, position: number) => {
    const there = new Float64Array(d);
    for (let i = 0; i < d / 2; i++) {
      const [cos, sin] = [Math.cos(position * omega[i]!), Math.sin(position * omega[i]!)];
      const [x, y] = [vector[2 * i]!, vector[2 * i + 1]!];
      there[2 * i] = x * cos - y * sin;
      there[2 * i + 1] = x * sin + y * cos;
    }
    return there;
  };
  const queries = Array.from({ length: last + 1 }, (_, position) => at(query, position));
  return {
    data,
    scores(p) {
      const there = at(key, p);
      return Float64Array.from(queries, (one) => one.reduce((sum, value, c) => sum + value * there[c]!, 0));
    },
    terms(k) {
      const there = at(query, k);
      return Array.from(omega, (_, i) => there[2 * i]! * key[2 * i]! + there[2 * i + 1]! * key[2 * i + 1]!);
    },
  };
}
