// One sentence, its words moved to other places: what attention and a recurrent network make of it.
//
//   0   1   2      before, at places that stay
//   我  爱  你
//     ╲ │ ╱
//   你  爱  我      after: drag, or arrow keys
//
// Python answers for every order of the sentence at once; the page picks the row of the one that stands there.

import { colour, inkOn, isDark } from "../colours";
import { array, row, type Data } from "../data";
import { fill, h, s } from "../dom";
import { folded, plainTable } from "../parts/numbers";
import { formula, put, v } from "../parts/formula";
import { predict } from "../parts/predict";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./order.css";

const OWN = { order: own.text("2,1,0", 16), word: own.whole(0, 0, 3), head: own.choice("1", "1", "2", "3", "4"), revealed: own.yes(false) };
const GLOSS: Record<string, string> = {
  我: "I, me", 爱: "love", 你: "you", 猫: "cat", 追: "chases", 老鼠: "mouse", 吃: "eats", 鱼: "fish", 喜欢: "likes", 不: "not", 怕: "afraid", 辣: "spicy", 屡: "time after time", 战: "fight", 败: "lose",
};
const ROUNDING = 1e-12;

export const order: View = {
  name: "order",
  title: both("我爱你, 你爱我", "我爱你与你爱我"),
  idea: both(
    "“I love you” and “you love me” are the same words in another order. Attention without positions gives each word the same output in both, because it is handed a bag of words and not a numbered row.",
    "“我爱你”和“你爱我”用词完全相同，只是次序不同。没有位置信息的注意力在两句里给每个词同样的输出，因为它拿到的是一袋词，而不是一排编了号的词。",
  ),
  notice: [
    both("Without positions and mask each word takes its output along: A(PX) = P·A(X). That is equivariance, not invariance; only the average over all words stays as it was. The weights are permuted too, in rows and columns alike.", "没有位置、没有掩码时，每个词带着自己的输出一起走：A(PX) = P·A(X)。这叫等变，不叫不变；只有对所有词取平均之后才真正不变。注意力权重也随之重排，行与列一起换。"),
    both("With positions the words move and the positions stay, and the outputs change. If the positions moved along with the words, it would be a mere re-ordering again.", "加上位置之后，词动而位置不动，输出随之改变。倘若位置跟着词一起走，那又只是重排而已。"),
    both("A causal mask alone breaks the symmetry as well. Yet in one layer the last word sees all others in no order: leave it in its place, re-order the rest, and its output stays; with two layers it changes.", "只加因果掩码也会打破这种对称。不过只有一层时，末词看到的是没有次序的前文：让它留在原位，只打乱前面的词，它的输出不变；到了两层就变了。"),
    both("ALiBi without a mask knows distances only: it cannot tell a sentence from its mirror image, but sees every other re-ordering.", "没有掩码的 ALiBi 只知道距离：它分不出一句话和它的镜像，其他次序则分得出。"),
  ],
  papers: [
    { text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" },
    { text: "Haviv et al. 2022", href: "https://arxiv.org/abs/2203.16634" },
  ],
  own: OWN,
  controls: [
    { name: "sentence", label: both("sentence", "句子"), choices: {
      love: both("我爱你 · I love you", "我爱你"), chase: both("猫追老鼠 · the cat chases the mouse", "猫追老鼠"), eat: both("猫吃鱼 · the cat eats fish", "猫吃鱼"),
      like: both("我喜欢猫 · I like the cat", "我喜欢猫"), spicy: both("不怕辣 · not afraid of spice", "不怕辣"), again: both("屡战屡败 · fights and loses, each time", "屡战屡败"),
    } },
    { name: "encoding", label: both("positions", "位置编码"), choices: {
      nope: both("none (NoPE)", "无（NoPE）"), sinusoidal: both("sinusoidal", "正弦"), learned: both("learned table", "可学习的表"), shaw: both("Shaw", "Shaw"), transformer_xl: both("Transformer-XL", "Transformer-XL"), t5: both("T5", "T5"), alibi: both("ALiBi", "ALiBi"), rope: both("RoPE", "RoPE"),
    } },
    { name: "causal", label: both("causal mask", "因果掩码") },
    { name: "layers", label: both("layers", "层数") },
    { name: "head", label: both("head shown", "显示的头") },
  ],
  styles,
  build(stage) {
    const t = stage.t;
    const question = predict(stage, {
      question: both("No positions, no mask, and the sentence is reversed. What becomes of the outputs?", "没有位置、没有掩码，把句子倒过来。各个词的输出会怎样？"),
      choices: [both("Nothing: first row first, as before", "毫无变化：各行还在原处"), both("The same rows, reversed with the words", "还是那几行，跟着词一起倒过来"), both("Every word gets another output", "每个词的输出都变了")],
      right: 1,
      because: both("Each word keeps its output to the last digit and takes it along to its new place.", "每个词的输出分毫不差，只是随词搬到了新的位置。"),
    }, () => stage.set({ revealed: true }));
    const places = arrangement(stage);
    const weights = h("div", { class: "split" });
    const apart = h("p", { class: "small" });
    const outputs = h("div", {});
    const gauge = h("div", {});
    const envelopes = h("div", {});
    const recurrent = h("div", {});
    const answer = h("div", { class: "split" }, outputs, gauge);
    stage.root.append(question, places.element, weights, apart, answer, h("div", { class: "split" }, envelopes, recurrent));
    let before = "";

    return (data, state) => {
      const words = data.facts["words"] as string[];
      const orders = array(data, "orders");
      const r = standing(String(state["order"]), words, orders.values as Int32Array);
      const now = Array.from(row(orders, r));
      const word = Math.min(number(state, "word"), words.length - 1);
      const head = Number(state["head"]) - 1;
      const open = state["revealed"] === true || state["encoding"] !== "nope" || state["causal"] === true || number(state, "layers") > 1 || now.join() !== now.map((_, i) => words.length - 1 - i).join();
      places.draw(words, now, word);
      const found = compared(data, r, now);
      const read = now.map((i) => words[i]!).join("");

      fill(weights, matrix(stage, t(both("Attention before: ", "调换前的注意力：")) + words.join(""), words, words, part(data, "weights_before", head), [word, word], "before"),
        matrix(stage, t(both("Attention after: ", "调换后的注意力：")) + read, now.map((i) => words[i]!), now.map((i) => words[i]!), part(data, "weights_after", head, r), [now.indexOf(word), now.indexOf(word)], "after"));
      const moved = shifted(part(data, "weights_before", head), part(data, "weights_after", head, r), now);
      fill(apart, t(both("Word for word, these weights differ by at most ", "逐词对照，这些权重最多相差 ")), h("b", { "data-role": "weights-apart", "data-value": moved }, shown(moved)), t(both(".", "。")));
      answer.hidden = recurrent.hidden = apart.hidden = stage.formula.hidden = !open;
      fill(envelopes, h("h2", {}, t(both("A numbered row, and a bag", "编了号的一排，与一只袋子"))), drawnEnvelopes(stage, words, now),
        h("p", { class: "small" }, t(both("An array knows the places. A bag, a multiset, knows only which words there are and how often: that is all that attention without positions and mask is given.", "数组知道每个词在第几位。袋子（多重集）只知道有哪些词、各有几个：没有位置、没有掩码的注意力拿到的就只有这些。"))));
      if (open) {
        drawOutputs(stage, outputs, data, r, now, words, word, found);
        const [state_, pooled] = row(array(data, "rnn"), r) as Float64Array;
        fill(gauge, ...scaled(stage, [
          ["distance", both("Words move, positions stay", "词动，位置不动"), array(data, "distance").values[r]!],
          ["together", both("Positions move along with the words", "位置跟着词一起走"), array(data, "together").values[r]!],
          ...(now.at(-1) === words.length - 1 ? [["last", both(`Only the last word, ${words.at(-1)}, which kept its place`, `只看留在原位的末词“${words.at(-1)}”`), found.byWord[words.length - 1]!] as [string, Words, number]] : []),
        ], both("How far the outputs are from a mere re-ordering", "输出与单纯重排相差多远")));
        fill(recurrent, h("h2", {}, t(both("A recurrent network beside it", "旁边的循环网络"))), drawnChain(stage, now.map((i) => words[i]!)), ...scaled(stage, [
          ["rnn", both("RNN: its last state, in the two orders", "RNN：两种次序下的最终状态"), state_!],
          ["pooled", both("Attention without positions: its average over the words", "无位置的注意力：对所有词取平均"), pooled!],
        ]), h("p", { class: "small" }, t(both("An RNN reads one word after another, so order is built in. Attention reads all at once, so order must be brought in.", "RNN 逐词读入，次序天生就在其中。注意力一次读完所有词，次序必须另外给它。"))));
      }
      const [c, a, b] = found.widest[word]!;
      const worst = array(data, "distance").values[r]!;
      fill(stage.formula, formula(
        ["max | A(", v("PX"), " + ", v("p"), ") − ", v("P"), "·A(", v("X"), " + ", v("p"), ") | = ", h("output", { "data-role": "value", "data-value": worst }, shown(worst))],
        [words[word]!, ":  | A(", v("PX"), " + ", v("p"), ")[", put(now.indexOf(word), "position"), ", ", put(c, "channel"), "] − A(", v("X"), " + ", v("p"), ")[", put(word, "position"), ", ", put(c, "channel"), "] | = | ", put(shown(a)), " − ", put(shown(b)), " | = ", h("output", { "data-role": "of-word", "data-value": found.byWord[word]! }, shown(found.byWord[word]!))],
      ));
      if (before && before !== `${read} ${worst}`)
        stage.announce(`${words[word]} ${t(both("at place", "在位置"))} ${now.indexOf(word)}: ${now.map((i) => words[i]).join(" ")}. ${open ? `${t(both("Difference", "差异"))} ${shown(worst)}` : ""}`);
      before = `${read} ${worst}`;
      stage.code(`r = ${r}  # ${read}\nafter[r, ${now.indexOf(word)}] - before[${word}]  # ${words[word]}`);
    };
  },
};

/** The row of `orders` that reads as the asked order does; the reversal where it is no order of these words. */
function standing(text: string, words: string[], orders: Int32Array): number {
  const asked = text.split(",").map(Number);
  const fits = asked.length === words.length && words.every((_, i) => asked.includes(i));
  const reads = (fits ? asked : words.map((_, i) => words.length - 1 - i)).map((i) => words[i]).join(" ");
  const count = words.length;
  for (let r = 0; r < orders.length / count; r++) if (Array.from(orders.subarray(r * count, (r + 1) * count), (i) => words[i]).join(" ") === reads) return r;
  return 0;
}

/** One head's weights, [t, t]. */
function part(data: Data, name: string, head: number, r = 0): ArrayLike<number> {
  const { shape, values } = array(data, name);
  const size = shape.at(-1)! ** 2;
  const start = (r * shape.at(-3)! + head) * size;
  return values.subarray(start, start + size);
}

function shifted(before: ArrayLike<number>, after: ArrayLike<number>, now: number[]): number {
  const count = now.length;
  let worst = 0;
  now.forEach((from, i) => now.forEach((to, j) => (worst = Math.max(worst, Math.abs(after[i * count + j]! - before[from * count + to]!)))));
  return worst;
}

interface Compared {
  /** By word, the largest difference of its two outputs. */
  byWord: number[];
  /** And where: channel, after, before. */
  widest: [number, number, number][];
}

function compared(data: Data, r: number, now: number[]): Compared {
  const after = array(data, "after");
  const widest = now.map((_, word): [number, number, number] => {
    const [a, b] = [row(after, r * now.length + now.indexOf(word)), row(array(data, "before"), word)];
    let at = 0;
    for (let c = 1; c < a.length; c++) if (Math.abs(a[c]! - b[c]!) > Math.abs(a[at]! - b[at]!)) at = c;
    return [at, a[at]!, b[at]!];
  });
  return { widest, byWord: widest.map(([, a, b]) => Math.abs(a - b)) };
}

/** The words above, which stay, and below, which the reader moves. */
function arrangement(stage: Stage) {
  const t = stage.t;
  const still = h("div", { class: "words still" });
  const strings = s("svg", { class: "strings", viewBox: "0 0 100 44", preserveAspectRatio: "none", "aria-hidden": "true" });
  const moving = h("div", { class: "words moving", role: "group", "aria-label": t(both("Words to move", "可移动的词")) });
  const top = h("div", { class: "numbers-row", "aria-hidden": "true" });
  const bottom = h("div", { class: "numbers-row", "aria-hidden": "true" });
  let [words, now]: [string[], number[]] = [[], []];
  let chips: HTMLButtonElement[] = [];
  let held = -1;
  const at = (place: number) => `${((place + 0.5) / now.length) * 100}%`;
  const say = (next: number[], word?: number) => stage.set({ order: next.join(), ...(word === undefined ? {} : { word }) });
  const put_ = (word: number, place: number) => {
    const rest = now.filter((one) => one !== word);
    rest.splice(Math.min(Math.max(place, 0), rest.length), 0, word);
    say(rest, word);
  };
  const button = (role: string, label: Words, next: () => number[]) => h("button", { type: "button", "data-role": role, click: () => say(next()) }, t(label));
  const up = () => [...now].sort((a, b) => a - b);
  const element = h("div", { class: "places" },
    h("p", { class: "line-name" }, h("span", {}, t(both("Before", "调换前"))), h("span", { class: "position" }, t(both("positions stay", "位置不动")))), top, still, strings, moving, bottom,
    h("p", { class: "hint" }, t(both("Drag a word of the lower row, or choose one and press ← →.", "拖动下面一排的词；或选中一个词，再按 ← →。"))),
    h("div", { class: "moves" }, button("reverse", both("Reverse", "整句倒转"), () => up().reverse()), button("prefix", both("Turn all but the last", "只倒转末词之前"), () => [...up().slice(0, -1).reverse(), words.length - 1]), button("restore", both("As it was", "恢复原样"), up)));

  function chip(word: number): HTMLButtonElement {
    const one = h("button", { type: "button", "data-word": word, click: () => stage.set({ word }) }, h("b", {}, words[word]!), h("small", {}, stage.language === "en" ? GLOSS[words[word]!]! : ""));
    one.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      one.setPointerCapture(event.pointerId);
      held = word;
    });
    one.addEventListener("pointermove", (event) => {
      if (held !== word) return;
      const box = moving.getBoundingClientRect();
      const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
      one.classList.add("held");
      one.style.left = `${share * 100}%`;
      const place = Math.min(Math.floor(share * now.length), now.length - 1);
      if (place !== now.indexOf(word)) put_(word, place);
    });
    const drop = () => {
      if (held !== word) return;
      held = -1;
      one.classList.remove("held");
      draw(words, now, word);
    };
    one.addEventListener("pointerup", drop);
    one.addEventListener("lostpointercapture", drop);
    one.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const place = { ArrowLeft: now.indexOf(word) - 1, ArrowRight: now.indexOf(word) + 1, Home: 0, End: now.length - 1 }[event.key];
      if (place === undefined) return;
      event.preventDefault();
      put_(word, place);
    });
    return one;
  }

  function draw(those: string[], standing: number[], word: number): void {
    const fresh = words.join(" ") !== those.join(" ");
    [words, now] = [those, standing];
    if (fresh) {
      chips = words.map((_, index) => chip(index));
      fill(moving, ...chips);
      fill(still, ...words.map((one, place) => {
        const fixed = h("div", {}, h("b", {}, one), h("small", {}, stage.language === "en" ? GLOSS[one]! : ""));
        fixed.style.left = at(place);
        return fixed;
      }));
      for (const line of [top, bottom]) fill(line, ...words.map((_, place) => { const mark = h("span", {}, place); mark.style.left = at(place); return mark; }));
    }
    // Tab follows the eye; the chip that has the focus or the pointer is not taken out of the page.
    const kept = chips.find((one) => one === document.activeElement || one.classList.contains("held") || one.matches(":focus")) ?? chips[now[0]!]!;
    const from = now.indexOf(chips.indexOf(kept));
    now.forEach((one, place) => place < from ? moving.insertBefore(chips[one]!, kept) : place > from && moving.append(chips[one]!));
    chips.forEach((one, index) => {
      const place = now.indexOf(index);
      if (held !== index) one.style.left = at(place);
      one.setAttribute("aria-pressed", String(index === word));
      one.setAttribute("aria-label", `${words[index]}, ${t(both(`place ${place} of 0 to ${now.length - 1}. Left and right arrow move it.`, `位置 ${place}（0 至 ${now.length - 1}）。左右方向键移动。`))}`);
    });
    const x = (place: number) => ((place + 0.5) / now.length) * 100;
    fill(strings, ...now.map((one, place) => s("path", { class: one === word ? "chosen" : "", d: `M${x(one)} 2C${x(one)} 22 ${x(place)} 22 ${x(place)} 42` })));
  }
  return { element, draw };
}

