// The charts of a report, drawn as every chart of the explorer: curves with a cursor of their own, and rows.

import { encodingColour } from "../colours";
import { lineChart, NUMBERS, tidy, type Series } from "../parts/chart";
import { folded, plainTable } from "../parts/numbers";
import { rowsChart } from "../parts/rows_chart";
import type { Around } from "../view";
import { both, shown } from "../words";
import type { Said } from "./report";

interface Line {
  name: Said;
  arm: string;
  /** x, the mean, every seed. */
  points: [number, number, number[]][];
  kind?: "level" | "changed" | "off";
  note?: Said;
}

export interface ChartData {
  is: "chart";
  series: Line[];
  x: Said;
  y: Said;
  described: Said;
  ticks?: number[];
  trained?: number;
  y_range?: [number, number];
  y_log?: boolean;
}

export interface RowsData {
  is: "rows";
  rows: { name: Said; arm: string; value: number; low: number; high: number; seeds?: number[]; hollow?: boolean }[];
  x: Said;
  described: Said;
  marks?: [number, Said][];
  x_range?: [number, number];
  log?: boolean;
}

type Speak = (words: Said) => string;
const words = (said: Said) => (typeof said === "string" ? both(said, said) : said);
const LONGEST = 17; // letters of a name at the end of its line
const brief = (name: string) => ([...name].length > LONGEST ? `${[...name].slice(0, LONGEST - 1).join("")}…` : name);

export function chartOf(around: Around, data: ChartData, said: Speak): HTMLElement {
  // A cursor stands at one x of all: who has no number there has a dash.
  const xs = [...new Set(data.series.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const alone = data.series.every(({ points }) => points.length === 1);
  const series = data.series.map((line) => (alone ? spot(line, said) : curve(line, xs, said)));
  let cursor = Math.max(xs.indexOf(data.trained ?? Number.NaN), 0);
  const ends = series.filter((one) => one.end).length;
  const chart = lineChart(around, {
    ...(ends > 20 && { height: 70 + 15 * ends }), // room for all names
    label: words(data.described), x: words(data.x), y: words(data.y), follows: true,
    ...(data.ticks && { xScale: "log2" as const }), ...(data.y_log && { yScale: "log2" as const }),
    ...(!alone && { pick(index: number) {
      cursor = index;
      draw();
      if (chart.element.matches(":focus-within")) around.announce(`${tidy(xs[index]!)}: ${series.map((one) => `${one.name} ${shown(one.y[index]!, 3)}`).join(", ")}`);
    } }),
  });
  const marks = data.trained === undefined ? [] : [{ x: data.trained, word: around.t(both("trained length", "训练长度")) }];
  const draw = () => chart.draw({
    series, marks, ...(alone ? {} : { cursor }), ...(data.ticks && { ticks: data.ticks }),
    ...(data.y_log && { yFrom: Math.min(...series.map(({ y }) => y[0]!)) / 1.3, yTo: Math.max(...series.map(({ y }) => y[0]!)) * 1.15 }),
    ...(data.y_range && { yFrom: data.y_range[0] - 4, yTo: data.y_range[1] + 11 }),
  });
  draw();
  if (alone) chart.element.querySelector("details")!.replaceWith(folded(around.t(NUMBERS), plainTable(said(data.described), ["", said(data.x), said(data.y)], series.map(({ name, x, y }) => [name, x[0]!, y[0]!]))));
  return chart.element;
}

function curve({ name, arm, points, kind, note }: Line, xs: number[], said: Speak): Series {
  const at = new Map(points.map(([x, mean, seeds]) => [x, { mean, seeds }]));
  const several = Math.max(0, ...points.map(([, , seeds]) => seeds.length));
  const seed = (n: number) => xs.map((x) => at.get(x)?.seeds[n] ?? Number.NaN);
  return {
    name: said(name), x: xs, y: xs.map((x) => at.get(x)?.mean ?? Number.NaN), colour: arm ? encodingColour(arm) : "var(--muted)",
    dashed: kind === "level" || kind === "changed" || arm.includes("+"), dots: several > 0 || points.length === 1,
    ...(several > 0 && { points: Array.from({ length: several }, (_, n) => seed(n)) }),
    ...(kind !== "level" && { end: note ? `${brief(said(name))} ${said(note)}` : brief(said(name)) }),
  };
}

function spot({ name, arm, points: [point], kind }: Line, said: Speak): Series {
  return { name: said(name), x: [point![0]], y: [point![1]], colour: encodingColour(arm), dots: true, end: brief(said(name)), ...(kind === "off" && { hollow: true }) };
}

export function rowsOf(around: Around, data: RowsData, said: Speak): HTMLElement {
  const chart = rowsChart(around, { label: words(data.described), x: words(data.x), ...(data.log && { xScale: "log2" as const, unit: "×" }) });
  chart.draw({
    rows: data.rows.map(({ name, arm, hollow, ...row }) => ({ key: arm, name: said(name), values: [{ ...row, colour: encodingColour(arm), radius: 5, ...(hollow && { hollow }) }] })),
    marks: (data.marks ?? []).map(([x, word]) => ({ x, word: said(word) })),
    ...(data.x_range && { range: data.x_range }),
  });
  return chart.element;
}
