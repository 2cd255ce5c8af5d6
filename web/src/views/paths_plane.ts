// The rows as a path in the plane of their first two principal components, with a cursor on it, and below it what the path
// is for: how alike the row under the cursor is to every other.

import { colour, isDark } from "../colours";
import { array, row, type Data, type Numbers } from "../data";
import { h, refill, s } from "../dom";
import { lineChart } from "../parts/chart";
import { animate, mix } from "../parts/motion";
import { folded, plainTable } from "../parts/numbers";
import type { Stage } from "../view";
import { both, shown } from "../words";

/** What an arrow shows of a velocity: where the path would be after so many positions, if it went straight on. */
const AHEAD = 10;
const FLOWS = 9000; // milliseconds

/** One snapshot of a stack of matrices; a view, not a copy. The same object for the same numbers, so that a map is painted once. */
const layers = new WeakMap<Numbers, Map<number, Numbers>>();
export function layer(numbers: Numbers, at: number): Numbers {
  const known = layers.get(numbers) ?? new Map<number, Numbers>();
  layers.set(numbers, known);
  const shape = numbers.shape.slice(1);
  const size = shape.reduce((product, n) => product * n, 1);
  const found = known.get(at) ?? { shape, values: numbers.values.subarray(at * size, (at + 1) * size) };
  known.set(at, found);
  return found;
}

