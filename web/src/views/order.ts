// One sentence with its words reordered, and the outputs of attention and of a recurrent network.
//
//   0   1   2      before; positions stay
//   我  爱  你
//     ╲ │ ╱
//   你  爱  我      after: drag, or arrow keys
//
// Python computes every order of a short sentence at once, and the page selects the current one; of a long sentence the page
// asks for the order that the reader makes.

import { array, row, type Data } from "../data";
import { type Child, fill, h, refill } from "../dom";
import { folded, plainTable } from "../parts/numbers";
import { formula, put, v } from "../parts/formula";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { number, own, type View } from "../view";
import { both, joined, shown, SPLIT, type Words } from "../words";
import styles from "./order.css";
import { chain, distances, envelopes, outputTable, weightTable, type Output } from "./order_pictures";
import { arrangement } from "./order_words";

/** An empty order is the one that is written; the answer to the question reverses it. */
const OWN = { order: own.text("", 80), word: own.whole(0, 0, 23), head: own.choice("1", "1", "2", "3", "4"), revealed: own.yes(false) };

export const view: View = {
  name: "order",
  title: both("I love you, you love me", "我爱你与你爱我"),
  idea: both(
    "“I love you” and “you love me” contain the same words in different orders. Attention without positions or mask gives each word the same output in both, because its input is a set of words without order.",
    "“我爱你”和“你爱我”用词相同，次序不同。没有位置也没有掩码的注意力在两句里给每个词同样的输出，因为它的输入是一组没有次序的词。",
  ),
  notice: [
    both(
      "Without positions and mask, the outputs are permuted like the words: A(PX) = P·A(X). This is equivariance, not invariance; only the average over all words is unchanged. The weights are permuted in rows and columns.",
      "没有位置、没有掩码时，输出与词作同样的重排：A(PX) = P·A(X)。这是等变，不是不变；只有对所有词的平均不变。注意力权重的行和列也作同样的重排。",
    ),
    both(
      "With positions, the words move, the positions stay, and the outputs change. If the positions moved with the words, the outputs would only be permuted.",
      "加上位置之后，词移动，位置不动，输出改变。如果位置随词一起移动，输出就只是重排。",
    ),
    both(
      "A causal mask alone also breaks the symmetry. In one layer the last word sees the others without order: if only the other words are re-ordered, its output does not change. With two layers it changes.",
      "只加因果掩码也会打破这种对称。只有一层时，最后一个词看到的前文没有次序：只重排前面的词，它的输出不变。有两层时，它的输出改变。",
    ),
    both(
      "ALiBi without a mask depends only on |i − j|: it does not distinguish a sentence from its reversal, but it distinguishes every other order of three words.",
      "没有掩码的 ALiBi 只取决于 |i − j|：它分不出“我爱你”和倒过来的“你爱我”，但能区分这三个词的其他次序。",
    ),
  ],
  papers: [
    { text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" },
    { text: "Haviv et al. 2022", href: "https://arxiv.org/abs/2203.16634" },
  ],
  own: OWN,
  controls: [
    { name: "sentence", label: both("your sentence", "你的句子"), as: "sentence", rule: SPLIT, examples: [
      "我爱你", "I love you", "我喜欢猫和狗", "猫 追 老鼠", "the cat chases the mouse", "猫吃鱼", "dog bites man", "我 喜欢 猫", "不怕辣", "屡战屡败",
    ] },
    { name: "encoding", label: both("positions", "位置编码") },
    { name: "causal", label: both("causal mask", "因果掩码") },
    { name: "layers", label: both("layers", "层数") },
    { name: "head", label: both("head shown", "显示的头") },
  ],
  styles,
  build(stage) {
    const t = stage.t;
    const question = predict(stage, {
      question: both("No positions, no mask: reverse the sentence. How do the outputs change?", "没有位置、没有掩码，把句子倒过来。各个词的输出会怎样？"),
      choices: [
        both("They do not change", "完全不变"),
        both("The same rows, reversed with the words", "还是那几行，跟着词一起倒过来"),
        both("Every word gets another output", "每个词的输出都变了"),
      ],
      right: 1,
      because: both("Each word has the same output as before, apart from rounding, at its new position.", "除舍入误差外，每个词的输出不变，只是出现在它的新位置上。"),
    }, () => stage.set({ order: "", revealed: true }));
    const words_ = arrangement(stage);
    const [weights, outputs, gauge, row_, recurrent] = [h("div", { class: "split" }), h("div", {}), h("div", {}), h("div", {}), h("div", {})];
    const apart = h("p", { class: "small" });
    const answer = h("div", { class: "split" }, outputs, gauge);
    const small = (words: Words) => h("p", { class: "small" }, t(words));
    const waiting = h("p", { class: "hint" }, t(both(
      "Answer the question or move a word, and the outputs appear here.", "回答上面的问题，或移动一个词，这里就会出现各词的输出。",
    )));
    stage.root.append(words_.element, question, weights, apart, waiting, answer, h("div", { class: "split" }, row_, recurrent));
    let before = "";

    return (data, state) => {
      const words = data.facts["words"] as string[];
      const r = standing(state, words, data);
      const now = Array.from(row(array(data, "orders"), r));
      const after = now.map((i) => words[i]!);
      const word = Math.min(number(state, "word"), words.length - 1);
      const place = now.indexOf(word);
      const distance = array(data, "distance").values[r]!;
      const open = state["revealed"] === true || touched(state);
      words_.draw(words, now, word);
      stage.root.classList.toggle("many", words.length > 8);

      const head = Number(state["head"]) - 1;
      const [looked, looks] = [part(data, "weights_before", head), part(data, "weights_after", head, r)];
      fill(weights,
        weightTable(stage, "before", t(both("Attention before: ", "调换前的注意力：")) + joined(words), words, looked, word),
        weightTable(stage, "after", t(both("Attention after: ", "调换后的注意力：")) + joined(after), after, looks, place));
      const moved = shifted(looked, looks, now);
      refill(apart, t(both("Word for word, these weights differ by at most ", "逐词对照，这些权重最多相差 ")),
        h("b", { "data-role": "weights-apart", "data-value": moved }, shown(moved)), t(both(".", "。")));
      fill(row_, h("h2", {}, t(both("An array and a multiset", "数组与多重集"))), envelopes(stage, words, after), small(both(
        "An array stores the position of each word. A multiset (bag) stores only the words and their counts. Attention without positions and mask uses only the multiset.",
        "数组记录每个词的位置。多重集（袋子）只记录有哪些词、各有几个。没有位置、没有掩码的注意力只用到多重集。",
      )));
      waiting.hidden = open;
      answer.hidden = recurrent.hidden = apart.hidden = stage.formula.hidden = !open;
      const found = compared(data, r, now, words);
      if (open) {
        const one = found[word]!;
        const heads = [both("channel", "通道"), both("before", "调换前"), both("after", "调换后")].map(t);
        const numbers = plainTable(t(both(`Outputs of ${one.word}`, `“${one.word}”的输出`)), heads, Array.from(one.before, (value, c) => [String(c), value, one.after[c]!]));
        const table = folded(t(both(`Numbers of ${one.word}`, `“${one.word}”的数值`)), numbers);
        if (outputs.querySelector("details[open]")) table.setAttribute("open", "");
        fill(outputs, h("h2", {}, t(both("Each word's output", "每个词的输出"))), outputTable(stage, found, word), table);
        const last = words.length - 1;
        const kept = both(`Only the last word, ${words[last]}, which did not move`, `只看没有移动的最后一个词“${words[last]}”`);
        fill(gauge, h("h2", {}, t(both("Difference between the outputs and a permutation of them", "输出与单纯重排之间的差异"))), distances(stage, [
          ["distance", both("Words move, positions stay", "词动，位置不动"), distance],
          ["together", both("Positions move along with the words", "位置跟着词一起走"), array(data, "together").values[r]!],
          ...(now[last] === last ? [["last", kept, found[last]!.apart] as [string, Words, number]] : []),
        ]));
        const [rnn, pooled] = Array.from(row(array(data, "rnn"), r));
        fill(recurrent, h("h2", {}, t(both("For comparison: a recurrent network", "对照：循环网络"))), chain(stage, after), distances(stage, [
          ["rnn", both("RNN: its last state, in the two orders", "RNN：两种次序下的最终状态"), rnn!],
          ["pooled", both("Attention without positions: its average over the words", "无位置的注意力：对所有词取平均"), pooled!],
        ]), small(both(
          "An RNN reads one word after another, so its state depends on the order. Attention reads all words at once, so the order must be encoded separately.",
          "RNN 逐词读入，状态取决于次序。注意力一次读入所有词，次序必须另外编码。",
        )));
      }

      refill(stage.formula, formula(...lines(found[word]!, word, place, distance)));
      const said = `${after.join(" ")} ${distance}`;
      if (before && before !== said) {
        const difference = open ? t(both(` Difference ${shown(distance)}.`, `差异 ${shown(distance)}。`)) : "";
        stage.announce(t(both(`${words[word]} at position ${place}: ${after.join(" ")}.`, `“${words[word]}”在位置 ${place}：${after.join(" ")}。`)) + difference);
      }
      before = said;
      stage.code(`r = ${r}  # ${joined(after)}\nafter[r, ${place}] - before[${word}]  # ${words[word]}`);
    };
  },
};

/** True if the reader has moved or pressed something. */
function touched(state: State): boolean {
  return state["order"] !== "" || state["encoding"] !== "nope" || state["causal"] === true || number(state, "layers") > 1;
}

/** The row of `orders` that reads as the asked order does; as written where it is no order of these words. */
function standing(state: State, words: string[], data: Data): number {
  const written = words.map((_, i) => i);
  const asked = state["order"] === "" && state["revealed"] === true ? [...written].reverse() : String(state["order"]).split(",").map(Number);
  const fits = asked.length === words.length && written.every((i) => asked.includes(i));
  const read = (order: ArrayLike<number>) => Array.from(order, (i) => words[i]).join(" ");
  const wanted = read(fits ? asked : written);
  const orders = array(data, "orders");
  return Array.from({ length: orders.shape[0]! }, (_, r) => r).find((r) => read(row(orders, r)) === wanted) ?? 0;
}

/** One head's weights, [t, t], of one order. */
function part(data: Data, name: string, head: number, r = 0): ArrayLike<number> {
  const { shape, values } = array(data, name);
  const size = shape.at(-1)! ** 2;
  const start = (r * shape.at(-3)! + head) * size;
  return values.subarray(start, start + size);
}

/** How far the weights are from the same ones with rows and columns moved. */
function shifted(before: ArrayLike<number>, after: ArrayLike<number>, now: number[]): number {
  const count = now.length;
  return Math.max(...now.flatMap((query, i) => now.map((key, j) => Math.abs(after[i * count + j]! - before[query * count + key]!))));
}

/** The two outputs of every word. */
function compared(data: Data, r: number, now: number[], words: string[]): Output[] {
  return words.map((word, index) => {
    const [before, after] = [row(array(data, "before"), index), row(array(data, "after"), r * words.length + now.indexOf(index))];
    return { word, before, after, apart: Math.max(...Array.from(after, (value, c) => Math.abs(value - before[c]!))) };
  });
}

/** The measure, and where the chosen word's outputs are farthest apart. */
function lines({ word, before, after, apart }: Output, from: number, to: number, distance: number): Child[][] {
  const c = Array.from(after).findIndex((value, channel) => Math.abs(value - before[channel]!) === apart);
  const moved = (): Child[] => ["A(", v("PX"), " + ", v("p"), ")"];
  const stayed = (): Child[] => ["A(", v("X"), " + ", v("p"), ")"];
  const cell = (place: number): Child[] => ["[", put(place, "position"), ", ", put(c, "channel"), "]"];
  const result = (role: string, value: number) => h("output", { "data-role": role, "data-value": value }, shown(value));
  return [
    ["max | ", ...moved(), " − ", v("P"), "·", ...stayed(), " | = ", result("value", distance)],
    [word, ":  | ", ...moved(), ...cell(to), " − ", ...stayed(), ...cell(from), " | = | ", put(shown(after[c]!)), " − ", put(shown(before[c]!)), " | = ",
      result("of-word", apart)],
  ];
}
