// What each encoding adds to the same scores: small maps with one cursor; of two, their difference, lines and properties.

import { colour, encodingColour, isDark } from "../colours";
import { array, type Data, type Numbers } from "../data";
import { type Child, fill, h, refill } from "../dom";
import { lineChart } from "../parts/chart";
import { colourKey } from "../parts/colour_key";
import { formula, put } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { atRest, linked, type Linked } from "../parts/linked";
import { folded, plainTable } from "../parts/numbers";
import { predict } from "../parts/predict";
import { pageLink, sourced } from "../parts/sources";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./compare.css";

/** Of an encoding, as Python says it. */
interface About {
  name: string;
  title: Words;
  formula: string;
  idea: Words;
  seams: { en: string[]; zh: string[] };
  traits: { en: string[]; zh: string[] };
  parameters: number;
  largest_position: number | null;
  moved: number;
  used_by: Record<"en" | "zh", string[]>;
  source: string;
}

const OWN = {
  head: own.whole(1, 1, 8),
  i: own.whole(16, 0, 127),
  j: own.whole(8, 0, 127),
  answered: own.yes(false),
};
/** Colours end where a weight has changed by e⁵, 148 times. */
const STRONGEST = 5;

const NOTHING: Numbers = { shape: [0, 0], values: new Float64Array() };

