// The scene's picture. A word is one group of elements for as long as the sentence has it: its chip, the number of its
// position, four clock faces and a row of cells. A step says where each stands (a pose); CSS moves it there.

import { colour, inkOn, isDark, ordered, type MapName } from "./colours";
import { refill, s } from "./dom";
import { widthOf } from "./words";

/** Places are pixels of the picture; those of parts count from the middle of the word's chip. */
export interface Pose {
  x: number;
  y: number;
  scale: number;
  mark?: { x: number; y: number; text: string };
  /** The middles of its four faces and their radius. Without `hand` each face has its own; else all show that one. */
  clocks?: { x: number[]; y: number; r: number; angles: number[]; hand?: number; from?: number };
  cells?: { x: number; y: number; width: number; height: number; values: ArrayLike<number>; map: MapName; limit: number; say?: (value: number) => string };
  /** The word again, over its column. */
  key?: { x: number; y: number; turn: number; scale: number };
  lit?: boolean;
}

const LETTER = 24; // pixels of a chip's letters at scale 1
export const CHIP = 40; // its height
const LONGEST = 10; // widths of a Chinese character
const HANDS = 4;

export function cut(word: string): string {
  if (widthOf(word) <= LONGEST) return word;
  const letters = [...word];
  while (widthOf(letters.join("")) > LONGEST - 1) letters.pop();
  return `${letters.join("")}…`;
}

export const chipWidth = (word: string) => widthOf(cut(word)) * LETTER + 20;

interface Token {
  group: SVGGElement;
  key: SVGTextElement;
  draw(word: string, pose: Pose, tint: string, dark: boolean): void;
}

const moved = (element: SVGElement, x: number, y: number, more = "") => void (element.style.transform = `translate(${x.toFixed(2)}px, ${y.toFixed(2)}px)${more}`);
/** What is off is not painted and does not move; where it stands, it starts from when it is seen again. */
const seen = (element: SVGElement, yes: boolean) => void element.classList.toggle("off", !yes);

function token(pick: () => void): Token {
  const [chip, word, mark, key] = [s("rect", { class: "chip", rx: 10, height: CHIP, y: -CHIP / 2 }), s("text", { class: "word", y: 8 }), s("text", { class: "at" }), s("text", { class: "key" })];
  const said = s("g", {}, chip, word);
  const faces = Array.from({ length: HANDS }, (_, index) => {
    const hand = s("line", { class: "hand", x2: 1, style: `stroke: ${ordered(index, HANDS)}` });
    const face = s("circle", { class: "face", r: 1 });
    return { group: s("g", {}, face, hand), face, hand };
  });
  const [from, arc] = [s("line", { class: "from", x2: 1 }), s("polyline", { class: "arc" })];
  const turn = s("g", {}, from, arc);
  // A row of cells is one square for each, and is moved and stretched as one. Its numbers come when it has arrived.
  const [line, numbers] = [s("g", {}), s("g", { class: "numbers" })];
  const cells: { cell: SVGRectElement; number: SVGTextElement }[] = [];
  let drawn = "";
  const group = s("g", { class: "token", click: pick }, line, numbers, ...faces.map((one) => one.group), turn, mark, said);
  return {
    group,
    key,
    draw(text, pose, tint, dark) {
      const { cells: wanted } = pose;
      const like = JSON.stringify([text, pose, tint, dark, wanted?.say && Array.from(wanted.values, wanted.say)]);
      if (like === drawn) return;
      drawn = like;
      const width = chipWidth(text);
      chip.setAttribute("width", String(width));
      chip.setAttribute("x", String(-width / 2));
      chip.style.stroke = tint;
      group.classList.toggle("lit", Boolean(pose.lit));
      word.textContent = key.textContent = cut(text);
      moved(group, pose.x, pose.y);
      said.style.transform = `scale(${pose.scale})`;
      seen(mark, Boolean(pose.mark));
      if (pose.mark) {
        mark.textContent = pose.mark.text;
        moved(mark, pose.mark.x, pose.mark.y, ` scale(${Math.min(1, Math.max(0.75, pose.scale))})`);
      }
      const { clocks } = pose;
      const apart = clocks?.hand !== undefined || new Set(clocks?.x).size > 1;
      faces.forEach(({ group: one, face, hand }, index) => {
        seen(one, Boolean(clocks) && (clocks!.hand ?? index) === index);
        seen(face, apart || index === 0);
        if (!clocks) return moved(one, 0, 0, " scale(.1)");
        moved(one, clocks.x[index]!, clocks.y, ` scale(${clocks.r})`);
        hand.style.transform = `rotate(${-clocks.angles[index]!}rad) scale(${apart ? 0.9 : 0.9 - 0.19 * index})`;
      });
      const turned = clocks?.from !== undefined && clocks.hand !== undefined;
      seen(turn, turned);
      if (turned) {
        const [start, end] = [clocks.from!, clocks.angles[clocks.hand!]!];
        moved(turn, clocks.x[0]!, clocks.y, ` scale(${clocks.r})`);
        from.style.transform = `rotate(${-start}rad) scale(.9)`;
        arc.setAttribute("points", Array.from({ length: 33 }, (_, at) => {
          const [angle, radius] = [start + ((end - start) * at) / 32, 0.42 + 0.012 * at * Math.min(1, (end - start) / 6)];
          return `${(radius * Math.cos(angle)).toFixed(3)},${(-radius * Math.sin(angle)).toFixed(3)}`;
        }).join(" "));
      }
      const row = pose.cells;
      seen(line, Boolean(row));
      seen(numbers, Boolean(row?.say));
      if (row) {
        while (cells.length < row.values.length) {
          const one = { cell: s("rect", { x: cells.length }), number: s("text", { class: "number" }) };
          cells.push(one);
          line.append(one.cell);
          numbers.append(one.number);
        }
        for (const { cell, number } of cells.splice(row.values.length)) {
          cell.remove();
          number.remove();
        }
        moved(line, row.x, row.y, ` scale(${row.width}, ${row.height})`);
        moved(numbers, row.x, row.y + row.height / 2 + 4);
        numbers.style.fontSize = `${Math.min(12.5, row.width * 0.28)}px`;
        line.after(numbers); // put in anew, its animation starts anew
        cells.forEach(({ cell, number }, index) => {
          const value = row.values[index]!;
          const finite = Number.isFinite(value);
          cell.setAttribute("width", String(1 - Math.min(1 / row.width, 0.5)));
          cell.setAttribute("height", String(1 - Math.min(1 / row.height, 0.5)));
          cell.style.fill = finite ? colour(row.map, value, row.limit, dark) : "var(--grid)";
          cell.dataset["value"] = String(value);
          number.setAttribute("x", String((index + 0.5) * row.width));
          number.style.fill = finite ? inkOn(row.map, value, row.limit, dark) : "var(--muted)";
          number.textContent = row.say && finite ? row.say(value) : "";
        });
      } else moved(line, 0, 0, " scale(.1)");
      seen(key, Boolean(pose.key));
      if (pose.key) moved(key, pose.key.x, pose.key.y, ` rotate(${pose.key.turn}deg) scale(${pose.key.scale})`);
      else moved(key, pose.x, pose.y, ` scale(${pose.scale})`);
      key.classList.toggle("upright", Boolean(pose.key?.turn));
    },
  };
}

