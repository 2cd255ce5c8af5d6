// A sentence and the attention of one head in it, and the eight heads as small maps.
//
//   who describes whom: arcs over one row           translation: lines between two rows
//       ╭───────╮                                     the red car is parked …
//   电影  很   无聊  ，  但                                 ╲  │  ╱
//                                                      红色 的 汽车 停 …

import { colour, isDark } from "../colours";
import { fill, h, refill, s } from "../dom";
import { colourKey } from "../parts/colour_key";
import type { Stage } from "../view";
import { both, shown, widthOf } from "../words";

/** What one model makes of the sentence. */
export interface Reading {
  words: string[];
  answers: string[];
  /** What the other model answers: both pictures leave room for both, so that their words stand alike. */
  beside: string[];
  chances: ArrayLike<number>;
  /** Of one head, [t, t]. */
  weights: ArrayLike<number>;
  /** Whether the weights are the largest of all heads. */
  ofAll: boolean;
  /** Words that the models read as blanks. */
  unknown: string[];
  /** Queries whose answer is asked for. */
  asked: number[];
  /** The first word of the translation; none in a description. */
  translated?: number;
}

/** What the words of the Chinese sentences mean, below them on English pages. */
const GLOSS: Record<string, string> = {
  这部: "this", 那部: "that", 很: "very", 我: "I", 觉得: "think", 他: "he", 说: "says", 昨天: "yesterday", 听说: "heard", 但: "but", 而: "while", 有: "has", 的: "of", 电影: "film", 小说: "novel", 动画: "cartoon",
  话剧: "play", 纪录片: "documentary", 电视剧: "series", 表演: "acting", 文笔: "writing", 手法: "technique", 嗓音: "voice", 台词: "lines", 画面: "visuals", 演员: "actors'", 作者: "author's", 导演: "director's", 歌手: "singer's",
  编剧: "writer's", 摄影师: "camera's", 无聊: "boring", 精彩: "brilliant", 感人: "moving", 平淡: "flat", 新颖: "fresh", 老套: "trite", 自然: "natural", 生硬: "stiff", 有趣: "funny", 细腻: "subtle", 粗糙: "crude", 出色: "superb",
};

/** Weights that are not drawn: below this, and where the largest of all heads is shown. */
const [FAINTEST, FAINTEST_OF_ALL] = [0.05, 0.4];

interface Places {
  x: number[];
  width: number;
}

/** Words that stand upright, where they do not fit side by side. */
const upright = (words: string[]): Places => ({ x: words.map((_, i) => (i + 0.5) * UPRIGHT), width: words.length * UPRIGHT });
const UPRIGHT = 26;

/** Words from left to right: the middle of each, and the width of all. `below` is what is written under each word. */
function laid(words: string[], below: (i: number) => string[] = () => []): Places {
  let width = 0;
  const x = words.map((word, i) => {
    const own = Math.max(widthOf(word) * 18 + 8, ...below(i).map((text) => widthOf(text) * 15 + 8), 20);
    width += own;
    return width - own / 2;
  });
  return { x, width };
}

export interface Sentence {
  element: HTMLElement;
  draw(reading: Reading, chosen: number): void;
}

/** `pick` gets a query. */
export function sentenceOf(stage: Stage, label: { en: string; zh: string }, pick: (query: number) => void): Sentence {
  const element = h("div", { class: "attending", tabindex: 0, role: "application", "aria-roledescription": stage.t(both("sentence", "句子")), "aria-label": stage.t(label) });
  let last: { reading: Reading; chosen: number } | null = null;
  element.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || !last?.reading.asked.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const { asked } = last.reading;
    pick(asked[(asked.indexOf(last.chosen) + by + asked.length) % asked.length]!);
  });

  function draw(reading: Reading, chosen: number): void {
    const same = last?.chosen === chosen && alike(last.reading, reading);
    last = { reading, chosen };
    if (!same) fill(element, reading.translated === undefined ? arcs(reading, chosen, pick, stage.language === "en", element.parentElement!.clientWidth) : lines(reading, chosen, pick));
  }
  return { element, draw };
}

/** Whether they give the same picture: what is set while training is shown elsewhere. */
function alike(one: Reading, other: Reading): boolean {
  return one.words === other.words && one.answers === other.answers && one.beside === other.beside && one.chances === other.chances && Array.from(one.weights).every((weight, at) => weight === other.weights[at]);
}

/** As short as it can be: one stands beside the other. */
function share(value: number): string {
  return `${shown(100 * value, 0)}%`;
}

function percent(value: number): string {
  return `${shown(100 * value, 0)} %`;
}

/** A picture is not drawn smaller than this. */
const SMALLEST = 0.62;

function scaled(picture: SVGElement, width: number): SVGElement {
  picture.style.minWidth = `${Math.round(width * SMALLEST)}px`;
  picture.style.maxWidth = `${Math.round(width * 1.25)}px`;
  return picture;
}

