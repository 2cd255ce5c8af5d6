// Lines against positions, distances or frequencies, as SVG, with a cursor that mouse, finger and keyboard move.

import { h, refill, s } from "../dom";
import type { Around } from "../view";
import { shown, type Words } from "../words";
import { folded, plainTable } from "./numbers";

export interface Series {
  name: string;
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  colour: string;
  dashed?: boolean;
  /** Broad and pale, under the others: a line that another one covers stays visible. */
  wide?: boolean;
  /** What stands at the end of the line, where there is room. */
  end?: string;
  /** An interval around the line, or seeds: lowest and highest. */
  low?: ArrayLike<number>;
  high?: ArrayLike<number>;
  dots?: boolean;
  /** Rings instead of dots. */
  hollow?: boolean;
  /** Small dots at the same x, such as single seeds. */
  points?: ArrayLike<number>[];
}

export interface ChartState {
  series: Series[];
  /** Vertical lines with a word. */
  marks?: { x: number; word: string }[];
  /** Index into the first series' x. */
  cursor?: number;
  /** How many steps of x keys and clicks move the cursor by; 1 unless said. */
  every?: number;
  /** Bounds; those of the numbers unless said. */
  yFrom?: number;
  yTo?: number;
  /** Where x has ticks, if not at round numbers. */
  ticks?: readonly number[];
}

export interface ChartAbout {
  label: Words;
  x: Words;
  y: Words;
  xScale?: "log" | "log2";
  yScale?: "log" | "log2";
  height?: number;
  pick?: (index: number) => void;
  /** Whether the cursor follows the mouse without a press: where it changes nothing but this chart. */
  follows?: boolean;
}

export interface Chart {
  element: HTMLElement;
  draw(state: ChartState): void;
}

export const NUMBERS: Words = { en: "Numbers of this chart", zh: "这张图的数值" };
const LEFT = 52;
const TOP = 14;
const BOTTOM = 40;
const MOST_POINTS = 1500;
const ENDS = 168; // room for the words at the ends of lines, on a wide chart
const END_LINE = 15;
const TICK = 34; // between two ticks that are given

