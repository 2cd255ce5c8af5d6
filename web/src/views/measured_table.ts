// What was measured of each encoding, as a table that a press on a heading sorts.
//
// An encoding whose training still improved at its end has no rank, and none behind it has one: it may yet overtake.

import { encodingColour } from "../colours";
import type { Data } from "../data";
import { fill, h, refill } from "../dom";
import { pageLink } from "../parts/sources";
import type { State } from "../source";
import type { Stage } from "../view";
import { both, shown, type Words } from "../words";

export const COLUMNS = ["bits1", "bits2", "bits8", "factor", "far", "prefill", "decode", "training", "memory", "parameters"] as const;
type Column = (typeof COLUMNS)[number];

export interface Row {
  name: string;
  title: Words;
  /** The catalogue's names of the parts of its title. */
  pages: string[];
  chosen: boolean;
  learnt: boolean | null;
  converged: boolean | null;
  bits: (number | null)[];
  why: (Words | null)[];
  factor: { value: number; censored: boolean } | null;
  /** What context beyond the trained length gains, as a share of the optimum's gain; negative where the loss rises. */
  far: number | null;
  /** Its 95 % interval over seeds and rows. */
  interval: [number, number] | null;
  prefill: number | null;
  decode: number | null;
  training: number | null;
  memory: number | null;
  parameters: number | null;
}

export interface Measured {
  rows: Row[];
  length: number;
  steps: number;
  costs: Record<string, number | string>;
  experiment: string;
  date: string;
  size: Record<string, number>;
  /** The trained and the longest length of the chains that `far` was measured on, and how many seeds. */
  chains: [number, number, number];
  command: string;
}

const HEADS: Record<Column, Words> = {
  bits1: both("bits, 1×", "比特，1 倍"), bits2: both("bits, 2×", "比特，2 倍"), bits8: both("bits, 8×", "比特，8 倍"),
  factor: both("loss kept to", "损失保持到"), far: both("gained beyond", "训练长度以外的收益"), prefill: both("prefill", "预填充"), decode: both("decode", "解码"), training: both("training", "训练"),
  memory: both("memory", "内存"), parameters: both("parameters", "参数量"),
};
/** What a column tells, for those who have not read the study. */
function meaning(column: Column, { length, chains, costs }: Measured): Words {
  const layer = both(`One attention layer, d_model ${costs["d_model"]}, ${costs["n_heads"]} heads, ${costs["tokens"]} tokens, float32, one thread of ${costs["cpu"]}; medians, as a multiple of no encoding.`,
    `一层注意力，d_model ${costs["d_model"]}，${costs["n_heads"]} 个头，${costs["tokens"]} 个词元，float32，${costs["cpu"]} 单线程；中位数，是不用编码时的多少倍。`);
  const time = (en: string, zh: string) => both(`${en} ${layer.en}`, `${zh}${layer.zh}`);
  const bits = (times: number) => both(`What the next byte costs a language model at ${times}× its trained length of ${length} bytes: mean of five seeds, lower is better, 8 is a blind guess.`,
    `语言模型在 ${times} 倍训练长度（${length} 字节）上，每字节要花的比特：五个随机种子的平均，越低越好，瞎猜是 8。`);
  return {
    bits1: bits(1), bits2: bits(2), bits8: bits(8),
    factor: both("Up to how many times the trained length the loss stays within 0.05 bits of the trained length's, on the same bytes.", "在同样的字节上，到训练长度的多少倍，损失仍不比训练长度时高 0.05 比特以上。"),
    far: both(`Whether far text is used, on random Markov chains: what ${chains[1]} symbols before the next one save over the last ${chains[0]}, the trained length, as a share of what the optimum saves. At most ${chains[2]} seeds, with the 95 % interval. Below 0 the far text does harm.`,
      `远处的文本有没有用，用随机马尔可夫链来量：下一个符号之前有 ${chains[1]} 个符号时，比只有最后 ${chains[0]} 个（训练长度）时少花的比特，占最优预测少花的比例。至多 ${chains[2]} 个种子，附 95% 区间。低于 0 表示远处的文本有害。`),
    prefill: time("Time to read a whole text.", "读完整段文本的时间。"), decode: time("Time to add one token.", "增加一个词元的时间。"), training: time("Time of a training step.", "训练一步的时间。"),
    memory: both(`Memory beyond that of no encoding, at ${costs["tokens_long"]} tokens.`, `${costs["tokens_long"]} 个词元时，比不用编码多用的内存。`),
    parameters: both("Numbers that the encoding learns, in the measured model.", "编码在这个模型里学习的参数个数。"),
  }[column];
}
/** Of a model's quality, where unfinished training counts. */
const QUALITY: Column[] = ["bits1", "bits2", "bits8", "factor"];
/** Those whose largest value is the best. */
const LARGEST: Column[] = ["factor", "far"];
const BITS: Column[] = ["bits1", "bits2", "bits8"];

