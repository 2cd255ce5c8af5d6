// A state that the page cannot show: named in one sentence, with the command that shows it and the nearest state that is here.
//
//   address, link, control ─► wanted ─┬─► held: its numbers, and no others, are drawn
//                                     └─► missing: nothing is drawn, the address stays

import { fill, h } from "./dom";
import { copyButton } from "./parts/code";
import type { Parameter, State, Value } from "./source";
import type { Control } from "./view";
import { both, type Words } from "./words";

type Parameters = Record<string, Parameter>;

/** Whether a parameter has an effect in this state; its control is shown only there. */
export function applies({ only }: Parameter, control: Control | undefined, state: State): boolean {
  return Object.entries(only ?? {}).every(([name, values]) => values.includes(state[name]!)) && (control?.when?.(state) ?? true);
}

/** The stored state that shows what is wanted: equal in all parameters that have an effect. */
export function heldState(offered: State[], wanted: State, asked: Parameters, list: Control[]): State | undefined {
  const matters = Object.keys(asked).filter((name) => applies(asked[name]!, list.find((one) => one.name === name), wanted));
  return offered.find((one) => matters.every((name) => one[name] === wanted[name]));
}

/** The state that differs least; what the reader has changed last counts most, then what a page of this language opens with. */
export function nearestState(offered: State[], wanted: State, asked: Parameters, initial: State, changed: string[]): State {
  const apart = (a: Value, b: Value, opening: Value) => {
    if (a === b) return 0;
    return typeof a === "number" && typeof b === "number" ? 1 + Math.abs(a - b) / (Math.abs(a) + Math.abs(b)) : a === opening ? 1 : 2;
  };
  const distance = (one: State) => Object.keys(asked).reduce((sum, name) => sum + apart(one[name]!, wanted[name]!, initial[name]!) * (changed.includes(name) ? 100 : 1), 0);
  return offered.reduce((best, one) => (distance(one) < distance(best) ? one : best));
}

/** What a parameter takes, for the reader of an address that says something else. */
export function takes({ kind, from, to, choices = [], longest }: Parameter): Words {
  const range = from !== undefined && to !== undefined;
  if (kind === "string") return both(`at most ${longest} characters`, `最多 ${longest} 个字符`);
  if (kind === "boolean") return both("true or false", "true 或 false");
  if (kind === "choice") return choices.length < 9 ? both(`one of ${choices.join(", ")}`, `${choices.join("、")} 之一`) : both(`one of ${choices.length} names such as ${choices[0]}`, `${choices.length} 个名称之一，例如 ${choices[0]}`);
  if (kind === "integer") return range ? both(`a whole number from ${from} to ${to}`, `${from} 到 ${to} 的整数`) : both("a whole number", "整数");
  return range ? both(`a number from ${from} to ${to}`, `${from} 到 ${to} 的数`) : both("a number", "数");
}

/** As a reader types it: letters of other languages as they are, the rest in the address's own spelling, which no shell changes in quotes. */
export function command(address: string): string {
  const text = address.replace(/^\//, "").replace(/(?:%[89A-F][0-9A-F])+/gi, (bytes) => {
    try {
      return decodeURIComponent(bytes);
    } catch {
      return bytes;
    }
  });
  return `posenc explore "${text}"`;
}

export interface Asked {
  /** Names and values that were asked for. */
  asked: string;
  /** Whether no installation shows it either: a setting or a value that the view does not have. */
  impossible: boolean;
  /** The address that was asked for. */
  address: string;
  nearest: { text: string; address: string } | null;
}

/** The notice; `say` fills it. */
export function missingNotice(t: (words: Words) => string): { element: HTMLElement; say(asked: Asked): void } {
  const element = h("section", { class: "card missing", role: "alert", "data-role": "missing" });
  return {
    element,
    say({ asked, impossible, address, nearest }) {
      const shell = command(address);
      fill(element,
        h("p", { "data-role": "missing-asked" }, t(impossible ? both(`The address asks for what this view cannot show: ${asked}.`, `地址所要的，这个视图无法显示：${asked}。`)
          : both(`This file does not hold this state: ${asked}.`, `此文件不含这个状态：${asked}。`))),
        !impossible && h("p", {}, t(both("This command shows it: ", "用这条命令查看：")), h("code", { "data-role": "missing-command" }, shell), " ",
          copyButton(() => shell, t(both("Copy command", "复制命令")), t(both("Copied", "已复制")))),
        nearest && h("p", {}, t(impossible ? both("Nearest state: ", "最接近的状态：") : both("Nearest state in this file: ", "此文件中最接近的状态：")),
          h("a", { href: `#${nearest.address}`, "data-role": "missing-nearest" }, nearest.text)));
    },
  };
}
