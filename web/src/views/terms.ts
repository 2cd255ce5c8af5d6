// A score as a sum of four maps, each of which can be switched off, on the way from added positions to Transformer-XL.
//
//   ┌────┐   ┌────┐   ┌────┐   ┌────┐   ┌────┐   ┌────┐
//   │ xx │ + │ xp │ + │ px │ + │ pp │ = │ sum│ → │soft│
//   └────┘   └────┘   └────┘   └────┘   └────┘   └────┘
//   added positions ──●──────────────── Transformer-XL

import { array, row, type Data, type Numbers } from "../data";
import { type Child, fill, h, refill, say } from "../dom";
import { scale, tidy } from "../parts/chart";
import { colourKey } from "../parts/colour_key";
import { formula, sub, sup } from "../parts/formula";
import { atRest, linked } from "../parts/linked";
import { folded, plainTable } from "../parts/numbers";
import { predict } from "../parts/predict";
import { number, own, type View } from "../view";
import { both, shown, SPLIT, type Words } from "../words";
import styles from "./terms.css";

const SWITCHES = ["cc", "cp", "pc", "pp"] as const;
const LAST = 3;
const OWN = {
  stage: own.real(0, 0, LAST), term: own.choice("cc", ...SWITCHES), row: own.whole(1, 0, 23), column: own.whole(2, 0, 23),
  cc: own.yes(true), cp: own.yes(true), pc: own.yes(true), pp: own.yes(true),
};

/** The four steps from positions added to words to Transformer-XL. */
const STAGES: Words[] = [
  both("positions added to words", "位置加到词上"), both("key's position → distance", "键的位置 → 距离"), both("query's position → u", "查询的位置 → u"), both("query's position → v: Transformer-XL", "查询的位置 → v：Transformer-XL"),
];

/** What each term is called at each step; the words change where the term does. */
const [CC, CP, PC, PP] = [both("word · word", "词 · 词"), both("word · position", "词 · 位置"), both("position · word", "位置 · 词"), both("position · position", "位置 · 位置")];
const CD = both("word · distance", "词 · 距离");
const NAMES: Words[][] = [
  [CC, CP, PC, PP], [CC, CD, PC, both("position · distance", "位置 · 距离")], [CC, CD, both("u · word", "u · 词"), both("position · distance", "位置 · 距离")], [CC, CD, both("u · word", "u · 词"), both("v · distance", "v · 距离")],
];

const position = (text: string) => h("span", { class: "position" }, text);
/** Elements of the letters; each use needs new ones. */
const QUERIES: Record<string, () => Child[]> = {
  x: () => ["x", sub("i"), sup("⊤"), "W", sub("q"), sup("⊤")], p: () => [position("p"), sub("i"), sup("⊤"), "W", sub("q"), sup("⊤")], u: () => ["u", sup("⊤")], v: () => ["v", sup("⊤")],
};
const KEYS: Record<string, () => Child[]> = {
  x: () => ["W", sub("k"), "x", sub("j")], p: () => ["W", sub("k"), position("p"), sub("j")], r: () => ["W", sub("R"), position("R"), sub("i−j")],
};
/** Query's and key's part of each term at each step. */
const PARTS = ["xx xp px pp", "xx xr px pr", "xx xr ux pr", "xx xr ux vr"].map((line) => line.split(" ").map((pair) => [pair[0]!, pair[1]!] as const));

/** Differences below this are rounding. */
const ROUNDING = 1e-12;
/** Words that can stand beside a map. */
const MOST_LABELS = 10;

interface Facts {
  words: string[];
  stages: { moved: number[]; along_diagonals: number[]; difference?: number }[];
}