function arcs({ words, answers, beside, unknown, chances, weights, asked, ofAll }: Reading, chosen: number, pick: (query: number) => void, glossed: boolean, room: number): SVGElement {
  const meaning = (word: string) => (glossed && GLOSS[word]) || "";
  const full = (word: string) => `→ ${meaning(word) || word}`;
  const sideBySide = laid(words, (i) => [meaning(words[i]!), ...(asked.includes(i) ? [full(answers[i]!), full(beside[i]!)] : [])]);
  const tall = sideBySide.width * SMALLEST > room;
  const { x, width } = tall ? upright(words) : sideBySide;
  /** Upright, the number of the answer's position stands for it. */
  const answer = (word: string) => (tall && words.includes(word) ? `→ ${words.indexOf(word)}` : full(word));
  const most = tall ? Math.max(...words.map((word) => widthOf(word) * 17 + (meaning(word) ? widthOf(meaning(word)) * 14 + 6 : 0) + 12)) : 30;
  const [base, t, down] = [tall ? 58 : 84, words.length, tall ? most - 30 : glossed ? 17 : 0];
  const drawn = [...asked.filter((i) => i !== chosen), chosen].flatMap((i) => words.flatMap((_, j) => {
    const weight = weights[i * t + j]!;
    if (weight < (ofAll ? FAINTEST_OF_ALL : FAINTEST)) return [];
    const rise = tall ? 18 + 54 * Math.min(Math.abs(i - j) / 10, 1) : 18 + 62 * Math.min(Math.abs(x[i]! - x[j]!) / 260, 1);
    const path = i === j ? `M${x[i]! - 7} ${base}c-6 -26 20 -26 14 0` : `M${x[i]} ${base}C${x[i]} ${base - rise} ${x[j]} ${base - rise} ${x[j]} ${base}`;
    return [s("path", { class: i === chosen ? "arc chosen" : "arc", d: path, "stroke-opacity": weight.toFixed(3), "stroke-width": (1 + 4 * weight).toFixed(1), "data-query": i, "data-key": j, "data-value": weight })];
  }));
  const texts = words.map((word, i) => {
    const isAsked = asked.includes(i);
    return s("g", { class: `word-of${i === chosen ? " chosen" : ""}${isAsked ? " asked" : ""}${unknown.includes(word) ? " unknown" : ""}`, click: isAsked ? () => pick(i) : undefined },
      ...(tall ? [
        s("rect", { x: x[i]! - 12, y: base + 2, width: 24, height: most, rx: 7 }),
        standing("word", word, x[i]!, base + 9), standing("gloss", meaning(word), x[i]!, base + 15 + widthOf(word) * 17)] : [
        s("rect", { x: x[i]! - Math.max(widthOf(word) * 9 + 6, 16), y: base + 2, width: Math.max(widthOf(word) * 18 + 12, 32), height: 30, rx: 7 }),
        s("text", { class: "word", x: x[i], y: base + 23, "text-anchor": "middle" }, word)]),
      glossed && !tall ? s("text", { class: "gloss", x: x[i], y: base + 45, "text-anchor": "middle" }, meaning(word)) : null,
      s("text", { class: "index", x: x[i], y: base + down + 48, "text-anchor": "middle" }, i),
      isAsked ? s("text", { class: "answer", x: x[i], y: base + down + 68, "text-anchor": "middle", "data-role": "answer", "data-value": chances[i]! }, answer(answers[i]!)) : null,
      isAsked ? s("text", { class: "chance", x: x[i], y: base + down + 85, "text-anchor": "middle" }, share(chances[i]!)) : null);
  });
  return scaled(s("svg", { class: tall ? "tall" : "", viewBox: `0 0 ${width} ${base + down + 92}`, "aria-hidden": "true" }, ...drawn, ...texts), width);
}

/** A word from top to bottom: Latin letters on their side, Chinese characters one below the other. */
function standing(name: string, word: string, x: number, y: number): SVGElement {
  return /[\u2e80-\uffef]/.test(word)
    ? s("text", { class: name, "text-anchor": "middle" }, ...[...word].map((letter, n) => s("tspan", { x, y: y + 13 + 17 * n }, letter)))
    : s("text", { class: name, transform: `translate(${x} ${y}) rotate(90)`, "dominant-baseline": "central" }, word);
}

