// The fixed words above, and the words below, which the reader moves by mouse, finger or arrow keys.

import { fill, h, s } from "../dom";
import type { State } from "../source";
import type { Stage } from "../view";
import { both, widthOf, type Words } from "../words";

/** As explorer/views/order.py has it. */
const MOST_AT_ONCE = 5;
const ROOM = 74; // pixels of a word in a long sentence, which scrolls

const GLOSS: Record<string, string> = {
  我: "I, me", 爱: "love", 你: "you", 猫: "cat", 追: "chases", 老鼠: "mouse", 吃: "eats", 鱼: "fish",
  喜欢: "likes", 不: "not", 怕: "afraid", 辣: "spicy", 屡: "time after time", 战: "fight", 败: "lose",
};

export interface Arrangement {
  element: HTMLElement;
  /** Position i of the lower row holds word `now[i]` of the upper one. */
  draw(words: string[], now: number[], chosen: number): void;
}

export function arrangement(stage: Stage): Arrangement {
  const t = stage.t;
  const still = h("div", { class: "words still" });
  const strings = s("svg", { class: "strings", viewBox: "0 0 100 44", preserveAspectRatio: "none", "aria-hidden": "true" });
  const moving = h("div", { class: "words moving", role: "group", "aria-label": t(both("Words to move", "可移动的词")) });
  const marks = [0, 1].map(() => h("div", { class: "numbers-row", "aria-hidden": "true" }));
  let words: string[] = [];
  let now: number[] = [];
  let chips: HTMLButtonElement[] = [];
  let held = -1;

  const centre = (place: number) => ((place + 0.5) / now.length) * 100;
  const asWritten = () => [...now].sort((a, b) => a - b);
  const button = (role: string, label: Words, next: () => number[]) =>
    h("button", { type: "button", "data-role": role, click: () => arrange(next().join()) }, t(label));
  const row_ = h("div", { class: "rows-of-words" }, marks[0], still, strings, moving, marks[1]);
  const element = h("div", { class: "places" },
    h("p", { class: "line-name" }, h("span", {}, t(both("Before", "调换前"))), h("span", { class: "position" }, t(both("positions stay", "位置不动")))),
    h("div", { class: "scroll" }, row_),
    h("p", { class: "hint" }, t(both("Drag a word of the lower row, or choose one and press ← →.", "拖动下面一排的词；或选中一个词，再按 ← →。"))),
    h("div", { class: "moves" },
      button("reverse", both("Reverse", "整句倒转"), () => asWritten().reverse()),
      button("prefix", both("Turn all but the last", "只倒转末词之前"), () => [...asWritten().slice(0, -1).reverse(), words.length - 1]),
      button("restore", both("As it was", "恢复原样"), asWritten)));

  /** Python is asked for the order of a sentence too long for all its orders. */
  function arrange(order: string, more: State = {}): void {
    stage.set({ order, ...more, ...(words.length > MOST_AT_ONCE ? { asked: order } : {}) });
  }

  function move(word: number, place: number): void {
    const rest = now.filter((one) => one !== word);
    rest.splice(Math.min(Math.max(place, 0), rest.length), 0, word);
    arrange(rest.join(), { word });
  }

  function named(word: number): HTMLElement[] {
    const [text, gloss] = [words[word]!, stage.language === "en" ? GLOSS[words[word]!] : undefined];
    return [h("b", {}, text), ...(gloss ? [h("small", {}, gloss)] : [])];
  }

  function chip(word: number): HTMLButtonElement {
    const one = h("button", { type: "button", "data-word": word, click: () => stage.set({ word }) }, ...named(word));
    const drop = () => {
      if (held !== word) return;
      held = -1;
      one.classList.remove("held");
      draw(words, now, word);
    };
    one.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      one.setPointerCapture(event.pointerId);
      held = word;
    });
    one.addEventListener("pointermove", (event) => {
      if (held !== word) return;
      const box = moving.getBoundingClientRect();
      const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
      one.classList.add("held");
      one.style.left = `${share * 100}%`;
      const place = Math.min(Math.floor(share * now.length), now.length - 1);
      if (place !== now.indexOf(word)) move(word, place);
    });
    one.addEventListener("pointerup", drop);
    one.addEventListener("lostpointercapture", drop);
    one.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const at = now.indexOf(word);
      const place = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: now.length - 1 }[event.key];
      if (place === undefined) return;
      event.preventDefault();
      move(word, place);
    });
    return one;
  }

  function placed<E extends HTMLElement>(one: E, place: number): E {
    one.style.left = `${centre(place)}%`;
    return one;
  }

  function draw(those: string[], standing: number[], chosen: number): void {
    const fresh = words.join(" ") !== those.join(" ");
    [words, now] = [those, standing];
    if (fresh) {
      const widest = Math.max(...words.map((word) => widthOf(word)));
      element.style.setProperty("--word", `${Math.min(21, (words.length > 8 ? ROOM - 10 : 92) / widest)}px`);
      element.style.setProperty("--share", `${92 / words.length}%`);
      row_.style.minWidth = words.length > 8 ? `${words.length * ROOM}px` : "";
      chips = words.map((_, word) => chip(word));
      fill(moving, ...chips);
      fill(still, ...words.map((_, place) => placed(h("div", {}, ...named(place)), place)));
      for (const line of marks) fill(line, ...words.map((_, place) => placed(h("span", {}, place), place)));
    }
    // Tab follows the eye; a chip that has the focus or the pointer is not taken out of the page.
    const kept = chips.find((one) => one.matches(":focus, .held")) ?? chips[now[0]!]!;
    const middle = now.indexOf(chips.indexOf(kept));
    now.forEach((word, place) => (place < middle ? kept.before(chips[word]!) : place > middle && moving.append(chips[word]!)));
    chips.forEach((one, word) => {
      const place = now.indexOf(word);
      if (held !== word) placed(one, place);
      one.setAttribute("aria-pressed", String(word === chosen));
      one.setAttribute("aria-label", t(both(
        `${words[word]}, position ${place} of 0 to ${now.length - 1}. Left and right arrow move it.`,
        `${words[word]}，位置 ${place}（0 至 ${now.length - 1}）。左右方向键移动。`,
      )));
    });
    fill(strings, ...now.map((word, place) => {
      const [above, below] = [centre(word), centre(place)];
      return s("path", { class: word === chosen ? "chosen" : "", d: `M${above} 2C${above} 22 ${below} 22 ${below} 42` });
    }));
  }
  return { element, draw };
}
