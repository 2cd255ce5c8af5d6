// The rows of the founding notes: #S8 opens the view of a row, with its example and its figures above it.

import { parsed, type Address } from "./address";
import { encodingColour } from "./colours";
import { fill, h, s } from "./dom";
import type { Source } from "./source";
import { both, type Words } from "./words";

/** A cell longer than this is a sentence, not a figure. */
const SENTENCE = 40;
const ROW = /^\/?(S\d+)(?:\?(.*))?$/;

/** An address that reads #S8 as that of the row's view; `row` says which row it is. */
export interface RowAddress extends Address {
  row(): string | null;
}

export function withRows(address: Address, { rows, claims }: Source): RowAddress {
  const found = () => {
    const asked = parsed(address.read());
    // Statements had a view of their own, whose addresses are still known.
    if (asked.view === "true_or_false") return { name: claims[asked.given["claim"] ?? ""] ?? "S1", query: "" };
    const [, name = "", query = ""] = ROW.exec(address.read()) ?? [];
    return name in rows ? { name, query } : null;
  };
  return {
    ...address,
    read() {
      const row = found();
      if (!row) return address.read();
      const view = `/${rows[row.name]}`;
      return row.query ? `${view}${view.includes("?") ? "&" : "?"}${row.query}` : view;
    },
    row: () => found()?.name ?? null,
  };
}

/** As Python says it (explorer/views/row.py). */
interface Facts {
  name: string;
  title: Words;
  says: Words;
  notes: string[];
  commands: string[];
  figures: Figures;
  /** Statements of the notes, each with what posenc computes. */
  claims: { id: string; words: Words; verdict: Words; value: Words }[];
}

interface Figures {
  columns: Words[];
  rows: { name: Words; cells: Words[] }[];
  /** Of every row its values over `at`. */
  at: number[];
  curves: (number | null)[][];
  /** The table below it. */
  then: Figures | null;
}

interface Asked {
  t(words: Words): string;
  source: Source;
  /** What the page says of its own arithmetic, kept up to date. */
  check: HTMLElement;
  failed(error: Error): void;
}

/** What the notes describe in one row: its example, its figures, its command, and the rows beside it. */
export function rowCard(name: string, asked: Asked): HTMLElement {
  const { t, source } = asked;
  const card = h("aside", { class: "card row-card", "data-row": name, "aria-label": t(both(`Row ${name} of the founding notes`, `最初笔记的第 ${name} 行`)), "aria-busy": "true" }, h("p", { class: "row-title" }, h("b", {}, name), " ", t(both("computing its figures …", "正在计算它的数值……"))));
  source.ask("row", { name }).then(({ facts }) => {
    const said = facts as unknown as Facts;
    const { columns, rows } = said.figures;
    card.classList.toggle("wide", columns.length > 8 || rows.some(({ cells }) => cells.some((cell) => t(cell).length > SENTENCE)));
    fill(card, ...written(said, Object.keys(source.rows), asked));
    card.removeAttribute("aria-busy");
  }, asked.failed);
  return card;
}

