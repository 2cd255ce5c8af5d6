// A row for each name on one axis: values as points, each with the line from its lowest to its highest.

import { fill, h, s } from "../dom";
import type { Around } from "../view";
import type { Words } from "../words";
import { scale, tidy } from "./chart";

export interface Value {
  value: number;
  low: number;
  high: number;
  colour: string;
  radius: number;
  /** Every seed, as small points. */
  seeds?: readonly number[];
  hollow?: boolean;
}

export interface Row {
  /** What `pick` is told, and data-arm. */
  key: string;
  name: string;
  values: Value[];
  chosen?: boolean;
}

export interface RowsAbout {
  label: Words;
  x: Words;
  xScale?: "log2";
  /** Written behind ticks. */
  unit?: string;
  pick?: (key: string) => void;
}

export interface RowsState {
  rows: Row[];
  /** Bounds; those of the numbers unless said. */
  range?: readonly [number, number];
  marks?: { x: number; word: string }[];
}

const [TALL, BOTTOM] = [32, 40];

export function rowsChart(stage: Around, about: RowsAbout): { element: HTMLElement; draw(state: RowsState): void } {
  const { t } = stage;
  const element = h("div", { class: "points", role: "img", "aria-label": t(about.label) });
  if (about.pick) {
    element.tabIndex = 0;
    element.setAttribute("role", "application");
    element.setAttribute("aria-roledescription", t({ en: "chart", zh: "图" }));
    element.setAttribute("aria-label", `${t(about.label)} ${t({ en: "Up and down choose an encoding.", zh: "上下方向键选择编码。" })}`);
  }
  let last: RowsState | null = null;
  element.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!last || !about.pick || !by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const at = last.rows.findIndex((row) => row.chosen);
    about.pick(last.rows[Math.min(Math.max(at + by, 0), last.rows.length - 1)]!.key);
  });
  const watch = new ResizeObserver(() => last && draw(last));
  watch.observe(element);
  stage.leaving(() => watch.disconnect());

  function draw(state: RowsState): void {
    last = state;
    const { rows, marks = [] } = state;
    const width = Math.max(element.clientWidth, 280);
    const left = width < 560 ? 156 : 190;
    const top = marks.length ? 26 : 8;
    const all = rows.flatMap((row) => row.values.flatMap(({ low, high, value, seeds = [] }) => [low, high, value, ...seeds])).concat(marks.map(({ x }) => x)).filter(Number.isFinite);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const edge = about.xScale ? 1.1 : (high - low) * 0.01 || 0.05;
    const [from, to] = state.range ?? (about.xScale ? [low / edge, high * edge] : [low - edge, high + edge]);
    const x = scale(from, to, left + 8, width - 16, about.xScale);
    const height = top + rows.length * TALL + BOTTOM;
    const y = (index: number) => top + (index + 0.5) * TALL;
    const doublings = x.ticks(Math.max(3, Math.floor((width - left) / 90)));
    const ticks = doublings.length > 1 ? doublings : scale(from, to, 0, 1).ticks(3); // less than a doubling
    fill(element, s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
      ...ticks.flatMap((tick) => [
        s("line", { class: "grid", x1: x.place(tick), x2: x.place(tick), y1: top, y2: height - BOTTOM }),
        s("text", { x: x.place(tick), y: height - BOTTOM + 17, "text-anchor": "middle" }, `${tidy(tick)}${about.unit ?? ""}`)]),
      ...marks.flatMap((mark) => [
        s("line", { class: "mark", x1: x.place(mark.x), x2: x.place(mark.x), y1: top, y2: height - BOTTOM }),
        s("text", { class: "mark", x: x.place(mark.x), y: 14, "text-anchor": "middle" }, mark.word)]),
      s("text", { class: "axis-word", x: width - 16, y: height - 4, "text-anchor": "end" }, t(about.x)),
      ...rows.map((row, index) => {
        const ends = row.values.map(({ value }) => x.place(value));
        return s("g", { class: row.chosen ? "arm chosen" : "arm", "data-arm": row.key, click: about.pick && (() => about.pick!(row.key)) },
          s("rect", { class: "band-of", x: 0, y: y(index) - TALL / 2, width, height: TALL, rx: 6 }),
          s("text", { class: "name", x: 4, y: y(index) + 5 }, row.name),
          ends.length > 1 && s("line", { class: "travel", x1: Math.min(...ends), x2: Math.max(...ends), y1: y(index), y2: y(index) }),
          ...row.values.flatMap(({ value, low, high, colour, radius, seeds = [], hollow }) => [
            s("line", { class: "range", x1: x.place(low), x2: x.place(high), y1: y(index), y2: y(index), style: `stroke: ${colour}` }),
            ...seeds.map((seed) => s("circle", { class: "point", cx: x.place(seed), cy: y(index), r: 2.5, style: `fill: ${colour}` })),
            s("circle", { cx: x.place(value), cy: y(index), r: radius, "data-value": value, style: hollow ? `fill: var(--sheet); stroke: ${colour}; stroke-width: 2` : `fill: ${colour}` })]));
      })));
  }
  return { element, draw };
}
