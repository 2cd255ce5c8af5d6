// a hand that turns once in P words: height sin(2πp/P), to the right cos(2πp/P)
// bit b of p is 1 in the second half of each turn of the hand with P = 2^(b+1):  ⌊p / 2^b⌋ mod 2
//
//   the clock of 8 words, its height as a wave over the text, and the clocks of 16, 8, 4, 2 words with the bits below them

import { s, set } from "../dom";
import { draggable, type Point } from "../parts/drag";
import { animate, clamp } from "../parts/motion";
import { signed } from "../parts/told";
import { both } from "../words";
import type { Chapter, Drawn, Scene } from "./chapter";

const TAU = 2 * Math.PI;
const PERIOD = 8;
const CLOCKS = [16, 8, 4, 2];
const WORDS = both("The bell rang before the dog woke up", "天 亮 以 前 狗 就 醒 了");

const height = (p: number, period = PERIOD) => Math.sin((TAU * p) / period);
const right = (p: number, period = PERIOD) => Math.cos((TAU * p) / period);
/** The other position of the same turn at which the tip is as high. */
const twin = (p: number) => (PERIOD / 2 - p + PERIOD) % PERIOD;
const place = (p: number) => String(Number(p.toFixed(2)));

export const clocks: Chapter = {
  title: both("Bits, then clocks", "先用比特，再用时钟"),
  found: both("A clock needs two numbers", "一个时钟要两个数"),
  need: both(
    "In bits, numbers stay small: the last bit changes at each word, the one before it half as often. A clock hand does the same smoothly. Drag its tip.",
    "写成比特，数就不会大：最后一位每个词变一次，前一位慢一半。时钟的指针也这样变，但是平滑的。拖动针尖。",
  ),
  question: both("This hand turns once in {period} words. We write down only its height, {sin}. How many positions of one turn have this height?", "这根指针每 {period} 个词转一圈。只记下它的高度 {sin}，一圈里有几个位置是这个高度？"),
  answers: [both("one", "一个"), both("two", "两个"), both("four", "四个")],
  right: 1,
  verdict: both("Two: one on the way up and one on the way down.", "两个：上去时一个，下来时一个。"),
  before: both("At position {position} the tip is {sin} high, and the bits are {bits}.", "在位置 {position}，针尖的高度是 {sin}，比特是 {bits}。"),
  after: both(
    "Positions {position} and {other} are both {sin} high. How far the tip is to the right (negative: to the left) tells them apart: {cos} here, {othercos} there. So each clock gives two numbers, the sine and the cosine.",
    "位置 {position} 和 {other} 的高度都是 {sin}。看针尖偏右多少（偏左为负）就能分开：这里是 {cos}，那里是 {othercos}。所以每个时钟给两个数：正弦和余弦。",
  ),
  next: both("One clock repeats after {period} words. Slower clocks repeat later.", "一个时钟每 {period} 个词就重复。更慢的时钟要更久才重复。"),
  views: ["binary"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const words = t(WORDS).split(" ");
  const state = scene.keep({ at: 1 });
  const r = narrow ? Math.min(62, width * 0.17) : clamp((scene.height - 250) / 2, 88, 138);
  const [cx, cy] = [r + (narrow ? 4 : 14), r + 24];
  const [left, end] = [2 * r + (narrow ? 40 : 110), width - (narrow ? 10 : 30)];
  const face = narrow ? 26 : 32;
  const base = cy + r + (narrow ? 60 : 66);
  const tall = base + 2 * face + 34;
  const X = (p: number) => left + (p / PERIOD) * (end - left);
  const Y = (value: number) => cy - value * r;
  const part = (name: string, ...children: SVGElement[]) => s("g", { "data-part": name }, ...children);
  const colour = "var(--sinusoidal)";
  const wave = (of: (p: number) => number) => `M${Array.from({ length: 121 }, (_, i) => `${X((i / 120) * PERIOD).toFixed(1)} ${Y(of((i / 120) * PERIOD)).toFixed(1)}`).join("L")}`;

  const named = (x: number, y: number, anchor: string, words: string) => s("text", { x, y, "text-anchor": anchor, class: "named" }, words);
  const cosine = part("cos othercos", s("path", { d: wave(right), class: "line", style: "stroke-dasharray: 2 7" }), named(end, Y(1) - 8, "end", t(both("to the right: cosine", "向右：余弦"))));
  const texts = words.map((word, n) => s("text", { x: X(n), y: cy + r + 32, class: "word", ...(narrow ? { style: "font-size: 12px" } : {}) }, word));
  const [level, wall, drop, hand, floor] = [s("path", { class: "level" }), s("path", { class: "thick" }), s("path", { class: "hair dark" }), s("path", { class: "hand ink" }), s("path", { class: "thick" })];
  const [otherFloor, otherHand, otherTip, otherDot] = [s("path", { class: "thick faded" }), s("path", { class: "hand other" }), s("circle", { r: 9, class: "open" }), s("circle", { r: 9, class: "open" })];
  const other = part("other othercos", otherHand, otherTip, otherDot);
  const [dot, tip] = [s("circle", { r: narrow ? 11 : 9, class: "grip" }), s("circle", { r: narrow ? 15 : 13, class: "grip" })];
  const small = CLOCKS.map((period, n) => {
    const apart = narrow ? (width - 2 * face) / (CLOCKS.length - 1) : Math.min(170, (end - left) / CLOCKS.length);
    const [x, y] = [(narrow ? face : left + face) + n * apart, base + face + 14];
    const [line, bit] = [s("path", { class: "hand", style: `stroke: ${colour}` }), s("text", { x: x + (narrow ? 0 : face + 22), y: narrow ? y + face + 16 : y + 8, class: "bit", "text-anchor": "middle" })];
    return { period, x, y, line, bit, group: s("g", {}, s("path", { class: "second", d: `M${x - face} ${y}A${face} ${face} 0 0 0 ${x + face} ${y}Z` }), s("circle", { cx: x, cy: y, r: face, class: "hair" }), line, bit) };
  });
  const svg = s("svg", { viewBox: `0 0 ${width} ${tall + (narrow ? 20 : 0)}`, height: tall + (narrow ? 20 : 0), role: "group", "aria-label": t(both("A clock over the words", "词上的时钟")), style: `--c: ${colour}` },
    part("frame sin cos other othercos position", s("circle", { cx, cy, r, class: "hair" }), s("path", { class: "hair", d: `M${cx - r} ${cy}H${end}` })),
    part("sin position other", s("path", { d: wave(height), class: "line" }), named(narrow ? end : X(0.75 * PERIOD), Y(-1) + (narrow ? 15 : -12), narrow ? "end" : "middle", t(both("height: sine", "高度：正弦")))),
    cosine, part("position other", ...texts), part("sin", level, wall), part("cos", floor), part("othercos", otherFloor), other, part("position sin cos", drop, hand, dot, tip),
    part("bits position", s("text", { x: narrow ? 0 : left, y: base }, narrow ? t(both("one turn in 16, 8, 4, 2 words; bit 1: hand in the lower half", "16、8、4、2 个词转一圈；指针在下半圈时比特是 1"))
      : t(both("clocks that turn once in 16, 8, 4 and 2 words: a bit is 1 while the hand is in the lower half", "每 16、8、4、2 个词转一圈的时钟：指针在下半圈时，比特是 1"))), ...small.map(({ group }) => group)));
  figure.append(svg);

  function show(): void {
    const p = state.at;
    const [x, y, ox] = [cx + right(p) * r, Y(height(p)), cx - right(p) * r];
    const far = twin(p);
    set(hand, { d: `M${cx} ${cy}L${x} ${y}` });
    set(tip, { cx: x, cy: y });
    set(dot, { cx: X(p), cy: y });
    set(level, { d: scene.told() ? `M${Math.min(x, ox)} ${y}H${Math.max(X(p), X(far))}` : `M${x} ${y}H${X(p)}` });
    set(wall, { d: `M${cx} ${cy}V${y}` });
    set(drop, { d: `M${X(p)} ${y}V${cy + r + 12}` });
    set(otherHand, { d: `M${cx} ${cy}L${ox} ${y}` });
    set(otherTip, { cx: ox, cy: y });
    set(otherDot, { cx: X(far), cy: y });
    set(floor, { d: `M${cx} ${cy}H${x}` });
    set(otherFloor, { d: `M${cx} ${cy}H${ox}` });
    for (const one of [other, cosine, floor, otherFloor]) one.style.display = scene.told() ? "" : "none";
    texts.forEach((text, n) => {
      const near = Math.abs(n - p) < 0.5;
      text.classList.toggle("here", near);
      text.style.display = narrow && scene.language === "en" && !near ? "none" : "";
    });
    const bits = CLOCKS.map((period) => Math.floor(p / (period / 2)) % 2);
    small.forEach(({ period, x: mx, y: my, line, bit }, n) => {
      set(line, { d: `M${mx} ${my}L${mx + right(p, period) * (face - 5)} ${my - height(p, period) * (face - 5)}` });
      bit.textContent = String(bits[n]);
    });
    scene.say({ position: place(p), other: place(far), period: String(PERIOD), sin: signed(height(p)), cos: signed(right(p)), othercos: signed(right(far)), bits: bits.join("") });
  }
  const put = (p: number) => {
    state.at = clamp(p, 0, PERIOD - 0.1);
    show();
  };
  const about = { label: t(both("Position", "位置")), from: 0, to: PERIOD, now: () => state.at, value: () => t(both(`position ${place(state.at)}`, `位置 ${place(state.at)}`)), key: (by: number) => put((Math.round(state.at * 4) + by) / 4) };
  // At rest on quarters of a position, so that the numbers of the sentence are those of the picture.
  const rest = () => put(Math.round(state.at * 4) / 4);
  draggable(tip, svg, { ...about, end: rest, move: ({ x, y }: Point) => {
    const turned = ((Math.atan2(cy - y, x - cx) / TAU + 1) % 1) * PERIOD;
    put(Math.abs(turned - state.at) > PERIOD / 2 ? (state.at > PERIOD / 2 ? PERIOD : 0) : turned);
  } });
  draggable(dot, svg, { ...about, end: rest, move: ({ x }) => put(((x - left) / (end - left)) * PERIOD) });
  show();
  return {
    tell() {
      for (const one of [other, cosine]) one.classList.add("pop");
      show();
    },
    move: () => void animate(5000, (share) => put((1 + PERIOD * share) % PERIOD)),
    numbers: () => ({
      head: [both("position", "位置"), both("height: sine", "高度：正弦"), both("to the right: cosine", "向右：余弦"), both("bits", "比特")],
      rows: Array.from({ length: PERIOD }, (_, p) => [String(p), height(p), right(p), CLOCKS.map((period) => Math.floor(p / (period / 2)) % 2).join("")]),
    }),
    python: () => `from math import cos, pi, sin

period, position = ${PERIOD}, ${state.at}
other = (period / 2 - position) % period
cos, sin, othercos = cos(2 * pi * position / period), sin(2 * pi * position / period), cos(2 * pi * other / period)
bits = f"{int(position):04b}"`,
  };
}