export function planeOf(stage: Stage) {
  const { t } = stage;
  const label = both(
    "The rows as a path in the plane of their first two principal components. Left and right move along it.",
    "各行在前两个主成分平面上的路径。左右键沿路径移动。",
  );
  const figure = h("div", { class: "plane", tabindex: 0, role: "application", "aria-roledescription": t(both("path", "路径")), "aria-label": t(label) });
  const word = h("p", { class: "small" });
  const table = h("div", {});
  const details = folded(t(both("Numbers of this path", "这条路径的数值")), table);
  const profile = lineChart(stage, { label: both("Cosine of the marked row with every row", "标出的行与每一行的余弦"), x: both("position p′", "位置 p′"), y: both("cosine", "余弦"), height: 150, pick: (q) => stage.set({ q }) });
  const flow = h("button", { type: "button", "data-role": "flow", click: () => go() }, t(both("Let a point flow", "让一个点流动")));
  const flowing = h("p", { class: "small" }, flow, " ", h("span", {}, t(both("An arrow is the velocity h(τ, x(τ)): where the path would be ten positions later if it went straight on. The equation turns it all the time, and the path is where it leads.",
    "箭头是速度 h(τ, x(τ))：路径若一直朝前，十个位置之后会到哪里。方程不断转动它，它带着点走出的就是这条路径。"))));
  const element = h("div", { class: "path" }, figure, flowing, profile.element, word, details);
  let stop = () => {};
  stage.leaving(() => stop());
  let arrows: [number, number][] = []; // of each position, on the screen
  let last: [Data, number, number, number] | null = null;
  let spots: [number, number][] = [];
  let rows = 1;

  function draw(data: Data, at: number, p: number, q: number): void {
    stop();
    last = [data, at, p, q];
    const all = array(data, "paths");
    const { values } = layer(all, at);
    const count = all.shape[1]!;
    rows = array(data, "similarity").shape[1]!;
    const width = Math.max(figure.clientWidth, 240);
    const [left, right, low, high] = boxOf(all);
    const height = Math.round(Math.min(Math.max(((width - 60) * (high - low)) / (right - left) + 50, width * 0.6), width * 0.95, 430));
    const scale = Math.min((width - 60) / (right - left), (height - 50) / (high - low));
    const place = (x: number, y: number): [number, number] => [width / 2 + (x - (left + right) / 2) * scale, height / 2 - (y - (low + high) / 2) * scale];
    const [zeroX, zeroY] = place(0, 0);
    spots = Array.from({ length: count }, (_, n) => place(values[2 * n]!, values[2 * n + 1]!));
    const velocity = data.arrays["velocity"] && layer(array(data, "velocity"), at).values;
    arrows = velocity ? spots.map((_, n) => [velocity[2 * n]! * scale, -velocity[2 * n + 1]! * scale]) : [];
    flowing.hidden = !velocity;
    const line = (from: number, to: number) => `M${spots.slice(from, to).map((spot) => spot.map((part) => part.toFixed(1)).join(" ")).join("L")}`;
    /** Its number, on the side away from a point; names of two points never cover each other. */
    const named = (n: number, name: string, [fromX, fromY]: [number, number]) => {
      const [x, y] = spots[n]!;
      const far = Math.hypot(x - fromX, y - fromY) || 1;
      const place = (at: number, of: number, room: number) => Math.min(Math.max(at, room), of - room);
      return s("text", { class: name, x: place(x + ((x - fromX) / far) * 19, width, 14).toFixed(1), y: place(y + ((y - fromY) / far) * 17 + 5, height, 12).toFixed(1), "text-anchor": "middle" }, n);
    };
    const apart = (a: number, b: number) => Math.hypot(spots[a]![0] - spots[b]![0], spots[a]![1] - spots[b]![1]);
    const ends = [0, rows - 1, count - 1].filter((n, index, list) => list.indexOf(n) === index && list.slice(0, index).every((other) => apart(n, other) > 26) && apart(n, p) > 30 && apart(n, q) > 30);
    const [[px, py], [qx, qy]] = [spots[p]!, spots[q]!];
    const like = row(layer(array(data, "similarity"), at), p) as Float64Array;
    const cosine = like[q]!;
    const dark = isDark(figure);
    // Its cosine beside the middle of the line, upwards and as far as its half width and height reach.
    const [along, across] = [(qx - px) / apart(p, q), (qy - py) / apart(p, q)].map((part) => (qx < px ? -part : part)) as [number, number];
    const clear = 46 * Math.abs(across) + 9 * along + 2;
    const beside: [number, number] = [(px + qx) / 2 + clear * across, (py + qy) / 2 - clear * along + 5];
    const chord = apart(p, q) < 70 ? [] : [s("line", { class: "chord", x1: px, y1: py, x2: qx, y2: qy }),
      s("text", { class: "chord", x: beside[0].toFixed(1), y: beside[1].toFixed(1), "text-anchor": "middle", "data-role": "chord", "data-value": cosine }, `cos = ${shown(cosine, 2)}`)];
    figure.replaceChildren(s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
      s("line", { class: "grid", x1: 0, x2: width, y1: zeroY, y2: zeroY }), s("line", { class: "grid", x1: zeroX, x2: zeroX, y1: 0, y2: height }),
      s("path", { class: "track", d: line(0, rows) }), count > rows ? s("path", { class: "track beyond", d: line(rows - 1, count) }) : "",
      ...spots.map(([x, y], n) => s("circle", n < rows ? { class: "row", cx: x, cy: y, r: 3 + 4 * Math.max(like[n]!, 0) ** 2, fill: colour("diverging", like[n]!, 1, dark), "data-value": like[n] } : { cx: x, cy: y, r: 2.5, fill: "var(--muted)" })),
      ...arrows.flatMap((arrow, n) => (n % 4 === 0 || n === p ? [arrowOf(spots[n]!, arrow, n === p ? "velocity now" : "velocity")] : [])),
      ...ends.map((n) => named(n, "end", spots[n ? n - 1 : 1] ?? [0, 0])), ...chord,
      s("circle", { class: "other", cx: spots[q]![0], cy: spots[q]![1], r: 7 }), s("circle", { class: "here", cx: spots[p]![0], cy: spots[p]![1], r: 7 }),
      ...(p === q ? [] : [named(q, "other", [px, py])]), named(p, "here", p === q ? [px, py + 1] : [qx, qy])));
    const x = Float64Array.from(like, (_, n) => n);
    profile.draw({ cursor: q, yTo: 1.25, marks: [{ x: p, word: `p = ${p}` }], series: [
      { name: t(both(`cosine with position ${p}`, `与位置 ${p} 的余弦`)), x, y: like, colour: "var(--head)" },
      { name: t(both("no encoding: no position differs", "没有编码：各位置没有区别")), x, y: x.map(() => 0), colour: "var(--muted)", dashed: true }] });
    const share = array(data, "shown").values[at]!;
    refill(word, t(both(`A dot is the row of one position, a line joins neighbours. The larger and redder a dot, the more its row adds to a score with position ${p}. This plane shows `, `一个点是一个位置的行，线连着相邻的位置。点越大越红，它的行给与位置 ${p} 的分数加得越多。这个平面占各行方差的 `)), h("b", { "data-role": "share", "data-value": share }, `${(share * 100).toFixed(1)} %`),
      t(both(" of the variance of the rows", "")),
      t(count > rows ? both(`; grey beyond the trained length ${rows}.`, `；灰色部分超出训练长度 ${rows}。`) : both(".", "。")),
      data.facts["trained"] ? t(both(" Every step is projected to the plane of the last step, at the same scale.", "各步都投影到最后一步的平面，比例相同。")) : "");
    if (details.matches("[open]")) numbers();
  }
  /** A point goes along the solution: between two positions by the cubic that has both places and both velocities. */
  function go(): void {
    stop();
    const svg = figure.querySelector("svg")!;
    const [point, arrow] = [s("circle", { class: "flows", r: 7, "data-role": "flowing" }), s("g", {})];
    svg.append(arrow, point);
    stop = animate(FLOWS, (share) => {
      const time = share * (spots.length - 1);
      const n = Math.min(Math.floor(time), spots.length - 2);
      const u = time - n;
      const [a, b, v, w] = [spots[n]!, spots[n + 1]!, arrows[n]!, arrows[n + 1]!];
      const of = (c: 0 | 1) => (1 + 2 * u) * (1 - u) ** 2 * a[c] + u * (1 - u) ** 2 * v[c] + u * u * (3 - 2 * u) * b[c] + u * u * (u - 1) * w[c];
      const here: [number, number] = [of(0), of(1)];
      point.setAttribute("cx", String(here[0]));
      point.setAttribute("cy", String(here[1]));
      arrow.replaceChildren(arrowOf(here, [mix(v[0], w[0], u), mix(v[1], w[1], u)], "velocity now"));
    });
  }
  function numbers(): void {
    if (!last) return;
    const [data, at] = last;
    const { values, shape } = layer(array(data, "paths"), at);
    const moved = row(array(data, "moved"), at);
    refill(table, plainTable(t(both("Path", "路径")), [t(both("position", "位置")), t(both("1st component", "第一主成分")), t(both("2nd component", "第二主成分")),
      t(both("distance to the next row", "到下一行的距离"))],
      Array.from({ length: shape[0]! }, (_, n) => [String(n), values[2 * n]!, values[2 * n + 1]!, moved[n] ?? NaN])));
  }
  details.addEventListener("toggle", () => details.matches("[open]") && numbers());
  function at(event: PointerEvent): void {
    const box = figure.getBoundingClientRect();
    const far = ([x, y]: [number, number]) => Math.hypot(x - (event.clientX - box.left), y - (event.clientY - box.top));
    const known = spots.slice(0, rows);
    stage.set({ p: known.reduce((best, spot, n) => (far(spot) < far(known[best]!) ? n : best), 0) });
  }
  figure.addEventListener("pointerdown", at);
  figure.addEventListener("pointermove", (event) => event.buttons & 1 && at(event));
  figure.addEventListener("keydown", (event) => {
    if (!last || event.ctrlKey || event.metaKey || event.altKey) return;
    const p = last[2];
    const next = { ArrowLeft: p - 1, ArrowDown: p - 1, ArrowRight: p + 1, ArrowUp: p + 1, PageUp: p + 10, PageDown: p - 10, Home: 0, End: rows - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    stage.set({ p: Math.min(Math.max(next, 0), rows - 1) });
  });
  const watch = new ResizeObserver(() => last && draw(...last));
  watch.observe(figure);
  stage.leaving(() => watch.disconnect());
  return { element, draw };
}

