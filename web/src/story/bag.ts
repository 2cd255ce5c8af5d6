// y_i = Σ_j softmax_j(q_i·k_j / √d) v_j      in another order: the same y for the same word
//
//   words        with q, k and v that are always the same for the same word; dragged into another order
//   y            d numbers of each word, which go along with it

import { isDark } from "../colours";
import { s, set } from "../dom";
import { attended, weights } from "../math/attention";
import { products, type Matrix } from "../math/matrix";
import { wordVectors } from "../math/random";
import { draggable } from "../parts/drag";
import { animate, clamp, ease, mix } from "../parts/motion";
import { quoted } from "../program";
import { both } from "../words";
import { cellColour } from "./cell";
import type { Chapter, Drawn, Scene } from "./chapter";

const D = 8;
const WORDS = both("dog bites man", "狗 咬 人");

export const bag: Chapter = {
  title: both("A model that knows no positions", "不知道位置的模型"),
  found: both("Without positions, word order makes no difference", "没有位置，词的次序不起作用"),
  need: both(
    "Attention lets each word look at all words and adds up what it sees: the coloured numbers. Drag the words into another order.",
    "注意力让每个词看所有的词，再把看到的加起来，就是彩色的那些数。把词拖到别的位置试试。",
  ),
  question: both("“{first}” becomes “{turned}”. Which of the {count} numbers change?", "“{first}”变成“{turned}”，这 {count} 个数里哪些会变？"),
  answers: [both("all of them", "全都变"), both("those of the words that moved", "移动过的词的数"), both("none", "都不变")],
  right: 2,
  verdict: both("None change: a sum does not depend on the order.", "都不变：求和与次序无关。"),
  before: both("“{now}”: “{word}” takes {self} % from itself and {others} % from the other words.", "“{now}”：“{word}”从自己取 {self}%，从别的词取 {others}%。"),
  after: both("“{now}”: the largest change of the {count} numbers is {change}. The model cannot tell who bites whom.", "“{now}”：这 {count} 个数里最大的变化是 {change}。模型分不清谁咬谁。"),
  next: both("So the position must be written into the numbers. The simplest way is to count.", "所以要把位置写进这些数里。最简单的办法是编号。"),
  views: ["order"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const words = t(WORDS).split(" ");
  const joint = scene.language === "zh" ? "" : " ";
  const [q, k, v] = [1, 2, 0].map((seed) => wordVectors(words, D, seed)) as [Matrix, Matrix, Matrix];
  const state = scene.keep({ order: words.map((_, n) => n), looking: 1 });
  /** Of each word, in the order in which the words stand now. */
  const seen = (order: number[]) => {
    const [queries, keys, values] = [q, k, v].map((rows) => order.map((word) => rows[word]!)) as [Matrix, Matrix, Matrix];
    const scores = products(queries, keys, 1 / Math.sqrt(D));
    return { weights: weights(scores), values: attended(scores, values) };
  };
  const original = seen(words.map((_, n) => n)).values;

  const size = narrow ? 20 : 34;
  const apart = Math.min(width / words.length, 300);
  const start = (width - apart * words.length) / 2;
  const [line, top] = [narrow ? 120 : 150, narrow ? 150 : 196];
  const height = top + D * (size + 2) + 8;
  const X = (place: number) => start + apart * (place + 0.5);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": t(both("Words and what attention gives each of them", "词，以及注意力给每个词的结果")) });
  const arcs = s("g", { "data-part": "self others" });
  svg.append(arcs, s("text", { x: 0, y: top + 20, ...(narrow ? { visibility: "hidden" } : {}) }, t(both("what attention gives", "注意力给出的数"))));
  const tiles = words.map((word, n) => {
    const cells = Array.from({ length: D }, (_, c) => s("rect", { x: -size, y: top + c * (size + 2), width: 2 * size, height: size, rx: 3 }));
    const half = Math.max(36, word.length * (narrow ? 8 : 10));
    const grip = s("g", {}, s("rect", { x: -half, y: line - 30, width: 2 * half, height: 44, rx: 22, class: "tile" }), s("text", { class: "word big", y: line }, word));
    const group = s("g", {}, s("g", { "data-part": "count change" }, ...cells), grip);
    svg.append(group);
    return { n, group, grip, cells };
  });
  figure.append(svg);

  /** Where each word is drawn: a place, or between two while it moves. */
  const places = words.map((_, n) => state.order.indexOf(n));
  let stop = () => {};
  scene.leaving(() => stop());

  function show(): void {
    const dark = isDark(figure);
    const now = seen(state.order);
    tiles.forEach(({ n, group, cells }) => {
      set(group, { transform: `translate(${X(places[n]!)} 0)` });
      const row = now.values[state.order.indexOf(n)]!;
      cells.forEach((cell, c) => {
        cell.style.fill = cellColour(row[c]!, dark);
        cell.dataset["value"] = String(row[c]);
      });
    });
    const at = state.order.indexOf(state.looking);
    const row = now.weights[at]!;
    arcs.replaceChildren(...state.order.flatMap((word, place) => {
      if (word === state.looking) return [];
      const [from, to] = [X(places[state.looking]!), X(places[word]!)];
      const high = line - 44 - Math.min(Math.abs(to - from) * 0.35, line - 64);
      return [s("path", { class: "arc", d: `M${from} ${line - 34}C${from} ${high} ${to} ${high} ${to} ${line - 34}`, style: `stroke-width: ${Math.max(1, 26 * row[place]!)}` })];
    }));
    const change = Math.max(...state.order.flatMap((word, place) => [...now.values[place]!].map((value, c) => Math.abs(value - original[word]![c]!))));
    scene.say({
      first: words.join(joint), turned: words.toReversed().join(joint), now: state.order.map((word) => words[word]).join(joint), count: String(words.length * D), change: change.toFixed(6),
      word: words[state.looking]!, self: (100 * row[at]!).toFixed(0), others: (100 - 100 * row[at]!).toFixed(0),
    });
  }
  function settle(): void {
    stop();
    const from = [...places];
    stop = animate(350, (share) => {
      places.forEach((_, n) => (places[n] = mix(from[n]!, state.order.indexOf(n), ease(share))));
      show();
    });
  }
  function put(word: number, place: number): void {
    state.order = state.order.filter((one) => one !== word);
    state.order.splice(place, 0, word);
  }
  for (const { n, grip, group } of tiles)
    draggable(grip, svg, {
      label: words[n]!, from: 1, to: words.length, now: () => state.order.indexOf(n) + 1, value: () => t(both(`place ${state.order.indexOf(n) + 1}`, `第 ${state.order.indexOf(n) + 1} 个`)),
      start: (at) => {
        state.looking = n;
        if (at) svg.append(group);
        show();
      },
      move({ x }) {
        places[n] = clamp((x - start) / apart - 0.5, 0, words.length - 1);
        put(n, Math.round(places[n]!));
        for (const word of state.order) if (word !== n) places[word] = state.order.indexOf(word);
        show();
      },
      key: (by) => put(n, clamp(state.order.indexOf(n) + Math.sign(by), 0, words.length - 1)),
      end: settle,
    });
  show();
  return {
    tell() {
      state.order = words.map((_, n) => words.length - 1 - n);
      stop();
      const from = [...places];
      stop = animate(1200, (share) => {
        places.forEach((_, n) => (places[n] = mix(from[n]!, state.order.indexOf(n), ease(share))));
        show();
      });
    },
    numbers() {
      const { weights: all, values } = seen(state.order);
      const row = all[state.order.indexOf(state.looking)]!;
      const looks = words[state.looking]!;
      return { head: [both("word", "词"), both(`weight from ${looks}`, `“${looks}”给它的权重`), ...Array.from({ length: D }, (_, c) => both(`number ${c + 1}`, `第 ${c + 1} 个数`))], rows: state.order.map((word, place) => [words[word]!, row[place]!, ...values[place]!]) };
    },
    python: () => `import torch
from posenc.pictures.measures.order import word_vectors

words = (${words.map(quoted).join(", ")})
order = ${JSON.stringify(state.order)}  # as the words stand now
q, k, v = (word_vectors(words, ${D}, seed=seed) for seed in (1, 2, 0))  # random, the same for the same word
weights = lambda order: torch.softmax(q[order] @ k[order].T / ${D}**0.5, -1)
count = v.numel()
change = float((weights(order) @ v[order] - (weights(list(range(len(words)))) @ v)[order]).abs().max())
row = weights(order)[order.index(${state.looking})]
self = 100 * float(row[order.index(${state.looking})])
others = 100 - self`,
  };
}