/** The rows as they are sorted now; those without a number last. */
export function sortedRows(rows: Row[], state: State): Row[] {
  const column = state["sorted"] as Column;
  const direction = directionOf(state);
  return [...rows].sort((a, b) => {
    const [x, y] = [valueOf(a, column), valueOf(b, column)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return direction * (x - y);
  });
}

const directionOf = (state: State) => (LARGEST.includes(state["sorted"] as Column) ? -1 : 1) * (state["reversed"] === true ? -1 : 1);

function valueOf(row: Row, column: Column): number | null {
  if (BITS.includes(column)) return row.bits[BITS.indexOf(column)] ?? null;
  return column === "factor" ? row.factor?.value ?? null : (row[column as Exclude<Column, "bits1" | "bits2" | "bits8" | "factor">] ?? null);
}

export function tableOf(stage: Stage): { element: HTMLElement; draw(data: Data, state: State): void } {
  const { t } = stage;
  const place = h("div", {});
  const [means, said, from] = [h("p", { "data-role": "means" }), h("p", { class: "small" }), h("p", { class: "small" })];
  const element = h("section", { class: "measured" }, means, place, said, from);

  const unfinished = (row: Row) => row.learnt === true && row.converged === false;

  function cell(row: Row, column: Column): HTMLElement {
    const value = valueOf(row, column);
    const why = BITS.includes(column) ? row.why[BITS.indexOf(column)] : null;
    const text = () => {
      if (value === null) return why ? t(why) : "–";
      if (BITS.includes(column)) return `${shown(value, 2)}${unfinished(row) ? " †" : ""}`;
      if (column === "factor") return `${row.factor!.censored ? "≥ " : ""}${value}×${unfinished(row) ? " †" : ""}`;
      if (column === "far") return `${shown(100 * value, 0)} % (${row.interval!.map((end) => shown(100 * end, 0)).join(" – ")})`;
      if (column === "parameters") return value.toLocaleString("en");
      return column === "memory" ? `${shown(value / 1e6, 1)} MB` : `${shown(value, 2)}×`;
    };
    return h("td", { "data-column": column, "data-value": value ?? undefined, class: why && value === null ? "why" : "" }, text());
  }

  function draw(data: Data, state: State): void {
    const found = data.facts["measured"] as Measured;
    const column = state["sorted"] as Column;
    const direction = directionOf(state);
    const rows = sortedRows(found.rows, state);
    const ranks = ranked(found.rows, column);
    const head = (one: Column) => h("th", { scope: "col", "aria-sort": one === column ? (direction > 0 ? "ascending" : "descending") : undefined },
      h("button", { type: "button", "data-sort": one, title: t(meaning(one, found)), click: () => stage.set(one === column ? { reversed: state["reversed"] !== true } : { sorted: one, reversed: false }) },
        t(HEADS[one]), h("span", { "aria-hidden": "true" }, one === column ? (direction > 0 ? " ▲" : " ▼") : "")));
    const name = (row: Row) => {
      const parts = row.pages.length > 1 ? t(row.title).split(/ ?[+＋] ?/) : [t(row.title)];
      const mark = h("i", { class: "swatch", "aria-hidden": "true" });
      mark.style.setProperty("--k", encodingColour(row.name));
      return h("th", { scope: "row" }, mark, ...row.pages.flatMap((page, part) => [part ? " + " : null, pageLink(page, parts[part]!)]));
    };
    const focused = (stage.root.getRootNode() as Document).activeElement?.getAttribute("data-sort");
    fill(place, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t(both("What was measured", "实测结果")) }, h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t(both("rank", "名次"))), h("th", { scope: "col" }, t(both("encoding", "编码"))), ...COLUMNS.map(head))),
      h("tbody", {}, ...rows.map((row) => h("tr", { class: row.chosen ? "chosen" : "", "data-arm": row.name },
        h("td", { "data-role": "rank" }, ranks.get(row.name) ?? (QUALITY.includes(column) && unfinished(row) ? "†" : "–")), name(row), ...COLUMNS.map((one) => cell(row, one))))))));
    if (focused) place.querySelector<HTMLElement>(`[data-sort=${focused}]`)?.focus();
    const open = found.rows.filter(unfinished).length;
    refill(said, t(both(
      `Press a heading to sort, a name for its page. † marks training that still improved at its end (${open} of ${found.rows.length}): it has no rank, and neither has an encoding behind it.`,
      `点击表头排序，点击名称打开它的页面。† 表示训练结束时仍在改善（${found.rows.length} 种里有 ${open} 种）：没有名次，排在它后面的也没有。`)));
    refill(means, h("b", {}, t(HEADS[column])), t(both(": ", "：")), t(meaning(column, found)));
    const { size } = found;
    refill(from, t(both(
      `Experiment “${found.experiment}”, ${found.date}: ${size["n_layers"]} layers, d_model ${size["d_model"]}, ${size["n_heads"]} heads, ${found.steps} steps. `,
      `实验“${found.experiment}”，${found.date}：${size["n_layers"]} 层，d_model ${size["d_model"]}，${size["n_heads"]} 个头，${found.steps} 步。`)),
      h("code", {}, found.command));
  }

  /** Ranks by a column, best first, as far as no unfinished training stands before. */
  function ranked(rows: Row[], column: Column): Map<string, number> {
    const best = LARGEST.includes(column) ? -1 : 1;
    const ranks = new Map<string, number>();
    for (const row of [...rows].filter((one) => valueOf(one, column) !== null).sort((a, b) => best * (valueOf(a, column)! - valueOf(b, column)!))) {
      if (QUALITY.includes(column) && unfinished(row)) break;
      if (!QUALITY.includes(column) || row.learnt) ranks.set(row.name, ranks.size + 1);
    }
    return ranks;
  }
  return { element, draw };
}
