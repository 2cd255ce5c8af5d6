// Scores by distance. The curves are Python's; the page turns the same vectors to absolute positions itself and finds them again.
//
//   by distance   ╭╮          one curve for every p
//   by position   ╭╮  ╭╮  ╭╮  one hump for each p: dragging p moves the hump, and nothing else
//   by pair       ∿──────     what each pair adds at the distance of the cursor

import { array, row, type Data } from "../data";
import { fill, h, type Child } from "../dom";
import { lineChart, type Series } from "../parts/chart";
import { formula, put, sub, sup, v } from "../parts/formula";
import { predict } from "../parts/predict";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./similarity.css";

const OWN = { k: own.whole(6, -512, 512), p: own.whole(96, 0, 1536), revealed: own.yes(false) };
const NEAR = 8; // what is shown before the reader has answered

const CURVE = { sinusoidal: "similarity", rope: "score", random: "one" } as const;
const NAMES: Record<string, Words> = {
  similarity: both("PE(p)·PE(p+k)", "PE(p)·PE(p+k)"),
  score: both("RoPE score, q = k = ones", "RoPE 得分，q = k = 全 1"),
  one: both("one pair of random q, k", "一对随机的 q、k"),
  bound: both("bound on RoPE's score", "RoPE 得分的上界"),
  independent: both("random q, k: mean ± spread", "随机的 q、k：均值 ± 标准差"),
  equal: both("q = k: mean", "q = k：均值"),
};

