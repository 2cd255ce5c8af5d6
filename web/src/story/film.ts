// The film of a chapter: what it asks, the motion that answers, and what was found; without controls, under its title and above
// where it is from. It is drawn beside the page, which stays as it is, and moves in a time of its own (parts/motion.ts).

import { h } from "../dom";
import { Gif } from "../parts/gif";
import { filmed } from "../parts/motion";
import { MARGIN, offer, painter } from "../parts/picture";
import type { Language, Words } from "../words";
import type { Chapter, Drawn } from "./chapter";
import { partsOf } from "./parts";

const STEP = 80; // milliseconds
const [ASKS, ENDS, LONGEST] = [1800, 3000, 2400]; // the question, the end, and a pause within

export interface Filming {
  t(words: Words): string;
  language: Language;
  root: HTMLElement;
  narrow: boolean;
  stored: Record<string, any>;
  foot: string;
  /** Told of how many pictures there are. */
  taken(count: number): void;
}

export async function saveFilm(number: number, about: Chapter, { t, language, root, narrow, stored, foot, taken }: Filming): Promise<void> {
  const width = narrow ? 390 : 1000;
  const parts = partsOf(t, about, () => {});
  const section = h("section", { class: `story filmed chapter-${number}`, style: `width: ${width}px` }, parts.heading, parts.question.element, parts.figure, parts.caption);
  const studio = h("div", { class: "studio", inert: true }, section);
  root.append(studio);
  const leave: (() => void)[] = [];
  try {
    await document.fonts.ready;
    let told = false;
    let drawn!: Drawn;
    const begin = filmed(() => {
      drawn = about.draw({
        t, language, width, narrow, stored, figure: parts.figure, height: narrow ? 330 : 400, told: () => told, tell() {}, keep: (initial) => initial, say: parts.say, leaving: (one) => void leave.push(one),
      });
    });
    // As tall as it is with the longer sentences of its end.
    parts.question.element.style.minHeight = narrow ? "4.3em" : "2.9em";
    parts.caption.style.minHeight = narrow ? "9em" : "4.5em";
    section.style.height = `${section.offsetHeight}px`;
    const paint = painter({ stage: section, foot, margin: MARGIN }, 1);
    let gif: Gif | null = null;
    let count = 0;
    const take = async (milliseconds: number) => {
      const canvas = await paint();
      gif ??= new Gif(canvas.width, canvas.height);
      gif.add(new Uint32Array(canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height).data.buffer), milliseconds / 10);
      taken(++count);
    };
    /** Until nothing moves any more; a pause in which nothing changes is one picture. */
    const play = async (move: (milliseconds: number) => boolean) => {
      let paused = 0;
      let before = "";
      for (let more = true; more; ) {
        more = move(STEP);
        const now = section.innerHTML;
        paused = now === before ? paused + STEP : 0;
        before = now;
        if (paused < LONGEST) await take(STEP);
      }
    };
    if (begin(0)) await play(begin);
    else await take(ASKS);
    const answer = filmed(() => {
      told = true;
      parts.reveal(null);
      drawn.tell();
    });
    await play(answer);
    if (drawn.move) await play(filmed(drawn.move));
    await take(ENDS);
    offer(gif!.file(), `posenc-chapter-${number}.gif`);
  } finally {
    for (const one of leave) one();
    studio.remove();
  }
}
