// The rows of the founding notes: #S8 opens the view of a row, with its example and its figures above it.

import type { Address } from "./address";
import { fill, h } from "./dom";
import type { Source } from "./source";
import { both, type Words } from "./words";

const ROW = /^\/?(S\d+)(?:\?(.*))?$/;

/** An address that reads #S8 as that of the row's view; `row` says which row it is. */
export interface RowAddress extends Address {
  row(): string | null;
}

export function withRows(address: Address, rows: Record<string, string>): RowAddress {
  const found = () => {
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
}

interface Figures {
  columns: Words[];
  rows: { name: Words; cells: string[] }[];
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
  const card = h("aside", { class: "card row-card", "data-row": name, "aria-label": t(both(`Row ${name} of the founding notes`, `最初笔记的第 ${name} 行`)), "aria-busy": "true" });
  source.ask("row", { name }).then(({ facts }) => {
    card.classList.toggle("wide", (facts as unknown as Facts).figures.columns.length > 8);
    fill(card, ...written(facts as unknown as Facts, Object.keys(source.rows), asked));
    card.removeAttribute("aria-busy");
  }, asked.failed);
  return card;
}

function written({ name, title, says, notes, commands, figures }: Facts, names: string[], { t, check }: Asked): HTMLElement[] {
  const at = names.indexOf(name);
  const beside = (to: string | undefined, rel: string, sign: string) => (to ? h("a", { href: `#${to}`, rel }, rel === "prev" ? `${sign} ${to}` : `${to} ${sign}`) : h("span", {}));
  const tables = (one: Figures): HTMLElement[] => [
    h("table", { class: "plain numbers" },
      h("thead", {}, h("tr", {}, h("td", {}), ...one.columns.map((head) => h("th", { scope: "col" }, t(head))))),
      h("tbody", {}, ...one.rows.map((row) => h("tr", {}, h("th", { scope: "row" }, t(row.name)), ...row.cells.map((cell) => h("td", {}, cell)))))),
    ...(one.then ? tables(one.then) : []),
  ];
  const said = h("div", {},
    h("p", { class: "row-title" }, h("b", {}, name), " ", t(title)),
    h("p", {}, t(says)),
    name === "S19" ? h("p", {}, check) : h("span", {}),
    h("p", { class: "small" }, t(both(notes.length > 1 ? "Notes " : "Note ", "笔记 ")), notes.join(t(both(", ", "、"))), " · ", ...commands.flatMap((one, index) => [index ? " · " : "", h("code", {}, one)])),
    h("p", { class: "small row-beside" }, beside(names[at - 1], "prev", "←"), beside(names[at + 1], "next", "→")));
  return [said, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t(title) }, ...tables(figures))];
}
