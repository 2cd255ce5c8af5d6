// ω_i = base^(-2i/d)        hand i turns once in λ_i = 2π·base^(2i/d) words
//
//   one row of colours for each hand: its sine at every position, the fastest on top
//   the line       where each hand has turned once; its end at the right edge is dragged, which sets the base

import { isDark, step, table } from "../colours";
import { h, s, set } from "../dom";
import { rotary } from "../math/frequencies";
import { draggable } from "../parts/drag";
import { after, animate, clamp, ease, mix } from "../parts/motion";
import { float } from "../program";
import { both } from "../words";
import type { Chapter, Drawn, Scene } from "./chapter";

const [D, LENGTH, BASE] = [64, 256, 10000];
const PAIRS = D / 2;
const [LOW, HIGH] = [Math.log(30), Math.log(1e6)];
const turns = (pair: number, base: number) => 2 * Math.PI * base ** ((2 * pair) / D);
const words = (count: number) => Math.round(count).toLocaleString("en");
const some = (pair: number) => both(words(turns(pair, BASE)), words(turns(pair, BASE)));

export const base: Chapter = {
  title: both("Many clocks make a table", "许多时钟排成一张表"),
  found: both("The base sets the slowest clock", "底数决定最慢的钟"),
  need: both(
    "Take {pairs} clocks, each slower than the one above it. Each column of the picture is how high their hands stand at one position, red above and blue below: the numbers of that position. The end of the line sets the base, which says how slow the last clock is.",
    "用 {pairs} 个时钟，一个比一个慢。图的每一列是它们的针尖在一个位置上的高度，红为上、蓝为下，就是这个位置的那些数。线的末端定下底数，也就是最后一个钟有多慢。",
  ),
  question: both("With the base 10000 the first clock turns once in about 6 words, and the last is about 7,500 times slower. In how many words does the last one turn once?", "底数是 10000 时，第一个钟约 6 个词转一圈，最后一个约慢 7500 倍。最后一个钟转一圈要多少个词？"),
  answers: [some(0), some(PAIRS / 2), some(PAIRS - 1)],
  right: 2,
  verdict: both("In {slow} words with the base 10000: within this text it hardly moves.", "底数是 10000 时要 {slow} 个词：在这段文本里它几乎不动。"),
  before: both("With the base {base}, {unfinished} of the {pairs} clocks do not turn once in {length} words.", "底数是 {base} 时，{pairs} 个钟里有 {unfinished} 个在 {length} 个词里转不满一圈。"),
  after: both(
    "With the base {base}, the slowest clock turns once in {slowest} words. In a text of {length} words {unfinished} of the {pairs} clocks do not turn once: they tell far positions apart, the fast ones neighbours.",
    "底数是 {base} 时，最慢的钟 {slowest} 个词转一圈。在 {length} 个词的文本里，{pairs} 个钟中有 {unfinished} 个转不满一圈：它们区分远处的位置，快的钟区分相邻的词。",
  ),
  next: both("Now every position has its own numbers. How do they get into a word?", "现在每个位置都有自己的一组数。怎样把它们放进词里？"),
  views: ["table", "wavelengths"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const state = scene.keep({ base: BASE });
  const [left, right] = [narrow ? 4 : 92, width - (narrow ? 34 : 60)];
  const [top, tall] = [24, clamp(scene.height - 50, 190, 400)];
  const X = (p: number) => left + (p / (LENGTH - 1)) * (right - left);
  const Y = (pair: number) => top + ((pair + 0.5) / PAIRS) * tall;
  const canvas = h("canvas", { width: LENGTH, height: PAIRS, role: "img", "aria-label": t(both("Sine of every clock at every position", "每个时钟在每个位置的正弦")), style: `left: ${left}px; top: ${top}px; width: ${right - left}px; height: ${tall}px` });
  const [line, under, grip, label] = [s("path", { class: "turn" }), s("path", { class: "turn under" }), s("g", {}), s("text", { class: "strong", "text-anchor": "middle" })];
  grip.append(s("circle", { class: "grip", r: narrow ? 15 : 12 }), s("text", { class: "on-grip", "text-anchor": "middle", y: 4 }, "↕"));
  const svg = s("svg", { viewBox: `0 0 ${width} ${top + tall + 26}`, height: top + tall + 26, role: "group", "aria-label": t(both("The table of positions", "位置编码表")) },
    s("g", { "data-part": "slowest unfinished pairs" }, s("text", { x: left - 10, y: Y(0) + 6, "text-anchor": "end", ...(narrow ? { visibility: "hidden" } : {}) }, t(both("fastest clock", "最快的钟"))), s("text", { x: left - 10, y: Y(PAIRS - 1) + 2, "text-anchor": "end", ...(narrow ? { visibility: "hidden" } : {}) }, t(both("slowest", "最慢的钟")))),
    s("g", { "data-part": "length" }, ...[0, 64, 128, 192, 255].map((p) => s("text", { x: X(p), y: top + tall + 18, "text-anchor": "middle" }, String(p)))),
    s("g", { "data-part": "base unfinished slowest" }, under, line), label, grip);
  figure.append(h("div", { class: "over" }, canvas, svg));
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(LENGTH, PAIRS);
  const pixels = new Uint32Array(image.data.buffer);

  function show(): void {
    const omega = rotary(D, state.base);
    const colours = table("diverging", isDark(figure));
    omega.forEach((one, pair) => {
      for (let p = 0; p < LENGTH; p++) pixels[pair * LENGTH + p] = colours[step("diverging", Math.sin(p * one), 1)]!;
    });
    context.putImageData(image, 0, 0);
    const edge = (Math.log(LENGTH / (2 * Math.PI)) * D) / (2 * Math.log(state.base));
    const path: string[] = [];
    for (let pair = 0; pair <= Math.min(edge, PAIRS - 1); pair += 0.25) path.push(`${X(Math.min(turns(pair, state.base), LENGTH - 1)).toFixed(1)} ${Y(pair).toFixed(1)}`);
    const y = Y(Math.min(edge, PAIRS - 0.5));
    const d = `M${path.join("L")}L${right} ${y}`;
    for (const one of [line, under]) set(one, { d });
    set(grip, { transform: `translate(${right} ${y})` });
    set(label, { x: (left + right) / 2, y: 14 });
    label.textContent = t(both("the line: each clock has turned once", "这条线：每个钟刚好转完一圈"));
    const wavelengths = omega.map((one) => (2 * Math.PI) / one);
    scene.say({
      base: words(state.base), pairs: String(PAIRS), length: String(LENGTH), slowest: words(wavelengths.at(-1)!), slow: words(turns(PAIRS - 1, BASE)), unfinished: String(wavelengths.filter((one) => one > LENGTH).length),
    });
  }
  const put = (log: number) => {
    const chosen = Math.exp(clamp(log, LOW, HIGH));
    state.base = chosen > 1000 ? Math.round(chosen / 100) * 100 : Math.round(chosen);
    show();
  };
  let stop = () => {};
  scene.leaving(() => stop());
  const say = draggable(grip, svg, {
    label: t(both("Base", "底数")), from: Math.round(Math.exp(LOW)), to: Math.exp(HIGH), now: () => state.base, value: () => t(both(`base ${words(state.base)}`, `底数 ${words(state.base)}`)), start: () => stop(),
    move: ({ y }) => put((Math.log(LENGTH / (2 * Math.PI)) * D) / (2 * Math.max(((y - top) / tall) * PAIRS - 0.5, 1))),
    key: (by) => put(Math.log(state.base) - by * Math.log(2) / 4),
  });
  show();
  return {
    tell() {
      const change = (from: number, to: number, then: () => void) => animate(1400, (share) => {
        state.base = Math.round(Math.exp(mix(Math.log(from), Math.log(to), ease(share))));
        show();
        say();
      }, then);
      stop = change(state.base, 100, () => (stop = after(2200, () => (stop = change(100, BASE, () => {})))));
    },
    numbers: () => ({ head: [both("clock", "钟"), both("words a turn", "每圈的词数")], rows: Array.from(rotary(D, state.base), (one, pair) => [String(pair + 1), (2 * Math.PI) / one]) }),
    python: () => `from math import pi

import posenc

base, length = ${float(state.base)}, ${LENGTH}
omega = posenc.frequencies.rotary(${D}, base).values
pairs, turns = len(omega), [2 * pi / one for one in omega]
slowest, slow, unfinished = turns[-1], 2 * pi / posenc.frequencies.rotary(${D}, ${float(BASE)})[-1], sum(one > length for one in turns)`,
  };
}
