// The bias of ALiBi, T5 and Shaw at every distance, per head, and the weight that remains.
//
//   [head 1] [head 2] …       weight by distance, one small curve each; one head is chosen
//   query × key of that head  |  all heads by distance      one cursor in both

import { ordered, type MapName } from "../colours";
import { array, row, type Data, type Numbers } from "../data";
import { type Child, fill, h, refill, s } from "../dom";
import { lineChart, tidy, type Series } from "../parts/chart";
import { formula, fraction, put, sub, sup, v } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { folded, plainTable } from "../parts/numbers";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./bias.css";

type Quantity = "bias" | "weight" | "index";

const OWN = {
  head: own.whole(3, 1, 32),
  i: own.whole(28, 0, 1023),
  j: own.whole(8, 0, 1023),
  quantity: own.choice("bias", "bias", "weight", "index"),
};
const METHODS: Record<string, Words> = { alibi: both("ALiBi: straight lines", "ALiBi：直线"), t5: both("T5: buckets", "T5：分桶"), shaw: both("Shaw: clipped", "Shaw：截断") };
const QUANTITIES = { bias: both("bias", "偏置"), weight: both("weight left, e^bias", "剩余权重 e^偏置"), index: both("table index", "查表用的下标") };
/** A bias of this size leaves 1% of the weight. */
const ONE_PERCENT = -Math.log(100);
/** Colours end where a weight has changed by e⁵, 148 times. */
const STRONGEST = 5;

const INDEX: Partial<Record<string, Words>> = {
  alibi: both("distance |i − j|", "距离 |i − j|"),
  t5: both("bucket", "桶号"),
  shaw: both("clipped offset c", "截断后的偏移 c"),
};
const QUESTIONS: Partial<Record<string, { question: Words; choices: Words[]; right: number; because: Words }>> = {
  alibi: {
    question: both(
      "Eight heads have slopes 1/2, 1/4 … 1/256. With the largest slope, 1% of the weight is left at distance 9. At which distance with the smallest?",
      "8 个头的斜率是 1/2、1/4……1/256。斜率最大的头在距离 9 处只剩 1% 的权重。斜率最小的头在多远处只剩 1%？",
    ),
    choices: [both("about 70", "约 70"), both("about 256", "约 256"), both("about 1180", "约 1180")],
    right: 2,
    because: both(
      "e^(−m·d) is 1% at d = ln 100 / m: 9.2 for 1/2, and 128 times as far, 1179, for 1/256. Each head sees a different distance.",
      "e^(−m·d) 等于 1% 时 d = ln 100 / m：斜率 1/2 是 9.2，斜率 1/256 是它的 128 倍，即 1179。每个头能看的距离不同。",
    ),
  },
  t5: {
    question: both(
      "With 32 buckets up to distance 128, all for keys before the query: which distances share a bucket with distance 100?",
      "32 个桶、最大距离 128，全部用于查询之前的键：哪些距离与距离 100 同桶？",
    ),
    choices: [both("only 100", "只有 100"), both("99 to 112", "99 到 112"), both("64 to 127", "64 到 127")],
    right: 1,
    because: both(
      "Beyond distance 16 every bucket begins about 1.14 times as far as the one before; one begins at 99 and the next, the last, at 113.",
      "距离超过 16 之后，每个桶的起点约为前一个桶的 1.14 倍：有一个从 99 开始，下一个也是最后一个，从 113 开始。",
    ),
  },
  shaw: {
    question: both(
      "With k = 16, which key gets the larger bias: the one 40 positions back or the one 400 positions back?",
      "k = 16 时，往前 40 位的键与往前 400 位的键，哪个得到的偏置更大？",
    ),
    choices: [both("the one 40 back", "往前 40 位的"), both("the one 400 back", "往前 400 位的"), both("both get the same", "两者相同")],
    right: 2,
    because: both(
      "clip(−40, −16, 16) = clip(−400, −16, 16) = −16: both use the same vector, so distances beyond 16 are not distinguished.",
      "clip(−40, −16, 16) = clip(−400, −16, 16) = −16：用的是同一个向量，所以超过 16 的距离不作区分。",
    ),
  },
};

