// Where every word of the scene stands in each step, and what is drawn around them.
//
//   in lines    bag, hands, row (the chosen word below), shift, attention
//   as rows     table, scores, mask: the words keep to the left, their cells to the right

import type { MapName } from "./colours";
import { array, row, type Data, type Numbers } from "./data";
import { s } from "./dom";
import { CHIP, chipWidth, lines, type Pose } from "./scene_picture";
import type { State } from "./source";
import { number } from "./view";
import { shown } from "./words";

export interface Scene {
  poses: Pose[];
  /** Drawn behind the words and before them. */
  behind: SVGElement[];
  before: SVGElement[];
  /** The scale of the cells' colours. */
  key: [MapName, number] | null;
  height: number;
}

type Size = [number, number];
type Posed = (data: Data, state: State, size: Size) => Scene;

const two = (value: number) => shown(value, 2);
const percent = (value: number) => `${Math.round(value * 100)}%`;
const largest = (values: ArrayLike<number>) => Math.max(...Array.from(values, (value) => (Number.isFinite(value) ? Math.abs(value) : 0)), 1e-9);
export const wordsOf = (data: Data) => data.facts["words"] as string[];
export const chosen = (data: Data, state: State) => Math.min(number(state, "word"), wordsOf(data).length - 1);

/** One matrix of a stack of them. */
export function slice(numbers: Numbers, index: number): Numbers {
  const shape = numbers.shape.slice(1);
  const size = shape.reduce((product, one) => product * one, 1);
  return { shape, values: numbers.values.subarray(index * size, (index + 1) * size) };
}

/** A sentence that does not fit at this scale makes the picture taller. */
const SMALLEST = 0.62;

/** Words in centred lines as large as they fit, each at least `under` wide and with room above and below its chip. */
function inLines(words: string[], [width, height]: Size, under: number, above: number, below: number): { scale: number; at: { x: number; y: number }[]; height: number } {
  for (let scale = 1.6; ; scale *= 0.92) {
    const places = lines(words.map((word) => Math.max(chipWidth(word), under) * scale), width, 14 * scale);
    const one = (above + CHIP + below) * scale;
    const count = places.at(-1)!.line + 1;
    const tall = count * one + (count - 1) * 10 * scale;
    if (tall > height && scale > SMALLEST) continue;
    const top = Math.max(0, (height - tall) / 2);
    return { scale, height: Math.max(height, tall), at: places.map(({ x, line }) => ({ x, y: top + line * (one + 10 * scale) + (above + CHIP / 2) * scale })) };
  }
}

const markAbove = (text: string, scale: number) => ({ x: 0, y: -(CHIP / 2) * scale - 6, text });
const position = (state: State, word: number) => number(state, "start") + word;
const angles = (data: Data, p: number) => Array.from(array(data, "omega").values, (omega) => omega * p);

const bag: Posed = (data, state, size) => {
  const [words, backwards, results] = [wordsOf(data), Boolean(state["backwards"]), array(data, "bag")];
  const slot = (word: number) => (backwards ? words.length - 1 - word : word);
  const { scale, at, height } = inLines(words.map((_, place) => words[slot(place)]!), size, 64, 0, 36);
  const limit = largest(results.values);
  const poses = words.map((_, word) => ({
    ...at[slot(word)]!, scale,
    cells: { x: -32 * scale, y: (CHIP / 2 + 10) * scale, width: 8 * scale, height: 24 * scale, values: row(slice(results, Number(backwards)), slot(word)), map: "diverging" as const, limit },
  }));
  return { poses, behind: [], before: [], key: ["diverging", limit], height };
};

const hands: Posed = (data, state, size) => {
  const { scale, at, height } = inLines(wordsOf(data), size, 64, 18, 72);
  const poses = at.map((place, word) => ({
    ...place, scale, mark: markAbove(String(position(state, word)), scale),
    clocks: { x: [0, 0, 0, 0], y: (CHIP / 2 + 40) * scale, r: 31 * scale, angles: angles(data, position(state, word)) },
  }));
  return { poses, behind: [], before: [], key: null, height };
};