export const view: View = {
  name: "compare",
  title: both("Side by side", "并排比较"),
  idea: both(
    "One word everywhere: each map shows what position alone adds to the score of every pair. A map of clean diagonals sees only how far apart two words are; a map of blocks and rows sees where they stand.",
    "所有位置都放同一个词，因此每张图只画出位置给每对词的分数加上多少。对角线整齐的图只看两个词相距多远；成块成行的图看的是它们在哪里。",
  ),
  notice: [
    both(
      "RoPE and ALiBi add nothing on the main diagonal and subtract more as words move apart: ALiBi along a straight line, RoPE in waves. NoPE adds nothing anywhere.",
      "RoPE 和 ALiBi 在主对角线上什么也不加，两词越远减得越多：ALiBi 沿直线，RoPE 呈波形。NoPE 处处为零。",
    ),
    both(
      "With different words (under More settings) ALiBi and T5 keep their diagonals, because they do not read the words. RoPE's map loses them: it rotates the words themselves.",
      "换成不同的词（在“更多设置”里），ALiBi 和 T5 的对角线仍然整齐，因为它们不看词；RoPE 的不再整齐，因为它旋转的是词本身。",
    ),
    both(
      "When all words are shifted by 37 positions, only the encodings that are added to embeddings (sinusoidal, learned, FLOATER) change the scores. The others change by rounding at most.",
      "所有词一起后移 37 个位置时，只有加在词向量上的编码（正弦、可学习、FLOATER）分数会变；其余的最多只有舍入误差。",
    ),
    both(
      "Learned tables are random here, N(0, 0.5²), since nothing is trained: compare their patterns, not their sizes.",
      "可学习的表在这里是随机的，服从 N(0, 0.5²)，没有经过训练：请比较图样，不要比较大小。",
    ),
  ],
  own: OWN,
  styles,
  controls: [
    { name: "first", label: both("compare", "比较") },
    { name: "second", label: both("with", "与") },
    { name: "words", label: both("words", "词"), choices: { same: both("the same everywhere", "处处相同"), different: both("different", "各不相同") } },
    { name: "causal", label: both("causal mask", "因果掩码") },
    { name: "length", label: both("positions", "位置数") },
    { name: "d_model", label: both("d_model", "d_model") },
    { name: "n_heads", label: both("heads", "头数") },
    { name: "seed", label: both("seed", "种子"), as: "number" },
  ],
  build(stage) {
    const t = stage.t;
    const axes = { rows: both("query i", "查询 i"), columns: both("key j", "键 j") };
    const pick = (i: number, j: number) => stage.set({ i, j });
    const heads = h("div", { class: "heads", role: "radiogroup", "aria-label": t(both("Head", "注意力头")) });
    const maps = linked(stage, { label: both("What each encoding adds to the score, query by key", "每种编码给分数加上多少，查询 × 键"), pick, class: "panels" });
    const panels: Panel[] = [];
    const beside = atRest(stage);
    const key = colourKey();
    const where = h("p", { class: "where", "aria-hidden": "true" });
    const narrow = window.innerWidth < 640;
    const difference = heatMap(stage, { label: both("Difference of two encodings, query × key", "两种编码之差，查询 × 键"), ...axes, pick, around: narrow ? 2 : 3 });
    const minus = h("h2", { class: "minus" });
    const same = h("p", { class: "small" }, t(both("Both are the same: choose two.", "两边相同，请选两种不同的编码。")));
    let [distances, length, query]: [ArrayLike<number>, number, number] = [[], 1, 0];
    const chart = lineChart(stage, {
      label: both("What is added, by distance", "加上的量随距离的变化"), x: both("distance i − j", "距离 i − j"), y: both("", ""), height: narrow ? 260 : 360,
      pick(index) {
        // The query stays where it is, unless the text ends first.
        const d = distances[index]!;
        const j = Math.min(Math.max(query - d, 0), length - 1);
        stage.set({ i: Math.min(Math.max(j + d, 0), length - 1), j });
      },
    });
    const [facts, values] = [h("div", {}), h("div", { class: "values" })];
    const question = predict(stage, {
      question: both(
        "Sinusoidal and RoPE use the same frequencies. Shift every word by 37 positions: whose scores change?",
        "正弦编码与 RoPE 用同样的频率。每个词都后移 37 个位置：谁的分数会变？",
      ),
      choices: [both("the sinusoid's", "正弦编码的"), both("RoPE's", "RoPE 的"), both("both", "都会变"), both("neither", "都不变")], right: 0,
      because: both(
        "RoPE rotates query and key, and their product depends only on the difference of the two angles. The sinusoidal rows are added to the embeddings, so products of a word and a position remain. The table of properties now shows the change.",
        "RoPE 旋转查询和键，点积里只剩两个角度之差。正弦编码加在词向量上，词与位置的乘积项保留了下来。性质表里现在给出改变的量。",
      ),
    }, () => stage.set({ answered: true }));
    stage.root.append(
      h("div", { class: "keyed" }, maps.element, h("div", { class: "row" }, key.element, where, heads)),
      h("div", { class: "split" },
        h("div", {}, minus, difference.element, same),
        h("div", {}, h("h2", {}, t(both("By distance", "随距离的变化"))), h("p", { class: "small" }, t(both(
          "Lines: the mean over all pairs at a distance. Bands: from the lowest to the highest of them.",
          "折线：同一距离所有位置对的平均。阴影带：其中的最低到最高。",
        ))), chart.element, question)),
      facts,
      folded(t(both("Numbers at the cursor", "光标处的数值")), values),
    );
    let cut: { data: Data | null; head: number; maps: Numbers[]; plain: Numbers; limit: number } = { data: null, head: 0, maps: [], plain: NOTHING, limit: 1 };
    let apart: { key: string; maps: Numbers[]; numbers: Numbers } = { key: "", maps: [], numbers: NOTHING };
    let known: { data: Data | null; answered: boolean } = { data: null, answered: false };

    return (data, state) => {
      const about = data.facts["methods"] as About[];
      const added = array(data, "added");
      const [n, size] = [added.shape[1]!, added.shape[2]!];
      const head = Math.min(number(state, "head"), n);
      if (cut.data !== data || cut.head !== head) {
        const maps = about.map((_, m) => matrix(added, m * n + head - 1));
        cut = { data, head, maps, plain: matrix(array(data, "plain"), head - 1), limit: Math.max(...maps.map((one) => limitOf(one.values))) };
      }
      [distances, length, query] = [array(data, "distance").values, size, Math.min(number(state, "i"), size - 1)];
      const [i, j] = [query, Math.min(number(state, "j"), size - 1)];
      const here = (numbers: Numbers) => numbers.values[i * size + j]!;
      const called = (m: number) => about[m]!.title.en;
      const [a, b] = (["first", "second"] as const).map((side) => about.findIndex((one) => one.name === state[side])) as [number, number];

      while (panels.length < about.length) {
        panels.push(panel(maps));
        maps.element.append(panels.at(-1)!.element);
      }
      panels.forEach((one, m) => (one.element.hidden = m >= about.length));
      about.forEach((one, m) => panels[m]!.draw(one, cut.maps[m]!, [i, j], cut.limit, m === a || m === b));
      key.draw("diverging", cut.limit, ends(cut.limit));
      refill(where, t(both("query ", "查询 ")), h("b", { class: "position" }, i), t(both(" ↓, key ", " ↓，键 ")), h("b", { class: "channel" }, j), t(both(" →: what is added. Strip: all pairs as far apart", " →：加上的量。色条：相隔同样远的各对")));
      drawHeads(stage, heads, n, head);

      const without = here(cut.plain);
      const two = [...new Set([a, b])];
      beside(() => {
        fill(values, valuesTable(about, without, cut.maps.map(here), [head, i, j], t));
        const pair = `${a} ${b}`;
        if (apart.maps !== cut.maps || apart.key !== pair) apart = { key: pair, maps: cut.maps, numbers: subtracted(cut.maps[b]!, cut.maps[a]!) };
        refill(minus, `${called(b)} − ${called(a)}`);
        same.hidden = a !== b;
        const most = limitOf(apart.numbers.values);
        difference.draw({ numbers: apart.numbers, cursor: [i, j], limit: most, ends: ends(most) });

        const line = (name: string, m: number) => array(data, name).values.subarray((m * n + head - 1) * distances.length, (m * n + head) * distances.length);
        const index = i - j - distances[0]!;
        chart.draw({
          series: two.map((m) => ({ name: called(m), x: distances, y: line("mean", m), low: line("lowest", m), high: line("highest", m), colour: encodingColour(about[m]!.name) })),
          ...(index >= 0 ? { cursor: index } : {}),
        });
      });
      const answered = state["answered"] === true;
      if (known.data !== data || known.answered !== answered) {
        known = { data, answered };
        fill(facts, factsTable(two.map((m) => about[m]!), data.facts["moved_by"] as number, answered, t));
      }

      const negative = (value: number) => (value < 0 ? `(${shown(value)})` : shown(value));
      refill(stage.formula, formula(
        [t(both("added = score with the encoding − score without it", "加上的量 = 加编码后的分数 − 不加编码的分数"))],
        ...two.map((m): Child[] => {
          const [one, value] = [about[m]!, here(cut.maps[m]!)];
          const output = h("output", { "data-role": "value", "data-method": one.name, "data-value": value }, shown(value));
          return [`${called(m)}: ${one.formula}`, h("br"), "\u2003", put(shown(without + value)), " − ", put(negative(without)), " = ", output];
        })));
      stage.announce(`${t(both("head", "头"))} ${head}, i = ${i}, j = ${j}: ${about.map((_, m) => `${called(m)} ${shown(here(cut.maps[m]!), 2)}`).join(", ")}`);
      stage.code(two.map((m) => `added[${m}, ${head - 1}, ${i}, ${j}]  # ${about[m]!.name}: ${here(cut.maps[m]!)}`).join("\n"));
    };
  },
};