export const view: View = {
  name: "bias",
  title: both("A bias for every distance", "给每个距离一个偏置"),
  idea: both(
    "These methods do not change the embeddings; they add to every score a number that depends on the distance between query and key. The softmax turns this bias into the factor e^bias on the weight at that distance, which determines how far a head can see.",
    "这几种方法不改变词向量，只给每个注意力分数加上一个取决于查询与键距离的数。经过 softmax，这个偏置变成因子 e^偏置，乘在该距离的权重上，决定一个头能看多远。",
  ),
  notice: [
    both(
      "ALiBi with eight heads: 1% of the weight is left at distance 9.2 for slope 1/2 and at 1179 for slope 1/256. Some heads see only nearby words, others the whole text.",
      "8 个头的 ALiBi：斜率 1/2 的头在距离 9.2 处只剩 1% 的权重，斜率 1/256 的头在 1179 处。有的头只看近处的词，有的头看全文。",
    ),
    both(
      "ALiBi with 12 heads: the first eight have the slopes of eight heads, the other four are taken from sixteen, every other one; so head 9 is the steepest of all, 0.7071.",
      "12 个头的 ALiBi：前 8 个用 8 头时的斜率，后 4 个从 16 头的斜率里隔一个取一个，所以第 9 个头最陡，斜率 0.7071。",
    ),
    both(
      "T5 and Shaw do not distinguish large distances: from 113 on (32 buckets, maximum 128), or from k on, all distances share one entry. The weight does not fall further.",
      "T5 与 Shaw 不区分较大的距离：从 113 起（32 个桶、最大距离 128），或从 k 起，所有距离共用一项，权重不再下降。",
    ),
    both(
      "T5's and Shaw's tables are learned: the values here are random, drawn by the seed, while buckets and clipping are exactly those of the papers.",
      "T5 和 Shaw 的表要靠训练得到：这里的数值由种子随机生成，而分桶与截断的规则与论文完全一致。",
    ),
  ],
  papers: [
    { text: "Press et al. 2021 (ALiBi)", href: "https://arxiv.org/abs/2108.12409" },
    { text: "Raffel et al. 2020 (T5)", href: "https://arxiv.org/abs/1910.10683" },
    { text: "Shaw et al. 2018", href: "https://arxiv.org/abs/1803.02155" },
  ],
  own: OWN,
  styles,
  controls: [
    { name: "method", label: both("method", "方法"), choices: METHODS },
    { name: "quantity", label: both("shown", "显示"), choices: QUANTITIES },
    { name: "causal", label: both("causal mask", "因果掩码") },
    { name: "n_heads", label: both("heads", "头数") },
    { name: "length", label: both("positions", "位置数"), scale: "log" },
    { name: "n_buckets", label: both("buckets", "桶数"), when: (state) => state["method"] === "t5" },
    { name: "max_distance", label: both("max_distance", "最大距离"), scale: "log", when: (state) => state["method"] === "t5" },
    { name: "bidirectional", label: both("buckets for both directions", "双向分桶"), when: (state) => state["method"] === "t5" },
    { name: "k", label: both("k", "k"), when: (state) => state["method"] === "shaw" },
    { name: "seed", label: both("seed", "种子"), as: "number", when: (state) => state["method"] !== "alibi" },
  ],
  build(stage) {
    const narrow = window.innerWidth < 640;
    const heads = headStrip(stage);
    const map = heatMap(stage, {
      label: both("Bias of the chosen head, query × key", "所选头的偏置，查询 × 键"), rows: both("query i", "查询 i"), columns: both("key j", "键 j"),
      around: narrow ? 2 : 3, pick: (i, j) => stage.set({ i, j }),
    });
    const masked = h("span", {}, stage.t(both(" Hatched: masked, the key comes after the query.", "斜线：被掩码遮住，键在查询之后。")));
    map.element.firstElementChild!.append(h("p", { class: "small" }, stage.t(both("Click, drag or use the arrow keys, here, in the chart and on the heads.", "用鼠标、手指或方向键，可以操作这张图、折线图和上方的各个头。")), masked));
    const mapTitle = h("h2", {});
    const chartTitle = h("h2", {});
    let numbers: Data | null = null;
    let length = 1;
    let i = 0;
    const chart = lineChart(stage, {
      label: both("All heads by distance", "所有头随距离的变化"), x: both("distance i − j", "距离 i − j"), y: both("", ""), height: narrow ? 280 : 440,
      pick(index) {
        // The query stays where it is, unless the text ends first.
        const d = array(numbers!, "distance").values[index]!;
        const j = Math.min(Math.max(i - d, 0), length - 1);
        stage.set({ i: Math.min(Math.max(j + d, 0), length - 1), j });
      },
    });
    const questions = h("div", {});
    const summary = h("div", {});
    stage.root.append(h("div", { class: "split" }, h("div", {}, map.element, mapTitle),
      h("div", {}, chartTitle, chart.element, folded(stage.t(both("Numbers of the heads", "各个头的数值")), summary), questions)), heads.element);
    let asked: string | null = null;
    let tabled: Data | null = null;
    let square: { key: string; data: Data | null; numbers: Numbers } = { key: "", data: null, numbers: { shape: [0, 0], values: new Float64Array() } };

    return (data, state) => {
      const method = data.facts["method"] as string;
      const quantity = state["quantity"] as Quantity;
      const [distance, index] = [array(data, "distance").values, array(data, "index").values];
      const n = array(data, "bias").shape[0]!;
      numbers = data;
      length = distance[distance.length - 1]! + 1;
      const head = Math.min(number(state, "head"), n);
      i = Math.min(number(state, "i"), length - 1);
      const j = Math.min(number(state, "j"), length - 1);
      const at = i - j - distance[0]!; // below 0: masked
      const values = quantity === "index" ? index : row(array(data, quantity), head - 1);

      const wanted = `${quantity} ${head}`;
      if (square.data !== data || square.key !== wanted) square = { key: wanted, data, numbers: toeplitz(values, distance[0]!, length) };
      const [colours, limit] = scaleOf(method, quantity, values);
      map.draw({ numbers: square.numbers, cursor: [i, j], map: colours, limit, ...(quantity === "index" ? { digits: 0 } : {}),
        ends: quantity === "bias" && limit === STRONGEST ? [`≤ ${tidy(-limit)}`, `≥ ${tidy(limit)}`] : undefined });

      const t = stage.t;
      const called = { bias: both("bias", "偏置"), weight: both("weight left", "剩余权重"), index: INDEX[method] ?? both("distance |i − j|", "距离 |i − j|") }[quantity];
      const shared = quantity === "index"; // by all heads
      mapTitle.textContent = t(both(`${shared ? "Every" : `Head ${head}, every`} pair: ${called.en}`, `${shared ? "" : `第 ${head} 个头，`}每一对位置：${called.zh}`));
      chartTitle.textContent = t(both(`${shared ? "By" : "All heads by"} distance: ${called.en}`, `${shared ? "" : "所有头"}随距离：${called.zh}`));
      chart.draw({ series: lines(data, quantity, head, t), marks: marks(data, head, length - 1, distance[0]!), ...(at >= 0 ? { cursor: at } : {}) });
      heads.draw(data, head, at);
      masked.hidden = state["causal"] !== true;
      if (tabled !== data) fill(summary, headsTable((tabled = data), t));
      if (asked !== method) fill(questions, QUESTIONS[method] ? predict(stage, QUESTIONS[method]) : null);
      asked = method;

      const found = at < 0 ? null : { index: index[at]!, bias: row(array(data, "bias"), head - 1)[at]!, weight: row(array(data, "weight"), head - 1)[at]! };
      refill(stage.formula, formula(...(RULES[method] ?? anyRule)(data, state, { head, n, i, j, found }, t)));
      const said = found ? both(`bias ${shown(found.bias)}, weight left ${percent(found.weight)}`, `偏置 ${shown(found.bias)}，剩余权重 ${percent(found.weight)}`) : MASKED;
      stage.announce(t(both(`head ${head}, query ${i}, key ${j}: ${said.en}`, `第 ${head} 个头，查询 ${i}，键 ${j}：${said.zh}`)));
      if (found) stage.code(`bias[${head - 1}, ${at}], weight[${head - 1}, ${at}]  # ${found.bias}, ${found.weight}`);
    };
  },
};