export interface Picture {
  element: SVGSVGElement;
  /** `behind` and `before` the words are drawn anew. */
  draw(size: [number, number], words: string[], poses: Pose[], behind: SVGElement[], before: SVGElement[]): void;
}

export function picture(pick: (word: number) => void = () => {}): Picture {
  const [back, keys, front, top] = [s("g", { class: "drawn" }), s("g", {}), s("g", {}), s("g", { class: "drawn" })];
  const element = s("svg", { class: "scene", role: "img" }, back, keys, front, top);
  const tokens: Token[] = [];
  return {
    element,
    draw([width, height], words, poses, behind, before) {
      element.setAttribute("viewBox", `0 0 ${width} ${height}`);
      while (tokens.length < words.length) {
        const index = tokens.length;
        const one = token(() => pick(index));
        tokens.push(one);
        front.append(one.group);
        keys.append(one.key);
      }
      for (const { group, key } of tokens.splice(words.length)) {
        group.remove();
        key.remove();
      }
      const dark = isDark(element);
      words.forEach((word, index) => tokens[index]!.draw(word, poses[index]!, ordered(index, words.length), dark));
      refill(back, ...behind);
      refill(top, ...before);
    },
  };
}

/** Places of things of these widths, side by side in as few centred lines as they need, and those about equally long. */
export function lines(widths: number[], width: number, gap: number): { x: number; line: number }[] {
  let found = broken(widths, width, gap);
  for (let narrower = width * 0.97; narrower > width * 0.4; narrower *= 0.97) {
    const other = broken(widths, narrower, gap);
    if (other.length > found.length || Math.max(...widths) > narrower) break;
    found = other;
  }
  return found.flatMap((some, line) => {
    const long = some.reduce((sum, one) => sum + one + gap, -gap);
    let left = (width - long) / 2;
    return some.map((one) => {
      const x = left + one / 2;
      left += one + gap;
      return { x, line };
    });
  });
}

function broken(widths: number[], width: number, gap: number): number[][] {
  const found: number[][] = [[]];
  let right = -gap;
  for (const one of widths) {
    if (right + gap + one > width && found.at(-1)!.length) {
      found.push([]);
      right = -gap;
    }
    found.at(-1)!.push(one);
    right += gap + one;
  }
  return found;
}