/** Who looks at whom: a row for each query, a column for each key. */
function matrix(stage: Stage, caption: string, rows: string[], columns: string[], weights: ArrayLike<number>, [row_, column]: [number, number], role: string): HTMLElement {
  const dark = isDark(stage.root);
  const cell = (i: number, j: number) => {
    const value = weights[i * columns.length + j]!;
    const one = h("td", { class: i === row_ || j === column ? "marked" : "", "data-row": i, "data-column": j, "data-value": value }, value ? shown(value, 2) : "–");
    if (value) [one.style.background, one.style.color] = [colour("amount", value, 1, dark), inkOn("amount", value, 1, dark)];
    return one;
  };
  return h("table", { class: "weights", "data-role": `weights-${role}` }, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, h("td", {}), ...columns.map((name, j) => h("th", { scope: "col", class: j === column ? "chosen" : "" }, name)))),
    h("tbody", {}, ...rows.map((name, i) => h("tr", {}, h("th", { scope: "row", class: i === row_ ? "chosen" : "" }, name), ...columns.map((_, j) => cell(i, j))))));
}

/** A word's two outputs as strips of colour, and how far they are apart. */
function drawOutputs(stage: Stage, place: HTMLElement, data: Data, r: number, now: number[], words: string[], word: number, found: Compared): void {
  const t = stage.t;
  const dark = isDark(stage.root);
  const [before, after] = [array(data, "before"), array(data, "after")];
  const limit = Math.max(...Array.from(before.values, Math.abs), ...Array.from(after.values, Math.abs));
  const strip = (values: ArrayLike<number>) => h("div", { class: "strip", "aria-hidden": "true" }, ...Array.from(values, (value) => { const one = h("i", {}); one.style.background = colour("diverging", value, limit, dark); return one; }));
  const of = (index: number) => [row(before, index), row(after, r * now.length + now.indexOf(index))] as const;
  const opened = place.querySelector("details")?.open;
  const table = folded(t(both(`Numbers of ${words[word]}`, `“${words[word]}”的数值`)), plainTable(t(both(`Outputs of ${words[word]}`, `“${words[word]}”的输出`)), [t(both("channel", "通道")), t(both("before", "调换前")), t(both("after", "调换后"))],
    Array.from(of(word)[0], (value, c) => [String(c), value, of(word)[1][c]!])));
  if (opened) table.setAttribute("open", "");
  fill(place, h("h2", {}, t(both("Each word's output", "每个词的输出"))),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t(both("Each word's output", "每个词的输出")) }, h("table", { class: "outputs" },
      h("thead", {}, h("tr", {}, ...[both("word", "词"), both("before", "调换前"), both("after", "调换后"), both("largest difference", "最大差异")].map((name) => h("th", { scope: "col" }, t(name))))),
      h("tbody", {}, ...words.map((name, index) => h("tr", { class: index === word ? "chosen" : "" },
        h("th", { scope: "row" }, h("button", { type: "button", "aria-pressed": String(index === word), "data-choose": index, click: () => stage.set({ word: index }) }, name)), h("td", {}, strip(of(index)[0])), h("td", {}, strip(of(index)[1])),
        h("td", { "data-role": "word-difference", "data-value": found.byWord[index]! }, shown(found.byWord[index]!))))))),
    table);
}