function lines({ words, weights, asked, unknown, translated, chances, ofAll }: Reading, chosen: number, pick: (query: number) => void): SVGElement {
  const [english, chinese] = [words.slice(0, translated! - 1), words.slice(translated)];
  const [above, below] = [laid(english), laid(chinese, () => ["100%"])];
  const width = Math.max(above.width, below.width);
  const [top, bottom, t] = [34, 158, words.length];
  const at = (i: number) => (i < english.length ? above.x[i]! + (width - above.width) / 2 : below.x[i - translated!]! + (width - below.width) / 2);
  // The word at n is predicted at n - 1: the line starts at the word that is predicted.
  const drawn = [...asked.filter((i) => i !== chosen), chosen].flatMap((i) => english.flatMap((_, j) => {
    const weight = weights[i * t + j]!;
    if (weight < (ofAll ? FAINTEST_OF_ALL : FAINTEST) || i + 1 >= t) return [];
    return [s("path", { class: i === chosen ? "arc chosen" : "arc", d: `M${at(i + 1)} ${bottom - 20}C${at(i + 1)} ${bottom - 62} ${at(j)} ${top + 56} ${at(j)} ${top + 12}`, "stroke-opacity": weight.toFixed(3), "stroke-width": (1 + 4 * weight).toFixed(1), "data-query": i, "data-key": j, "data-value": weight })];
  }));
  const word = (text: string, i: number, y: number, query?: number) => s("g", { class: `word-of${query === chosen ? " chosen" : ""}${query === undefined ? "" : " asked"}${unknown.includes(text) ? " unknown" : ""}`, click: query === undefined ? undefined : () => pick(query) },
    s("rect", { x: at(i) - Math.max(widthOf(text) * 9 + 6, 16), y: y - 22, width: Math.max(widthOf(text) * 18 + 12, 32), height: 30, rx: 7 }),
    s("text", { class: "word", x: at(i), y, "text-anchor": "middle" }, text),
    s("text", { class: "index", x: at(i), y: query === undefined ? y - 24 : y + 24, "text-anchor": "middle" }, i),
    query === undefined ? null : s("text", { class: "chance", x: at(i), y: y + 41, "text-anchor": "middle", "data-role": "answer", "data-value": chances[query]! }, share(chances[query]!)));
  return scaled(s("svg", { viewBox: `0 0 ${width} ${bottom + 48}`, "aria-hidden": "true" }, ...drawn,
    ...english.map((text, i) => word(text, i, top)), ...chinese.map((text, n) => word(text, translated! + n, bottom, translated! + n - 1))), width);
}

export interface Heads {
  element: HTMLElement;
  /** `weights` is [layer, head, t, t]; `said` what is written below each map. */
  draw(weights: { shape: number[]; values: ArrayLike<number> }, chosen: number, said: number[]): void;
}

/** Radio buttons with the keys of such, each with a map of one head: rows are queries, columns keys. */
export function headsOf(stage: Stage, label: string, pick: (head: number) => void): Heads {
  const maps = h("div", { class: "maps", role: "radiogroup", "aria-label": label });
  const key = colourKey();
  const element = h("div", {}, maps, key.element);
  let painted: unknown[] = [];
  function draw({ shape, values }: { shape: number[]; values: ArrayLike<number> }, chosen: number, said: number[]): void {
    const [layers, heads, t] = shape as [number, number, number];
    const count = layers * heads;
    const dark = isDark(stage.root);
    const fresh = painted[0] !== values || painted[1] !== dark;
    painted = [values, dark];
    if (fresh) key.draw("amount", 1);
    if (maps.childElementCount !== count + 1)
      fill(maps, ...Array.from({ length: count + 1 }, (_, n) => h("button", {
        type: "button", role: "radio", click: () => pick(n),
        keydown: (event: KeyboardEvent) => {
          const by = { ArrowRight: 1, ArrowDown: heads, ArrowLeft: -1, ArrowUp: -heads }[event.key];
          if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
          event.preventDefault();
          const next = (n + by + count + 1) % (count + 1);
          (maps.children[next] as HTMLElement).focus();
          pick(next);
        },
      }, h("canvas", { "aria-hidden": "true" }), h("small", {}))));
    [...maps.children].forEach((button, n) => {
      const [canvas, words] = button.children as unknown as [HTMLCanvasElement, HTMLElement];
      if (fresh) [canvas.width, canvas.height] = [t, t];
      const paint = canvas.getContext("2d")!;
      if (fresh) for (let i = 0; i < t; i++) for (let j = 0; j < t; j++) {
        const weight = (head: number) => values[(head * t + i) * t + j]!;
        paint.fillStyle = colour("amount", n < count ? weight(n) : Math.max(...Array.from({ length: count }, (_, head) => weight(head))), 1, dark);
        paint.fillRect(j, i, 1, 1);
      }
      const name = headName(n, heads);
      button.setAttribute("aria-checked", String(n === chosen));
      (button as HTMLElement).tabIndex = n === chosen ? 0 : -1;
      if (n === count) {
        button.setAttribute("aria-label", stage.t(name));
        refill(words, stage.t(both("max", "最大")));
        return;
      }
      button.setAttribute("aria-label", stage.t(both(`${name.en}: ${percent(said[n]!)} to linked words`, `${name.zh}：${percent(said[n]!)} 给相关的词`)));
      refill(words, `${Math.floor(n / heads) + 1}·${(n % heads) + 1}  `, h("b", { "data-role": "head-linked", "data-value": said[n]! }, percent(said[n]!)));
    });
  }
  return { element, draw };
}

export function headName(n: number, heads: number): { en: string; zh: string } {
  if (n >= 2 * heads) return both("largest of all heads", "所有头中的最大值");
  const [layer, head] = [Math.floor(n / heads) + 1, (n % heads) + 1];
  return both(`layer ${layer}, head ${head}`, `第 ${layer} 层第 ${head} 头`);
}
