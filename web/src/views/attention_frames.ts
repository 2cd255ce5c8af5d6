// The eight steps of attention: the matrices of each, and the formula of every cell.

import { array, type Data } from "../data";
import { h, type Child } from "../dom";
import { tidy } from "../parts/chart";
import { fraction, put, sub, sup, v } from "../parts/formula";
import { both, type Words } from "../words";

export interface About {
  words: string[];
  sites: string[];
  encoding: string;
  /** The catalogue's formula, for methods about which this page knows no more. */
  formula: string;
  causal: boolean;
  base: number;
  n_heads: number;
  d_head: number;
  difference: number;
  printed: Record<string, [string, string][][]>;
}

export interface Part {
  /** As Python calls the array. */
  name: string;
  title: Words;
  /** What its columns are; its rows are words, of projections channels. */
  columns: "words" | "channels" | "heads";
  rows?: "channels";
  amount?: boolean;
}

export interface Frame {
  title: Words;
  says: Words;
  /** Lines of matrices, with the signs between them. */
  lines: (Part | string)[][];
  /** The site at which position enters here, if it does. */
  site?: string;
}

const channels = (name: string, en: string, zh: string): Part => ({ name, title: both(en, zh), columns: "channels" });
const projection = (name: string, letter: string): Part => ({ name, title: both(letter, letter), columns: "channels", rows: "channels" });
const between = (name: string, en: string, zh: string, amount = false): Part => ({ name, title: both(en, zh), columns: "words", amount });

/** What is added to the score, by the array that explains it. */
const ADDED: Record<string, [string, string]> = {
  slopes: ["−m·|i−j|", "−m·|i−j|"],
  bucket: ["b[bucket(i−j)]", "b[桶(i−j)]"],
  key_vectors: ["q·a[j−i]/√d", "q·a[j−i]/√d"],
  terms: ["the terms with R, u, v", "含 R、u、v 的三项"],
  counts: ["q·e[count]", "q·e[计数]"],
};

function addend(data: Data): [string, string] {
  const name = Object.keys(ADDED).find((one) => one in data.arrays);
  return name ? ADDED[name]! : ["bias", "偏置"];
}

