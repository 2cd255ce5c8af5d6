// A matrix as colours on a canvas, with a cursor that mouse, finger and keyboard move, and its numbers beside it.
//
//          columns ─►                 ┌ window ┐
//   rows ┌────────┼────────┐          │ 0.91 … │  the numbers around the cursor
//    │   │        ■────────│          └────────┘
//    ▼   └────────┼────────┘

import { cursorColours, isDark, step, table, type MapName } from "../colours";
import type { Numbers } from "../data";
import { h } from "../dom";
import type { Stage } from "../view";
import type { Words } from "../words";
import { grid, means, type Grid } from "./blocks";
import { colourKey } from "./colour_key";
import { numbersWindow } from "./numbers";

export interface HeatMapAbout {
  label: Words;
  rows: Words;
  columns: Words;
  /** The reader moved the cursor. */
  pick(row: number, column: number): void;
  rowName?: (row: number) => string;
  columnName?: (column: number) => string;
  /** Neighbours on each side in the window of numbers; 3 unless said, 0 for no window. */
  around?: number;
  /** Height of a cell at most, in pixels. */
  tallest?: number;
}

export interface HeatMapState {
  numbers: Numbers;
  cursor: [number, number];
  map?: MapName;
  /** The value that gets the strongest colour. */
  limit?: number;
  /** Rows from here on are not yet there: a fraction while a sweep plays. The window of numbers stays as it is. */
  upTo?: number;
  /** Digits after the point in the window of numbers; 3 unless said. */
  digits?: number;
  /** What stands at the ends of the colour key, if not the numbers. */
  ends?: [string, string] | undefined;
}

export interface HeatMap {
  element: HTMLElement;
  draw(state: HeatMapState): void;
}

const GLYPHS_FROM = 15; // pixels of a cell from which its sign is written into it
const MARGIN = 34; // pixels of the names of rows, as in page.css

