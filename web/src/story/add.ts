// x_w + PE(p)        how alike two rows of numbers are: cos(a, b) = a·b / |a||b|
//
//   three rows of numbers, the first 64 of d: the word, its position, their sum
//   left     how alike the sum and each word are        right    how alike the sum and each position are

import { isDark } from "../colours";
import { s, set } from "../dom";
import { dot } from "../math/matrix";
import { wordVectors } from "../math/random";
import { sinusoids } from "../math/sinusoid";
import { draggable } from "../parts/drag";
import { animate, clamp, ease, mix } from "../parts/motion";
import { quoted } from "../program";
import { both } from "../words";
import { cellColour } from "./cell";
import type { Chapter, Drawn, Scene } from "./chapter";

const [D, SHOWN, LENGTH, BASE] = [512, 64, 64, 10000];
const WORDS = both("dog cat man bell house river sees runs", "狗 猫 人 钟 房 河 看 跑");
const percent = (share: number) => (100 * share).toFixed(0);
const alike = (a: Float64Array, b: Float64Array) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

export const add: Chapter = {
  title: both("Add the position to the word", "把位置加到词上"),
  found: both("The sum keeps both the word and the position", "相加之后，词和位置都还在"),
  need: both(
    "The first Transformer adds the {d} numbers of a position to the {d} numbers of a word. One row of {d} numbers is left; here are the first {shown}. Drag the position, choose a word.",
    "最早的 Transformer 把位置的 {d} 个数加到词的 {d} 个数上，只剩一行 {d} 个数，这里画出前 {shown} 个。拖动位置，选一个词。",
  ),
  question: both("What can the model still read from the sum?", "从这个和里，模型还能读出什么？"),
  answers: [both("only the word", "只有词"), both("only the position", "只有位置"), both("both", "两者都能"), both("neither", "都不能")],
  right: 2,
  verdict: both("Both. In so many numbers, a word and a position point in almost unrelated directions: here at an angle of {angle} degrees, where 90 is no relation.", "两者都能。数一多，词与位置的方向几乎互不相干：这里的夹角是 {angle} 度，90 度就是毫不相干。"),
  before: both("“{word}” at position {p}: two rows of numbers become one.", "“{word}”在位置 {p}：两行数变成一行。"),
  after: both(
    "The sum is {own} % like “{word}” and at most {other} % like any other word. Of all {length} positions it is most like position {found}.",
    "和与“{word}”的相似度是 {own}%，与别的词最多 {other}%。在全部 {length} 个位置里，它最像位置 {found}。",
  ),
  next: both("Attention compares two words by a score. Computed from such sums, it mixes words with positions, and it changes when both words move on together.", "注意力用一个分数来比较两个词。用这样的和来算，分数会把词与位置混在一起；两个词一起后移，分数也会变。"),
  views: ["shift", "similarity", "terms", "paths"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const words = t(WORDS).split(" ");
  const vectors = wordVectors(words, D);
  const table = sinusoids(LENGTH, D, BASE);
  const row = (p: number) => table.subarray(p * D, (p + 1) * D);
  const state = scene.keep({ word: 0, p: 20 });

  const margin = narrow ? 0 : 92;
  const size = (width - margin) / SHOWN;
  const tall = narrow ? 20 : 26;
  const lines = [t(both("word", "词")), t(both("+ position", "+ 位置")), t(both("= sum", "= 和"))];
  const step = tall + (narrow ? 22 : 8);
  const strips = lines.map((name, n) => {
    const y = n * step + (narrow ? 16 : 0);
    const cells = Array.from({ length: SHOWN }, (_, c) => s("rect", { x: margin + c * size, y, width: size - (narrow ? 0.5 : 1.5), height: tall }));
    return { cells, element: s("g", {}, s("text", narrow ? { x: 0, y: y - 4 } : { x: margin - 10, y: y + tall / 2 + 5, "text-anchor": "end" }, name), ...cells) };
  });
  const top = 3 * step + (narrow ? 26 : 36);
  const chart = clamp(scene.height - top - 44, narrow ? 110 : 150, 250);
  const [barsEnd, curveStart] = [narrow ? width * 0.4 : width * 0.42, narrow ? width * 0.5 : width * 0.5];
  const tags = narrow ? 30 : 92;
  const gap = chart / words.length;
  const bar = (share: number) => (barsEnd - tags) * clamp(share, 0, 1);
  const bars = words.map((word, n) => {
    const y = top + n * gap;
    const fill = s("rect", { x: tags, y: y + 2, height: gap - 4, class: "amount" });
    const label = s("text", { x: tags - 10, y: y + gap / 2 + 5, "text-anchor": "end", class: "word-tag" }, word);
    const hit = s("rect", { x: 0, y, width: barsEnd, height: gap, class: "hit" });
    const group = s("g", { class: "choose", "data-drag": true }, hit, fill, label);
    group.addEventListener("click", () => choose(n));
    return { fill, label, group };
  });
  const X = (p: number) => curveStart + (p / (LENGTH - 1)) * (width - curveStart - (narrow ? 8 : 20));
  const Y = (share: number) => top + chart - ((share + 0.2) / 1.2) * chart;
  const [curve, peak, drop, knob] = [s("path", { class: "line" }), s("circle", { class: "ring", r: 8 }), s("path", { class: "hair dark" }), s("g", {})];
  knob.append(s("circle", { class: "grip", r: narrow ? 14 : 11, cy: top + chart }), s("text", { class: "on-grip", y: top + chart + 4, "text-anchor": "middle" }, "↔"));
  const chosen = s("g", {}, s("rect", { class: "frame", x: 0, width: barsEnd + 4, height: gap }));
  const findings = s("g", {}, s("g", { "data-part": "own other word" }, ...bars.map(({ group }) => group)), s("g", { "data-part": "found length p angle" }, s("path", { class: "hair", d: `M${curveStart} ${Y(0)}H${width}` }), drop, curve, peak));
  const svg = s("svg", { viewBox: `0 0 ${width} ${top + chart + 32}`, height: top + chart + 32, role: "group", "aria-label": t(both("A word, a position and their sum", "词、位置与它们的和")), style: "--c: var(--sinusoidal)" },
    ...strips.map(({ element }, n) => s("g", { "data-part": ["word own", "p", "own other found"][n]! }, element)),
    s("text", { x: 0, y: top - 9, class: "strong" }, narrow ? t(both("which word?", "哪个词？")) : t(both("which word is in the sum?", "和里是哪个词？"))), s("text", { x: curveStart, y: top - 9, class: "strong" }, narrow ? t(both("which position?", "哪个位置？")) : t(both("which position is in the sum?", "和里是哪个位置？"))),
    findings, ...[0, 21, 42, 63].map((p) => s("text", { x: X(p), y: top + chart + 28, "text-anchor": "middle" }, String(p))), chosen, knob);
  figure.append(svg);
  let shares = 0; // how much of the findings is drawn: they are the answer

  function show(): void {
    const dark = isDark(figure);
    const [x, at] = [vectors[state.word]!, row(state.p)];
    const sum = x.map((one, c) => one + at[c]!);
    [x, at, sum].forEach((numbers, n) => strips[n]!.cells.forEach((cell, c) => {
      cell.style.fill = cellColour(numbers[c]!, dark);
    }));
    const ofWords = vectors.map((one) => alike(sum, one));
    const ofPlaces = Array.from({ length: LENGTH }, (_, p) => alike(sum, row(p)));
    bars.forEach(({ fill, label }, n) => {
      set(fill, { width: bar(ofWords[n]! * shares) });
      fill.classList.toggle("right", n === state.word);
      label.classList.toggle("here", n === state.word);
    });
    set(chosen.firstElementChild!, { y: top + state.word * gap });
    set(curve, { d: `M${ofPlaces.map((one, p) => `${X(p).toFixed(1)} ${Y(one * shares).toFixed(1)}`).join("L")}` });
    const found = ofPlaces.indexOf(Math.max(...ofPlaces));
    set(peak, { cx: X(found), cy: Y(ofPlaces[found]! * shares), visibility: shares ? "visible" : "hidden" });
    set(drop, { d: `M${X(state.p)} ${Y(ofPlaces[state.p]! * shares)}V${top + chart}` });
    set(knob, { transform: `translate(${X(state.p)} 0)` });
    scene.say({
      d: String(D), shown: String(SHOWN), word: words[state.word]!, p: String(state.p), length: String(LENGTH), found: String(found), angle: ((180 / Math.PI) * Math.acos(alike(x, at))).toFixed(0),
      own: percent(ofWords[state.word]!), other: percent(Math.max(...ofWords.filter((_, n) => n !== state.word))),
    });
  }
  function choose(word: number): void {
    state.word = clamp(word, 0, words.length - 1);
    show();
    sayWord();
  }
  let stop = () => {};
  scene.leaving(() => stop());
  draggable(knob, svg, {
    label: t(both("Position", "位置")), from: 0, to: LENGTH - 1, now: () => state.p, value: () => t(both(`position ${state.p}`, `位置 ${state.p}`)),
    move({ x }) {
      state.p = clamp(Math.round(((x - curveStart) / (X(LENGTH - 1) - curveStart)) * (LENGTH - 1)), 0, LENGTH - 1);
      show();
    },
    key(by) {
      state.p = clamp(state.p + by, 0, LENGTH - 1);
      show();
    },
  });
  const sayWord = draggable(chosen, svg, {
    label: t(both("Word", "词")), from: 1, to: words.length, now: () => state.word + 1, value: () => words[state.word]!,
    move: ({ y }) => choose(Math.floor((y - top) / gap)), key: (by) => choose(state.word - Math.sign(by)),
  });
  if (scene.told()) shares = 1;
  show();
  return {
    tell() {
      stop = animate(900, (share) => {
        shares = mix(0, 1, ease(share));
        show();
      });
    },
    numbers() {
      const sum = vectors[state.word]!.map((one, c) => one + row(state.p)[c]!);
      return {
        head: [both("the sum is like", "和像"), both("cosine", "余弦")],
        rows: [...words.map((word, n) => [word, alike(sum, vectors[n]!)]), ...Array.from({ length: LENGTH }, (_, p) => [t(both(`position ${p}`, `位置 ${p}`)), alike(sum, row(p))])],
      };
    },
    python: () => `from math import degrees

import posenc
import torch
from posenc.pictures.measures.order import word_vectors

d, shown, p, length = ${D}, ${SHOWN}, ${state.p}, ${LENGTH}
words = word_vectors((${words.map(quoted).join(", ")}), d)  # random
table = posenc.sinusoidal_table(length, d, base=${BASE}.0, dtype=torch.float64)
x = words[${state.word}] + table[p]
of_words, of_places = (torch.cosine_similarity(x[None], rows) for rows in (words, table))
angle = degrees(torch.acos(torch.cosine_similarity(words[${state.word}], table[p], 0)))
own, found = 100 * float(of_words[${state.word}]), int(of_places.argmax())
other = 100 * max(float(one) for n, one in enumerate(of_words) if n != ${state.word})`,
  };
}