const MASKED = both("masked: the key comes after the query", "被掩码遮住：键在查询之后");

/** The value of every pair from that of its distance; nothing where there is none. */
function toeplitz(values: ArrayLike<number>, first: number, length: number): Numbers {
  const all = new Float64Array(length * length).fill(NaN);
  for (let i = 0; i < length; i++) for (let j = 0; j < length && i - j >= first; j++) all[i * length + j] = values[i - j - first]!;
  return { shape: [length, length], values: all };
}

function scaleOf(method: string, quantity: Quantity, values: ArrayLike<number>): [MapName, number] {
  if (quantity === "weight") return ["amount", 1];
  let largest = 0;
  for (let index = 0; index < values.length; index++) largest = Math.max(largest, Math.abs(values[index]!));
  return quantity === "bias" ? ["diverging", Math.min(largest, STRONGEST) || 1] : [method === "shaw" ? "diverging" : "amount", largest || 1];
}

function lines(data: Data, quantity: Quantity, head: number, t: Stage["t"]): Series[] {
  const x = array(data, "distance").values;
  if (quantity === "index") return [{ name: t(both("index", "下标")), x, y: array(data, "index").values, colour: "var(--head)" }];
  const numbers = array(data, quantity);
  const n = numbers.shape[0]!;
  const one = (index: number): Series => ({ name: t(both(`head ${index + 1}`, `第 ${index + 1} 个头`)), x, y: row(numbers, index), colour: ordered(index, n) });
  const rest = Array.from({ length: n }, (_, index) => index).filter((index) => index !== head - 1);
  const floor = { name: "1%", x, y: new Float64Array(x.length).fill(quantity === "bias" ? ONE_PERCENT : 0.01), colour: "var(--muted)", dashed: true };
  // The chosen head comes last, above the others and thicker.
  return [...(data.arrays["horizon"] ? [floor] : []), ...rest.map(one), one(head - 1)];
}

