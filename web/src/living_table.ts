// The first picture of the start page: a sinusoidal table that draws itself once. A click on a cell opens its sum.

import { array, type Data } from "./data";
import { fill, h } from "./dom";
import type { Opening } from "./opening";
import { formula, put, sup } from "./parts/formula";
import { heatMap } from "./parts/heatmap";
import { both, shown } from "./words";

const SECONDS = 1.6;

export function livingTable(opening: Opening, data: Data): { element: HTMLElement; draw(): void } {
  const { t } = opening;
  const [numbers, omega] = [array(data, "hero"), array(data, "hero_omega").values];
  const [rows, columns] = [numbers.shape[0]!, numbers.shape[1]!];
  let cursor: [number, number] = [12, 20];
  let upTo = Infinity;
  const sum = h("div", { class: "hero-sum", role: "status" });
  const map = heatMap(opening, {
    label: both("A sinusoidal table", "正弦位置编码表"), rows: both("position", "位置"), columns: both("channel", "通道"), around: 0,
    pick(row, column) {
      cursor = [row, column];
      upTo = Infinity;
      draw();
    },
  });
  function draw(): void {
    map.draw({ numbers, cursor, upTo });
    const [p, channel] = cursor;
    const pair = channel >> 1;
    const value = numbers.values[p * columns + channel]!;
    const name = channel % 2 ? "cos" : "sin";
    fill(sum, formula([
      "PE(", put(p, "position"), ", ", put(channel, "channel"), `) = ${name}(`, put(p, "position"), " · 10000", sup("−2·", put(pair, "channel"), `/${columns}`), `) = ${name}(`,
      put(p, "position"), " · ", put(shown(omega[pair]!, 6), "channel"), ") = ", h("output", { "data-role": "hero-value", "data-value": value }, shown(value, 6)),
    ]));
  }
  function sweep(): void {
    const before = performance.now();
    const frame = (now: number) => {
      if (upTo === Infinity) return; // the reader has chosen a cell
      upTo = ((now - before) / 1000 / SECONDS) * rows;
      if (upTo >= rows) upTo = Infinity;
      else requestAnimationFrame(frame);
      map.draw({ numbers, cursor, upTo });
    };
    upTo = 0;
    requestAnimationFrame(frame);
  }
  const element = h("section", { class: "hero" }, map.element,
    h("p", { class: "hint" }, t(both("Each row is a position, each column a channel. Click any cell: its sum stands below.", "每一行是一个位置，每一列是一个通道。点击任意格子，下面就是它的算式。"))), sum);
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) sweep();
  return { element, draw };
}