interface Panel {
  element: HTMLElement;
  draw(about: About, numbers: Numbers, cursor: [number, number], limit: number, chosen: boolean): void;
}

/** A map with its name above, its number at the cursor, and below it the pairs on the cursor's diagonal, which are equally far
    apart: one colour where only the distance counts. */
function panel(maps: Linked): Panel {
  const map = maps.tile();
  const [title, value, strip] = [h("h2", {}), h("output", {}), h("div", { class: "diagonal", "aria-hidden": "true" })];
  const element = h("div", { class: "panel" }, h("div", { class: "head-line" }, title, value), map.element, strip);
  return {
    element,
    draw(about, numbers, cursor, limit, chosen) {
      element.style.setProperty("--k", encodingColour(about.name));
      element.classList.toggle("chosen", chosen);
      refill(title, about.title.en);
      const found = numbers.values[cursor[0] * numbers.shape[1]! + cursor[1]]!;
      Object.assign(value.dataset, { method: about.name, value: String(found) });
      value.textContent = shown(found, 2);
      map.draw({ numbers, cursor, limit });
      strip.style.background = diagonal(numbers, cursor[0] - cursor[1], limit, isDark(element));
    },
  };
}

/** The colours of one diagonal, side by side. */
function diagonal({ shape, values }: Numbers, distance: number, limit: number, dark: boolean): string {
  const size = shape[1]!;
  const [row, column, count] = [Math.max(distance, 0), Math.max(-distance, 0), size - Math.abs(distance)];
  const stops = Array.from({ length: count }, (_, n) => {
    const value = values[(row + n) * size + column + n]!;
    return `${Number.isNaN(value) ? "transparent" : colour("diverging", value, limit, dark)} ${(100 * n) / count}% ${(100 * (n + 1)) / count}%`;
  });
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

/** Radio buttons with the keys of such; built anew only when their number changes. */
function drawHeads(stage: Stage, group: HTMLElement, n: number, head: number): void {
  if (group.childElementCount !== n) {
    fill(group, ...Array.from({ length: n }, (_, index) => h("button", {
      type: "button", role: "radio", click: () => stage.set({ head: index + 1 }),
      keydown: (event: KeyboardEvent) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        const next = (index + by + n) % n;
        (group.children[next] as HTMLElement).focus();
        stage.set({ head: next + 1 });
      },
    }, stage.t(both(`head ${index + 1}`, `头 ${index + 1}`)))));
  }
  [...group.children].forEach((one, index) => {
    one.setAttribute("aria-checked", String(index === head - 1));
    (one as HTMLElement).tabIndex = index === head - 1 ? 0 : -1;
  });
}

