// q turned by mω, k by nω:  |q||k| cos(angle of q + mω - angle of k - nω)        depends on m - n alone
//
//   circle    q and k as hands; the arc between them moves both
//   score     of every place that was tried: q alone, k alone, both

import { s, set } from "../dom";
import { turned } from "../math/rotation";
import { dot } from "../math/matrix";
import { draggable, type Point } from "../parts/drag";
import { animate, clamp, ease, mix } from "../parts/motion";
import { signed } from "../parts/told";
import { both } from "../words";
import type { Chapter, Drawn, Scene } from "./chapter";

const TAU = 2 * Math.PI;
const [Q, K] = [0.4, 0.35]; // the angles of q and k before they are turned
const [D, BASE] = [4, 10];
const OMEGA = BASE ** (-2 / D); // of the second pair of channels
const WORDS = both("The bell rang before the old dog woke up again", "天 亮 以 前 那 口 老 钟 响 了");
const pair = (angle: number) => Float64Array.from([Math.cos(angle), Math.sin(angle)]);
const score = (m: number, n: number) => dot(turned(pair(Q), m, Float64Array.of(OMEGA)), turned(pair(K), n, Float64Array.of(OMEGA)));
const place = (p: number) => String(Number(p.toFixed(1)));

type Moved = "q" | "k" | "both";

