// The state of the page in its address: #/view?length=50&p=3. What has its default is left out. lang=zh sets the language,
// alone=true leaves out what is around the view, for a page of others that shows it in a frame.

import type { State, Value } from "./source";

export interface Address {
  read(): string;
  /** Replaces the current address after a short delay. */
  write(text: string): void;
  /** Adds a new address to the history. */
  go(text: string): void;
  changed(listener: () => void): void;
  link(text: string): string;
}

export function browserAddress(): Address {
  let timer = 0;
  let waiting: string | null = null; // written, and not yet in the window's address
  const listeners: (() => void)[] = [];
  const settle = () => {
    clearTimeout(timer);
    waiting = null;
  };
  const tell = () => {
    settle();
    for (const listener of listeners) listener();
  };
  addEventListener("popstate", tell);
  return {
    read: () => waiting ?? location.hash.slice(1),
    write(text) {
      clearTimeout(timer);
      waiting = text;
      // Browsers limit the changes of the address per second.
      timer = window.setTimeout(() => {
        settle();
        history.replaceState(null, "", `#${text}`);
      }, 120);
    },
    go(text) {
      history.pushState(null, "", `#${text}`);
      tell();
    },
    changed: (listener) => void listeners.push(listener),
    link: (text) => `${location.href.split("#")[0]}#${text}`,
  };
}

/** An address for a page that is not the whole window. */
export function privateAddress(start: string): Address {
  let text = start;
  const listeners: (() => void)[] = [];
  return {
    read: () => text,
    write: (next) => void (text = next),
    go(next) {
      text = next;
      for (const listener of listeners) listener();
    },
    changed: (listener) => void listeners.push(listener),
    link: (next) => `#${next}`,
  };
}

/** What an address says of the page around a view. */
const OF_PAGE = ["lang", "alone"];

export function parsed(text: string): { view: string; given: Record<string, string>; page: Record<string, string> } {
  const [path = "", ...rest] = text.split("?");
  const all = [...new URLSearchParams(rest.join("?"))];
  const some = (ofPage: boolean) => Object.fromEntries(all.filter(([name]) => OF_PAGE.includes(name) === ofPage));
  return { view: path.replaceAll("/", ""), given: some(false), page: some(true) };
}

export function written(view: string, state: State, initial: State): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (value !== initial[name]) query.set(name, String(value));
  const text = query.toString();
  return `/${view}${text ? `?${text}` : ""}`;
}

/** Parses a text as a value of the type of `like`; undefined if it is not one. */
export function valued(text: string, like: Value): Value | undefined {
  if (typeof like === "string") return text;
  if (typeof like === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  const number = Number(text);
  return text.trim() && Number.isFinite(number) ? number : undefined;
}