/** Where one head's weight is down to 1%, or from where on nothing changes. */
function marks(data: Data, head: number, last: number, first: number): { x: number; word: string }[] {
  const horizon = data.arrays["horizon"]?.values;
  const at = horizon ? horizon[head - 1]! : (data.facts["starts"] as number[]).at(-1)!;
  const word = horizon ? `1%: ${shown(at, 1)}` : `≥ ${at}`;
  return [...(at <= last ? [{ x: at, word }] : []), ...(-at >= first && at > 0 ? [{ x: -at, word: "" }] : [])];
}

function headsTable(data: Data, t: Stage["t"]): HTMLElement {
  const weight = array(data, "weight");
  const [slopes, horizon] = [data.arrays["slopes"]?.values, data.arrays["horizon"]?.values];
  const last = array(data, "distance").values.at(-1)!;
  const sloped = slopes ? [both("slope m", "斜率 m"), both("1% left at distance", "剩 1% 处的距离")] : [];
  const names = [both("head", "头"), ...sloped, both(`weight left at distance ${last}`, `距离 ${last} 处的剩余权重`)].map(t);
  const rows = Array.from({ length: weight.shape[0]! }, (_, index) => [String(index + 1), ...(slopes ? [slopes[index]!, horizon![index]!] : []), row(weight, index).at(-1)!]);
  return plainTable(t(both("One row per head", "每个头一行")), names, rows);
}

