// What an exported file says of its settings: which stay as they are, and which have some values only.

import { h } from "../dom";
import type { Value } from "../source";
import type { Control } from "../view";
import { both, type Words } from "../words";

/** `offered` gives the values that the file holds, null for a setting that only the page knows. */
export function exportedNote(t: (words: Words) => string, list: Control[], offered: (name: string) => Value[] | null): HTMLElement | null {
  const held = list.flatMap(({ name, label }) => {
    const values = offered(name);
    return values ? [{ label: t(label), fixed: values.length < 2 }] : [];
  });
  if (!held.length) return null;
  const named = (fixed: boolean) => held.filter((one) => one.fixed === fixed).map(({ label }) => label).join(t(both(", ", "、")));
  return h("p", { class: "hint", "data-role": "exported" }, t(both("This file holds some states of this view. ", "此文件只含这个视图的部分状态。")),
    named(true) && t(both(`These settings need posenc explore: ${named(true)}. `, `以下设置需要运行 posenc explore 才能改变：${named(true)}。`)),
    named(false) && t(both(`These have the values in their lists, others need posenc explore: ${named(false)}.`, `以下设置只有列表里的值，其他值需要运行 posenc explore：${named(false)}。`)));
}
