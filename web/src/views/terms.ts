// A score as the sum of its four terms, each of which can be switched off, and the four terms of Transformer-XL.

import { array, row, type Data } from "../data";
import { fill, h, type Child } from "../dom";
import { scale, tidy } from "../parts/chart";
import { formula, sub, sup } from "../parts/formula";
import { matrix } from "../parts/matrix";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { number, own, type View } from "../view";
import { both, shown, SPLIT, type Words } from "../words";
import styles from "./terms.css";
import { taylorOf } from "./terms_taylor";

type Model = "absolute" | "relative";
const SWITCHES = ["cc", "cp", "pc", "pp"] as const;
const OWN = {
  model: own.choice("absolute", "absolute", "relative"), term: own.choice("cc", ...SWITCHES), row: own.whole(1, 0, 7), column: own.whole(2, 0, 7),
  cc: own.yes(true), cp: own.yes(true), pc: own.yes(true), pp: own.yes(true), scale: own.whole(8, 0, 8),
};

const NAMES: Record<Model, Words[]> = {
  absolute: [
    both("content · content", "内容 · 内容"), both("content · position", "内容 · 位置"), both("position · content", "位置 · 内容"),
    both("position · position", "位置 · 位置"),
  ],
  relative: [
    both("(a) content · content", "(a) 内容 · 内容"), both("(b) content · distance", "(b) 内容 · 距离"),
    both("(c) content bias (u)", "(c) 内容偏置（u）"), both("(d) distance bias (v)", "(d) 距离偏置（v）"),
  ],
};

/** Elements of the letters; each use needs new ones. */
const LETTERS: Record<Model, (() => Child[])[]> = {
  absolute: (["x x", "x p", "p x", "p p"] as const).map((pair) => () => [
    letter(pair[0]!), sub("i"), sup("⊤"), "W", sub("q"), sup("⊤"), "W", sub("k"), letter(pair[2]!), sub("j"),
  ]),
  relative: [
    () => ["q", sub("i"), "·k", sub("j")], () => ["q", sub("i"), "·W", sub("R"), position("R"), sub("i−j")],
    () => ["u·k", sub("j")], () => ["v·W", sub("R"), position("R"), sub("i−j")],
  ],
};

/** What is multiplied: above and beside the four products. */
const SIDES = ["above-1", "above-2", "beside-1", "beside-2"];
const FACTORS: Record<Model, Words[]> = {
  absolute: [both("key: its word", "键：词"), both("key: its position", "键：位置"), both("query: its word", "查询：词"), both("query: its position", "查询：位置")],
  relative: [both("key: its word", "键：词"), both("distance i − j", "距离 i − j"), both("query: its word", "查询：词"), both("learned vectors u, v", "可学习向量 u、v")],
};

/** The replacements that Transformer-XL makes in each term. */
const REPLACED: (() => Child[])[] = [
  () => [], () => [position("p"), sub("j"), " → ", position("R"), sub("i−j"), ",  W", sub("k"), " → W", sub("R")],
  () => [position("p"), sub("i"), sup("⊤"), "W", sub("q"), sup("⊤"), " → u"],
  () => [
    position("p"), sub("i"), sup("⊤"), "W", sub("q"), sup("⊤"), " → v,  ", position("p"), sub("j"), " → ",
    position("R"), sub("i−j"), ",  W", sub("k"), " → W", sub("R"),
  ],
];

const position = (text: string) => h("span", { class: "position" }, text);
const letter = (one: string) => (one === "p" ? position("p") : "x");
/** Differences below this are rounding. */
const ROUNDING = 1e-12;

interface Facts {
  words: string[];
  absolute: Measured;
  relative: Measured;
}

interface Measured {
  moved: number[];
  along_diagonals: number[];
  difference: number;
}