export function lineChart(stage: Around, about: ChartAbout): Chart {
  const figure = h("div", { class: "chart" });
  const legend = h("ul", { class: "legend" });
  const table = h("div", {});
  const details = folded(stage.t(NUMBERS), table);
  const element = h("div", { class: "charted" }, figure, legend, details);
  if (about.pick) {
    figure.tabIndex = 0;
    figure.setAttribute("role", "application");
    figure.setAttribute("aria-roledescription", stage.t({ en: "chart", zh: "折线图" }));
    figure.setAttribute("aria-label", `${stage.t(about.label)}. ${stage.t({ en: "Left and right move the cursor.", zh: "左右方向键移动光标。" })}`);
  } else {
    figure.setAttribute("role", "img");
    figure.setAttribute("aria-label", stage.t(about.label));
  }
  let last: ChartState | null = null;
  let drawn: { state: ChartState; width: number; at(x: number): number; up(y: number): number } | null = null;
  const [lines, pointer] = [s("g", {}), s("g", {})];
  const picture = s("svg", { "aria-hidden": "true" }, lines, pointer);
  figure.append(picture);
  let wide = 0; // measured when it changes: to ask for it at every move costs a layout of the page

  function draw(state: ChartState): void {
    last = state;
    const width = Math.max((wide ||= figure.clientWidth), 260);
    if (!drawn || drawn.width !== width || !alike(drawn.state, state)) drawLines(state, width);
    drawCursor(state);
    if (details.matches("[open]")) numbers(state);
  }

  function drawLines(state: ChartState, width: number): void {
    const height = about.height ?? Math.round(Math.min(Math.max(width * 0.42, 220), 380));
    const alone = state.series.every((one) => one.x.length === 1); // single points, named beside them
    const ends = !alone && width >= 800 && state.series.some((one) => one.end);
    const right = ends ? ENDS : 14;
    const xs = state.series.flatMap((one) => extent(one.x));
    const ys = state.series.flatMap((one) => [...extent(one.y), ...extent(one.low ?? []), ...extent(one.high ?? [])]);
    const edge = alone ? (Math.max(...xs) - Math.min(...xs)) * 0.06 || 0.5 : 0;
    const x = scale(Math.min(...xs) - edge, Math.max(...xs) + edge, LEFT, width - right, about.xScale);
    const flat = about.yScale ? 0 : (Math.max(...ys) - Math.min(...ys)) * 0.06 || 0.5;
    const y = scale(state.yFrom ?? Math.min(...ys) - flat, state.yTo ?? Math.max(...ys) + flat, height - BOTTOM, TOP, about.yScale);
    drawn = { state, width, at: x.place, up: y.place };
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) picture.setAttribute(name, String(value));
    const made: SVGElement[] = [];
    for (const tick of y.ticks(Math.max(4, Math.floor(height / 60))))
      made.push(s("line", { class: "grid", x1: LEFT, x2: width - right, y1: y.place(tick), y2: y.place(tick) }), s("text", { x: LEFT - 8, y: y.place(tick) + 4, "text-anchor": "end" }, tidy(tick)));
    for (const tick of state.ticks ? spread(state.ticks, x) : x.ticks(Math.max(3, Math.floor(width / 110))))
      made.push(s("line", { class: "tick", x1: x.place(tick), x2: x.place(tick), y1: height - BOTTOM, y2: height - BOTTOM + 4 }), s("text", { x: x.place(tick), y: height - BOTTOM + 18, "text-anchor": "middle" }, tidy(tick)));
    made.push(s("text", { class: "axis-word", x: (LEFT + width - right) / 2, y: height - 4, "text-anchor": "middle" }, stage.t(about.x)), s("text", { class: "axis-word", x: 2, y: 10 }, stage.t(about.y)));
    for (const mark of state.marks ?? [])
      made.push(s("line", { class: "mark", x1: x.place(mark.x), x2: x.place(mark.x), y1: TOP, y2: height - BOTTOM }), s("text", { class: "mark", x: x.place(mark.x) + (x.place(mark.x) > width - 110 ? -5 : 5), y: TOP + 12, "text-anchor": x.place(mark.x) > width - 110 ? "end" : "start" }, mark.word));
    for (const one of state.series) {
      if (one.low && one.high) made.push(s("path", { class: "band", d: band(one, x.place, y.place), fill: one.colour }));
      made.push(s("path", { class: `line${one.dashed ? " dashed" : ""}${one.wide ? " wide" : ""}`, d: path(one, x.place, y.place), stroke: one.colour }));
      for (const each of one.points ?? []) for (let index = 0; index < each.length; index++) if (Number.isFinite(each[index]!)) made.push(s("circle", { class: "point", cx: x.place(one.x[index]!), cy: y.place(each[index]!), r: 2, fill: one.colour }));
      if (one.dots) for (let index = 0; index < one.x.length; index++) if (Number.isFinite(one.y[index]!)) made.push(s("circle", { cx: x.place(one.x[index]!), cy: y.place(one.y[index]!), r: one.hollow ? 4.5 : 3.5, ...(one.hollow ? { style: `fill: var(--sheet); stroke: ${one.colour}; stroke-width: 2` } : { fill: one.colour }) }));
    }
    if (ends) made.push(...endWords(state.series, x, y, height - BOTTOM));
    if (alone) made.push(...namesBeside(state.series, x, y, (LEFT + width) / 2, height - BOTTOM));
    refill(lines, ...made);
  }

  /** Where the cursor stands, and the values there. */
  function drawCursor(state: ChartState): void {
    const made: SVGElement[] = [];
    if (state.cursor !== undefined && state.series[0]) {
      const at = state.series[0].x[state.cursor]!;
      const x = drawn!.at(at);
      made.push(s("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: Number(picture.getAttribute("height")) - BOTTOM }));
      for (const one of state.series) {
        const index = state.cursor < one.x.length && one.x[state.cursor] === at ? state.cursor : -1;
        if (index >= 0 && Number.isFinite(one.y[index]!)) made.push(s("circle", { class: "cursor", cx: x, cy: drawn!.up(one.y[index]!), r: 5, fill: one.colour }));
      }
    }
    refill(pointer, ...made);
    refill(legend, ...(state.series.length > 1 || state.cursor !== undefined ? state.series.map((one) => {
      const swatch = h("i", { class: `${one.dashed ? "dashed" : ""}${one.wide ? "wide" : ""}` });
      swatch.style.setProperty("--k", one.colour);
      const value = state.cursor !== undefined && state.cursor < one.y.length ? h("b", { "data-value": one.y[state.cursor]! }, Number.isFinite(one.y[state.cursor]!) ? shown(one.y[state.cursor]!) : "–") : null;
      return h("li", {}, swatch, one.name, value && " ", value);
    }) : []));
  }

  function numbers(state: ChartState): void {
    const first = state.series[0];
    if (!first) return;
    const every = state.every ?? 1;
    const chosen = sample(Math.ceil(first.x.length / every), (state.cursor ?? 0) / every).map((index) => index * every);
    const head = [stage.t(about.x), ...state.series.map((one) => one.name)];
    refill(table, plainTable(stage.t(about.label), head, chosen.map((index) => [tidy(first.x[index]!), ...state.series.map((one) => (Number.isFinite(one.y[index]) ? one.y[index]! : "–"))])));
  }
  details.addEventListener("toggle", () => details.matches("[open]") && last && numbers(last));

  function at(event: PointerEvent): void {
    if (!last || !about.pick || !last.series[0]) return;
    const box = figure.getBoundingClientRect();
    const pixel = event.clientX - box.left - parseFloat(getComputedStyle(figure).paddingLeft);
    const { x } = last.series[0];
    const place = drawn!.at;
    let best = 0;
    for (let index = 0; index < x.length; index += last.every ?? 1) if (Math.abs(place(x[index]!) - pixel) < Math.abs(place(x[best]!) - pixel)) best = index;
    about.pick(best);
  }
  figure.addEventListener("pointerdown", at);
  figure.addEventListener("pointermove", (event) => ((event.buttons & 1) || (about.follows && event.pointerType === "mouse")) && at(event));
  figure.addEventListener("keydown", (event) => {
    if (!last || !about.pick || event.ctrlKey || event.metaKey || event.altKey) return;
    const count = last.series[0]?.x.length ?? 0;
    const now = last.cursor ?? 0;
    const by = last.every ?? 1;
    const next = { ArrowLeft: now - by, ArrowRight: now + by, PageUp: now - 10 * by, PageDown: now + 10 * by, Home: 0, End: count - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    about.pick(Math.min(Math.max(next, 0), count - 1));
  });
  const watch = new ResizeObserver(() => {
    if (wide === figure.clientWidth) return;
    wide = figure.clientWidth;
    if (last) draw(last);
  });
  watch.observe(figure);
  stage.leaving(() => watch.disconnect());
  return { element, draw };
}

/** The word of each line beside its last point, moved apart where lines end together. */
function endWords(series: Series[], x: Scale, y: Scale, bottom: number): SVGElement[] {
  const lines = series.flatMap((one) => {
    const last = Array.from(one.y).findLastIndex(Number.isFinite);
    return one.end && last >= 0 ? [{ word: one.end, colour: one.colour, at: [x.place(one.x[last]!), y.place(one.y[last]!)] as const }] : [];
  });
  const heights = apart(lines.map(({ at }) => at[1]), END_LINE, bottom);
  const edge = Math.max(...lines.map(({ at }) => at[0]));
  return lines.flatMap(({ word, colour, at }, index) => [
    // From a line that ends early it would look like a line of its own.
    ...(edge - at[0] < END_LINE ? [s("path", { class: "lead-line", d: `M${at[0] + 3} ${at[1]}L${edge + 8} ${heights[index]}`, stroke: colour })] : []),
    s("text", { class: "end-word", x: edge + 11, y: heights[index]! + 4, style: `fill: ${colour}` }, word),
  ]);
}

/** The name of each point beside it, towards the middle; names that would lie on one another moved apart. */
function namesBeside(series: Series[], x: Scale, y: Scale, middle: number, bottom: number): SVGElement[] {
  const heights = apart(series.map((one) => y.place(one.y[0]!)), END_LINE, bottom);
  return series.flatMap((one, index) => {
    const [at, up, height] = [x.place(one.x[0]!), y.place(one.y[0]!), heights[index]!];
    const side = at > middle ? -1 : 1;
    return [
      ...(Math.abs(height - up) > 4 ? [s("path", { class: "lead-line", d: `M${at} ${up}L${at + 12 * side} ${height}`, stroke: one.colour })] : []),
      s("text", { class: "end-word", x: at + (Math.abs(height - up) > 4 ? 14 : 9) * side, y: height + 4, "text-anchor": side < 0 ? "end" : "start", style: `fill: ${one.colour}` }, one.end ?? one.name),
    ];
  });
}

/** The ticks that have room beside those before them; the last one always. */
function spread(ticks: readonly number[], x: Scale): number[] {
  const kept: number[] = [];
  const last = ticks.at(-1)!;
  for (const tick of ticks) if (tick === last || (x.place(last) - x.place(tick) >= TICK && (!kept.length || x.place(tick) - x.place(kept.at(-1)!) >= TICK))) kept.push(tick);
  return kept;
}

/** The same heights, moved down as far as it takes to be so far apart, and up again to end at `most`. */
export function apart(heights: number[], least: number, most = Infinity): number[] {
  const found = [...heights];
  const order = heights.map((_, index) => index).sort((a, b) => heights[a]! - heights[b]!);
  for (let at = 1; at < order.length; at++) found[order[at]!] = Math.max(found[order[at]!]!, found[order[at - 1]!]! + least);
  for (let at = order.length - 1, limit = most; at >= 0; at--, limit -= least) found[order[at]!] = Math.min(found[order[at]!]!, limit);
  return found;
}

/** Whether only the cursor differs. */
function alike(one: ChartState, other: ChartState): boolean {
  const words = ({ series, marks, yFrom, yTo }: ChartState) => JSON.stringify([marks, yFrom, yTo, series.map(({ name, colour, dashed, wide, end, dots }) => [name, colour, dashed, wide, end, dots])]);
  const numbers = ({ series }: ChartState) => series.flatMap(({ x, y, low, high, points }) => [x, y, low ?? [], high ?? [], ...(points ?? [])]);
  const [before, after] = [numbers(one), numbers(other)];
  return words(one) === words(other) && before.length === after.length && before.every((some, n) => some === after[n] || (some.length === after[n]!.length && Array.prototype.every.call(some, (value, at) => Object.is(value, after[n]![at]))));
}

function extent(values: ArrayLike<number>): number[] {
  let [low, high] = [Infinity, -Infinity];
  for (let index = 0; index < values.length; index++) {
    const value = values[index]!;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [];
}

export interface Scale {
  place(value: number): number;
  ticks(about: number): number[];
}

/** From numbers to pixels. */
export function scale(from: number, to: number, start: number, end: number, kind?: "log" | "log2"): Scale {
  const bend = kind ? (value: number) => Math.log2(Math.max(value, Number.MIN_VALUE)) : (value: number) => value;
  const [low, high] = [bend(from), bend(to)];
  const place = (value: number) => start + ((bend(value) - low) / (high - low || 1)) * (end - start);
  function ticks(about: number): number[] {
    if (kind) {
      const base = kind === "log" ? Math.log2(10) : 1;
      const every = Math.max(1, Math.ceil((high - low) / base / about));
      const found: number[] = [];
      for (let power = Math.ceil(low / base - 1e-9); power <= high / base + 1e-9; power += every) found.push(2 ** (power * base));
      return found;
    }
    const rough = (high - low) / about;
    const size = 10 ** Math.floor(Math.log10(rough || 1));
    const steps = [0.5, 1, 2, 2.5, 5, 10].map((n) => n * size);
    const multiples = (step: number) => {
      const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
      return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
    };
    const nice = steps.findIndex((step) => step >= rough);
    const found = multiples(steps[nice]!);
    return found.length < 3 ? multiples(steps[Math.max(nice - 1, 0)]!) : found; // one number is no axis
  }
  return { place, ticks };
}

/** An axis number: short, never 0.30000000000000004. */
export function tidy(value: number): string {
  const rounded = Number(value.toPrecision(6));
  const size = Math.abs(rounded);
  return (size !== 0 && (size >= 1e6 || size < 1e-3) ? rounded.toExponential().replace("e+", "e") : String(rounded)).replaceAll("-", "−");
}

function path(one: Series, x: (value: number) => number, y: (value: number) => number): string {
  const every = Math.max(1, Math.ceil(one.x.length / MOST_POINTS));
  let text = "";
  let down = false;
  for (let index = 0; index < one.x.length; index += every) {
    const value = one.y[index]!;
    if (Number.isFinite(value)) text += `${down ? "L" : "M"}${x(one.x[index]!).toFixed(1)} ${y(value).toFixed(1)}`;
    down = Number.isFinite(value);
  }
  return text;
}

function band(one: Series, x: (value: number) => number, y: (value: number) => number): string {
  const there = Array.from({ length: one.x.length }, (_, index) => index).filter((index) => Number.isFinite(one.low![index]!) && Number.isFinite(one.high![index]!));
  const line = (values: ArrayLike<number>, order: number[]) => order.map((index) => `${x(one.x[index]!).toFixed(1)} ${y(values[index]!).toFixed(1)}`).join("L");
  return there.length ? `M${line(one.high!, there)}L${line(one.low!, [...there].reverse())}Z` : "";
}

/** Up to 24 rows: all, or evenly spread with the cursor's. */
function sample(count: number, cursor: number): number[] {
  if (count <= 24) return Array.from({ length: count }, (_, index) => index);
  const even = Array.from({ length: 23 }, (_, index) => Math.round((index / 22) * (count - 1)));
  return [...new Set([...even, cursor])].sort((a, b) => a - b);
}