const oneRow: Posed = (data, state, [width, height]) => {
  const [table, word] = [array(data, "table"), chosen(data, state)];
  const lineRoom = height * 0.36;
  const { scale, at, height: tall } = inLines(wordsOf(data), [width, lineRoom], 56, 24, 22);
  const below = Math.max(lineRoom, tall) + 8;
  const cell = Math.min(64, (width - 16) / 8);
  const radius = Math.min(cell * 0.72, (height - below - 90) / 2, 52);
  const poses: Pose[] = at.map((place, index) => {
    const p = position(state, index);
    const cells = { values: row(table, p), map: "diverging" as const, limit: 1 };
    if (index !== word) return { ...place, scale, mark: markAbove(String(p), scale), cells: { ...cells, x: -28 * scale, y: (CHIP / 2 + 7) * scale, width: 7 * scale, height: 14 * scale } };
    const pair = (which: number) => (2 * which - 3) * cell;
    return {
      x: width / 2, y: below + CHIP * 0.4, scale: 0.8, lit: true, mark: { x: chipWidth(wordsOf(data)[index]!) * 0.4 + 16, y: 5, text: String(p) },
      clocks: { x: [0, 1, 2, 3].map(pair), y: CHIP * 0.4 + 8 + radius, r: radius, angles: angles(data, p) },
      cells: { ...cells, x: -4 * cell, y: CHIP * 0.4 + 16 + 2 * radius, width: cell, height: 30, say: two },
    };
  });
  const names = poses[word]!;
  const line = names.cells!;
  const before = ["sin", "cos"].flatMap((name, odd) => [0, 1, 2, 3].map((which) =>
    s("text", { class: "axis-word", x: names.x + line.x + (2 * which + odd + 0.5) * cell, y: names.y + line.y + 45, "text-anchor": "middle" }, name)));
  return { poses, behind: [], before, key: ["diverging", 1], height: Math.max(height, names.y + line.y + 50) };
};

interface Rows {
  poses: Pose[];
  left: number;
  top: number;
  cell: Size;
  height: number;
}

/** Words as rows of as many lines as `total`, with cells to their right, `right` pixels free, and the words again over the columns if asked. */
function asRows(words: string[], [width, height]: Size, total: number, columns: number, right: number, keys: boolean, mark: (word: number) => string, cells: (word: number) => { values: ArrayLike<number>; limit: number; say?: (value: number) => string }): Rows {
  const longest = Math.max(...words.map(chipWidth));
  const measured = (header: number) => {
    const tall = Math.max(14, Math.min(40, (height - header) / total));
    const scale = Math.min((tall * 0.86) / CHIP, (width * 0.3) / longest);
    const left = longest * scale + 34;
    const wide = Math.min(tall * 1.7, (width - left - right - 4) / columns);
    return { tall, scale, left, wide };
  };
  let found = measured(keys ? 22 : 0);
  const letters = longest - 20;
  const upright = keys && (letters / 24) * 13 > found.wide - 2;
  const size = upright ? Math.min(13, found.wide * 0.95) / 24 : 13 / 24;
  const header = upright ? letters * size + 8 : keys ? 22 : 0;
  if (upright) found = measured(header);
  const { tall, scale, left, wide } = found;
  const indent = Math.max(0, (width - left - columns * wide - right) / 2);
  const top = header + Math.max(0, (height - header - total * tall) / 2);
  const roomy = wide >= 33 && tall >= 17;
  const poses = words.map((word, index): Pose => {
    const x = indent + longest * scale - (chipWidth(word) * scale) / 2;
    const { say, ...of } = cells(index);
    return {
      x, y: top + (index + 0.5) * tall, scale, mark: { x: indent + left - 15 - x, y: 5, text: mark(index) },
      cells: { x: indent + left - x, y: -tall / 2, width: wide, height: tall, map: "diverging", ...of, ...(roomy && say ? { say } : {}) },
      ...(keys ? { key: { x: indent + left + (index + 0.5) * wide + (upright ? 24 * size * 0.35 : 0), y: top - 7, turn: upright ? -90 : 0, scale: size } } : {}),
    };
  });
  return { poses, left: indent + left, top, cell: [wide, tall], height: Math.max(height, top + total * tall) };
}

