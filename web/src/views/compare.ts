// How two to four encodings change the same scores: maps with one cursor, a difference, lines, and a table of properties.

import { encodingColour } from "../colours";
import { array, type Data, type Numbers } from "../data";
import { fill, h, type Child } from "../dom";
import { lineChart } from "../parts/chart";
import { formula, put } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { plainTable } from "../parts/numbers";
import { predict } from "../parts/predict";
import { pageLink, sourced } from "../parts/sources";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./compare.css";
import { COLUMNS, measuredOf } from "./compare_measured";

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

const PLACES = ["first", "second", "third", "fourth"] as const;
const OWN = {
  head: own.whole(1, 1, 8),
  i: own.whole(18, 0, 127),
  j: own.whole(6, 0, 127),
  common: own.yes(true),
  left: own.choice("second", ...PLACES),
  right: own.choice("first", ...PLACES),
  answered: own.yes(false),
  sorted: own.choice("bits1", ...COLUMNS),
  reversed: own.yes(false),
};
/** Colours end where a weight has changed by e⁵, 148 times. */
const STRONGEST = 5;

const NOTHING: Numbers = { shape: [0, 0], values: new Float64Array() };

export const view: View = {
  name: "compare",
  title: both("Side by side", "并排比较"),
  idea: both(
    "The maps show how much each encoding changes the scores of the same queries and keys, for each pair of positions. A change that depends only on the distance is constant along diagonals, one that depends on words is not, and one that depends on absolute positions changes when the whole text is shifted.",
    "图中画出对同样的查询和键，每种编码把每对位置的分数改变了多少。只取决于距离的改变，沿对角线处处相等；取决于词的改变则不然；取决于绝对位置的改变，在整段文字平移时会变。",
  ),
  notice: [
    both(
      "ALiBi and T5 add the same number to all pairs at a distance, whatever the words: the map has stripes, and the line has no band. RoPE and the sinusoidal encoding add a different number to every pair.",
      "ALiBi 和 T5 给同一距离的所有位置对加上同一个数，与词无关：图上是条纹，折线周围没有阴影带。RoPE 和正弦编码加到每一对位置上的数都不同。",
    ),
    both(
      "On the diagonal RoPE, XPos and ALiBi change nothing: the score of a word with itself is the same as without positions.",
      "在对角线上，RoPE、XPos 和 ALiBi 什么都不改变：词与自身的分数保持原样。",
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
    { name: "first", label: both("1st", "第一种") },
    { name: "second", label: both("2nd", "第二种") },
    { name: "third", label: both("3rd", "第三种") },
    { name: "fourth", label: both("4th", "第四种") },
    { name: "length", label: both("positions", "位置数") },
    { name: "d_model", label: both("d_model", "d_model") },
    { name: "n_heads", label: both("heads", "头数") },
    { name: "causal", label: both("causal mask", "因果掩码") },
    { name: "common", label: both("one colour scale", "统一色标") },
    { name: "seed", label: both("seed", "种子"), as: "number" },
  ],
  build(stage) {
    const t = stage.t;
    const axes = { rows: both("query i", "查询 i"), columns: both("key j", "键 j") };
    const pick = (i: number, j: number) => stage.set({ i, j });
    const heads = h("div", { class: "heads", role: "radiogroup", "aria-label": t(both("Head", "注意力头")) });
    const panels = PLACES.map((_, index) => panel(stage, index, axes, pick));
    const values = h("div", { class: "values" });
    const narrow = window.innerWidth < 640;
    const difference = heatMap(stage, { label: both("Difference of two encodings, query × key", "两种编码之差，查询 × 键"), ...axes, pick, around: narrow ? 2 : 3 });
    const [left, right] = (["left", "right"] as const).map((side) => h("select", {
      "data-role": side, "aria-label": t(side === "left" ? both("from", "被减的编码") : both("minus", "减去的编码")),
      change: (event: Event) => stage.set({ [side]: (event.target as HTMLSelectElement).value }),
    }));
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
    const facts = h("div", {});
    const measured = measuredOf(stage);
    const question = predict(stage, {
      question: both(
        "Sinusoidal and RoPE use the same frequencies. Shift every word by 37 positions: whose scores change?",
        "正弦编码与 RoPE 用同样的频率。每个词都后移 37 个位置：谁的分数会变？",
      ),
      choices: [both("the sinusoid's", "正弦编码的"), both("RoPE's", "RoPE 的"), both("both", "都会变"), both("neither", "都不变")], right: 0,
      because: both(
        "RoPE rotates query and key, and their product depends only on the difference of the two angles. The sinusoidal rows are added to the embeddings, so products of a word and a position remain. The table below now shows the change.",
        "RoPE 旋转查询和键，点积里只剩两个角度之差。正弦编码加在词向量上，词与位置的乘积项保留了下来。下表现在给出改变的量。",
      ),
    }, () => stage.set({ answered: true }));
    stage.root.append(
      h("div", { class: "panels" }, ...panels.map((one) => one.element)),
      h("div", { class: "row" }, h("h2", {}, t(both("Added to the score of every pair", "每一对位置的分数改变了多少"))), heads),
      h("p", { class: "small" }, t(both(
        "One cursor for all maps: click, drag or use the arrow keys. Hatched: masked, or not defined for keys after the query.",
        "所有图共用一个光标：点击、拖动或用方向键移动。斜线：被掩码遮住，或对查询之后的键没有定义。",
      ))),
      values,
      h("div", { class: "split" },
        h("div", {}, h("h2", {}, t(both("The difference of two", "两者之差"))), h("p", { class: "minus" }, left, " − ", right), difference.element, same),
        h("div", {}, h("h2", {}, t(both("By distance", "随距离的变化"))), h("p", { class: "small" }, t(both(
          "Lines: the mean over all pairs at a distance. Bands: from the lowest to the highest of them.",
          "折线：同一距离所有位置对的平均。阴影带：其中的最低到最高。",
        ))), chart.element, question)),
      facts,
      measured.element,
    );
    let cut: { data: Data | null; head: number; maps: Numbers[]; plain: Numbers } = { data: null, head: 0, maps: [], plain: NOTHING };
    let minus: { key: string; maps: Numbers[]; numbers: Numbers | null } = { key: "", maps: [], numbers: null };

    let known: { data: Data | null; answered: boolean } = { data: null, answered: false };

    return (data, state) => {
      const about = data.facts["methods"] as About[];
      const added = array(data, "added");
      const [n, size] = [added.shape[1]!, added.shape[2]!];
      const head = Math.min(number(state, "head"), n);
      if (cut.data !== data || cut.head !== head) {
        cut = { data, head, maps: about.map((_, m) => matrix(added, m * n + head - 1)), plain: matrix(array(data, "plain"), head - 1) };
      }
      [distances, length, query] = [array(data, "distance").values, size, Math.min(number(state, "i"), size - 1)];
      const [i, j] = [query, Math.min(number(state, "j"), size - 1)];
      const here = (numbers: Numbers) => numbers.values[i * size + j]!;
      const called = (m: number) => about[m]!.title.en;

      measured.draw(data, state);
      drawHeads(stage, heads, n, head);
      const limits = cut.maps.map((one) => limitOf(one.values));
      panels.forEach((one, m) => one.draw(about[m], cut.maps[m], [i, j], state["common"] === true ? Math.max(...limits) : limits[m]!));

      const without = here(cut.plain);
      fill(values, valuesTable(about, without, cut.maps.map(here), [head, i, j], t));
      const at = { left: placeOf(state["left"] as string, about), right: placeOf(state["right"] as string, about) };
      offer(left!, about, at.left);
      offer(right!, about, at.right);
      const key = `${at.left} ${at.right}`;
      if (minus.maps !== cut.maps || minus.key !== key) minus = { key, maps: cut.maps, numbers: subtracted(cut.maps[at.left]!, cut.maps[at.right]!) };
      same.hidden = at.left !== at.right;
      const limit = limitOf(minus.numbers!.values);
      difference.draw({ numbers: minus.numbers!, cursor: [i, j], limit, ends: ends(limit) });

      const line = (name: string, m: number) => array(data, name).values.subarray((m * n + head - 1) * distances.length, (m * n + head) * distances.length);
      const index = i - j - distances[0]!;
      chart.draw({
        series: about.map((one, m) => ({ name: called(m), x: distances, y: line("mean", m), low: line("lowest", m), high: line("highest", m), colour: encodingColour(one.name) })),
        ...(index >= 0 ? { cursor: index } : {}),
      });
      const answered = state["answered"] === true;
      if (known.data !== data || known.answered !== answered) {
        known = { data, answered };
        fill(facts, factsTable(about, data.facts["moved_by"] as number, answered, t));
      }

      const negative = (value: number) => (value < 0 ? `(${shown(value)})` : shown(value));
      fill(stage.formula, formula(
        [t(both("added = score with the encoding − score without it", "加上的量 = 加编码后的分数 − 不加编码的分数"))],
        ...about.map((one, m): Child[] => {
          const value = here(cut.maps[m]!);
          const output = h("output", { "data-role": "value", "data-method": one.name, "data-value": value }, shown(value));
          return [`${called(m)}: ${one.formula}`, h("br"), "\u2003", put(shown(without + value)), " − ", put(negative(without)), " = ", output];
        })));
      stage.announce(`${t(both("head", "头"))} ${head}, i = ${i}, j = ${j}: ${about.map((_, m) => `${called(m)} ${shown(here(cut.maps[m]!))}`).join(", ")}`);
      stage.code(about.map((one, m) => `added[${m}, ${head - 1}, ${i}, ${j}]  # ${one.name}: ${here(cut.maps[m]!)}`).join("\n"));
    };
  },
};

interface Panel {
  element: HTMLElement;
  draw(about: About | undefined, numbers: Numbers | undefined, cursor: [number, number], limit: number): void;
}

function panel(stage: Stage, index: number, axes: { rows: Words; columns: Words }, pick: (i: number, j: number) => void): Panel {
  const label = both(`Encoding ${index + 1}: added to the score, query × key`, `第 ${index + 1} 种编码：加到分数上的量，查询 × 键`);
  const map = heatMap(stage, { label, ...axes, pick, around: 0 });
  const [title, rule] = [h("h2", {}), h("p", { class: "rule" })];
  const element = h("div", { class: "panel" }, title, map.element, rule);
  return {
    element,
    draw(about, numbers, cursor, limit) {
      element.hidden = !about || !numbers;
      if (!about || !numbers) return;
      element.style.setProperty("--k", encodingColour(about.name));
      fill(title, about.title.en, stage.language === "zh" ? h("small", {}, ` ${about.title.zh}`) : null);
      rule.textContent = about.formula;
      map.draw({ numbers, cursor, limit, ends: ends(limit) });
    },
  };
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

/** The place of "second" among those that are there; the last where it is not. */
function placeOf(place: string, about: About[]): number {
  return Math.min(PLACES.indexOf(place as (typeof PLACES)[number]), about.length - 1);
}

function offer(select: HTMLSelectElement, about: About[], chosen: number): void {
  const key = about.map((one) => one.name).join(" ");
  if (select.dataset["key"] !== key) {
    select.dataset["key"] = key;
    fill(select, ...about.map((one, m) => h("option", { value: PLACES[m]! }, one.title.en)));
  }
  select.selectedIndex = chosen;
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