export const view: View = {
  name: "terms",
  title: both("Four terms of a score", "分数的四项"),
  idea: both(
    "A score is a product of two sums, word plus position on either side, so it is a sum of four maps. Drag from left to right: the positions melt into distances and two learned vectors, and the same four maps become Transformer-XL's.",
    "分数是两个“词＋位置”的乘积，所以等于四张图之和。从左拖到右：位置逐渐变成距离和两个可学习的向量，同样的四张图就变成 Transformer-XL 的四项。",
  ),
  notice: [
    both("Word · word depends only on the words: in 猫 追 老鼠 老鼠 追 猫 the rows of the two 猫 are the same.", "“词 · 词”只取决于词：在“猫 追 老鼠 老鼠 追 猫”里，两个“猫”的两行完全相同。"),
    both("With random projections, position · position is not a function of the distance: its diagonals are not constant. With identity projections they are constant, because PE(i)·PE(j) depends only on i−j.", "投影矩阵随机时，“位置 · 位置”不是距离的函数：同一条对角线上的数不相等。投影取单位矩阵时相等，因为 PE(i)·PE(j) 只取决于 i−j。"),
    both("A shift of all positions changes none of Transformer-XL's four terms, but only the last depends on the distance alone. The first and third depend on words, the second on a word and a distance.", "整体平移不改变 Transformer-XL 的四项，但只有最后一项只取决于距离。第一、三项取决于词，第二项取决于一个词和一个距离。"),
    both("The notes from which posenc began write q·R and v·R. The paper has a separate projection for the distances, W_R (written W_k,R in the paper). With identity projections the page shows their formula.", "posenc 最初的笔记写的是 q·R 与 v·R。论文对距离使用单独的投影 W_R（原文记作 W_k,R）。所有投影取单位矩阵时，这里显示笔记的公式。"),
  ],
  papers: [
    { text: "Dai et al. 2019 (Transformer-XL), section 3.3", href: "https://arxiv.org/abs/1901.02860" },
    { text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" },
  ],
  own: OWN,
  styles,
  controls: [
    { name: "sentence", label: both("your sentence", "你的句子"), as: "sentence", rule: SPLIT, examples: [
      "猫 追 老鼠 老鼠 追 猫", "cat chases mouse mouse chases cat", "猫 吃 鱼", "我 喜欢 猫", "人工 智能 正在 快速 发展", "这部 电影 很 无聊 但 表演 很 精彩",
    ] },
    { name: "projection", label: both("projections", "投影矩阵"), choices: { drawn: both("random", "随机"), identity: both("identity", "单位矩阵") } },
    { name: "seed", label: both("random seed", "随机种子"), as: "number" },
    { name: "shift", label: both("shift of all positions", "整体后移") },
    { name: "base", label: both("base", "底数"), scale: "log" },
  ],
  build(stage) {
    const { t } = stage;
    const maps = linked(stage, { label: both("Four terms of every score, their sum, and the weights; query by key", "每个分数的四项、它们的和与权重，查询 × 键"), pick: (row, column) => stage.set({ row, column }), class: "product" });
    const card = (name: string, operator: string, head: Child) => {
      const [letters, across, value, notes] = [h("span", { class: "letters" }), h("div", { class: "words-across", "aria-hidden": "true" }), h("output", {}), h("ul", { class: "measured" })];
      const tile = maps.tile();
      const element = h("section", { class: "term", "data-term": name, "data-operator": operator }, head, letters, across, tile.element, value, notes);
      return { name, letters, across, tile, value, notes, element };
    };
    const cards = SWITCHES.map((name, n) => {
      const box = h("input", { type: "checkbox", role: "switch", "data-switch": name, change: () => stage.set({ [name]: box.checked, term: name }) });
      const title = h("b", {});
      return { ...card(name, n ? "+" : "", h("label", {}, box, title)), box, title };
    });
    const [sum, weights] = [card("sum", "=", h("b", { class: "plain-head" }, t(both("score", "分数")))), card("weights", "→", h("b", { class: "plain-head" }, t(both("softmax", "softmax"))))];
    const downs = [0, 1].map((n) => h("div", { class: `words-down down-${n}`, "aria-hidden": "true" }, h("div", {})));
    const [first, second, third, fourth] = cards.map((one) => one.element);
    maps.element.append(downs[0]!, first!, second!, third!, downs[1]!, fourth!, sum.element, weights.element);

    const beside = atRest(stage);
    const [key, share_] = [colourKey(), colourKey()];
    const melt = h("input", { type: "range", min: 0, max: LAST, step: 0.01, "data-role": "melt", "aria-label": t(both("from positions added to words to Transformer-XL", "从位置加到词上到 Transformer-XL")), input: () => { cancelAnimationFrame(moving); stage.set({ stage: Number(melt.value) }); } });
    const steps = STAGES.map((words, n) => h("button", { type: "button", class: "choice", "data-stage": n, click: () => go(n) }, t(words)));
    const bars = h("div", { class: "steps" });
    const equal = h("p", { class: "small" });
    const table = h("div", {});
    const question = predict(stage, {
      question: both("Shift the whole sentence by 100 positions. With positions added to the embeddings, which of the four terms do not change?", "把整句话后移 100 个位置。位置加到词向量上时，四项中哪些不变？"),
      choices: [
        both("all four", "四项都不变"), both("word · word and position · position", "“词 · 词”和“位置 · 位置”"),
        both("word · word only", "只有“词 · 词”"),
      ], right: 2,
      because: both("Every term that contains p changes. Position · position would not change if W_q and W_k were the identity. None of Transformer-XL's four terms changes. Try both above.", "凡是含 p 的项都会变。如果 W_q 与 W_k 是单位矩阵，“位置 · 位置”不变。Transformer-XL 的四项都不变。可在上面切换来看。"),
    }, () => stage.set({ stage: 0, projection: "drawn", shift: 100 }));
    stage.root.append(h("div", { class: "keyed" }, maps.element, h("div", { class: "keys" }, key.element, share_.element)), h("div", { class: "melting" }, melt, h("div", { class: "stops" }, ...steps)),
      h("div", { class: "split" }, h("section", {}, h("h2", {}, t(both("The marked cell, term by term", "标出的格子，逐项相加"))), bars), h("div", {}, equal, folded(t(both("Numbers of the marked row", "这一行的数值")), table))), question);

    /** Moves to a step evenly, or at once where the reader prefers less motion. */
    let moving = 0;
    function go(to: number): void {
      cancelAnimationFrame(moving);
      const from = number(stage.state(), "stage");
      const began = performance.now();
      const frame = (now: number) => {
        const share = stage.motion ? Math.min((now - began) / 900, 1) : 1;
        stage.set({ stage: share < 1 ? from + (to - from) * share * share * (3 - 2 * share) : to });
        if (share < 1) moving = requestAnimationFrame(frame);
      };
      frame(stage.motion ? began : Infinity);
    }
    stage.leaving(() => cancelAnimationFrame(moving));

    let shownOf: Data | null = null;
    let limit = 1;
    let before = "";
    /** The step and the numbers that the names, letters and notes above and below the maps are of. */
    let [named, namedOf]: [number, Data | null] = [-1, null];

    return (data, state) => {
      const { words, stages } = data.facts as Facts;
      const n = words.length;
      if (shownOf !== data) {
        shownOf = data;
        limit = Math.max(largest(data, n), 1);
        label(words);
        check(data);
      }
      const at = number(state, "stage");
      const [low, share] = [Math.min(Math.floor(at), LAST - 1), at - Math.min(Math.floor(at), LAST - 1)];
      const near = Math.round(at);
      const between = Math.abs(at - near) > 1e-9;
      const [i, j] = [Math.min(number(state, "row"), n - 1), Math.min(number(state, "column"), n - 1)];
      const values = blended(data, low, share, n);
      const term = (k: number): Numbers => ({ shape: [n, n], values: values.subarray(k * n * n, (k + 1) * n * n) });
      const on = SWITCHES.map((name) => state[name] as boolean);
      const scores = added(values, on, n);
      const alpha = softmax(scores, n);
      const here = (of: ArrayLike<number>) => of[i * n + j]!;
      const measured = stages[near]!;
      const shift = number(state, "shift");
      cards.forEach((one, k) => {
        one.box.checked = on[k]!;
        one.element.classList.toggle("off", !on[k]);
        one.element.classList.toggle("changing", between && differs(data, low, k, n));
        one.tile.draw({ numbers: term(k), cursor: [i, j], limit });
        valued(one.value, here(term(k).values));
        if (named === near && namedOf === data) return;
        refill(one.title, t(NAMES[near]![k]!).replace(" ·", "\u00a0·"));
        refill(one.letters, ...QUERIES[PARTS[near]![k]![0]]!(), ...KEYS[PARTS[near]![k]![1]]!());
        const [constant, still] = [measured.along_diagonals[k]! < ROUNDING, measured.moved[k]! < ROUNDING];
        refill(one.notes,
          h("li", { class: constant ? "yes" : "", "data-role": "diagonals", "data-value": measured.along_diagonals[k]! }, constant ? t(both("✓ sees the distance alone", "✓ 只看距离")) : null),
          shift ? h("li", { class: still ? "yes" : "", "data-role": "moved", "data-value": measured.moved[k]! }, still ? t(both("✓ shift: no change", "✓ 平移不变")) : `${t(both("shift: up to", "平移最多变"))} ${shown(measured.moved[k]!, 2)}`) : null);
      });
      [named, namedOf] = [near, data];
      sum.tile.draw({ numbers: { shape: [n, n], values: scores }, cursor: [i, j], limit });
      valued(sum.value, here(scores));
      weights.tile.draw({ numbers: { shape: [n, n], values: alpha }, cursor: [i, j], map: "amount", limit: 1 });
      valued(weights.value, here(alpha));
      key.draw("diverging", limit);
      share_.draw("amount", 1);
      melt.value = String(at);
      melt.setAttribute("aria-valuetext", t(STAGES[near]!));
      steps.forEach((one, k) => one.setAttribute("aria-pressed", String(k === near && !between)));
      mark(i, j);

      refill(equal, ...(measured.difference === undefined ? [t(both("A step between the two models: its score is the sum of these four maps.", "两种模型之间的一步：分数就是这四张图之和。"))] : [
        t(both("The four terms sum to the score that is computed at once; the largest difference is ", "四项之和就是一次算出的分数，最大差异 ")),
        h("output", { "data-role": "difference", "data-value": measured.difference }, shown(measured.difference)), t(both(".", "。"))]));
      beside(() => {
        addUp(bars, SWITCHES.map((_, k) => ({ name: t(NAMES[near]![k]!), value: here(term(k).values), on: on[k]! })), t(both("score", "分数")));
        refill(table, plainTable(t(both(`Query ${words[i]} ${i}`, `查询 ${words[i]} ${i}`)), [t(both("key", "键")), ...NAMES[near]!.map(t), t(both("score", "分数")), t(both("weight", "权重"))],
          words.map((word, c) => [`${word} ${c}`, ...SWITCHES.map((_, k) => term(k).values[i * n + c]!), scores[i * n + c]!, alpha[i * n + c]!])));
      });

      const chosen = SWITCHES.indexOf(state["term"] as (typeof SWITCHES)[number]);
      const [score, weight, one] = [here(scores), here(alpha), here(term(chosen).values)];
      const used = SWITCHES.flatMap((_, k) => (on[k] ? [k] : []));
      const cell = `[${words[i]} ${i}, ${words[j]} ${j}]`;
      const product = (): Child[] => {
        if (between) return [t(both(`between two steps, ${shown(share, 2)} of the way`, `在两步之间，走了 ${shown(share, 2)}`))];
        const [left, right] = operands(data, near, chosen, i, j);
        return [...QUERIES[PARTS[near]![chosen]![0]]!(), ...KEYS[PARTS[near]![chosen]![1]]!(), " / √4 = (", left.map((a, c) => `${inner(a)}·${inner(right[c]!)}`).join(" + "), ") / 2"];
      };
      refill(stage.formula, formula(
        [...product(), " = ", h("output", { "data-role": "term", "data-value": one }, shown(one))],
        [
          `${t(both("score", "分数"))} ${cell} = `,
          used.length ? used.map((k) => inner(here(term(k).values))).join(" + ") : "0", " = ",
          h("output", { "data-role": "value", "data-value": score }, shown(score)),
        ],
        [
          `${t(both("weight", "权重"))} ${cell} = e`, sup(short(score)), " / (",
          ...(n <= MOST_LABELS ? words.flatMap((_, c): Child[] => [c ? " + " : "", "e", sup(short(scores[i * n + c]!))]) : ["Σ", sub("c"), " e", sup(t(both("score", "分数")))]), ") = ",
          h("output", { "data-role": "weight", "data-value": weight }, shown(weight)),
        ],
      ));
      stage.code(between ? "" : `stages[${near}, ${used.length === 4 ? ":" : `[${used.join(", ")}]`}, ${i}, ${j}].sum()  # ${score}`);
      const said = `${cell} ${t(NAMES[near]![chosen]!)} ${shown(one)}, ${t(both("score", "分数"))} ${shown(score)}, ${t(both("weight", "权重"))} ${shown(weight)}`;
      if (before && before !== said && !between) stage.announce(said);
      before = said;
    };

    /** The words beside the rows and above the columns. */
    function label(words: string[]): void {
      const few = words.length <= MOST_LABELS;
      const named = () => words.map((word, index) => h("span", { "data-word": index, class: few ? "" : "hidden-word" }, word));
      for (const down of downs) fill(down.firstElementChild!, ...named());
      for (const one of [...cards, sum, weights]) fill(one.across, ...named());
    }
    function mark(i: number, j: number): void {
      for (const [place, index] of [...downs.map((down) => [down, i] as const), ...[...cards, sum, weights].map((one) => [one.across, j] as const)])
        place.querySelectorAll("[data-word]").forEach((one) => one.classList.toggle("here", Number((one as HTMLElement).dataset["word"]) === index));
    }

    /** All products, sums and weights again, against Python's. */
    function check(data: Data): void {
      const n = (data.facts as Facts).words.length;
      let worst = 0;
      let count = 0;
      const against = (mine: number, theirs: number) => {
        worst = Math.max(worst, Math.abs(mine - theirs));
        count += 1;
      };
      for (let step = 0; step <= LAST; step++) {
        const values = blended(data, step, 0, n);
        const scores = added(values, [true, true, true, true], n);
        const alpha = softmax(scores, n);
        const model = step === 0 ? "absolute" : step === LAST ? "relative" : "";
        for (let at = 0; at < n * n; at++) {
          if (model) {
            against(scores[at]!, array(data, `${model}_score`).values[at]!);
            against(alpha[at]!, array(data, `${model}_weights`).values[at]!);
          }
          for (let k = 0; k < 4; k++) {
            const [left, right] = operands(data, step, k, Math.floor(at / n), at % n);
            against(left.reduce((all, one, c) => all + one * right[c]!, 0) / Math.sqrt(left.length), values[k * n * n + at]!);
          }
        }
      }
      stage.checked(worst, count);
    }
  },
};

function valued(output: HTMLElement, value: number): void {
  output.dataset["value"] = String(value);
  say(output, shown(value, 2));
}

/** The four maps at a step, or a share of the way to the next. */
function blended(data: Data, step: number, share: number, n: number): Float64Array {
  const all = array(data, "stages").values as Float64Array;
  const size = 4 * n * n;
  const [from, to] = [step, step + 1].map((one) => all.subarray(one * size, (one + 1) * size)) as [Float64Array, Float64Array];
  return share === 0 ? from : share === 1 ? to : from.map((value, index) => value + share * (to[index]! - value));
}

/** Whether term k changes from a step to the next. */
function differs(data: Data, step: number, k: number, n: number): boolean {
  const [from, to] = [blended(data, step, 0, n), blended(data, step, 1, n)];
  return from.subarray(k * n * n, (k + 1) * n * n).some((value, index) => value !== to[k * n * n + index]);
}

/** Of every term and every sum at every step, so that one scale of colours serves all. */
function largest(data: Data, n: number): number {
  let most = 0;
  for (let step = 0; step <= LAST; step++) {
    const values = blended(data, step, 0, n);
    for (const value of [...values, ...added(values, [true, true, true, true], n)]) most = Math.max(most, Math.abs(value));
  }
  return most;
}

/** Bars one after the other, each from where the one before ended, and their sum. */
function addUp(place: HTMLElement, terms: { name: string; value: number; on: boolean }[], whole: string): void {
  let end = 0;
  const bars = terms.map(({ name, value, on }) => {
    const start = end;
    if (on) end += value;
    return { name, value, on, from: start, to: on ? end : start };
  });
  bars.push({ name: whole, value: end, on: true, from: 0, to: end });
  const ends = bars.flatMap(({ from, to }) => [from, to]);
  const at = scale(Math.min(0, ...ends), Math.max(0, ...ends, 1e-9), 2, 98);
  refill(place, ...bars.map(({ name, value, on, from, to }, index) => {
    const bar = h("i", { class: index === terms.length ? "all" : value < 0 ? "minus" : "plus" });
    bar.style.left = `${at.place(Math.min(from, to))}%`;
    bar.style.width = `${Math.abs(at.place(to) - at.place(from))}%`;
    const zero = h("u", {});
    zero.style.left = `${at.place(0)}%`;
    return h("div", { class: on ? "step" : "step away-from", "data-value": value }, h("span", {}, name), h("span", { class: "track" }, zero, bar), h("output", {}, shown(value, 2)));
  }));
}

const short = (value: number) => tidy(Number(value.toFixed(4)));
const inner = (value: number) => (value < 0 ? `(${short(value)})` : short(value));

function added(values: ArrayLike<number>, on: boolean[], n: number): Float64Array {
  return Float64Array.from({ length: n * n }, (_, at) => on.reduce((sum, one, k) => sum + (one ? values[k * n * n + at]! : 0), 0));
}

function softmax(scores: Float64Array, n: number): Float64Array {
  const found = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    const line = scores.subarray(i * n, (i + 1) * n);
    const most = Math.max(...line);
    const powers = line.map((score) => Math.exp(score - most));
    const total = powers.reduce((sum, one) => sum + one, 0);
    found.set(powers.map((power) => power / total), i * n);
  }
  return found;
}

/** The two vectors whose product is term k of a score at a step. */
function operands(data: Data, step: number, k: number, i: number, j: number): [number[], number[]] {
  const of = (name: string, index: number) => Array.from(row(array(data, name), index));
  const [query, key] = PARTS[step]![k]!;
  const distance = i - j + (array(data, "r").shape[0]! - 1) / 2;
  return [query === "u" || query === "v" ? of(query, 0) : of(`q_${query}`, i), key === "r" ? of("r", distance) : of(`k_${key}`, j)];
}