/** Numbers from rounding to one, as bars over their powers of ten. */
function scaled(stage: Stage, rows: [string, Words, number][], title?: Words): (HTMLElement | null)[] {
  const share = (value: number) => (value > 0 ? Math.min(Math.max((Math.log10(value) + 17) / 18, 0.02), 1) : 0);
  return [title ? h("h2", {}, stage.t(title)) : null, h("dl", { class: "gauge" }, ...rows.map(([role, name, value]) => {
    const bar = h("i", {});
    bar.style.width = `${share(value) * 100}%`;
    return h("div", { class: value < ROUNDING ? "same" : "other" }, h("dt", {}, stage.t(name)), h("dd", { class: "bar-place", "aria-hidden": "true" }, bar), h("dd", { "data-role": role, "data-value": value }, shown(value)));
  })), h("p", { class: "gauge-scale" }, h("span", {}, stage.t(both("10⁻¹⁶: rounding", "10⁻¹⁶：舍入误差"))), h("span", {}, stage.t(both("1: another output", "1：另一个输出"))))];
}

function drawnEnvelopes(stage: Stage, words: string[], now: number[]): SVGElement {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const envelope = (x: number, y: number, word: string, stamp: number | null, times = 1) => s("g", { transform: `translate(${x} ${y})` },
    s("rect", { class: "envelope", width: 58, height: 40, rx: 4 }), s("path", { class: "flap", d: "M1 2L29 19L57 2" }), s("text", { class: "word", x: 29, y: 34, "text-anchor": "middle" }, word),
    stamp === null ? null : s("text", { class: "stamp", x: 53, y: 14, "text-anchor": "end" }, stamp), times > 1 ? s("text", { class: "times", x: 62, y: 26 }, `×${times}`) : null);
  const line = (y: number, read: string[]) => read.map((word, place) => envelope(4 + place * 66, y, word, place));
  const bag = [...counts].map(([word, times], index) => envelope(302 + (index % 1) * 62, 32 + index * 46, word, null, times));
  const after = now.map((i) => words[i]!);
  const bagged = [...counts].map(([word, times]) => `${word} ×${times}`).join(", ");
  return s("svg", { class: "picture", viewBox: "0 0 420 184", role: "img", "aria-label": stage.t(both(`Rows: ${words.join(" ")}, then ${after.join(" ")}. Bag of both: ${bagged}.`, `一排：${words.join(" ")}；调换后：${after.join(" ")}。两者的袋子：${bagged}。`)) },
    ...line(22, words), ...line(112, after), s("path", { class: "arrow", d: `M${4 + words.length * 33} 70v32m-5 -7l5 7l5 -7` }),
    s("path", { class: "bag", d: "M290 20q46 14 98 0l14 130q4 28 -24 28h-78q-28 0 -24 -28z" }), ...bag);
}

function drawnChain(stage: Stage, words: string[]): SVGElement {
  const x = (index: number) => 26 + index * 92;
  return s("svg", { class: "picture", viewBox: "0 0 420 104", role: "img", "aria-label": stage.t(both(`A chain of states, each made of the one before and the next word: ${words.join(", ")}`, `一串状态，每个由前一个状态和下一个词得到：${words.join("，")}`)) },
    ...Array.from({ length: words.length + 1 }, (_, index) => s("g", {},
      s("circle", { class: "state", cx: x(index), cy: 26, r: 20 }), s("text", { x: x(index), y: 30, "text-anchor": "middle" }, `h${"₀₁₂₃₄"[index]}`),
      index < words.length ? s("path", { class: "arrow", d: `M${x(index) + 22} 26h46m-7 -5l7 5l-7 5` }) : null,
      index ? s("path", { class: "arrow", d: `M${x(index)} 76v-26m-5 7l5 -7l5 7` }) : null,
      index ? s("text", { class: "word", x: x(index), y: 94, "text-anchor": "middle" }, words[index - 1]!) : null)));
}