export function heatMap(stage: Pick<Stage, "t" | "leaving">, about: HeatMapAbout): HeatMap {
  const rowName = about.rowName ?? String;
  const columnName = about.columnName ?? String;
  const around = about.around ?? 3;
  const canvas = h("canvas", { tabindex: 0, role: "application", "aria-roledescription": stage.t({ en: "heat map", zh: "热力图" }), "aria-label": `${stage.t(about.label)}. ${stage.t({ en: "Arrow keys move the cursor.", zh: "方向键移动光标。" })}` });
  const across = h("div", { class: "axis across", "aria-hidden": "true" });
  const down = h("div", { class: "axis down", "aria-hidden": "true" });
  const glass = around ? numbersWindow(stage.t({ en: "Numbers around the cursor", zh: "光标附近的数值" }), stage.t(about.label)) : null;
  const key = colourKey();
  const map = h("div", { class: "map" }, h("div", { class: "axis-name" }, `${stage.t(about.columns)} →`), across, h("div", { class: "map-row" }, down, canvas), h("div", { class: "axis-name" }, `↓ ${stage.t(about.rows)}`), key.element);
  const element = h("div", { class: glass ? "heatmap with-window" : "heatmap" }, map, glass?.element);
  const picture = document.createElement("canvas");
  let painted: unknown[] = [];
  let high = grid(1, 1);
  let wide = grid(1, 1);
  let last: HeatMapState | null = null;
  let room = 0; // measured when it changes: to ask for it at every move costs a layout of the page
  let seen: [Numbers, number, number, boolean, number] | null = null;

  function paint(numbers: Numbers, name: MapName, limit: number, dark: boolean): void {
    const key = [numbers, name, limit, dark, high.block, wide.block];
    if (key.every((part, index) => part === painted[index])) return;
    [picture.width, picture.height] = [wide.cells, high.cells];
    const image = new ImageData(wide.cells, high.cells);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = table(name, dark);
    const values = means(numbers, high, wide);
    for (let index = 0; index < values.length; index++) {
      const value = values[index]!;
      pixels[index] = value === value ? colours[step(name, value, limit)]! : 0;
    }
    picture.getContext("2d")!.putImageData(image, 0, 0);
    painted = key;
  }

  function draw(state: HeatMapState): void {
    last = state;
    const { numbers, cursor, map: name = "diverging", limit = 1, upTo = Infinity, digits = 3, ends } = state;
    const [rows, columns] = [numbers.shape[0]!, numbers.shape[1]!];
    const dark = isDark(element);
    const ratio = window.devicePixelRatio || 1;
    const width = ((room ||= map.clientWidth) || 600) - MARGIN;
    const height = Math.min(Math.max((width / columns) * rows, 240, rows), rows * (about.tallest ?? 40), Math.max(460, Math.min(rows, 560)));
    [high, wide] = [grid(rows, height * ratio), grid(columns, width * ratio)];
    const [w, t] = [Math.round(wide.cells * wide.pixels), Math.round(high.cells * high.pixels)];
    if (canvas.width !== w || canvas.height !== t) {
      [canvas.width, canvas.height] = [w, t];
      [canvas.style.width, canvas.style.height] = [`${w / ratio}px`, `${t / ratio}px`];
      across.style.width = canvas.style.width;
    }
    paint(numbers, name, limit, dark);
    key.draw(name, limit, ends);
    const pen = canvas.getContext("2d")!;
    pen.imageSmoothingEnabled = false;
    pen.clearRect(0, 0, w, t);
    const there = Math.min(upTo, rows);
    const full = Math.ceil(there);
    const [cellW, cellH] = [wide.pixels / wide.block, high.pixels / high.block];
    pen.drawImage(picture, 0, 0, w, t);
    if (there < rows) pen.clearRect(0, there * cellH, w, t);
    if (Math.min(cellW, cellH) >= GLYPHS_FROM * ratio && name === "diverging") signs(pen, numbers, full, cellW, cellH, limit, dark);
    cross(pen, cursor, cellW, cellH, w, t, ratio);
    ticks(across, columns, columnName, "left", columns * cellW / ratio);
    ticks(down, rows, rowName, "top", rows * cellH / ratio);
    down.style.height = canvas.style.height;
    if (upTo === Infinity && (!seen || seen[0] !== numbers || seen[1] !== cursor[0] || seen[2] !== cursor[1] || seen[3] !== dark || seen[4] !== limit)) {
      seen = [numbers, cursor[0], cursor[1], dark, limit];
      glass?.draw({ numbers, cursor, map: name, limit, rowName, columnName, around, digits });
    }
  }

  function cross(pen: CanvasRenderingContext2D, [row, column]: [number, number], cellW: number, cellH: number, w: number, t: number, ratio: number): void {
    const colours = cursorColours(isDark(element));
    pen.lineWidth = ratio;
    pen.fillStyle = colours.position;
    pen.fillRect(0, Math.round((row + 0.5) * cellH - ratio / 2), w, ratio);
    pen.fillStyle = colours.channel;
    pen.fillRect(Math.round((column + 0.5) * cellW - ratio / 2), 0, ratio, t);
    const [bw, bh] = [Math.max(cellW, 7 * ratio), Math.max(cellH, 7 * ratio)];
    const [x, y] = [(column + 0.5) * cellW - bw / 2, (row + 0.5) * cellH - bh / 2];
    pen.lineWidth = 4 * ratio;
    pen.strokeStyle = colours.sheet;
    pen.strokeRect(x, y, bw, bh);
    pen.lineWidth = 2 * ratio;
    pen.strokeStyle = colours.ink;
    pen.strokeRect(x, y, bw, bh);
  }

  function at(event: PointerEvent): void {
    if (!last) return;
    const box = canvas.getBoundingClientRect();
    const [rows, columns] = [last.numbers.shape[0]!, last.numbers.shape[1]!];
    // The last block may be wider than what is left of the matrix.
    const inside = (share: number, { block, cells }: Grid, count: number) => Math.min(Math.max(Math.floor(share * block * cells), 0), count - 1);
    about.pick(inside((event.clientY - box.top) / box.height, high, rows), inside((event.clientX - box.left) / box.width, wide, columns));
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    at(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) at(event);
  });
  canvas.addEventListener("keydown", (event) => {
    if (!last || event.ctrlKey || event.metaKey || event.altKey) return;
    const [rows, columns] = [last.numbers.shape[0]!, last.numbers.shape[1]!];
    let [row, column] = last.cursor;
    if (event.key === "ArrowLeft") column -= 1;
    else if (event.key === "ArrowRight") column += 1;
    else if (event.key === "ArrowUp") row -= 1;
    else if (event.key === "ArrowDown") row += 1;
    else if (event.key === "PageUp") row -= 10;
    else if (event.key === "PageDown") row += 10;
    else if (event.key === "Home") column = 0;
    else if (event.key === "End") column = columns - 1;
    else return;
    event.preventDefault();
    about.pick(Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(column, 0), columns - 1));
  });
  const watch = new ResizeObserver(() => {
    if (room === map.clientWidth) return;
    room = map.clientWidth;
    if (last) draw(last);
  });
  watch.observe(map);
  stage.leaving(() => watch.disconnect());
  return { element, draw };
}

/** + and − in the cells, so that the sign needs no colour. */
function signs(pen: CanvasRenderingContext2D, numbers: Numbers, rows: number, cellW: number, cellH: number, limit: number, dark: boolean): void {
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.font = `${Math.round(Math.min(cellW, cellH) * 0.5)}px system-ui`;
  const columns = numbers.shape[1]!;
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const value = numbers.values[row * columns + column]!;
      if (Math.abs(value) < 0.02 * limit || value !== value) continue;
      const strong = Math.abs(value) > 0.55 * limit;
      pen.fillStyle = strong !== dark ? "rgb(255 255 255 / .8)" : "rgb(0 0 0 / .55)";
      pen.fillText(value > 0 ? "+" : "−", (column + 0.5) * cellW, (row + 0.54) * cellH);
    }
}

/** Round numbers, as many as there is room for. */
function ticks(axis: HTMLElement, count: number, name: (index: number) => string, side: "left" | "top", pixels: number): void {
  const key = `${count} ${pixels} ${name(0)} ${name(count - 1)}`;
  if (axis.dataset["key"] === key) return;
  axis.dataset["key"] = key;
  const room = side === "left" ? 44 : 30;
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((n) => (pixels / count) * n >= room) ?? count;
  axis.replaceChildren(...Array.from({ length: Math.ceil(count / every) }, (_, index) => {
    const tick = h("span", {}, name(index * every));
    tick.style[side] = `${((index * every + 0.5) / count) * pixels}px`;
    return tick;
  }));
}