export function framesOf({ sites, causal }: About, data: Data): Frame[] {
  const has = (site: string) => sites.includes(site);
  const turned = has("ROTATE");
  const turnsWords = has("EMBED") && !("position" in data.arrays);
  const added = has("BIAS") || has("CONTEXT");
  const [query, key] = turned ? ["q_hat", "k_hat"] : ["q", "k"];
  const logits = added ? "scores" : "products";
  const q = channels("q", "q, queries", "q，查询");
  const k = channels("k", "k, keys", "k，键");
  const values = channels("v", "v, values", "v，值");
  const scores = between(logits, added ? "scores" : "scores q·k/√d", added ? "分数" : "分数 q·k/√d");
  const weights = between("weights", "weights α", "权重 α", true);
  return [
    { title: both("Words", "词"), lines: [],
      says: both("A sentence is a sequence of words. The numbers below them are their positions.", "句子是一串有次序的词，词下面的数字是位置。") },
    { title: both("Vectors", "词向量"), site: turnsWords ? "ROTATE" : has("EMBED") ? "EMBED" : undefined,
      lines: [turnsWords ? [channels("x", "x, words", "x，词向量"), "↻", channels("embedded", "x, turned", "x，旋转后")] : has("EMBED") ? [
        channels("x", "x, words", "x，词向量"), "+", channels("position", "p, positions", "p，位置编码"), "=",
        channels("embedded", "x + p", "x + p"),
      ] : [channels("x", "x, words", "x，词向量")]],
      says: turnsWords ? both("Each word becomes a vector. Its pairs of channels are then turned by angles that depend on its position.", "每个词变成一个向量。它的通道随后成对旋转，角度取决于词的位置。")
        : has("EMBED") ? both("Each word becomes a vector. The vector of its position is added once, at this step.", "每个词变成一个向量。它所在位置的向量在这一步加上，只加一次。")
        : both("Each word becomes a vector. It does not depend on the position of the word.", "每个词变成一个向量，与词的位置无关。") },
    { title: both("q, k, v", "q、k、v"), site: turned ? "ROTATE" : undefined,
      lines: turned
        ? [
          [projection("w_q", "W_Q"), "→", q, "↻", channels("q_hat", "q̂, turned", "q̂，旋转后")],
          [projection("w_k", "W_K"), "→", k, "↻", channels("k_hat", "k̂, turned", "k̂，旋转后")],
          [projection("w_v", "W_V"), "→", values],
        ]
        : [[projection("w_q", "W_Q"), "→", q], [projection("w_k", "W_K"), "→", k], [projection("w_v", "W_V"), "→", values]],
      says: turned ? both("Three projections of every row. Queries and keys are then rotated by angles proportional to their positions; values are not.", "每一行作三次投影。查询和键随后旋转，角度与位置成正比；值不旋转。")
        : both("Three projections of every row: the query, the key and the value of the word.", "每一行作三次投影：这个词的查询、键和值。") },
    { title: both("Scores", "分数"), site: has("BIAS") ? "BIAS" : has("CONTEXT") ? "CONTEXT" : undefined,
      lines: [
        [{ ...q, name: query }, "·", { ...k, name: key }],
        ...(has("CONTEXT") ? [[between("products", "q·k/√d", "q·k/√d"), ...("counts" in data.arrays ? ["→", between("counts", "count p", "计数 p")] : [])], ["+", between("added", ...addend(data)), "=", scores]]
          : added ? [[between("products", "q·k/√d", "q·k/√d"), "+", between("added", ...addend(data)), "=", scores]] : [[scores]]),
      ],
      says: "counts" in data.arrays ? both("The product of every query with every key. CoPE computes gates from these products, sums them from the key to the query, and adds a number for this count. The next step masks the cells above the diagonal.", "每个查询与每个键的乘积。CoPE 由这些乘积算出门，从键到查询求和，再按这个计数加上一个数。下一步遮住对角线以上的格子。")
        : added ? both("The product of every query with every key, plus a number that depends on their positions.", "每个查询与每个键的乘积，再加上一个由位置决定的数。")
          : both("The product of every query with every key: rows are queries, columns are keys.", "每个查询与每个键的乘积：行是查询，列是键。") },
    { title: both("Mask", "掩码"), lines: [[{ ...scores, name: logits }, "→", between("masked", "masked", "掩码后")]],
      says: causal ? both("A word does not attend to later words: their scores become −∞. The mask alone makes the outputs depend on the order.", "词不能关注后面的词：那些分数变成 −∞。仅有掩码，输出就已取决于次序。")
        : both("No mask: every word attends to all words, and the scores do not change.", "没有掩码：每个词都关注所有词，分数不变。") },
    { title: both("Softmax", "Softmax"), lines: [[between("masked", "scores", "分数"), "→", weights]],
      says: both("Every row becomes weights between 0 and 1 that sum to 1.", "每一行变成 0 到 1 之间的权重，总和为 1。") },
    { title: both("Weights · v", "权重 · v"), site: has("VALUE") ? "VALUE" : undefined,
      lines: has("VALUE")
        ? [
          [weights, "·", values],
          [channels("mixed", "Σ α·v", "Σ α·v"), "+", channels("value_added", "Σ α·a[j−i]", "Σ α·a[j−i]"), "=", channels("attended", "sum", "和")],
        ]
        : [[weights, "·", values, "=", channels("mixed", "Σ α·v", "Σ α·v")]],
      says: has("VALUE") ? both("The weighted sum of the values. A vector for the distance is added to each value: position is used a second time.", "值的加权和。每个值还加上一个距离的向量：位置在这里第二次使用。")
        : both("The weighted sum of the values. Values contain no position unless it was added at step 2.", "值的加权和。除非第 2 步加了位置，值里不含位置信息。") },
    { title: both("Output", "输出"),
      lines: [[
        { name: "out", title: both("output", "输出"), columns: "heads" }, "−",
        { name: "blind", title: both("without position", "不用位置"), columns: "heads" }, "=",
        { name: "changed", title: both("effect of position", "位置带来的改变"), columns: "heads" },
      ]],
      says: both("The concatenated heads, next to the output for the same words without positions. The difference is the effect of the method.", "各个头拼接的结果，旁边是同样的词不用位置时的输出。两者之差就是这种方法的作用。") },
  ];
}