function written({ name, title, says, notes, commands, figures, claims }: Facts, names: string[], { t, check }: Asked): HTMLElement[] {
  const at = names.indexOf(name);
  const beside = (to: string | undefined, rel: string, sign: string) => (to ? h("a", { href: `#${to}`, rel }, rel === "prev" ? `${sign} ${to}` : `${to} ${sign}`) : h("span", {}));
  const tables = (one: Figures): HTMLElement[] => [
    h("table", { class: one.columns.length > 7 ? "plain numbers many" : "plain numbers" },
      h("thead", {}, h("tr", {}, h("td", {}), ...one.columns.map((head) => h("th", { scope: "col" }, t(head))))),
      h("tbody", {}, ...one.rows.map((row) => h("tr", {}, h("th", { scope: "row" }, t(row.name)), ...row.cells.map((cell, n) => h("td", { class: t(cell).length > SENTENCE ? "sentence" : "", "data-head": t(one.columns[n]!) }, t(cell))))))),
    ...(one.then ? tables(one.then) : []),
  ];
  const said = h("div", {},
    h("p", { class: "row-title" }, h("b", {}, name), " ", t(title)),
    h("p", {}, t(says)),
    ...(figures.curves.length ? [drawn(figures, t(title), t)] : []),
    name === "S19" ? h("p", {}, check) : h("span", {}),
    ...(claims.length ? [h("details", { class: "claims" }, h("summary", {}, t(both("What the notes say, and whether it holds", "笔记的说法与是否成立")), ` (${claims.length})`),
      h("dl", {}, ...claims.flatMap((one) => [h("dt", { "data-claim": one.id }, t(one.words), " ", h("b", {}, t(one.verdict))), h("dd", {}, t(one.value))])))] : []),
    h("p", { class: "small" }, t(both(notes.length > 1 ? "Notes " : "Note ", "笔记 ")), notes.join(t(both(", ", "、"))), " · ", ...commands.flatMap((one, index) => [index ? " · " : "", h("code", {}, one)])),
    h("p", { class: "small row-beside" }, beside(names[at - 1], "prev", "←"), beside(names[at + 1], "next", "→")));
  return [said, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t(title) }, ...tables(figures))];
}

const [WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, LINE] = [460, 230, 24, 175, 22, 14];

/** The curves of the rows over `at`, in equal steps for equal factors, each with its name at its last point. */
function drawn({ rows, at, curves }: Figures, label: string, t: (words: Words) => string): SVGElement {
  const values = curves.flat().filter((value) => value !== null);
  const [low, high] = [Math.floor(Math.min(...values)), Math.ceil(Math.max(...values))];
  const x = (factor: number) => LEFT + ((WIDTH - LEFT - RIGHT) * Math.log(factor / at[0]!)) / Math.log(at.at(-1)! / at[0]!);
  const y = (value: number) => 8 + ((HEIGHT - BOTTOM - 8) * (high - value)) / (high - low);
  const lines = curves.map((curve, row) => {
    const points = curve.flatMap((value, n) => (value === null ? [] : [{ x: x(at[n]!), y: y(value) }]));
    const name = t(rows[row]!.name);
    return { name, points, end: points.at(-1)!, colour: encodingColour(name.toLowerCase()) };
  });
  const named = lines.filter(({ points }) => points.length > 1).sort((one, other) => one.end.y - other.end.y);
  const heights = apart(named.map(({ end }) => end.y + 4), HEIGHT - BOTTOM);
  const names = named.map(({ name, end, colour }, n) => s("text", { x: end.x + 6, y: heights[n]!, style: `fill: ${colour}` }, name));
  return s("svg", { class: "row-curves", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    ...Array.from({ length: high - low + 1 }, (_, n) => n + low).flatMap((value) => [
      s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }), s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, String(value))]),
    ...at.filter((factor) => Number.isInteger(factor)).map((factor) => s("text", { x: x(factor), y: HEIGHT - 4, "text-anchor": "middle" }, `${factor}×`)),
    ...lines.flatMap(({ name, points, end, colour }) => [
      s("polyline", { points: points.map((one) => `${one.x.toFixed(1)},${one.y.toFixed(1)}`).join(" "), stroke: colour }, s("title", {}, name)),
      ...(points.length === 1 ? [s("circle", { cx: end.x, cy: end.y, r: 3, fill: colour }, s("title", {}, name)), s("text", { x: end.x + 6, y: end.y + 4, style: `fill: ${colour}` }, name)] : [])]),
    ...names);
}

/** Ascending heights of lines of text, moved so that none covers another and none is below `bottom`. */
function apart(heights: number[], bottom: number): number[] {
  const down: number[] = [];
  for (const height of heights) down.push(Math.max(height, (down.at(-1) ?? -Infinity) + LINE));
  return down.map((height, n) => Math.min(height, bottom - LINE * (down.length - 1 - n)));
}
