// The chapters in their order, and their addresses.

import { add } from "./add";
import { bag } from "./bag";
import { base } from "./base";
import { beside } from "./beside";
import type { Chapter } from "./chapter";
import { clocks } from "./clocks";
import { count } from "./count";
import { grows } from "./grows";
import { rotate } from "./rotate";
import { today } from "./today";
import { tooLong } from "./too_long";

export const CHAPTERS: Chapter[] = [grows, bag, count, clocks, base, add, rotate, beside, tooLong, today];

export function chapterAddress(chapter: number): string {
  return chapter ? `#/story?chapter=${chapter}` : "#/story";
}

/** The chapter that leads to a view; undefined for a view that stands beside the story. */
export function chapterOf(view: string): number | undefined {
  const found = CHAPTERS.findIndex(({ views }) => views.includes(view));
  return found < 0 ? undefined : found;
}