const wholeTable: Posed = (data, state, [width, height]) => {
  const [words, table, start, pair] = [wordsOf(data), array(data, "table"), number(state, "start"), number(state, "pair")];
  const total = Math.max(words.length, Math.min(16, Math.floor(height / 23)));
  const wave = width > 500 ? 170 : 84;
  const { poses, left, top, cell: [wide, tall], height: needed } = asRows(words, [width, height], total, 8, wave, false, (word) => String(start + word), (word) => ({ values: row(table, start + word), limit: 1, say: two }));
  const y = (p: number) => top + (p - start + 0.5) * tall;
  const middle = left + 8 * wide + wave / 2;
  const omega = array(data, "omega").values[pair]!;
  const curve = (of: (angle: number) => number) => Array.from({ length: total * 8 - 7 }, (_, at) => start + at / 8).map((p) => `${(middle + of(omega * p) * (wave / 2 - 12)).toFixed(1)},${y(p).toFixed(1)}`).join(" ");
  const before = [
    // the positions after the sentence
    ...Array.from({ length: total - words.length }, (_, at) => start + words.length + at).flatMap((p) => [
      s("text", { class: "at", x: left - 15, y: y(p) + 5 }, p),
      ...Array.from(row(table, p), (value, column) => s("rect", { class: "rest", x: left + column * wide, y: y(p) - tall / 2, width: wide - 1, height: tall - 1, style: `--at: ${Math.round(Math.abs(value) * 100)}%; --sign: var(--${value < 0 ? "minus" : "plus"})` })),
    ]),
    s("rect", { class: "outline", x: left + 2 * pair * wide - 1, y: top - 1, width: 2 * wide + 1, height: total * tall + 1 }),
    s("line", { class: "grid", x1: middle, x2: middle, y1: y(start), y2: y(start + total - 1) }),
    s("polyline", { class: "wave cos", points: curve(Math.cos) }), s("polyline", { class: "wave", points: curve(Math.sin) }),
    ...words.map((_, word) => s("circle", { class: "wave-dot", r: 3.5, cx: middle + row(table, start + word)[2 * pair]! * (wave / 2 - 12), cy: y(start + word) })),
  ];
  return { poses, behind: [], before, key: ["diverging", 1], height: needed };
};

const shift: Posed = (data, state, size) => {
  const [k, pair] = [number(state, "shift"), number(state, "pair")];
  const { scale, at, height } = inLines(wordsOf(data), size, 64, 18, 72);
  const poses = at.map((place, word) => {
    const p = position(state, word);
    return {
      ...place, scale, mark: markAbove(k ? `${p}→${p + k}` : String(p), scale),
      clocks: { x: [0, 0, 0, 0], y: (CHIP / 2 + 40) * scale, r: 31 * scale, angles: angles(data, p + k), hand: pair, from: angles(data, p)[pair]! },
    };
  });
  return { poses, behind: [], before: [], key: null, height };
};

const map = (of: (data: Data, state: State) => Numbers, limit: (data: Data) => number, mark: (state: State, word: number) => number): Posed => (data, state, size) => {
  const [words, numbers] = [wordsOf(data), of(data, state)];
  const { poses, height } = asRows(words, size, words.length, words.length, 0, true, (word) => String(mark(state, word)), (word) => ({ values: row(numbers, word), limit: limit(data), say: two }));
  return { poses, behind: [], before: [], key: ["diverging", limit(data)], height };
};

const attention: Posed = (data, state, size) => {
  const [words, word] = [wordsOf(data), chosen(data, state)];
  const weights = row(slice(array(data, "weights"), number(state, "head")), word);
  const { scale, at, height } = inLines(words, size, 58, 46, 30);
  const poses = at.map((place, index) => ({
    ...place, scale, lit: index === word, mark: markAbove(String(index), scale),
    cells: { x: -29 * scale, y: (CHIP / 2 + 5) * scale, width: 58 * scale, height: Math.max(17, 22 * scale), values: [weights[index]!], map: "amount" as const, limit: 1, say: percent },
  }));
  const from = poses[word]!;
  const [over, under] = [(CHIP / 2) * scale + 20, (CHIP / 2 + 5) * scale + Math.max(17, 22 * scale)];
  const links = poses.flatMap(({ x, y }, index) => {
    if (index === word || weights[index]! < 0.005) return [];
    const [top, end] = [from.y - over, y < from.y ? y + under : y - over];
    const lift = y < from.y ? (top - end) / 2 : (10 + Math.min(60, Math.abs(x - from.x) * 0.2)) * scale;
    return [s("path", { class: "link", d: `M${from.x} ${top}C${from.x} ${top - lift} ${x} ${y < from.y ? end + lift : end - lift} ${x} ${end}`, "stroke-width": 1.5 + 12 * weights[index]!, opacity: 0.4 + 0.6 * weights[index]! })];
  });
  return { poses, behind: links, before: [], key: ["amount", 1], height };
};

const POSED: Record<string, Posed> = {
  bag, hands, row: oneRow, table: wholeTable, shift,
  scores: map((data, state) => slice(array(data, "rotated"), number(state, "start")), (data) => largest(array(data, "rotated").values), position),
  mask: map((data, state) => slice(array(data, "logits"), number(state, "head")), (data) => largest(slice(array(data, "logits"), 2).values), (_, word) => word),
  attention,
};

export function posed(data: Data, state: State, size: Size): Scene {
  return POSED[String(state["step"])]!(data, state, size);
}
