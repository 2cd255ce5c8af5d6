// One strip a method, one bar a pair: the part of its circle that training covered, and the part that is new.

import { array, type Data } from "../data";
import { h, s } from "../dom";
import type { Stage } from "../view";
import { both } from "../words";
import { NAMES, reader, TURN, type Method } from "./extrapolation_methods";

const [LEFT, RIGHT, HIGH, LABEL, TOP, FOOT] = [10, 10, 46, 24, 22, 38];

export function stripChart(stage: Stage) {
  const { t } = stage;
  const label = both(
    "Angles covered in training and new beyond it, by pair and method. Left and right move over pairs, up and down over methods.",
    "各方法、各通道对在训练中覆盖的角度与新出现的角度。左右键换通道对，上下键换方法。",
  );
  const element = h("div", { class: "strips", tabindex: 0, role: "application", "aria-roledescription": t(both("chart", "图")), "aria-label": t(label) });
  let now = { pairs: 1, methods: [] as Method[], pair: 0, chosen: 0 };
  let drawn: { data: Data; width: number } | null = null;
  let last: [Data, Method[], number, number] | null = null;
  const cursor = s("path", { class: "cursor-bar" });
  const frame = s("rect", { class: "chosen" });
  const width = () => Math.max(element.clientWidth, 260);
  const bar = () => (width() - LEFT - RIGHT) / now.pairs;
  const top = (m: number) => TOP + m * (HIGH + LABEL) + LABEL;

  function build(data: Data): void {
    const of = reader(data);
    const wide = width();
    const height = top(now.methods.length - 1) + HIGH + FOOT;
    const picture = s("svg", { viewBox: `0 0 ${wide} ${height}`, width: wide, height, "aria-hidden": "true" });
    const gap = bar() > 4 ? 1 : 0;
    const labels: SVGElement[] = []; // above the line that crosses them on a narrow window
    now.methods.forEach((method, m) => {
      const floor = top(m) + HIGH;
      const y = (angle: number) => (floor - (angle / TURN) * HIGH).toFixed(2);
      const thick = bar() - gap;
      const box = (n: number, from: number, to: number) =>
        `M${(LEFT + n * bar() + gap / 2).toFixed(2)} ${y(from)}h${thick.toFixed(2)}V${y(to)}h${(-thick).toFixed(2)}Z`;
      let [old, fresh] = ["", ""];
      for (let n = 0; n < now.pairs; n++) {
        old += box(n, 0, of.covered(n));
        if (of.fresh(m, n) > 0) fresh += box(n, of.covered(n), of.covered(n) + of.fresh(m, n));
      }
      const count = of.count(m);
      picture.append(
        s("rect", { class: "ground", x: LEFT, y: top(m), width: wide - LEFT - RIGHT, height: HIGH }),
        s("path", { class: "covered", d: old }), s("path", { class: "new", d: fresh }));
      labels.push(
        s("text", { class: "name", x: LEFT, y: top(m) - 7 }, t(NAMES[method.name]!)),
        s("text", { class: count ? "many" : "", x: wide - RIGHT, y: top(m) - 7, "text-anchor": "end", "data-role": "new-pairs",
          "data-method": method.name, "data-value": count },
          count ? t(both(`new angles on ${count} pairs`, `${count} 个通道对有新角度`)) : t(both("no new angle", "没有新角度"))));
    });
    const unfinished = data.facts["unfinished"] as number;
    const edge = LEFT + (now.pairs - unfinished) * bar();
    if (unfinished) picture.append(s("line", { class: "mark", x1: edge, x2: edge, y1: TOP - 4, y2: height - FOOT }),
      s("text", { class: "mark", x: edge - 5, y: TOP - 9, "text-anchor": "end" }, t(both("turned at least once ", "转满过一圈"))),
      s("text", { class: "mark", x: edge + 5, y: TOP - 9 }, t(both("never", "未转满"))));
    picture.append(...labels);
    for (const n of ticks(now.pairs)) picture.append(s("text", { x: LEFT + (n + 0.5) * bar(), y: height - FOOT + 16, "text-anchor": "middle" }, n));
    picture.append(s("text", { x: wide / 2, y: height - 4, "text-anchor": "middle" },
      t(both("pair of channels, fast → slow; a full bar is one turn", "通道对，由快到慢；满格为一整圈"))), frame, cursor);
    element.replaceChildren(picture);
    drawn = { data, width: wide };
  }
  function draw(data: Data, methods: Method[], pair: number, chosen: number): void {
    last = [data, methods, pair, chosen];
    now = { pairs: array(data, "omega").shape[1]!, methods, pair, chosen };
    if (drawn?.data !== data || drawn.width !== width()) build(data);
    const x = LEFT + pair * bar();
    cursor.setAttribute("d", methods.map((_, m) => `M${x - 1.5} ${top(m) - 2}h${bar() + 3}v${HIGH + 4}h${-bar() - 3}Z`).join(""));
    const around = { x: LEFT - 5, y: top(chosen) - LABEL + 2, width: width() - LEFT - RIGHT + 10, height: HIGH + LABEL + 2, rx: 6 };
    for (const [name, value] of Object.entries(around)) frame.setAttribute(name, String(value));
  }
  function at(event: PointerEvent): void {
    const box = element.getBoundingClientRect();
    const pair = Math.min(Math.max(Math.floor((event.clientX - box.left - LEFT) / bar()), 0), now.pairs - 1);
    const m = Math.min(Math.max(Math.floor((event.clientY - box.top - TOP) / (HIGH + LABEL)), 0), now.methods.length - 1);
    stage.set({ pair, method: now.methods[m]!.name });
  }
  element.addEventListener("pointerdown", at);
  element.addEventListener("pointermove", (event) => event.buttons & 1 && at(event));
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pair = { ArrowLeft: now.pair - 1, ArrowRight: now.pair + 1, PageUp: now.pair - 10, PageDown: now.pair + 10, Home: 0, End: now.pairs - 1 }[event.key];
    const m = { ArrowUp: now.chosen - 1, ArrowDown: now.chosen + 1 }[event.key];
    if (pair === undefined && m === undefined) return;
    event.preventDefault();
    if (pair !== undefined) stage.set({ pair: Math.min(Math.max(pair, 0), now.pairs - 1) });
    else stage.set({ method: now.methods[Math.min(Math.max(m!, 0), now.methods.length - 1)]!.name });
  });
  const watch = new ResizeObserver(() => last && drawn?.width !== width() && draw(...last));
  watch.observe(element);
  stage.leaving(() => watch.disconnect());
  return { element, draw };
}

function ticks(pairs: number): number[] {
  const every = [1, 2, 4, 8, 16, 32, 64].find((n) => pairs / n <= 9) ?? pairs;
  return Array.from({ length: Math.ceil(pairs / every) }, (_, n) => n * every);
}
