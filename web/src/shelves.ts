// Three shelves under one numbering: the chapters of the story, views that go deeper, and the workbench.
//
//   0 … 9 chapters        10 … deeper        … workbench: views of the same order as in Python (ORDER)

import type { View } from "./view";
import { VIEWS } from "all-views";
import { both, type Words } from "./words";
import { CHAPTERS } from "./story/chapters";

/** For those who build or load models; the others explain. */
const WORKBENCH = ["layouts", "precision", "what_breaks"];

export const SHELVES: { title: Words; views: View[] }[] = [
  { title: both("Deeper", "深入"), views: VIEWS.filter(({ name }) => !WORKBENCH.includes(name)) },
  { title: both("Workbench", "工作台"), views: VIEWS.filter(({ name }) => WORKBENCH.includes(name)) },
];

/** Its place among all pages, counted on from the chapters. */
export const numberOf = ({ name }: View) => CHAPTERS.length + VIEWS.findIndex((one) => one.name === name);

export const ENCODINGS: Words = both("Encodings one by one", "逐个查看编码");
