// A report of the lab, as posenc.lab.report.page makes it from the findings: its blocks as elements, its charts drawn.

import { encodingColour } from "../colours";
import { fill, h, type Child } from "../dom";
import type { Around } from "../view";
import { both, type Words } from "../words";
import { chartOf, rowsOf, type ChartData, type RowsData } from "./charts";

/** In both languages, or the same in both. */
export type Said = string | Words;

interface Cell {
  words: Said;
  small?: Said;
  detail?: Said;
  kind?: string;
  /** From 0 (good) to 1 (bad). */
  shade?: number;
  arm?: string;
}

type Block =
  | { is: "text"; words: Said; kind?: string }
  | { is: "items"; words: Said[]; kind: string }
  | { is: "cards"; cards: { need: Said; pick: Said; why: Said }[] }
  | { is: "table"; head: Cell[]; rows: Cell[][]; kind?: string; caption?: Said }
  | { is: "picture"; chart: ChartData | RowsData; caption?: Said }
  | { is: "fold"; words: Said; blocks: Block[] }
  | { is: "article"; words: Said; blocks: Block[]; kind?: string }
  | { is: "side"; blocks: Block[]; kind?: string };

export interface Report {
  name: string;
  title: Said;
  lead: Said;
  contents: Said;
  sections: { name: string; words: Said; blocks: Block[] }[];
}

/** Everything but the title. */
export function reportOf(around: Around, report: Report): HTMLElement {
  const said = (words: Said) => (typeof words === "string" ? words : around.t(words));

  function block(one: Block): Child[] {
    switch (one.is) {
      case "text": return [h("p", { class: one.kind }, said(one.words))];
      case "items": return [h("ul", { class: one.kind }, ...one.words.map((words) => h("li", {}, said(words))))];
      case "cards": return [h("div", { class: "needs" }, ...one.cards.map(({ need, pick, why }) =>
        h("div", { class: "card" }, h("div", { class: "need" }, said(need)), h("div", { class: "pick" }, said(pick)), h("div", { class: "small" }, said(why)))))];
      case "table": return [table(one)];
      case "picture": {
        const drawn = one.chart.is === "chart" ? chartOf(around, one.chart, said) : rowsOf(around, one.chart, said);
        return [one.caption ? h("figure", {}, h("figcaption", {}, said(one.caption)), drawn) : h("figure", {}, drawn)];
      }
      case "fold": return [h("details", {}, h("summary", {}, said(one.words)), ...one.blocks.flatMap(block))];
      case "article": return [h("article", { class: one.kind }, h("h3", {}, said(one.words)), ...one.blocks.flatMap(block))];
      case "side": return [h("div", { class: one.kind ?? "tasks" }, ...one.blocks.flatMap(block))];
    }
  }

  function inside(cell: Cell): Child[] {
    const mark = cell.arm ? h("i", { class: "swatch", "aria-hidden": "true" }) : null;
    mark?.style.setProperty("--k", encodingColour(cell.arm!));
    const text = said(cell.words);
    return [mark, cell.detail ? h("b", {}, text) : cell.kind === "code" ? h("code", {}, text) : text,
      cell.small && h("small", {}, said(cell.small)), cell.detail && h("small", {}, said(cell.detail))];
  }

  function table({ head, rows, kind = "plain", caption }: Extract<Block, { is: "table" }>): HTMLElement {
    const called = caption ? said(caption) : head.length ? said(head[0]!.words) : said(report.title);
    return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": called }, h("table", { class: kind },
      caption && h("caption", {}, said(caption)),
      head.length > 0 && h("thead", {}, h("tr", {}, ...head.map((cell) => h("th", { scope: "col" }, ...inside(cell))))),
      h("tbody", {}, ...rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, ...inside(first!)), ...merged(rest).map(([cell, columns]) => {
        const made = h("td", { class: cell.shade === undefined ? cell.kind : `shaded ${cell.kind ?? ""}`.trim(), colspan: columns > 1 && columns }, ...inside(cell));
        if (cell.shade !== undefined) made.style.setProperty("--shade", `${Math.round(100 * Math.min(Math.max(cell.shade, 0), 1))}%`);
        return made;
      }))))));
  }

  const made = report.sections.map(({ name, words, blocks }) => h("section", { id: name }, h("h2", {}, said(words)), ...blocks.flatMap(block)));
  const links = report.sections.map(({ words }, index) => h("li", {}, h("button", { type: "button", click: () => made[index]!.scrollIntoView() }, said(words))));
  const element = h("div", { class: "results" });
  fill(element, h("nav", { class: "sections", "aria-label": said(report.contents) }, h("ul", {}, ...links)), ...made);
  return element;
}

/** Each cell and how many columns it takes: equal neighbours without a number are one. */
function merged(row: Cell[]): [Cell, number][] {
  const found: [Cell, number][] = [];
  for (const cell of row) {
    const last = found.at(-1);
    if (last && cell.kind?.startsWith("none") && !cell.detail && JSON.stringify(last[0]) === JSON.stringify(cell)) last[1]++;
    else found.push([cell, 1]);
  }
  return found;
}

export const TITLE: Words = both("Measured: a folder of results", "实测：一个结果文件夹");