function matrix(numbers: Numbers, index: number): Numbers {
  const size = numbers.shape.at(-1)!;
  return { shape: [size, size], values: numbers.values.subarray(index * size * size, (index + 1) * size * size) };
}

function subtracted(one: Numbers, other: Numbers): Numbers {
  return { shape: one.shape, values: Float64Array.from(one.values, (value, index) => value - other.values[index]!) };
}

function limitOf(values: ArrayLike<number>): number {
  let largest = 0;
  for (let index = 0; index < values.length; index++) if (Math.abs(values[index]!) > largest) largest = Math.abs(values[index]!);
  return Math.min(largest, STRONGEST) || 1;
}

function ends(limit: number): [string, string] | undefined {
  return limit === STRONGEST ? [`≤ −${limit}`, `≥ ${limit}`] : undefined;
}

/** What each of them says at the cursor. */
function valuesTable(about: About[], without: number, found: number[], [head, i, j]: [number, number, number], t: Stage["t"]): HTMLElement {
  const caption = t(both(`Query ${i}, key ${j}, head ${head}: the score is ${shown(without)} without an encoding`, `查询 ${i}、键 ${j}、第 ${head} 个头：不加编码时分数为 ${shown(without)}`));
  const names = [both("encoding", "编码"), both("added", "加上的量"), both("score with it", "加上之后的分数"), both("factor in the softmax", "softmax 中的倍数"), both("formula", "公式")];
  return plainTable(caption, [...names.map(t), "Python"],
    about.map((one, m) => {
      const value = found[m]!;
      return [one.title.en, value, without + value, Math.exp(value), one.formula, `added[${m}, ${head - 1}, ${i}, ${j}]`];
    }));
}

function factsTable(about: About[], movedBy: number, answered: boolean, t: Stage["t"]): HTMLElement {
  const list = (words: { en: string[]; zh: string[] }) => t(both(words.en.join(", ") || "–", words.zh.join("、") || "–"));
  const rows: [Words, (one: About) => Child, ((one: About) => number)?][] = [
    [both("formula", "公式"), (one) => h("span", { class: "rule" }, one.formula)],
    [both("idea", "思路"), (one) => t(one.idea)],
    [both("acts on", "作用处"), (one) => list(one.seams)],
    [both("properties", "性质"), (one) => list(one.traits)],
    [both("parameters", "参数量"), (one) => one.parameters.toLocaleString("en"), (one) => one.parameters],
    [both("largest position", "最大位置"), (one) => one.largest_position?.toLocaleString("en") ?? t(both("any", "任意")), (one) => one.largest_position ?? Infinity],
    [both(`largest change of a score when all words are shifted by ${movedBy}`, `所有词后移 ${movedBy} 位时分数的最大变化`),
      (one) => (answered ? shown(one.moved) : t(both("answer above", "请先回答上面的问题"))), answered ? (one) => one.moved : undefined],
    [both("used by", "使用者"), (one) => t(both(one.used_by.en.join(", "), one.used_by.zh.join("、")))],
    [both("paper", "论文"), (one) => h("span", {}, ...sourced(one.source))],
  ];
  const caption = t(both("Properties of each encoding", "各种编码的性质"));
  const written = ([name, cell, value]: (typeof rows)[number]) =>
    h("tr", { "data-fact": name.en.split(" ")[0]! }, h("th", { scope: "row" }, t(name)), ...about.map((one) => h("td", { "data-method": one.name, "data-value": value?.(one) }, cell(one))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { class: "plain facts" }, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, h("td", {}), ...about.map((one) => h("th", { scope: "col" }, pageLink(one.name, one.title.en))))),
      h("tbody", {}, ...rows.map(written))));
}