/** Of all snapshots, so that one scale shows growth as growth. */
const boxes = new WeakMap<Numbers, [number, number, number, number]>();
function boxOf(all: Numbers): [number, number, number, number] {
  let box = boxes.get(all);
  if (!box) {
    box = [0, 1e-9, 0, 1e-9];
    for (let index = 0; index < all.values.length; index += 2) {
      const [x, y] = [all.values[index]!, all.values[index + 1]!];
      box = [Math.min(box[0], x), Math.max(box[1], x), Math.min(box[2], y), Math.max(box[3], y)];
    }
    boxes.set(all, box);
  }
  return box;
}

/** From a place in the direction of a velocity, with two barbs. */
function arrowOf([x, y]: [number, number], [dx, dy]: [number, number], name: string): SVGElement {
  const [tipX, tipY] = [x + AHEAD * dx, y + AHEAD * dy];
  const size = 6 / (Math.hypot(dx, dy) || 1);
  const barb = (side: number) => `L${(tipX - size * (dx + side * dy * 0.6)).toFixed(1)} ${(tipY - size * (dy - side * dx * 0.6)).toFixed(1)}`;
  return s("path", { class: name, d: `M${x.toFixed(1)} ${y.toFixed(1)}L${tipX.toFixed(1)} ${tipY.toFixed(1)}${barb(1)}M${tipX.toFixed(1)} ${tipY.toFixed(1)}${barb(-1)}` });
}
