// Small maps that share one cursor: a pointer over any of them or the arrow keys move it in all, and each says its value.
//
//   NoPE        RoPE        ALiBi           one scale of colours for all; the cell, and the diagonal of its distance
//   ┌───────┐   ┌───────┐   ┌───────┐
//   │   ▫   │   │   ▫   │   │   ▫   │
//   └───────┘   └───────┘   └───────┘

import { cursorColours, isDark, step, table, type MapName } from "../colours";
import type { Numbers } from "../data";
import { h } from "../dom";
import type { Stage } from "../view";
import type { Words } from "../words";

const REST = 80; // ms

export interface TileState {
  numbers: Numbers;
  cursor: [number, number];
  map?: MapName;
  limit: number;
  /** The same map with other numbers, shown right of this share of the width. */
  wiped?: { by: Numbers; at: number };
}

export interface Tile {
  element: HTMLCanvasElement;
  draw(state: TileState): void;
}

export interface Linked {
  element: HTMLElement;
  tile(): Tile;
}

/** `element` takes the keys of all maps inside it; `redraw` is called when their size changes. */
export function linked(stage: Stage, about: { label: Words; pick(row: number, column: number): void; class: string }): Linked {
  const element = h("div", { class: `linked ${about.class}`, tabindex: 0, role: "application", "aria-roledescription": stage.t({ en: "maps with one cursor", zh: "共用光标的图" }),
    "aria-label": `${stage.t(about.label)}. ${stage.t({ en: "Arrow keys move the cursor.", zh: "方向键移动光标。" })}` });
  const redraws: (() => void)[] = [];
  let last: TileState | null = null;

  element.addEventListener("keydown", (event) => {
    if (!last || event.target !== element || event.ctrlKey || event.metaKey || event.altKey) return;
    const [rows, columns] = [last.numbers.shape[0]!, last.numbers.shape[1]!];
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -columns], End: [0, columns] }[event.key];
    if (!by) return;
    event.preventDefault();
    about.pick(within(last.cursor[0] + by[0]!, rows), within(last.cursor[1] + by[1]!, columns));
  });

  function tile(): Tile {
    const canvas = h("canvas", { "aria-hidden": "true" });
    let mine: TileState | null = null;
    let room = 0; // measured when it changes: to ask for it at every move costs a layout of the page
    const pictures = [picture(), picture()] as const;

    function draw(state: TileState): void {
      last = mine = state;
      const { numbers, map = "diverging", limit, wiped, cursor: [row, column] } = state;
      const [rows, columns] = [numbers.shape[0]!, numbers.shape[1]!];
      const ratio = window.devicePixelRatio || 1;
      const width = Math.max(Math.round((room ||= canvas.clientWidth) * ratio), columns);
      const height = Math.round((width / columns) * rows);
      if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
      const dark = isDark(element);
      const pen = canvas.getContext("2d")!;
      pen.imageSmoothingEnabled = false;
      pen.clearRect(0, 0, width, height);
      pen.drawImage(pictures[0](numbers, map, limit, dark), 0, 0, width, height);
      if (wiped) {
        const at = wiped.at * columns;
        pen.clearRect((at / columns) * width, 0, width, height);
        pen.drawImage(pictures[1](wiped.by, map, limit, dark), at, 0, columns - at, rows, (at / columns) * width, 0, width - (at / columns) * width, height);
      }
      const cell = width / columns;
      const colours = cursorColours(dark);
      if (wiped) {
        pen.fillStyle = colours.ink;
        pen.fillRect(Math.min(wiped.at * width, width - ratio), 0, 2 * ratio, height);
      }
      const back = Math.min(row, column);
      const on = Math.min(rows - row, columns - column);
      pen.strokeStyle = colours.channel;
      pen.lineWidth = ratio;
      pen.beginPath();
      pen.moveTo((column - back) * cell, (row - back) * cell);
      pen.lineTo((column + on) * cell, (row + on) * cell);
      pen.stroke();
      for (const [stroke, thick] of [[colours.sheet, 4], [colours.ink, 2]] as const) {
        pen.lineWidth = thick * ratio;
        pen.strokeStyle = stroke;
        const size = Math.max(cell, 6 * ratio);
        pen.strokeRect((column + 0.5) * cell - size / 2, (row + 0.5) * cell - size / 2, size, size);
      }
    }
    let frame = 0;
    const at = (event: PointerEvent) => {
      if (!mine || frame) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        const box = canvas.getBoundingClientRect();
        const [rows, columns] = [mine!.numbers.shape[0]!, mine!.numbers.shape[1]!];
        const [row, column] = [within(Math.floor(((event.clientY - box.top) / box.height) * rows), rows), within(Math.floor(((event.clientX - box.left) / box.width) * columns), columns)];
        if (row !== mine!.cursor[0] || column !== mine!.cursor[1]) about.pick(row, column);
      });
    };
    canvas.addEventListener("pointerdown", at);
    canvas.addEventListener("pointermove", (event) => (event.pointerType === "mouse" || event.buttons & 1) && at(event));
    redraws.push(() => {
      room = canvas.clientWidth;
      if (mine) draw(mine);
    });
    return { element: canvas, draw };
  }
  const watch = new ResizeObserver(() => redraws.forEach((redraw) => redraw()));
  watch.observe(element);
  stage.leaving(() => watch.disconnect());
  return { element, tile };
}

/** Runs what is drawn beside the maps: at once after a rest, and while the cursor runs only when it comes to rest. */
export function atRest(stage: Stage): (work: () => void) => void {
  let [before, waiting] = [0, 0];
  stage.leaving(() => clearTimeout(waiting));
  return (work) => {
    clearTimeout(waiting);
    const now = performance.now();
    if (now - before > REST) work();
    else waiting = setTimeout(work, REST);
    before = now;
  };
}

/** Paints a matrix, a pixel for each cell, again only where it has changed. */
function picture(): (numbers: Numbers, map: MapName, limit: number, dark: boolean) => HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  let painted: unknown[] = [];
  return (...key) => {
    const [numbers, map, limit, dark] = key;
    if (key.every((part, index) => part === painted[index])) return canvas;
    [canvas.height, canvas.width] = [numbers.shape[0]!, numbers.shape[1]!];
    const image = new ImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = table(map, dark);
    for (let index = 0; index < pixels.length; index++) {
      const value = numbers.values[index]!;
      pixels[index] = value === value ? colours[step(map, value, limit)]! : 0;
    }
    canvas.getContext("2d")!.putImageData(image, 0, 0);
    painted = key;
    return canvas;
  };
}

const within = (value: number, count: number) => Math.min(Math.max(value, 0), count - 1);
