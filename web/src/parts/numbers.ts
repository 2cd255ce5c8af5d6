// A window of numbers around the cursor: a magnifying glass for eyes, a table for screen readers.

import { colour, inkOn, isDark, type MapName } from "../colours";
import type { Numbers } from "../data";
import { h, refill } from "../dom";
import { shown } from "../words";

export interface Window {
  numbers: Numbers;
  cursor: [number, number];
  map: MapName;
  limit: number;
  rowName(row: number): string;
  columnName(column: number): string;
  around: number;
  digits: number;
}

/** `of` tells it from the window of another drawing on the same page. */
export function numbersWindow(caption: string, of: string): { element: HTMLElement; draw(window: Window): void } {
  const table = h("table", { class: "window" });
  const element = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${of}: ${caption}` }, table);
  return {
    element,
    draw({ numbers, cursor, map, limit, rowName, columnName, around, digits }) {
      const dark = isDark(element);
      const [rows, columns] = [span(cursor[0], around, numbers.shape[0]!), span(cursor[1], around, numbers.shape[1]!)];
      const width = numbers.shape[1]!;
      const head = h("tr", {}, h("td", {}), ...columns.map((c) => h("th", { scope: "col" }, columnName(c))));
      const body = rows.map((r) =>
        h("tr", {}, h("th", { scope: "row" }, rowName(r)), ...columns.map((c) => {
          const value = numbers.values[r * width + c]!;
          const cell = h("td", { "data-row": r, "data-column": c, "data-value": value, "aria-current": r === cursor[0] && c === cursor[1] && "true" }, shown(value, digits));
          if (Number.isFinite(value)) {
            cell.style.background = colour(map, value, limit, dark);
            cell.style.color = inkOn(map, value, limit, dark);
          }
          return cell;
        })));
      refill(table, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, ...body));
    },
  };
}

/** Up to 2·around + 1 neighbours, moved inwards at the ends. */
function span(centre: number, around: number, count: number): number[] {
  const size = Math.min(2 * around + 1, count);
  const start = Math.min(Math.max(centre - around, 0), count - size);
  return Array.from({ length: size }, (_, index) => start + index);
}

/** A small table with the numbers of a drawing; the first cell of every row is its heading. */
export function plainTable(caption: string, head: string[], rows: (string | number)[][]): HTMLElement {
  const cells = ([name, ...rest]: (string | number)[]) =>
    h("tr", {}, h("th", { scope: "row" }, name), ...rest.map((value) => h("td", typeof value === "number" ? { "data-value": value } : {}, typeof value === "number" ? shown(value) : value)));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { class: "plain" }, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, ...head.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {}))))),
      h("tbody", {}, ...rows.map(cells))));
}

/** A collapsed element with a table. */
export function folded(summary: string, table: HTMLElement): HTMLElement {
  return h("details", { class: "numbers" }, h("summary", {}, summary), table);
}