export const view: View = {
  name: "terms",
  title: both("Four terms of a score", "分数的四项"),
  idea: both(
    "With positions added to the embeddings, a score is a product of two sums, content plus position: four terms. Transformer-XL keeps the four terms and replaces absolute positions by the distance i−j and two learned vectors.",
    "位置加到词向量上以后，两个词的分数是两个“内容＋位置”的乘积，展开成四项。Transformer-XL 保留这四项，把绝对位置换成距离 i−j 和两个可学习的向量。",
  ),
  notice: [
    both("Content · content depends only on the words: in 猫 追 老鼠 老鼠 追 猫 the rows of the two 猫 are the same.", "“内容 · 内容”只取决于词：在“猫 追 老鼠 老鼠 追 猫”里，两个“猫”的两行完全相同。"),
    both("With random projections, position · position is not a function of the distance: its diagonals are not constant. With identity projections they are constant, because PE(i)·PE(j) depends only on i−j.", "投影矩阵随机时，“位置 · 位置”不是距离的函数：同一条对角线上的数不相等。投影取单位矩阵时相等，因为 PE(i)·PE(j) 只取决于 i−j。"),
    both("A shift of all positions changes none of Transformer-XL's four terms, but only (d) depends on the distance alone. (a) and (c) depend on words, (b) on a word and a distance.", "整体平移不改变 Transformer-XL 的四项，但只有 (d) 只取决于距离。(a) 和 (c) 取决于词，(b) 取决于一个词和一个距离。"),
    both("Note 002 writes q·R and v·R. The paper has a separate projection for the distances, W_R (written W_k,R in the paper). With identity projections the page shows the note's formula.", "笔记 002 写的是 q·R 与 v·R。论文对距离使用单独的投影 W_R（原文记作 W_k,R）。所有投影取单位矩阵时，这里显示笔记的公式。"),
  ],
  papers: [
    { text: "Dai et al. 2019 (Transformer-XL), section 3.3", href: "https://arxiv.org/abs/1901.02860" },
    { text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" },
  ],
  own: OWN,
  styles,
  controls: [
    {
      name: "model", label: both("score", "分数"),
      choices: { absolute: both("positions added to words", "位置加到词上"), relative: both("Transformer-XL", "Transformer-XL") },
    },
    { name: "sentence", label: both("your sentence", "你的句子"), as: "sentence", rule: SPLIT, examples: [
      "猫 追 老鼠 老鼠 追 猫", "cat chases mouse mouse chases cat", "猫 吃 鱼", "我 喜欢 猫", "人工 智能 正在 快速 发展", "这部 电影 很 无聊 但 表演 很 精彩",
    ] },
    { name: "projection", label: both("projections", "投影矩阵"), choices: { drawn: both("random", "随机"), identity: both("identity", "单位矩阵") } },
    { name: "shift", label: both("shift of all positions", "整体后移") },
    { name: "base", label: both("base", "底数"), scale: "log" },
    { name: "seed", label: both("random seed", "随机种子"), as: "number" },
  ],
  build(stage) {
    const cards = SWITCHES.map((name) => {
      const box = h("input", { type: "checkbox", role: "switch", "data-switch": name, change: () => stage.set({ [name]: box.checked }) });
      const [title, letters, map, measured] = [h("b", {}), h("span", { class: "letters" }), h("div", {}), h("ul", { class: "measured" })];
      return {
        name, box, title, letters, map, measured,
        element: h("section", { class: "term", "data-term": name }, h("label", {}, box, title, letters), map, measured),
      };
    });
    const [sum, weights] = [h("div", {}), h("div", {})];
    const equal = h("p", { class: "small" });
    const taylor = taylorOf(stage);
    const question = predict(stage, {
      question: both("Shift the whole sentence by 100 positions. With positions added to the embeddings, which of the four terms do not change?", "把整句话后移 100 个位置。位置加到词向量上时，四项中哪些不变？"),
      choices: [
        both("all four", "四项都不变"), both("content · content and position · position", "“内容 · 内容”和“位置 · 位置”"),
        both("content · content only", "只有“内容 · 内容”"),
      ], right: 2,
      because: both("Every term that contains p changes. Position · position would not change if W_q and W_k were the identity. None of Transformer-XL's four terms changes. Try both above.", "凡是含 p 的项都会变。如果 W_q 与 W_k 是单位矩阵，“位置 · 位置”不变。Transformer-XL 的四项都不变。可在上面切换来看。"),
    }, () => stage.set({ model: "absolute", projection: "drawn", shift: 100 }));
    const [factors, steps] = [SIDES.map((side) => h("div", { class: `factor ${side}` })), h("div", { class: "steps" })];
    stage.root.append(h("div", { class: "product" }, ...factors, ...cards.map((card) => card.element),
      h("div", { class: "result-of" },
        h("section", { class: "addends" }, h("b", {}, stage.t(both("The chosen cell, term by term", "所选格子，逐项相加"))), steps),
        h("section", { class: "whole sum" }, h("b", {}, stage.t(both("= score: the terms that are on", "= 分数：打开的各项之和"))), sum),
        h("section", { class: "whole weights" }, h("b", {}, stage.t(both("→ weights, softmax of every row", "→ 权重：每行作 softmax"))), weights))), equal, taylor.element, question);

    let shownOf: Data | null = null;
    let maps: ReturnType<typeof matrix>[] = [];
    let before = "";

    return (data, state) => {
      const facts = data.facts as Facts;
      const { words } = facts;
      const t = words.length;
      if (shownOf !== data) {
        shownOf = data;
        build(words);
        check(data);
      }
      const model = state["model"] as Model;
      const [i, j] = [Math.min(number(state, "row"), t - 1), Math.min(number(state, "column"), t - 1)];
      const values = array(data, model).values;
      const term = (n: number) => values.subarray(n * t * t, (n + 1) * t * t);
      const on = SWITCHES.map((name) => state[name] as boolean);
      const scores = added(values, on, t);
      const alpha = softmax(scores, t);
      const limit = Math.max(...Array.from(values, Math.abs), 1);
      const lit = (r: number, c: number) => r - c === i - j;
      const measured = facts[model];
      const shift = number(state, "shift");
      cards.forEach((card, n) => {
        card.box.checked = on[n]!;
        card.element.classList.toggle("off", !on[n]);
        fill(card.title, stage.t(NAMES[model][n]!));
        fill(card.letters, ...LETTERS[model][n]!());
        maps[n]!.draw({ values: term(n), cursor: [i, j], limit, lit });
        const [constant, still] = [measured.along_diagonals[n]! < ROUNDING, measured.moved[n]! < ROUNDING];
        fill(card.measured,
          model === "relative" ? n ? h("li", { class: "letters" }, ...REPLACED[n]!()) : h("li", {}, stage.t(both("as before", "与原来相同"))) : null,
          h(
            "li",
            { class: constant ? "yes" : "", "data-role": "diagonals", "data-value": measured.along_diagonals[n]! },
            constant ? stage.t(both("✓ constant along every diagonal: a function of i−j", "✓ 每条对角线上的值相等：只是 i−j 的函数")) : `${stage.t(both("along a diagonal it differs by up to", "同一条对角线上最多相差"))} ${shown(measured.along_diagonals[n]!, 2)}`,
          ),
          shift ? h("li", { class: still ? "yes" : "", "data-role": "moved", "data-value": measured.moved[n]! }, still ? stage.t(both(`✓ unchanged by the shift of ${shift}`, `✓ 后移 ${shift} 位，不变`)) : `${stage.t(both(`changed by the shift of ${shift}: up to`, `后移 ${shift} 位，最多变化`))} ${shown(measured.moved[n]!, 2)}`) : null);
      });
      maps[4]!.draw({ values: scores, cursor: [i, j], limit: Math.max(...Array.from(scores, Math.abs), 1), lit });
      maps[5]!.draw({ values: alpha, cursor: [i, j], map: "amount", limit: 1, lit });
      fill(
        equal,
        stage.t(both("The four terms sum to the library's own score; the largest difference is ", "四项之和就是库里算出的分数，最大差异 ")),
        h("output", { "data-role": "difference", "data-value": measured.difference }, shown(measured.difference)),
        stage.t(both(".", "。")),
      );

      factors.forEach((factor, n) => (factor.textContent = stage.t(FACTORS[model][n]!)));
      addUp(steps, SWITCHES.map((_, n) => ({ name: stage.t(NAMES[model][n]!), value: term(n)[i * t + j]!, on: on[n]! })), stage.t(both("score", "分数")));
      taylor.draw(data, number(state, "scale"));
      const chosen = SWITCHES.indexOf(state["term"] as (typeof SWITCHES)[number]);
      const [left, right] = operands(data, model, chosen, i, j);
      const [score, weight] = [scores[i * t + j]!, alpha[i * t + j]!];
      const used = SWITCHES.flatMap((_, n) => (on[n] ? [n] : []));
      const at = `[${words[i]} ${i}, ${words[j]} ${j}]`;
      fill(stage.formula, formula(
        [
          ...LETTERS[model][chosen]!(), " / √4 = (",
          left.map((one, c) => `${inner(one)}·${inner(right[c]!)}`).join(" + "), ") / 2 = ",
          h("output", { "data-role": "term", "data-value": term(chosen)[i * t + j]! }, shown(term(chosen)[i * t + j]!)),
        ],
        [
          `${stage.t(both("score", "分数"))} ${at} = `,
          used.length ? used.map((n) => inner(term(n)[i * t + j]!)).join(" + ") : "0", " = ",
          h("output", { "data-role": "value", "data-value": score }, shown(score)),
        ],
        [
          `${stage.t(both("weight", "权重"))} ${at} = e`, sup(short(score)), " / (",
          ...words.flatMap((_, c): Child[] => [c ? " + " : "", "e", sup(short(scores[i * t + c]!))]), ") = ",
          h("output", { "data-role": "weight", "data-value": weight }, shown(weight)),
        ],
      ));
      stage.code(`${model}[${used.length === 4 ? ":" : `[${used.join(", ")}]`}, ${i}, ${j}].sum()  # ${score}`);
      const said = `${at} ${stage.t(NAMES[model][chosen]!)} ${shown(term(chosen)[i * t + j]!)}, ${stage.t(both("score", "分数"))} ${shown(score)}, ${stage.t(both("weight", "权重"))} ${shown(weight)}`;
      if (before && before !== said) stage.announce(said);
      before = said;
    };

    function build(words: string[]): void {
      const label = (index: number) => h("span", { class: "word" }, words[index]!, " ", h("small", { class: "position" }, index));
      stage.root.style.setProperty("--columns", String(words.length));
      const one = (place: HTMLElement, title: Words, choice: State) => {
        const made = matrix({
          title: stage.t(title), digits: 2, rows: words.map((_, index) => label(index)),
          columns: words.map((_, index) => label(index)), pick: (row, column) => stage.set({ ...choice, row, column }),
        });
        fill(place, made.element);
        return made;
      };
      maps = [
        ...cards.map((card, n) => one(card.map, NAMES.absolute[n]!, { term: card.name })),
        one(sum, both("score", "分数"), {}), one(weights, both("weights", "权重"), {}),
      ];
    }

    /** All products, sums and weights again, against Python's. */
    function check(data: Data): void {
      const t = (data.facts as Facts).words.length;
      let worst = 0;
      let count = 0;
      const against = (mine: number, theirs: number) => {
        worst = Math.max(worst, Math.abs(mine - theirs));
        count += 1;
      };
      for (const model of ["absolute", "relative"] as const) {
        const values = array(data, model).values;
        const scores = added(values, [true, true, true, true], t);
        const alpha = softmax(scores, t);
        for (let at = 0; at < t * t; at++) {
          against(scores[at]!, array(data, `${model}_score`).values[at]!);
          against(alpha[at]!, array(data, `${model}_weights`).values[at]!);
          for (let n = 0; n < 4; n++) {
            const [left, right] = operands(data, model, n, Math.floor(at / t), at % t);
            against(left.reduce((all, one, c) => all + one * right[c]!, 0) / Math.sqrt(left.length), values[n * t * t + at]!);
          }
        }
      }
      stage.checked(worst, count);
    }
  },
};

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
  fill(place, ...bars.map(({ name, value, on, from, to }, index) => {
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

function added(values: ArrayLike<number>, on: boolean[], t: number): number[] {
  return Array.from({ length: t * t }, (_, at) => on.reduce((sum, one, n) => sum + (one ? values[n * t * t + at]! : 0), 0));
}

function softmax(scores: number[], t: number): number[] {
  const powers = scores.map((score, at) => Math.exp(score - Math.max(...scores.slice(at - (at % t), at - (at % t) + t))));
  return powers.map((power, at) => power / powers.slice(at - (at % t), at - (at % t) + t).reduce((sum, one) => sum + one, 0));
}

/** The two vectors whose product is term n of a score. */
function operands(data: Data, model: Model, n: number, i: number, j: number): [number[], number[]] {
  const of = (name: string, index: number) => Array.from(row(array(data, name), index));
  if (model === "absolute") return [of(n < 2 ? "q_x" : "q_p", i), of(n % 2 ? "k_p" : "k_x", j)];
  const distance = i - j + (array(data, "r").shape[0]! - 1) / 2;
  return [n < 2 ? of("q_x", i) : of(n === 2 ? "u" : "v", 0), n % 2 ? of("r", distance) : of("k_x", j)];
}
