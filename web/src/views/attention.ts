// Attention in eight steps. The step at which a method uses position is marked in amber.

import { array, type Data } from "../data";
import { type Child, fill, h, refill } from "../dom";
import { formula } from "../parts/formula";
import { matrix, type Matrix } from "../parts/matrix";
import { player } from "../parts/player";
import { predict } from "../parts/predict";
import { number, own, type View } from "../view";
import { both, shown, SPLIT, type Words } from "../words";
import styles from "./attention.css";
import { framesOf, made, valueOf, type About, type Part } from "./attention_frames";

const OWN = {
  frame: own.whole(2, 1, 8), speed: own.real(0.5, 0.25, 2), head: own.choice("0", "0", "1"), part: own.text("", 12),
  row: own.whole(1, 0, 23), column: own.whole(0, 0, 47),
};

const ENTERS: Record<string, Words> = {
  EMBED: both("+ position", "＋位置"), ROTATE: both("turned", "旋转"), BIAS: both("+ bias", "＋偏置"),
  CONTEXT: both("+ count", "＋计数"), VALUE: both("+ distance", "＋距离"), MASK: both("order too", "也含次序"),
};
/** Arrays that hold what position brings. */
const ENTERING = ["position", "q_hat", "k_hat", "counts", "added", "value_added"];