/** One small curve per head; a group of radio buttons, so that arrow keys choose. */
function headStrip(stage: Stage): { element: HTMLElement; draw(data: Data, head: number, at: number): void } {
  const group = h("div", { class: "heads", role: "radiogroup", "aria-label": stage.t(both("Heads", "注意力头")) });
  const caption = h("p", { class: "small" });
  let drawn: Data | null = null;
  let cards: { card: HTMLElement; value: HTMLElement }[] = [];
  function build(data: Data): void {
    const { shape } = array(data, "weight");
    const [slopes, horizon] = [data.arrays["slopes"]?.values, data.arrays["horizon"]?.values];
    cards = Array.from({ length: shape[0]! }, (_, index) => {
      const value = h("span", {});
      const slope = slopes && h("span", {}, `m = ${asFraction(slopes[index]!)}`);
      const far = shown(horizon?.[index] ?? NaN, 1);
      const reach = horizon && h("span", { "data-role": "horizon", "data-value": horizon[index]! }, stage.t(both(`1% at ${far}`, `${far} 处剩 1%`)));
      const card = h("button", { type: "button", role: "radio", "data-head": index + 1, click: () => stage.set({ head: index + 1 }) },
        h("b", {}, stage.t(both(`head ${index + 1}`, `头 ${index + 1}`))), slope, curve(data, index), reach, value);
      return { card, value };
    });
    fill(group, ...cards.map((one) => one.card));
    group.classList.toggle("many", cards.length > 12);
    const distances = array(data, "distance").values;
    const range = `${tidy(distances[0]!)} … ${tidy(distances.at(-1)!)}`;
    caption.textContent = stage.t(horizon
      ? both(`Weight left by distance, ${range}; the dotted line is where 1% is left.`, `剩余权重随距离的变化，距离 ${range}；虚线处只剩 1%。`)
      : both(`Weight relative to the largest, by distance ${range}. Random numbers: nothing is trained here.`, `相对于最大值的权重，距离 ${range}。数值是随机的，未经训练。`));
  }
  group.addEventListener("keydown", (event) => {
    const now = cards.findIndex(({ card }) => card === event.target);
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (now < 0 || !by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = (now + by + cards.length) % cards.length;
    cards[next]!.card.focus();
    stage.set({ head: next + 1 });
  });
  return {
    element: h("div", {}, group, caption),
    draw(data, head, at) {
      if (drawn !== data) build((drawn = data));
      const weight = array(data, "weight");
      cards.forEach(({ card, value }, index) => {
        card.setAttribute("aria-checked", String(index === head - 1));
        card.tabIndex = index === head - 1 ? 0 : -1;
        value.textContent = `${stage.t(both("cursor", "光标处"))} ${at < 0 ? "–" : percent(row(weight, index)[at]!, 2)}`;
      });
    },
  };
}

const [WIDE, HIGH] = [100, 44];

function curve(data: Data, index: number): SVGSVGElement {
  const x = array(data, "distance").values;
  const y = row(array(data, "weight"), index);
  const n = array(data, "weight").shape[0]!;
  const [first, last] = [x[0]!, x[x.length - 1]!];
  const place = (d: number) => ((d - first) / (last - first)) * WIDE;
  const points = Math.min(x.length, 120);
  let path = "";
  for (let point = 0; point < points; point++) {
    const at = Math.round((point / (points - 1)) * (x.length - 1));
    path += `${point ? "L" : "M"}${place(x[at]!).toFixed(1)} ${(HIGH - 2 - y[at]! * (HIGH - 5)).toFixed(1)}`;
  }
  const horizon = data.arrays["horizon"]?.values[index];
  const lines = horizon === undefined ? [] : [horizon, -horizon].filter((d) => d >= first && d <= last);
  return s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    s("line", { class: "grid", x1: 0, x2: WIDE, y1: HIGH - 1, y2: HIGH - 1 }),
    ...lines.map((d) => s("line", { class: "mark", x1: place(d), x2: place(d), y1: 0, y2: HIGH })),
    s("path", { class: "line", d: path, stroke: ordered(index, n) }));
}

interface Place {
  head: number;
  n: number;
  i: number;
  j: number;
  found: { index: number; bias: number; weight: number } | null;
}
type Rule = (data: Data, state: State, place: Place, t: Stage["t"]) => Child[][];

/** For a bias about which this page knows no more than the catalogue's formula. */
const anyRule: Rule = (data, _, place, t) => [[data.facts["formula"] as string, ",  ", t(both("bias", "偏置")), " = ", ...result(place, t)]];

