// Sources of the numbers: the live server, the exported file, or a notebook's kernel.

import { unpack, unpackAll, type Data } from "./data";
import { beyond, compute, computed, computes, type Progress } from "./in_page";
import type { Records } from "./records";
import { both, Said, type Words } from "./words";

export type Value = number | string | boolean;
export type State = Record<string, Value>;

/** A parameter with its bounds from Python. */
export interface Parameter {
  kind: "integer" | "number" | "boolean" | "string" | "choice";
  default: Value;
  /** The default of English pages, where it is another one. */
  in_english?: Value;
  from?: number;
  to?: number;
  step?: number;
  choices?: string[];
  longest?: number;
  /** Texts by name. */
  examples?: Record<string, string>;
  /** Labels of choices, where Python knows them. */
  called?: Record<string, Words>;
  /** Shown only where another parameter has one of these values. */
  only?: Record<string, Value[]>;
}

export type Schemas = Record<string, Record<string, Parameter>>;

export interface Source {
  schemas: Schemas;
  /** Where the rows of the founding notes lead: S8 to what follows #/. */
  rows: Record<string, string>;
  /** Beside which row each statement of the notes stands. */
  claims: Record<string, string>;
  version: string;
  /** Whether Python answers. */
  live: boolean;
  /** Whether the view *measured* shows a folder of results. */
  results?: boolean;
  /** Whether the numbers of a view are the page's own, as far as it computes them. */
  own(view: string): boolean;
  /** The states that controls keep to; null where they move freely. */
  offered(view: string): State[] | null;
  /** The states that a file holds. */
  stored(view: string): State[];
  /** Whether this state needs not be stored to be asked for. */
  computes(view: string, parameters: State): boolean;
  /** Whether nothing with this value of a choice can be asked for. */
  beyond(view: string, name: string, value: Value): boolean;
  /** Throws an Error whose message is for the reader. */
  ask(view: string, parameters: State, progress?: Progress): Promise<Data>;
}

const KEPT = 24;

/** Caches the last answers; equal requests at the same time are sent once. */
export function remembering(source: Source): Source {
  const kept = new Map<string, Promise<Data>>();
  return {
    ...source,
    ask(view, parameters, progress) {
      const key = `${view} ${canonical(parameters)}`;
      const answer = kept.get(key) ?? source.ask(view, parameters, progress);
      kept.delete(key);
      kept.set(key, answer);
      answer.catch(() => kept.delete(key));
      if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
      return answer;
    },
  };
}

/** The same text for the same parameters, whatever their order; 1 and 1.0 are the same. */
export function canonical(parameters: State): string {
  return JSON.stringify(Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1)));
}

interface Refusal {
  error?: string;
  words?: Words;
}

/** What Python refuses, in both languages where it says so. */
export function refusal({ error, words }: Refusal, otherwise = ""): Error {
  return words ? new Said(words) : new Error(error ?? otherwise);
}

interface About {
  version: string;
  schemas: Schemas;
  rows: Record<string, string>;
  claims: Record<string, string>;
  results?: boolean;
}

/** The view whose models write in the page, so that their texts appear as they are written. */
const WRITES = "stretch";
/** Of a source that Python answers. */
export const ALL = { live: true, own: (view: string) => view === WRITES, offered: () => null, stored: () => [], computes: () => true, beyond: () => false };

export function server(about: About): Source {
  async function answer(path: string, asked?: RequestInit): Promise<ArrayBuffer> {
    let response: Response;
    try {
      response = await fetch(path, asked);
    } catch {
      throw new Said(both("The server has stopped: start posenc explore again.", "服务已停止，请重新运行 posenc explore。"));
    }
    if (!response.ok) throw refusal((await response.json().catch(() => ({}))) as Refusal, response.statusText);
    return response.arrayBuffer();
  }
  const records: Records = (name) => answer(name.split("/").at(-1)!);
  return {
    ...about,
    ...ALL,
    async ask(view, parameters, progress) {
      if (view === WRITES) return compute(view, parameters, records, progress);
      return unpack(await answer(`data/${view}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(parameters) }));
    },
  };
}

/** The states that a file holds, of each view; their numbers are in its element `answers/VIEW`. */
type Held = Record<string, State[]>;

export function embedded(about: About & { stored: Held }): Source {
  const key = (view: string, parameters: State) => `${view} ${canonical(parameters)}`;
  const stored = (view: string) => about.stored[view] ?? [];
  const places = new Map(Object.entries(about.stored).flatMap(([view, states]) => states.map((state, n) => [key(view, state), n])));
  const opened = new Map<string, Promise<Data[]>>();
  return {
    ...about,
    live: false,
    own: computed,
    offered: (view) => (computed(view) ? null : stored(view)),
    stored,
    computes,
    beyond,
    async ask(view, parameters, progress) {
      if (computes(view, parameters)) return compute(view, parameters, posencRecord, progress);
      const place = places.get(key(view, parameters));
      if (place === undefined) throw new Said(both("This file does not hold these numbers; posenc explore computes them.", "此文件不含这组数值，posenc explore 可以即时计算。"));
      if (!opened.has(view)) opened.set(view, posencRecord(`answers/${view}`).then(unpackAll));
      return (await opened.get(view)!)[place]!;
    },
  };
}