export const similarity: View = {
  name: "similarity",
  title: both("Near and far", "近与远"),
  idea: both(
    "Multiply two rows of the sinusoidal table, or a query and a key turned by RoPE, and the result depends on how far apart they stand, not on where they stand. On the whole it falls with distance, but not at every step, and for unrelated vectors it does not fall at all.",
    "把正弦编码表的两行相乘，或者把经 RoPE 旋转后的 q 与 k 相乘，结果只取决于两者相距多远，与它们各自站在哪里无关。总体上它随距离下降，但并非步步下降；如果两个向量互不相关，则根本不下降。",
  ),
  notice: [
    both("Drag p: its hump travels along the positions, and the curve over the distance stays where it is. All positions share one curve.", "拖动 p：峰沿着位置轴移动，而按距离画出的曲线纹丝不动。所有位置共用同一条曲线。"),
    both("The sinusoid's curve is the same for k and −k, so this product alone does not say which of the two comes first.", "正弦编码的曲线关于 k 与 −k 对称，所以单凭这个乘积分不出谁先谁后。"),
    both("It is not monotone. For base 10000 the first rise comes from 5 to 6 with d = 64, from 11 to 12 with d = 128, from 24 to 25 with d = 256; RoPE's bound with d = 128 first rises from 18 to 19.", "它并不单调。底数为 10000 时，第一次回升出现在：d = 64 时距离 5→6，d = 128 时 11→12，d = 256 时 24→25；d = 128 时 RoPE 的上界在 18→19 首次回升。"),
    both("“RoPE decays with distance” is about like vectors: the mean for q = k falls. Independent random q and k scatter just as widely far away as near by.", "“RoPE 随距离衰减”说的是相似的向量：q = k 时均值下降；互相独立的随机 q、k，远处与近处的离散程度并无差别。"),
  ],
  papers: [
    { text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" },
    { text: "Su et al. 2021, section 3.4.3", href: "https://arxiv.org/abs/2104.09864" },
  ],
  own: OWN,
  controls: [
    { name: "kind", label: both("score of", "得分"), choices: { sinusoidal: both("two sinusoidal rows", "正弦编码的两行"), rope: both("RoPE, all ones, and its bound", "RoPE：全 1 向量与上界"), random: both("RoPE, random vectors", "RoPE：随机向量") } },
    { name: "d", label: both("channels", "通道数") },
    { name: "base", label: both("base", "底数"), scale: "log" },
    { name: "reach", label: both("farthest distance", "最远距离"), scale: "log" },
  ],
  styles,
  build(stage) {
    const question = predict(stage, {
      question: both("Two positions move apart, one step at a time. Does their score fall with every step?", "两个位置一步一步地远离。它们的得分是不是每一步都在下降？"),
      choices: [both("At every step", "每一步都下降"), both("On the whole, with rises between", "总体下降，中途有回升"), both("It has no trend", "没有趋势")],
      right: 1,
      because: both("With d = 128 and base 10000 it rises for the first time from distance 11 to 12, and farther out it goes up and down around a falling middle.", "d = 128、底数 10000 时，从距离 11 到 12 第一次回升；再往远处，它在不断下降的中线附近上下起伏。"),
    }, () => stage.set({ revealed: true }));
    let lags: ArrayLike<number> = [];
    const byDistance = lineChart(stage, {
      label: both("Score by distance", "得分随距离的变化"), x: both("distance k", "距离 k"), y: both("relative score", "相对得分"),
      pick: (index) => stage.set({ k: lags[index]! }),
    });
    const byPosition = lineChart(stage, {
      label: both("Score by position, for three p", "三个 p 的得分随位置的变化"), x: both("position", "位置"), y: both("relative score with the vector at p", "与 p 处向量的相对得分"), height: 240,
      pick: (index) => stage.set({ p: index }),
    });
    const byPair = lineChart(stage, { label: both("What each pair adds at distance k", "距离 k 处每一对通道的贡献"), x: both("pair i, fast to slow", "第 i 对通道，由快到慢"), y: both("its term", "该项"), height: 240 });
    const rises = h("p", { class: "rises" });
    const same = h("p", { class: "same", "data-role": "same" });
    const sliding = h("div", { class: "split sliding" },
      h("div", {}, h("h2", {}, stage.t(both("Drag p: the curve moves along, unchanged", "拖动 p：曲线整条平移，形状不变"))), byPosition.element, same),
      h("div", {}, h("h2", {}, stage.t(both("Pair by pair at the cursor", "光标处逐对来看"))), byPair.element));
    stage.root.append(question, byDistance.element, rises, sliding);
    let table = turnedTable();
    let before: { k: number; p: number; data: Data } | null = null;

    return (data, state) => {
      const kind = state["kind"] as keyof typeof CURVE;
      const [d, reach, base] = [number(state, "d"), number(state, "reach"), number(state, "base")];
      const norm = kind === "sinusoidal" ? d / 2 : d;
      const k = Math.min(Math.max(number(state, "k"), -reach), reach);
      const open = state["revealed"] === true || kind !== "sinusoidal" || Math.abs(k) > NEAR;
      const last = 3 * reach;
      const p = Math.min(number(state, "p"), last);
      const all = array(data, "lags").values;
      const [from, to] = open ? [0, all.length] : [reach - NEAR, reach + NEAR + 1];
      lags = all.subarray(from, to);
      const curve = array(data, CURVE[kind]).values;
      const over = (name: string, by = norm) => Array.from(array(data, name).values.subarray(from, to), (value) => value / by);
      const bound = kind === "rope" ? array(data, "bound").values : null;

      // The page's own: the query at every position, the key at p and at two others.
      table = table.data === data ? table : turnedTable(data, last);
      const places = [p, Math.round(last / 6), Math.round((last * 5) / 6)];
      const humps = places.map((place) => table.scores(place));
      let worst = 0;
      let count = 0;
      places.forEach((place, index) => {
        for (let lag = Math.max(-reach, -place); lag <= Math.min(reach, last - place); lag++, count++)
          worst = Math.max(worst, Math.abs(humps[index]![place + lag]! - curve[lag + reach]!));
      });
      if (before?.p !== p || before.data !== data) stage.checked(worst, count);

      const t = stage.t;
      const series: Series[] = [{ name: t(NAMES[CURVE[kind]]!), x: lags, y: over(CURVE[kind]), colour: kind === "random" ? "var(--line-6)" : "var(--line-1)" }];
      if (bound) series.push({ name: t(NAMES["bound"]!), x: lags, y: over("bound", bound[reach]!), colour: "var(--line-2)" });
      if (kind === "random") {
        const [middle, spread] = [over("independent"), over("spread")];
        series.unshift({ name: t(NAMES["equal"]!), x: lags, y: over("equal"), colour: "var(--line-1)" },
          { name: t(NAMES["independent"]!), x: lags, y: middle, low: middle.map((value, index) => value - spread[index]!), high: middle.map((value, index) => value + spread[index]!), colour: "var(--line-2)" });
      }
      const found = Object.entries(data.facts["rises"] as Record<string, number | null>);
      if (open) places.slice().reverse().forEach((place, index) => series.push({
        name: `p = ${place}`, x: lags, y: Array.from(lags, (lag) => (humps[2 - index]![place + lag] ?? NaN) / norm), colour: index === 2 ? "var(--position)" : index ? "var(--line-4)" : "var(--line-5)", dashed: true,
      }));
      byDistance.draw({ series, cursor: k + reach - from, marks: open ? found.flatMap(([, rise]) => (rise === null ? [] : [{ x: rise, word: found.length === 1 ? `${rise} → ${rise + 1}` : "" }])) : [] });
      question.hidden = kind === "random";
      sliding.hidden = rises.hidden = !open;
      if (open) {
        const positions = Float64Array.from({ length: last + 1 }, (_, q) => q);
        byPosition.draw({
          series: places.map((place, index) => ({ name: `p = ${place}`, x: positions, y: Array.from(humps[index]!, (value) => value / norm), colour: index === 0 ? "var(--position)" : index === 2 ? "var(--line-5)" : "var(--line-4)" })),
          cursor: p, marks: p + k >= 0 && p + k <= last ? [{ x: p + k, word: "p + k" }] : [],
        });
        byPair.draw({ series: [{ name: t(both("its term", "该项")), x: Array.from({ length: d / 2 }, (_, i) => i), y: table.terms(k), colour: "var(--channel)" }] });
        fill(rises, found.length ? t(both("First rise:", "首次回升：")) : t(both(`Spread ÷ square root of d, at distance 0 and ${reach}:`, `标准差与 d 的平方根之比，距离 0 与 ${reach} 处：`)), ...(found.length ? found.map(([name, rise]) =>
          rise === null ? h("span", {}, `${t(NAMES[name]!)}: ${t(both(`none up to ${reach}`, `到 ${reach} 为止没有`))}`)
            : h("button", { type: "button", "data-role": `rise-${name}`, "data-value": rise, click: () => stage.set({ k: rise + 1 }) }, `${t(NAMES[name]!)}: ${rise} → ${rise + 1}`))
          : [0, reach].map((lag) => { const value = array(data, "spread").values[lag + reach]! / Math.sqrt(d); return h("b", { "data-role": "spread", "data-value": value }, shown(value, 2)); })));
        fill(same, t(both("Largest difference between the three curves and Python's: ", "三条曲线与 Python 的曲线之间的最大差异：")), h("b", { "data-role": "apart", "data-value": worst }, shown(worst)));
      }

      const value = curve[k + reach]!;
      fill(stage.formula, formula(...lines(stage, kind, { k, p, d, value, norm, data, reach })));
      if (before && (before.k !== k || before.p !== p))
        stage.announce(before.p !== p ? `p = ${p}: ${t(both("the curve stays", "曲线不变"))}, ${shown(worst)}` : `${t(both("distance", "距离"))} ${k}: ${shown(value / norm)}`);
      before = { k, p, data };
      const at = `[lags == ${k}].item()  # ${value}`;
      stage.code(kind === "sinusoidal" && p + k >= 0
        ? `similarity${at}\ntable = posenc.sinusoidal_table(${Math.max(p, p + k) + 1}, ${d}, base=${base}, dtype=torch.float64)\n(table[${p}] @ table[${p + k}]).item()`
        : `${CURVE[kind]}${at}`);
    };
  },
};

interface Told {
  k: number;
  p: number;
  d: number;
  value: number;
  norm: number;
  data: Data;
  reach: number;
}

/** The formula in letters, then with the numbers. */
function lines(stage: Stage, kind: keyof typeof CURVE, { k, p, d, value, norm, data, reach }: Told): Child[][] {
  const omega = array(data, "omega").values;
  const result = (role: string, number_: number) => h("output", { "data-role": role, "data-value": number_ }, shown(number_));
  const at = (name: string) => array(data, name).values[k + reach]!;
  const cosine = (i: number): Child[] => ["cos(", put(k, "position"), "·", put(shown(omega[i]!), "channel"), ")"];
  const sum: Child[] = d <= 4 ? omega.length === 1 ? cosine(0) : [...cosine(0), " + ", ...cosine(1)] : [...cosine(0), " + ", ...cosine(1), " + … + ", ...cosine(omega.length - 1)];
  const share: Child[] = [" = ", shown(value / norm), " · ", put(norm)];
  const speeds: Child[] = [",  ", v("ω"), sub("i"), " = base", sup("−2i/d")];
  const sigma: Child[] = ["Σ", sub("i < ", v("d"), "/2"), " cos(", v("k"), "·", v("ω"), sub("i"), ")"];
  if (kind === "sinusoidal")
    return [["PE(", v("p"), ")·PE(", v("p"), " + ", v("k"), ") = ", ...sigma, ...speeds],
      ["PE(", put(p, "position"), ")·PE(", put(p + k, "position"), ") = ", ...sum, " = ", result("value", value), ...share]];
  if (kind === "rope")
    return [[v("q̂"), "·", v("k̂"), " = 2 ", ...sigma, ...speeds], ["= 2 [", ...sum, "] = ", result("value", value), ...share],
      [stage.t(both("bound: ", "上界：")), "(2/", v("d"), ") Σ", sub("i ≤ d/2"), " |Σ", sub("j < i"), " e", sup("ı k ω", sub("j")), "| = ", result("bound", at("bound")), " = ", shown(at("bound") / array(data, "bound").values[reach]!), " · ", put(shown(array(data, "bound").values[reach]!, 2))]];
  return [[v("q̂"), "·", v("k̂"), " = Re Σ", sub("i < ", v("d"), "/2"), " ", v("q̃"), sub("i"), " ", v("k̃"), sub("i"), sup("*"), " e", sup("ı k ω", sub("i")), ",  ", v("q̃"), sub("i"), " = ", v("q"), sub("2i"), " + ı ", v("q"), sub("2i+1")],
    [stage.t(both(`over ${data.facts["rows"]} pairs at distance `, `${data.facts["rows"]} 对向量，距离 `)), put(k, "position"), stage.t(both(": independent ", "：互相独立 ")), result("value", at("independent")), " ± ", result("spread", at("spread")),
      stage.t(both(";  ", "；")), v("q"), " = ", v("k"), "  ", result("equal", at("equal")), " = ", shown(at("equal") / norm), " · ", put(norm)]];
}

/** The query turned to every position, and what it scores with the key turned to one of them. */
function turnedTable(data?: Data, last = 0) {
  const vectors = data && array(data, "vectors");
  const [query, key, omega] = vectors ? [row(vectors, 0), row(vectors, 1), array(data, "omega").values] : [[], [], []];
  const d = query.length;
  const turned = (vector: ArrayLike<number>, position: number, into: Float64Array, start = 0) => {
    for (let i = 0; i < d / 2; i++) {
      const [cos, sin] = [Math.cos(position * omega[i]!), Math.sin(position * omega[i]!)];
      const [x, y] = [vector[2 * i]!, vector[2 * i + 1]!];
      into[start + 2 * i] = x * cos - y * sin;
      into[start + 2 * i + 1] = x * sin + y * cos;
    }
    return into;
  };
  const queries = new Float64Array((last + 1) * d);
  for (let q = 0; q <= last && d; q++) turned(query, q, queries, q * d);
  return {
    data,
    scores(p: number): Float64Array {
      const there = turned(key, p, new Float64Array(d));
      return Float64Array.from({ length: last + 1 }, (_, q) => {
        let sum = 0;
        for (let c = 0; c < d; c++) sum += queries[q * d + c]! * there[c]!;
        return sum;
      });
    },
    /** Pair by pair at distance k. */
    terms(k: number): number[] {
      const there = turned(query, k, new Float64Array(d));
      return Array.from({ length: d / 2 }, (_, i) => there[2 * i]! * key[2 * i]! + there[2 * i + 1]! * key[2 * i + 1]!);
    },
  };
}
