// Links to papers, and to the page of an encoding.

import { h, type Child } from "../dom";

/** A source whose every "arXiv 2104.09864" leads there. */
export function sourced(source: string): Child[] {
  const link = (part: string) => h("a", { href: `https://arxiv.org/abs/${part.slice(6)}`, rel: "noreferrer", target: "_blank" }, part);
  return source.split(/(arXiv \d{4}\.\d{4,5})/).map((part) => (part.startsWith("arXiv ") ? link(part) : part));
}

export function pageLink(name: string, text: string): HTMLElement {
  return h("a", { href: `#/encoding?name=${name}` }, text);
}