export const view: View = {
  name: "attention",
  title: both("Attention, step by step", "注意力，一步一步"),
  idea: both(
    "Attention compares the query of each word with all keys and averages the values with the resulting weights. Each method uses position at a different step, which is marked in amber.",
    "注意力把每个词的查询与所有的键比较，再按得到的权重对值求加权平均。不同的方法在不同的一步使用位置，这一步用琥珀色标出。",
  ),
  notice: [
    both("Sinusoidal and learned tables are added to the embedding at step 2. RoPE rotates queries and keys at step 3. ALiBi and T5 are added to the score at step 4. Shaw is used at step 4 and again at step 7.", "正弦编码和可学习的表在第 2 步加到词向量上。RoPE 在第 3 步旋转查询和键。ALiBi 和 T5 在第 4 步加到注意力分数上。Shaw 在第 4 步和第 7 步使用。"),
    both("Steps before the marked one are the same for every method. With RoPE, q, k and v before the rotation are the same as without positions.", "标记之前的各步，所有方法都相同。用 RoPE 时，旋转之前的 q、k、v 与不用位置时相同。"),
    both("With 猫 吃 鱼 or its translation, sinusoids and base 100, step 2 is a sum that the notes from which posenc began work out by hand; they cut off two digits (.198 and .598) where they round to .199 and .599.", "用“猫 吃 鱼”、正弦、底数 100 时，第 2 步就是 posenc 最初的笔记手算的加法；笔记把 .1987 和 .5987 截成 .198 和 .598，四舍五入应为 .199 和 .599。"),
    both("With 我 喜欢 猫 or its translation and no position, q is the Q that the same notes compute by hand: only one of its nine entries is right.", "用“我 喜欢 猫”、不用位置时，q 就是同一份笔记手算的 Q：九个数里只有一个是对的。"),
  ],
  papers: [
    { text: "Vaswani et al. 2017, section 3.2", href: "https://arxiv.org/abs/1706.03762" },
    { text: "Su et al. 2021 (RoPE)", href: "https://arxiv.org/abs/2104.09864" },
    { text: "Shaw et al. 2018", href: "https://arxiv.org/abs/1803.02155" },
  ],
  own: OWN,
  styles,
  controls: [
    { name: "encoding", label: both("method", "方法") },
    { name: "sentence", label: both("your sentence", "你的句子"), as: "sentence", rule: SPLIT, examples: [
      "猫 吃 鱼", "cat eats fish", "我 喜欢 猫", "I like cats", "我 爱 你", "I love you", "人工 智能 正在 快速 发展", "Artificial intelligence is rapidly growing",
    ] },
    { name: "causal", label: both("causal mask", "因果掩码") },
    { name: "base", label: both("base", "底数"), scale: "log" },
    { name: "n_heads", label: both("heads", "头数"), as: "number" },
    { name: "head", label: both("head shown", "显示的头"), when: (state) => state["n_heads"] === 2 },
  ],
  build(stage) {
    const play = player(stage, { name: "frame", speed: "speed", parameter: OWN.frame, speeds: [0.25, 0.5, 1, 2] });
    const steps = Array.from(
      { length: 8 },
      (_, index) => h("button", { type: "button", "data-frame": index + 1, click: () => stage.set({ frame: index + 1 }) }),
    );
    const pipeline = h(
      "nav", { class: "pipeline", "aria-label": stage.t(both("The steps of attention", "注意力的各步")) },
      h("ol", {}, ...steps.map((step) => h("li", {}, step))),
    );
    pipeline.addEventListener("keydown", (event) => {
      const now = steps.indexOf(event.target as HTMLButtonElement);
      const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: 7 }[event.key];
      if (now < 0 || next === undefined || !steps[next]) return;
      event.preventDefault();
      stage.set({ frame: next + 1 });
      steps[next]!.focus();
    });
    const panel = h("section", { class: "frame", "aria-label": stage.t(both("This step", "这一步")) });
    const equal = h("p", { class: "small" });
    const question = predict(stage, {
      question: both("RoPE, step 3: which of the three depend on the position of the word?", "RoPE 的第 3 步：三者之中，哪些取决于词的位置？"),
      choices: [both("q, k and v", "q、k 和 v"), both("q and k", "q 和 k"), both("only k", "只有 k")], right: 1,
      because: both("Queries and keys are rotated, values are not. Position changes the attention weights, not the values.", "查询和键会旋转，值不会。位置改变注意力权重，不改变值。"),
    }, () => stage.set({ encoding: "rope", frame: 3 }));
    stage.root.append(pipeline, panel, play.element, equal, question);

    let shownOf: Data | null = null;
    let shownFrame = 0;
    let drawn: [Part, Matrix][] = [];
    let before = "";

    return (data, state) => {
      const about = data.facts as unknown as About;
      const frames = framesOf(about, data);
      const at = number(state, "frame");
      const frame = frames[at - 1]!;
      const head = Math.min(Number(state["head"]), about.n_heads - 1);
      if (shownOf !== data) check(data);
      if (shownOf !== data || shownFrame !== at) build(data, at);
      [shownOf, shownFrame] = [data, at];
      play.draw(state);
      steps.forEach((step, index) => {
        const one = frames[index]!;
        const site = one.site ?? (index === 4 && about.causal ? "MASK" : undefined);
        if (site) step.dataset["site"] = site;
        else delete step.dataset["site"];
        step.setAttribute("aria-current", index === at - 1 ? "step" : "false");
        refill(step, h("small", {}, index + 1), h("b", {}, stage.t(one.title)), site ? h("em", {}, stage.t(ENTERS[site]!)) : null);
      });
      refill(
        equal,
        stage.t(stage.source.live || !stage.source.computes("attention", state) ? both("posenc.attend gives the same output; the largest difference is ", "posenc.attend 算出同样的输出，最大差异 ")
          : both("Computed again, one query after another, the output is the same; the largest difference is ", "逐个查询重算一遍，输出相同，最大差异 ")),
        h("output", { "data-role": "difference", "data-value": about.difference }, shown(about.difference)),
        stage.t(both(".", "。")),
      );

      const parts = drawn.map(([part]) => part);
      const chosen = parts.find((part) => part.name === state["part"]) ?? parts.at(-1);
      if (!chosen) {
        const word = Math.min(number(state, "row"), about.words.length - 1);
        panel.querySelectorAll("[data-word]").forEach((button, index) => button.setAttribute("aria-pressed", String(index === word)));
        refill(
          stage.formula,
          formula([`${about.words[word]}: `, h("span", { class: "position" }, "p = "), h("output", { "data-role": "value", "data-value": word }, word)]),
        );
        said(`${stage.t(frame.title)}. ${stage.t(frame.says)}`);
        return;
      }
      const [rows, columns] = array(data, chosen.name).shape.slice(-2) as [number, number];
      const [row, column] = [Math.min(number(state, "row"), rows - 1), Math.min(number(state, "column"), columns - 1)];
      const how = made(data, chosen.name, head, row, column);
      const most = Math.max(...drawn.filter(([part]) => !part.amount).map(([part]) => size(data, part.name)), 1);
      for (const [part, one] of drawn) {
        const { shape, values } = array(data, part.name);
        const [r, c] = shape.slice(-2) as [number, number];
        one.draw({
          values: shape.length === 3 ? values.subarray(head * r * c, (head + 1) * r * c) : values,
          cursor: part === chosen ? [row, column] : undefined, map: part.amount ? "amount" : "diverging",
          limit: part.amount ? 1 : most, lit: how.from[part.name],
        });
      }
      const value = valueOf(data, chosen.name, head, row, column);
      const name = [stage.t(chosen.title).split(/, |，/)[0]!, " [", label(about, chosen.rows ?? "words", row), ", ", label(about, chosen.columns, column), "]"];
      const print = head === 0 ? about.printed[chosen.name]?.[row]?.[column] : undefined;
      const verdicts: Record<string, Words> = {
        same: both("correct", "正确"), truncated: both("truncated instead of rounded", "截断，没有四舍五入"),
        different: both("wrong", "错误"),
      };
      const result = h("output", { "data-role": "value", "data-value": value }, shown(value, 6));
      refill(stage.formula, formula([...name, how.letters.length ? " = " : "", ...how.letters], [...how.numbers, how.numbers.length ? " = " : "= ", result]),
        print ? h("p", { class: "small", "data-role": "printed" }, `${stage.t(both("The notes from which posenc began print", "posenc 最初的笔记写的是"))} ${print[0].replace("-", "−")}${stage.t(both(": ", "："))}${stage.t(verdicts[print[1]]!)}${stage.t(both(".", "。"))}`) : null);
      stage.code(`${chosen.name}[${array(data, chosen.name).shape.length === 3 ? `${head}, ` : ""}${row}, ${column}]  # ${value}`);
      said(`${stage.t(frame.title)}. ${name.map((one) => (one instanceof Node ? one.textContent : one)).join("")}: ${shown(value)}`);
    };

    /** Nothing is said of the first picture: nobody asked yet. */
    function said(text: string): void {
      if (before && before !== text) stage.announce(text);
      before = text;
    }

    function build(data: Data, at: number): void {
      const about = data.facts as unknown as About;
      const frame = framesOf(about, data)[at - 1]!;
      drawn = [];
      const drawnOf = (one: Part) => {
        const [rows, columns] = array(data, one.name).shape.slice(-2) as [number, number];
        const names = (count: number, kind: string) => Array.from({ length: count }, (_, index) => label(about, kind, index));
        const map = matrix({
          title: stage.t(one.title), rows: names(rows, one.rows ?? "words"), columns: names(columns, one.columns),
          pick: (row, column) => stage.set({ part: one.name, row, column }),
        });
        map.element.dataset["part"] = one.name;
        if (frame.site && ENTERING.includes(one.name)) map.element.classList.add("entering");
        drawn.push([one, map]);
        return map.element;
      };
      // A sign wraps together with the element after it.
      const lines = frame.lines.map((line) => h("div", { class: "matrices" }, ...line.flatMap((one, index) => {
        if (typeof one === "string") return [];
        const sign = line[index - 1];
        return [h("div", { class: "signed" }, typeof sign === "string" && h("span", { class: "sign", "aria-hidden": "true" }, sign), drawnOf(one))];
      })));
      const words = at === 1 ? [h(
        "ol", { class: "sentence" },
        ...about.words.map((word, index) => h(
          "li", {},
          h("button", { type: "button", "data-word": index, click: () => stage.set({ row: index }) }, word, h("small", { class: "position" }, index)),
        )),
      )] : [];
      fill(panel, h("h2", {}, `${at} · ${stage.t(frame.title)}`), h("p", {}, stage.t(frame.says)), ...words, ...lines);
    }

    /** Every number that the page can make itself, against Python's. */
    function check(data: Data): void {
      const about = data.facts as unknown as About;
      let worst = 0;
      let count = 0;
      for (const name of new Set(framesOf(about, data).flatMap((frame) => frame.lines.flat()).flatMap((one) => (typeof one === "string" ? [] : [one.name])))) {
        const [rows, columns] = array(data, name).shape.slice(-2) as [number, number];
        for (let head = 0; head < about.n_heads; head++) for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
          const { result } = made(data, name, head, row, column);
          if (result === undefined || !Number.isFinite(result)) continue;
          worst = Math.max(worst, Math.abs(result - valueOf(data, name, head, row, column)));
          count += 1;
        }
      }
      stage.checked(worst, count);
    }
  },
};

function size(data: Data, name: string): number {
  return Math.max(...Array.from(array(data, name).values, Math.abs).filter(Number.isFinite));
}

/** What a row or a column is: a word with its position, a channel, or a channel of one of two heads. */
function label({ words, n_heads, d_head }: About, kind: string, index: number): Child {
  if (kind === "words") return h("span", { class: "word" }, words[index]!, " ", h("small", { class: "position" }, index));
  return kind === "heads" && n_heads > 1 ? h("span", { class: "channel" }, `${Math.floor(index / d_head)}·${index % d_head}`) : h("span", { class: "channel" }, index);
}
