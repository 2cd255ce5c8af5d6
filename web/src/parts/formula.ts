// Formulas as HTML: m`PE(${"p"}, 2i)`, sup, sub, fractions; numbers that were substituted stand out.

import { h, type Child } from "../dom";

export function formula(...lines: Child[][]): HTMLElement {
  return h("div", { class: "formula" }, ...lines.map((line) => h("div", { class: "formula-line" }, ...line)));
}

export function sup(...children: Child[]): HTMLElement {
  return h("sup", {}, ...children);
}

export function sub(...children: Child[]): HTMLElement {
  return h("sub", {}, ...children);
}

/** A letter that stands for a number. */
export function v(letter: string): HTMLElement {
  return h("var", {}, letter);
}

export function fraction(above: Child, below: Child): HTMLElement {
  return h("span", { class: "fraction" }, h("span", {}, above), h("span", {}, below));
}

/** A number substituted for its letter, in the colour of its kind. */
export function put(text: Child, kind: "position" | "channel" | "head" | "value" = "value"): HTMLElement {
  return h("b", { class: `put ${kind}` }, text);
}