const RULES: Partial<Record<string, Rule>> = {
  alibi(data, _, place, t) {
    const { head, n, i, j } = place;
    const m = array(data, "slopes").values[head - 1]!;
    const horizon = array(data, "horizon").values[head - 1]!;
    const power = 2 ** Math.floor(Math.log2(n));
    // Heads beyond the power of two below take every other slope of the power above.
    const [rank, of] = head <= power ? [head, power] : [2 * (head - power) - 1, 2 * power];
    return [
      [t(both("bias", "偏置")), " = −", v("m"), sub("h"), "·|", v("i"), " − ", v("j"), "|,  ", v("m"), sub("h"), " = 2", sup("−8h/n")],
      [v("m"), sub(put(head, "head")), " = 2", sup("−8·", put(rank, "head"), "/", put(of)), " = ", h("output", { "data-role": "slope", "data-value": m }, asFraction(m)),
        head > power ? t(both(`  (head ${head} of ${n}: slope ${rank} of ${of} heads)`, `（${n} 个头中的第 ${head} 个：取 ${of} 个头时的第 ${rank} 个斜率）`)) : ""],
      ["−", put(asFraction(m), "head"), " · |", put(i, "position"), " − ", put(j, "position"), "| = ", ...result(place, t)],
      [t(both("1% left at", "剩 1% 处")), "  ln 100 / ", put(asFraction(m), "head"), " = ", h("output", { "data-role": "reach", "data-value": horizon }, shown(horizon, 2))],
    ];
  },
  t5(_, state, place, t) {
    const { i, j } = place;
    const two = state["bidirectional"] === true;
    const N = two ? Math.floor(number(state, "n_buckets") / 2) : number(state, "n_buckets");
    const e = Math.floor(N / 2);
    const M = number(state, "max_distance");
    const d = two ? Math.abs(i - j) : Math.max(i - j, 0);
    const bucket = h("output", { "data-role": "index", "data-value": place.found?.index ?? NaN }, place.found ? String(place.found.index) : "–");
    const ln = (above: string | number, below: string | number) => fraction(`ln(${above}/${e})`, `ln(${below}/${e})`);
    const raw = ((N - e) * Math.log(d / e)) / Math.log(M / e);
    const after = two && j > i ? [" + ", put(N)] : [];
    const most = t(both(`, at most ${N - 1}`, `，至多 ${N - 1}`));
    const made: Child[] = d < e ? [put(d, "position"), ...after]
      : [put(e), " + ⌊", put(N - e), " · ", ln(d, M), "⌋", ...after, " = ", put(e), " + ⌊", shown(raw, 3), "⌋", ...after, raw >= N - e ? most : ""];
    return [
      [t(both("bucket", "桶")), "(", v("d"), ") = ", v("d"), t(both(" below ", "（小于 ")), put(e), t(both(", else ", " 时），否则 ")), 
        put(e), " + ⌊", put(N - e), " · ", fraction(h("span", {}, "ln(", v("d"), `/${e})`), `ln(${M}/${e})`), "⌋", most,
        two ? t(both(`; + ${N} for keys after the query`, `；键在查询之后再加 ${N}`)) : ""],
      [v("d"), " = ", two ? "|" : "max(", put(i, "position"), " − ", put(j, "position"), two ? "|" : ", 0)", " = ", put(d, "position"), ":  ",
        t(both("bucket", "桶")), " = ", ...made, " = ", bucket],
      [t(both("bias", "偏置")), " = ", v("b"), sub(put(place.head, "head")), "[", place.found ? put(place.found.index) : "–", "] = ", ...result(place, t)],
    ];
  },
  shaw(_, state, place, t) {
    const { i, j } = place;
    const k = number(state, "k");
    const c = place.found ? shown(place.found.index, 0) : "–";
    return [
      [v("c"), " = clip(", v("j"), " − ", v("i"), ", −", v("k"), ", ", v("k"), "),  ", t(both("bias", "偏置")), " = ", v("q"), " · ", v("a"), sub("c"), " / √", v("d")],
      [v("c"), " = clip(", put(j, "position"), " − ", put(i, "position"), ", ", put(`−${k}`), ", ", put(k), ") = ",
        h("output", { "data-role": "index", "data-value": place.found?.index ?? NaN }, c)],
      [v("q"), sub(put(place.head, "head")), " · ", v("a"), sub(put(c)), " / √", put(64), " = ", ...result(place, t)],
    ];
  },
};

function result({ found }: Place, t: Stage["t"]): Child[] {
  if (!found) return [h("output", { "data-role": "value" }, t(MASKED))];
  const largest = found.bias - Math.log(found.weight); // 0 for ALiBi
  return [h("output", { "data-role": "value", "data-value": found.bias }, shown(found.bias)), ",  e",
    sup(put(shown(found.bias, 3)), Math.abs(largest) > 1e-9 ? ` − ${largest < 0 ? `(${shown(largest, 3)})` : shown(largest, 3)}` : ""), " = ",
    h("output", { "data-role": "weight", "data-value": found.weight }, percent(found.weight))];
}

/** 0.0039 is 1/256. */
function asFraction(value: number): string {
  return Number.isInteger(1 / value) && value < 1 ? `1/${1 / value}` : shown(value);
}

function percent(share: number, digits = 3): string {
  if (digits < 3 && share < 0.0001) return "<0.01%";
  return `${tidy(Number((share * 100).toPrecision(digits)))}%`;
}