/** One number of an array; those without heads are the same for all. */
export function valueOf(data: Data, name: string, head: number, row: number, column: number): number {
  const { shape, values } = array(data, name);
  const [rows, columns] = shape.slice(-2) as [number, number];
  return values[((shape.length === 3 ? head * rows : 0) + row) * columns + column]!;
}

const short = (value: number) => (Number.isFinite(value) ? tidy(Number(value.toFixed(4))) : "−∞");
const inner = (value: number) => (value < 0 ? `(${short(value)})` : short(value));

/** a·b + c·d + …, every number in its place. */
function spelt(pairs: [number, number][]): string {
  return pairs.map(([a, b]) => `${inner(a)}·${inner(b)}`).join(" + ");
}

export interface Made {
  /** In letters, and with the numbers in their places. */
  letters: Child[];
  numbers: Child[];
  /** The page's own result, where it computes one. */
  result?: number;
  /** Which cells it is made of. */
  from: Record<string, (row: number, column: number) => boolean>;
}

/** How a cell comes about. The result is the page's own, to be held against Python's. */
export function made(data: Data, part: string, head: number, row: number, column: number): Made {
  const about = data.facts as About;
  const of = (name: string, r: number, c: number) => valueOf(data, name, head, r, c);
  const width = (name: string) => array(data, name).shape.at(-1)!;
  const range = (count: number) => Array.from({ length: count }, (_, index) => index);
  const same = (r: number, c: number) => r === row && c === column;
  const inRow = (r: number) => r === row;
  const t = about.words.length;
  const p = (position: Child) => put(position, "position");
  const given: Made = { letters: [], numbers: [], from: {} };
  const [query, key] = about.sites.includes("ROTATE") ? ["q_hat", "k_hat"] : ["q", "k"];

  function dot(letters: Child[], left: string, right: string, count: number, from: Made["from"], across = false): Made {
    const pairs = range(count).map((c): [number, number] => [of(left, row, c), across ? of(right, column, c) : of(right, c, column)]);
    const sum = pairs.reduce((all, [a, b]) => all + a * b, 0);
    return { letters, numbers: [spelt(pairs)], result: sum, from };
  }
  function sumOf(letters: Child[], ...names: string[]): Made {
    return {
      letters, numbers: [names.map((name) => inner(of(name, row, column))).join(" + ")],
      result: names.reduce((all, name) => all + of(name, row, column), 0),
      from: Object.fromEntries(names.map((name) => [name, same])),
    };
  }

  switch (part) {
    case "position": {
      if (about.encoding === "learned") return { ...given, letters: ["p = table[", v("position"), "]"] };
      if (about.encoding !== "sinusoidal" && about.encoding !== "floater") return { ...given, letters: [about.formula] };
      if (about.encoding === "floater") return { ...given, letters: ["p = p(0) + ∫ h(τ, p) dτ,  τ = 0 … ", p(row), " · 0.01"] };
      const [name, pair, m] = [column % 2 ? "cos" as const : "sin" as const, column >> 1, width("position")];
      return {
        letters: [`${name}(`, v("p"), " · base", sup(`−2i/${m}`), ")"],
        numbers: [`${name}(`, p(row), ` · ${tidy(about.base)}`, sup(`−${2 * pair}/${m}`), ")"],
        result: Math[name](row * about.base ** ((-2 * pair) / m)), from: {},
      };
    }
    case "embedded":
      if (!about.sites.includes("EMBED")) return given;
      return "position" in data.arrays ? sumOf([], "x", "position") : { ...given, letters: [about.formula] };
    case "q":
    case "k":
    case "v":
      return dot([`Σ x̃·W`, sub(part.toUpperCase())], "embedded", `w_${part}`, width("embedded"), { [`w_${part}`]: (_, c) => c === column });
    case "q_hat":
    case "k_hat":
      return rotated(part === "q_hat" ? "q" : "k");
    case "products": {
      const d = width(query);
      const one = dot(
        [`${query === "q" ? "q" : "q̂"}`, sub("i"), "·", `${query === "q" ? "k" : "k̂"}`, sub("j"), " / √d"], query,
        key, d, { [query]: inRow, [key]: (r) => r === column }, true,
      );
      return { ...one, numbers: ["(", ...one.numbers, `) / √${d}`], result: one.result! / Math.sqrt(d) };
    }
    case "added":
      return added();
    case "scores":
      return sumOf(["q·k/√d + ", addend(data)[0]], "products", "added");
    case "counts": {
      const gates = range(t).filter((c) => c >= column && c <= row).map((c) => 1 / (1 + Math.exp(-of("products", row, c))));
      return {
        letters: ["Σ σ(q·k/√d),  j … i"], numbers: [gates.length ? gates.map(short).join(" + ") : "0"],
        result: gates.reduce((all, one) => all + one, 0),
        from: { products: (r, c) => r === row && c >= column && c <= row },
      };
    }
    case "masked": {
      const source = about.sites.includes("BIAS") || about.sites.includes("CONTEXT") ? "scores" : "products";
      const seen = !about.causal || column <= row;
      return {
        letters: [seen ? (about.causal ? "j ≤ i" : "") : "j > i"],
        numbers: [seen ? short(of(source, row, column)) : "−∞"], result: seen ? of(source, row, column) : -Infinity,
        from: { [source]: same },
      };
    }
    case "weights": {
      const exponents = range(t).map((c) => of("masked", row, c));
      const sum = exponents.reduce((all, one) => all + Math.exp(one), 0);
      const e = (value: number): Child[] => (Number.isFinite(value) ? ["e", sup(short(value))] : ["0"]);
      return { letters: ["e", sup("score"), " / Σ e", sup("score")], from: { masked: inRow }, result: Math.exp(exponents[column]!) / sum,
        numbers: [fraction(h("span", {}, ...e(exponents[column]!)), h("span", {}, ...exponents.flatMap((one, index) => [index ? " + " : "", ...e(one)])))] };
    }
    case "mixed":
      return dot(["Σ", sub("j"), " α", sub("ij"), "·v", sub("j")], "weights", "v", t, { weights: inRow, v: (_, c) => c === column });
    case "value_added": {
      if (!("value_vectors" in data.arrays)) return { ...given, letters: [about.formula] };
      const pairs = range(t).map((j): [number, number] => [of("weights", row, j), of("value_vectors", clipped(j - row), column)]);
      return {
        letters: ["Σ", sub("j"), " α", sub("ij"), "·a", sup("V"), "[j−i]"], numbers: [spelt(pairs)],
        result: pairs.reduce((all, [a, b]) => all + a * b, 0), from: { weights: inRow },
      };
    }
    case "attended":
      return sumOf(["Σ α·v + Σ α·a", sup("V"), "[j−i]"], "mixed", "value_added");
    case "out": {
      const own = Math.floor(column / about.d_head);
      const result = valueOf(data, "attended", own, row, column % about.d_head);
      return { letters: about.n_heads > 1 ? ["Σ α", sup(put(own, "head")), "·v", sup(put(own, "head"))] : [], numbers: [short(result)], result, from: {} };
    }
    case "changed":
      return {
        letters: ["output − output", sub("NoPE")],
        numbers: [`${inner(of("out", row, column))} − ${inner(of("blind", row, column))}`],
        result: of("out", row, column) - of("blind", row, column), from: { out: same, blind: same },
      };
    default:
      return given;
  }

  function clipped(offset: number): number {
    const limit = (array(data, "value_vectors").shape[0]! - 1) / 2;
    return Math.min(Math.max(offset, -limit), limit) + limit;
  }

  /** Both channels of a pair turn together; those beyond the last pair stay as they are. */
  function rotated(name: "q" | "k"): Made {
    if (!("omega" in data.arrays)) return { ...given, letters: [about.formula] };
    const omega = array(data, "omega").values;
    const pair = column >> 1;
    if (pair >= omega.length) return {
      letters: [`${name}̂ = ${name}`], numbers: [short(of(name, row, column))], result: of(name, row, column),
      from: { [name]: same },
    };
    const [a, b, angle] = [of(name, row, 2 * pair), of(name, row, 2 * pair + 1), row * omega[pair]!];
    const fades = "log_decay" in data.arrays;
    const rate = fades ? array(data, "log_decay").values[pair]! * (name === "q" ? row : -row) : 0;
    const first = column % 2 === 0;
    const turned = first ? a * Math.cos(angle) - b * Math.sin(angle) : a * Math.sin(angle) + b * Math.cos(angle);
    const [one, two] = first ? ["cos", "sin"] : ["sin", "cos"];
    const turn = (): Child[] => [p(row), `·${short(omega[pair]!)}`];
    return {
      letters: [
        `${name}`, sub(2 * pair), ` ${one} pω ${first ? "−" : "+"} ${name}`, sub(2 * pair + 1), ` ${two} pω`,
        ...(fades ? [",  · ζ", sup(name === "q" ? "p/512" : "−p/512")] : []),
      ],
      numbers: [
        fades ? "(" : "", `${inner(a)}·${one}(`, ...turn(), `) ${first ? "−" : "+"} ${inner(b)}·${two}(`, ...turn(),
        ")", fades ? `) · ${tidy(Number(Math.exp(rate).toFixed(6)))}` : "",
      ],
      result: turned * Math.exp(rate), from: { [name]: (r, c) => r === row && c >> 1 === pair },
    };
  }

  function added(): Made {
    const [i, j] = [row, column];
    const distance: Child[] = [p(i), " − ", p(j)];
    const vectors = (row_: number, name: string) => range(width(query)).map((c): [number, number] => [of(query, i, c), of(name, row_, c)]);
    const root = Math.sqrt(width(query));
    if ("slopes" in data.arrays) {
      const slope = array(data, "slopes").values[head]!;
      return { letters: ["−m·|i−j|"], numbers: ["−", put(tidy(slope), "head"), "·|", ...distance, "|"], result: -slope * Math.abs(i - j), from: {} };
    }
    if ("bucket" in data.arrays) {
      const bucket = valueOf(data, "bucket", 0, i, j);
      return {
        letters: ["b[bucket(i−j)]"], numbers: ["b[bucket(", ...distance, `)] = b[${bucket}]`],
        result: valueOf(data, "table", 0, bucket, head), from: {},
      };
    }
    if ("key_vectors" in data.arrays) {
      const pairs = vectors(clipped(j - i), "key_vectors");
      return {
        letters: ["q", sub("i"), "·a", sup("K"), "[j−i] / √d"], numbers: ["(", spelt(pairs), `) / √${pairs.length}`],
        result: pairs.reduce((all, [a, b]) => all + a * b, 0) / root, from: {},
      };
    }
    if ("terms" in data.arrays) {
      const { shape, values } = array(data, "terms");
      const term = (n: number) => values[((n * shape[1]! + head) * t + i) * t + j]!;
      return {
        letters: ["(q", sub("i"), "·W", sub("R"), "R", sub("i−j"), " + u·k", sub("j"), " + v·W", sub("R"), "R", sub("i−j"), ") / √d"],
        numbers: [[1, 2, 3].map((n) => inner(term(n))).join(" + ")], result: term(1) + term(2) + term(3), from: {},
      };
    }
    if (!("counts" in data.arrays)) return { ...given, letters: [about.formula] };
    const count = of("counts", i, j);
    const [below, above, share] = [of("count_scores", i, Math.floor(count)), of("count_scores", i, Math.ceil(count)), count - Math.floor(count)];
    return {
      letters: ["q·e[p],  p = ", p(short(count))],
      numbers: [`(1 − ${short(share)})·${inner(below)} + ${short(share)}·${inner(above)}`],
      result: below + (above - below) * share, from: { counts: same },
    };
  }
}
