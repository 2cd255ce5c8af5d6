// count: p            share: p / (n - 1)            of a text of n words
//
//   above   the counts, beside the size that a word's own numbers have
//   below   the shares, which all change when the text gets longer

import { s, set } from "../dom";
import { wordVectors } from "../math/random";
import { draggable } from "../parts/drag";
import { animate, clamp, ease, mix } from "../parts/motion";
import { quoted } from "../program";
import { both } from "../words";
import type { Chapter, Drawn, Scene } from "./chapter";

const [LEAST, START, MOST, P, D] = [6, 9, 41, 4, 8];
const WORDS = both("the dog bites the man and then it runs", "那 条 狗 咬 了 人 以后 跑 了");

export const count: Chapter = {
  title: both("Number the words", "给词编号"),
  found: both("Counts grow, shares change with the length", "编号越来越大，比例随长度改变"),
  need: both(
    "Give each word its number: 0, 1, 2 … Or give it its share of the text, from 0 for the first word to 1 for the last. Drag the end of the text.",
    "给每个词一个编号：0、1、2……或者给它在全文里的比例，从第一个词的 0 到最后一个词的 1。拖动文本的末尾。",
  ),
  question: both("The text has {n} words, and the word with the number {p} has the share {share}. Then the text gets about twice as long. What share has this word now?", "文本有 {n} 个词，编号 {p} 的词的比例是 {share}。文本变成约两倍长，这个词的比例变成多少？"),
  answers: [both("the same", "不变"), both("half of it", "一半"), both("twice as much", "两倍")],
  right: 1,
  verdict: both("Half of it, though the word has not moved.", "一半，可这个词并没有动。"),
  before: both("In a text of {n} words the last one has the number {last}. In the model a word is a list of numbers, and these stay below {size}.", "{n} 个词的文本里，最后一个词的编号是 {last}。在模型里，一个词是一串数，这些数都不超过 {size}。"),
  after: both(
    "In a text of {n} words, the word with the number {p} has the share {share}, and neighbours differ by {step}. The last count is {last}, while the numbers that stand for a word in the model stay below {size}.",
    "{n} 个词的文本里，编号 {p} 的词的比例是 {share}，相邻的词相差 {step}。最后一个编号是 {last}，而模型里代表一个词的数都不超过 {size}。",
  ),
  next: both("Needed: numbers that stay small, and that say the same at the same position of every text.", "需要的是：总是不大的数，并且在任何文本的同一位置都相同。"),
  views: ["binary"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const words = t(WORDS).split(" ");
  const own = wordVectors(words, D);
  const size = Math.max(...own.flatMap((one) => [...one].map(Math.abs)));
  const state = scene.keep({ n: START });
  const [left, right] = [narrow ? 30 : 40, width - (narrow ? 16 : 30)];
  const tall = clamp((scene.height - 132) / 2, 84, 190);
  const [above, below] = [26, 26 + tall + 46];
  const line = below + tall + 34;
  const height = line + 26;
  const X = (p: number) => left + (p / (MOST - 1)) * (right - left);
  const count = (value: number) => above + tall - (value / (MOST - 1)) * tall;
  const share = (value: number) => below + tall - value * tall;
  const axis = (y: (value: number) => number, ends: number[], name: string) => [
    ...ends.map((value) => s("path", { class: "hair", d: `M${left} ${y(value)}H${right}` })),
    ...ends.map((value) => s("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, String(value))),
    s("text", { x: left, y: y(ends[1]!) - 9, class: "strong" }, name),
  ];
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": t(both("Counts and shares of the words", "词的编号和比例")), style: "--c: var(--ink)" },
    s("g", { "data-part": "last size" }, ...axis(count, [0, MOST - 1], t(both("the count", "编号")))),
    s("g", { "data-part": "size" }, s("rect", { class: "marked", x: left, y: count(size), width: right - left, height: count(0) - count(size) }),
      s("text", { x: right, y: count(size) - 6, "text-anchor": "end" }, t(narrow ? both("numbers of a word", "代表词的数") : both("the numbers that stand for a word: no larger than this", "代表词的数不会比这更大")))),
    s("g", { "data-part": "share step p" }, ...axis(share, [0, 1], t(both("the share", "比例")))));
  const [counts, shares] = [s("g", { "data-part": "last n" }), s("g", { "data-part": "share step" })];
  const trail = s("g", { "data-part": "share p" });
  const [drop, ring, one] = [s("path", { class: "hair dark" }), s("circle", { class: "ring", r: 8 }), s("text", { class: "strong halo" })];
  const [end, edge] = [s("g", {}), s("path", { class: "hair dark" })];
  const base = s("path", { d: `M${left} ${line}H${right}`, class: "hair" });
  const text = s("path", { class: "text" });
  svg.append(base, text, trail, counts, shares, s("g", { "data-part": "share p" }, drop, ring, one), edge, end);
  end.append(s("circle", { class: "grip", r: narrow ? 14 : 10, cy: line }), s("text", { class: "on-grip", y: line + 4, "text-anchor": "middle", ...(narrow ? {} : { visibility: "hidden" }) }, "↔"), s("text", { class: "strong", y: line - 18, "text-anchor": "middle" }));
  figure.append(svg);
  const lengths = new Set<number>();

  function show(): void {
    const n = Math.round(state.n);
    lengths.add(n);
    const dot = (y: (value: number) => number, of: (p: number) => number) => Array.from({ length: n }, (_, p) => s("circle", { class: "bead", r: narrow ? 2 : 3, cx: X(p), cy: y(of(p)) }));
    counts.replaceChildren(...dot(count, (p) => p));
    shares.replaceChildren(...dot(share, (p) => p / (n - 1)));
    trail.replaceChildren(...[...lengths].map((length) => s("circle", { class: "bead was", r: 3, cx: X(P), cy: share(P / (length - 1)) })));
    const at = P / (n - 1);
    set(ring, { cx: X(P), cy: share(at) });
    set(drop, { d: `M${X(P)} ${share(at) + 8}V${line}` });
    set(one, { x: X(P) + 13, y: share(at) + 5 });
    one.textContent = t(both(`number ${P}: ${at.toFixed(2)}`, `编号 ${P}：${at.toFixed(2)}`));
    set(text, { d: `M${left} ${line}H${X(n - 1)}` });
    set(edge, { d: `M${X(n - 1)} ${count(n - 1)}V${line}` });
    set(end, { transform: `translate(${X(n - 1)} 0)` });
    end.lastChild!.textContent = t(both(`${n} words`, `${n} 个词`));
    scene.say({ n: String(n), p: String(P), last: String(n - 1), share: at.toFixed(2), step: (1 / (n - 1)).toFixed(2), size: size.toFixed(2) });
  }
  let stop = () => {};
  scene.leaving(() => stop());
  const say = draggable(end, svg, {
    label: t(both("Length of the text", "文本的长度")), from: LEAST, to: MOST, now: () => Math.round(state.n), value: () => t(both(`${Math.round(state.n)} words`, `${Math.round(state.n)} 个词`)),
    start: () => stop(),
    move({ x }) {
      state.n = clamp(1 + ((x - left) / (right - left)) * (MOST - 1), LEAST, MOST);
      show();
    },
    key(by) {
      state.n = clamp(Math.round(state.n) + by, LEAST, MOST);
      show();
    },
  });
  show();
  return {
    tell() {
      const from = Math.round(state.n);
      const to = Math.min(2 * from - 1, MOST);
      stop = animate(1200, (share) => {
        state.n = mix(from, to, ease(share));
        show();
        say();
      });
    },
    numbers() {
      const n = Math.round(state.n);
      return { head: [both("word", "词"), both("its count", "编号"), both("its share", "比例")], rows: Array.from({ length: n }, (_, p) => [String(p), String(p), p / (n - 1)]) };
    },
    python: () => `from posenc.pictures.measures.order import word_vectors

n, p = ${Math.round(state.n)}, ${P}
last, share, step = n - 1, p / (n - 1), 1 / (n - 1)
size = float(word_vectors((${words.map(quoted).join(", ")}), ${D}).abs().max())`,
  };
}