export const rotate: Chapter = {
  title: both("Rotate instead of adding", "不加，改为旋转"),
  found: both("Rotate both, and the score stays", "一起旋转，分数不变"),
  need: both(
    "RoPE adds nothing to a word. Attention compares a query q, what one word looks for, with a key k, what another offers: the score says how well the two line up. RoPE rotates both by their positions. Drag q, k, or the arc between them.",
    "RoPE 不往词上加东西。注意力拿一个词要找的（查询 q）与另一个词提供的（键 k）比较，分数就是两者方向有多一致；RoPE 把两者按各自的位置旋转。拖动 q、k，或者两者之间的弧。",
  ),
  question: both("q is at position {m}, k at position {n}, and the score is {score}. Both move on by three words. What happens to the score?", "q 在位置 {m}，k 在位置 {n}，分数是 {score}。两个词一起后移三格，分数会怎样？"),
  answers: [both("it rises", "变高"), both("it stays", "不变"), both("it falls", "变低")],
  right: 1,
  verdict: both("It stays: both turn by the same angle, so the angle between them stays.", "不变：两者转过同样的角度，夹角不变。"),
  before: both("With q at position {m} and k at position {n}, the score is {score}.", "q 在位置 {m}，k 在位置 {n}，分数是 {score}。"),
  after: both("With q at position {m} and k at position {n}, the score is {score}. Only the distance of {gap} counts. Move one of them alone, and the score changes.", "q 在位置 {m}，k 在位置 {n}，分数是 {score}。只有相隔的 {gap} 格起作用；只移动其中一个，分数就变。"),
  next: both("There is a second way to let only the distance count.", "还有另一种办法，也只让距离起作用。"),
  views: ["rotary_pair", "layouts"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const words = t(WORDS).split(" ");
  const last = words.length - 1;
  const state = scene.keep({ m: 4, n: 1, tracks: { q: new Map<number, number>(), k: new Map<number, number>(), both: new Map<number, number>() }, begun: "q" as Moved });
  const r = narrow ? 76 : clamp((scene.height - 60) / 2, 120, 190);
  const [cx, cy] = [narrow ? width / 2 : r + 34, r + (narrow ? 20 : 26)];
  const line = narrow ? cy + r + 50 : 60;
  const [left, right] = [narrow ? 14 : 2 * r + 150, width - 14];
  const [top, bottom] = narrow ? [line + 56, line + 148] : [line + 84, cy + r];
  const height = Math.max(bottom + 16, cy + r + 26);
  const W = (p: number) => mix(left + (narrow ? 2 : 20), right - (narrow ? 6 : 90), p / last);
  const Y = (value: number) => mix(bottom, top, (value + 1) / 2);
  const on = (angle: number, radius = r) => [cx + Math.cos(angle) * radius, cy - Math.sin(angle) * radius] as const;
  const arc = (from: number, to: number, radius: number) => {
    const [x, y] = on(from, radius);
    const [x2, y2] = on(to, radius);
    return `M${x} ${y}A${radius} ${radius} 0 ${Math.abs(to - from) > Math.PI ? 1 : 0} ${to > from ? 0 : 1} ${x2} ${y2}`;
  };
  const part = (name: string, ...children: (SVGElement | null)[]) => s("g", { "data-part": name }, ...children);

  const ticks = words.map((_, n) => {
    const [[x, y], [x2, y2]] = [on(Q + n * OMEGA), on(Q + n * OMEGA, r - 7)];
    return s("path", { class: "hair dark", d: `M${x} ${y}L${x2} ${y2}` });
  });
  const texts = words.map((word, n) => s("text", { x: W(n), y: line, class: "word", ...(narrow ? { style: `font-size: ${scene.language === "en" ? 11 : 14}px` } : {}) }, word));
  const [gapLine, gapText] = [s("path", { class: "line" }), s("text", { "text-anchor": "middle", class: "named" })];
  const trails: Record<Moved, [string, string]> = { q: ["2 6", t(both("q alone", "只移动 q"))], k: ["8 6", t(both("k alone", "只移动 k"))], both: ["none", t(both("both", "一起移动"))] };
  const tracks = (Object.keys(trails) as Moved[]).map((name) => ({
    name, path: s("path", { class: name === "both" ? "line heavy" : "line soft", style: `stroke-dasharray: ${trails[name][0]}` }), label: s("text", { class: `halo ${name === "both" ? "named" : "strong"}` }, trails[name][1]),
  }));
  const bead = s("circle", { r: 7, class: "dot" });
  const [sector, wide] = [s("path", { class: "sector" }), s("path", { class: "wide-arc" })];
  const together = s("g", {}, s("rect", { x: narrow ? -23 : -34, y: -14, width: narrow ? 46 : 68, height: 28, rx: 14, class: "dot" }), s("text", { "text-anchor": "middle", y: 5, class: "on-grip" }, t(both("both", "一起"))));
  const hand = (name: "q" | "k", see: string) => {
    const shaft = s("path", { class: "hand ink" });
    const [tip, mark] = [narrow ? 17 : 19, 13].map((size) => s("g", {}, s("circle", { r: size, class: name === "q" ? "grip" : "grip hollow" }), s("text", { "text-anchor": "middle", y: 5, class: name === "q" ? "on-grip letter" : "letter" }, name))) as [SVGGElement, SVGGElement];
    return { shaft, tip, mark, element: part(see, shaft, tip, mark) };
  };
  const [k, q] = [hand("k", "n"), hand("q", "m")];
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": t(both("Query and key on a circle", "圆上的查询与键")), style: "--c: var(--rope)" },
    part("m n gap score", s("circle", { cx, cy, r, class: "hair" }), ...ticks), part("m n gap", ...texts), part("gap", gapLine, gapText),
    part("score", s("path", { class: "hair", d: `M${W(0)} ${Y(0)}H${W(last)}M${W(0)} ${Y(1)}V${Y(-1)}` }), ...(narrow ? [] : [1, 0, -1].map((value) => s("text", { x: W(0) - 8, y: Y(value) + 4, "text-anchor": "end" }, String(value).replace("-", "−")))), s("text", narrow ? { x: right, y: Y(1) - 9, "text-anchor": "end" } : { x: W(0), y: Y(1) - 9 }, t(both("score", "分数"))), ...tracks.map(({ path }) => path), bead, ...tracks.map(({ label }) => label)),
    part("gap score", sector), part("gap", wide, together), k.element, q.element);
  figure.append(svg);

  /** Adds the score of the place where one of them is now. */
  function keep(moved: Moved): void {
    state.tracks[moved].set(Math.round((moved === "k" ? state.n : state.m) * 20) / 20, score(state.m, state.n));
  }
  function show(moving?: Moved): void {
    const { m, n } = state;
    const [a, b, value] = [Q + m * OMEGA, K + n * OMEGA, score(m, n)];
    const where = (moving ?? state.begun) === "k" ? n : m;
    for (const [one, angle, p] of [[q, a, m], [k, b, n]] as const) {
      const [[x, y], [sx, sy]] = [on(angle), on(angle, r - 16)];
      set(one.shaft, { d: `M${cx} ${cy}L${sx} ${sy}` });
      set(one.tip, { transform: `translate(${x} ${y})` });
      set(one.mark, { transform: `translate(${W(p)} ${line + (one === q ? -32 : 22)})` });
    }
    set(sector, { d: `M${cx} ${cy}L${arc(b, a, r * 0.62).slice(1)}Z` });
    set(wide, { d: arc(b, a, r * 0.62) });
    const [hx, hy] = on((a + b) / 2, r * 0.62);
    set(together, { transform: `translate(${hx} ${hy})` });
    set(gapLine, { d: `M${W(n)} ${line + 40}v5H${W(m)}v-5` });
    set(gapText, { x: (W(m) + W(n)) / 2, y: line + 61 });
    gapText.textContent = place(Math.abs(m - n));
    texts.forEach((text, index) => text.classList.toggle("here", Math.abs(index - m) < 0.5 || Math.abs(index - n) < 0.5));
    if (moving) keep(moving);
    for (const { name, path, label } of tracks) {
      const points = [...state.tracks[name]].sort((one, other) => one[0] - other[0]);
      const end = points.at(-1);
      set(path, { d: points.length > 1 ? `M${points.map(([p, height]) => `${W(p)} ${Y(height)}`).join("L")}` : "" });
      label.style.display = points.length > 8 ? "" : "none";
      if (end) set(label, { x: W(end[0]) + (narrow ? 0 : 12), y: Y(end[1]) + (name === "both" ? 22 : -12), "text-anchor": narrow ? "end" : "start" });
    }
    set(bead, { cx: W(where), cy: Y(value) });
    scene.say({ m: place(m), n: place(n), gap: place(Math.abs(m - n)), score: signed(value) });
  }

  let before = 0; // the angle of the pointer
  const round = ({ x, y }: Point) => Math.atan2(cy - y, x - cx);
  const move: Record<Moved, (by: number) => void> = {
    q: (by) => void (state.m = clamp(state.m + by, 0, last)),
    k: (by) => void (state.n = clamp(state.n + by, 0, last)),
    both(by) {
      const can = clamp(by, -Math.min(state.m, state.n), last - Math.max(state.m, state.n));
      state.m += can;
      state.n += can;
    },
  };
  const begin = (name: Moved) => {
    stop();
    if (state.begun !== name || name !== "both") state.tracks[name].clear();
    state.begun = name;
  };
  const rest = (name: Moved) => {
    const by = Math.round(state.m) - state.m;
    state.m = Math.round(state.m);
    state.n = name === "both" ? Math.round(state.n + by) : Math.round(state.n);
    show(name);
  };
  let stop = () => {};
  scene.leaving(() => stop());
  const names: Record<Moved, string> = { q: t(both("Position of q", "q 的位置")), k: t(both("Position of k", "k 的位置")), both: t(both("Positions of both", "两者的位置")) };
  const about = (name: Moved) => ({
    label: names[name], from: 0, to: last, now: () => (name === "k" ? state.n : state.m), value: () => (name === "both" ? `${place(state.m)}, ${place(state.n)}` : place(name === "k" ? state.n : state.m)),
    end: () => rest(name),
    key(by: number) {
      for (let step = 0; step < 10; step++) { // the score in between is drawn, too
        move[name](by / 10);
        keep(name);
      }
      show(name);
    },
  });
  const turn = (name: Moved) => ({ ...about(name),
    start(at: Point | null) {
      begin(name);
      if (at) before = round(at);
    },
    move(at: Point) {
      const by = round(at) - before;
      before = round(at);
      move[name]((by - TAU * Math.round(by / TAU)) / OMEGA);
      show(name);
    } });
  draggable(q.tip, svg, turn("q"));
  draggable(k.tip, svg, turn("k"));
  draggable(together, svg, turn("both"));
  for (const [one, name] of [[q.mark, "q"], [k.mark, "k"]] as const) {
    draggable(one, svg, { ...about(name), start: () => begin(name), move({ x }: Point) {
      state[name === "q" ? "m" : "n"] = clamp(((x - W(0)) / (W(last) - W(0))) * last, 0, last);
      show(name);
    } });
  }
  show();
  return {
    tell() {
      begin("both");
      const [m, n] = [state.m, state.n];
      const by = clamp(3, -Math.min(m, n), last - Math.max(m, n));
      let done = 0; // every place on the way is drawn, however few frames there are
      stop = animate(1600, (share) => {
        for (; done <= 40 * share; done++) {
          state.m = m + by * ease(done / 40);
          state.n = n + by * ease(done / 40);
          show("both");
        }
      }, () => rest("both"));
    },
    numbers() {
      const gap = state.m - state.n;
      return {
        head: [both("position of q", "q 的位置"), both(`score, k stays at ${place(state.n)}`, `分数，k 留在 ${place(state.n)}`), both("score, both move", "分数，一起移动")],
        rows: words.map((_, m) => [String(m), score(m, state.n), m - gap >= 0 && m - gap <= last ? score(m, m - gap) : NaN]),
      };
    },
    python: () => `from math import cos, sin

import posenc
import torch

m, n = ${Math.round(state.m)}, ${Math.round(state.n)}
gap = abs(m - n)
rope = posenc.create("rope", d_head=${D}, base=${BASE}.0, layout="interleaved")  # the second pair of channels
at = lambda angle: torch.tensor([[[[0, 0, cos(angle), sin(angle)]]]], dtype=torch.float64)
q = rope.rotate(at(${Q}), posenc.Positions.at(torch.tensor([[m]])), "query")
k = rope.rotate(at(${K}), posenc.Positions.at(torch.tensor([[n]])), "key")
score = float((q * k).sum())`,
  };
}
