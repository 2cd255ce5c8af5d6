// A small matrix with its numbers written in its cells: one cell is chosen by mouse, finger or arrow keys.
//
//   title       a   b   c
//         猫 0 ▒▒▒ ▓▓▓ ░░░     the table is itself what screen readers and tests read

import { colour, inkOn, isDark, type MapName } from "../colours";
import { fill, h, type Child } from "../dom";
import { shown } from "../words";

export interface MatrixAbout {
  title: string;
  rows: Child[];
  columns: Child[];
  pick(row: number, column: number): void;
  /** Digits after the point; 4 unless said. */
  digits?: number;
}

export interface MatrixState {
  values: ArrayLike<number>;
  /** None: the cursor is in another matrix. */
  cursor?: [number, number];
  map?: MapName;
  limit: number;
  /** Cells that the chosen one is made of. */
  lit?: (row: number, column: number) => boolean;
}

export interface Matrix {
  element: HTMLElement;
  draw(state: MatrixState): void;
}

export function matrix({ title, rows, columns, pick, digits = 4 }: MatrixAbout): Matrix {
  const caption = h("caption", {}, title);
  const cells = rows.map((_, row) => columns.map((_, column) => h("td", { "data-row": row, "data-column": column, click: () => pick(row, column) })));
  const table = h("table", { class: "matrix", role: "grid", "aria-label": title },
    caption,
    h("thead", {}, h("tr", {}, h("td", {}), ...columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map((name, row) => h("tr", {}, h("th", { scope: "row" }, name), ...cells[row]!))));
  let at: [number, number] = [0, 0];

  table.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = {
      ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -columns.length],
      End: [0, columns.length], Enter: [0, 0], " ": [0, 0],
    }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const within = (value: number, count: number) => Math.min(Math.max(value, 0), count - 1);
    at = [within(at[0] + step[0]!, rows.length), within(at[1] + step[1]!, columns.length)];
    const cell = cells[at[0]]![at[1]]!;
    pick(...at);
    cell.focus();
  });

  function draw({ values, cursor, map = "diverging", limit, lit }: MatrixState): void {
    const dark = isDark(table);
    if (cursor) at = cursor;
    cells.forEach((line, row) => line.forEach((cell, column) => {
      const value = values[row * columns.length + column]!;
      const chosen = !!cursor && row === cursor[0] && column === cursor[1];
      cell.dataset["value"] = String(value);
      cell.tabIndex = row === at[0] && column === at[1] ? 0 : -1;
      cell.setAttribute("aria-selected", String(chosen));
      cell.classList.toggle("lit", !!lit?.(row, column));
      const there = Number.isFinite(value);
      cell.style.background = there ? colour(map, value, limit, dark) : "";
      cell.style.color = there ? inkOn(map, value, limit, dark) : "";
      fill(cell, shown(value, digits).replace(/^−(0\.0*)$/, "$1"));
    }));
  }
  return { element: h("div", { class: "scroll" }, table), draw };
}
