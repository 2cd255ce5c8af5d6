// A binary counter and a set of clocks, both at position p: many speeds together tell positions apart.

import { ordered } from "../colours";
import { array, type Data } from "../data";
import { fill, h, refill, s, say } from "../dom";
import { lineChart } from "../parts/chart";
import { formula, put, sub, sup, v } from "../parts/formula";
import { folded, plainTable } from "../parts/numbers";
import { player } from "../parts/player";
import { predict } from "../parts/predict";
import { number, own, type Stage, type View } from "../view";
import { both, shown } from "../words";
import styles from "./binary.css";

const BITS = 12;
const LAST = 2 ** BITS - 1;
const AROUND = 4; // rows above and below the counter's own
const STRETCH = 128; // lags drawn at once
const OWN = { p: own.whole(5, 0, LAST), clock: own.whole(0, 0, 15), sine: own.yes(false), speed: own.real(5, 1, 100) };

export const view: View = {
  name: "binary",
  title: both("Counting with clocks", "用时钟数数"),
  idea: both(
    "Bits of a counter flip at different rates, and the pairs of a sinusoidal row, drawn as clocks, turn at different rates. A single bit or clock repeats after a few positions; together they give every position a different value.",
    "二进制计数器的各位以不同的速度翻转，正弦位置编码的各通道对（画成时钟）以不同的频率旋转。单独一位或一只钟很快就会重复；合在一起，每个位置的值都不同。",
  ),
  notice: [
    both(
      "The lowest bit flips at every step, the next bit at every second step, and so on. The clocks rotate continuously, from fast to slow.",
      "最低位每步翻转一次，高一位每两步翻转一次，依此类推。时钟则连续转动，由快到慢。",
    ),
    both(
      "At position 710 the fastest clock has made 113.000 01 turns and is almost at its first angle: with d = 2 the rows of 0 and 710 are only 0.00006 apart.",
      "到位置 710 时，最快的钟转了 113.000 01 圈，几乎回到起点：d = 2 时，这两行只相差 0.00006。",
    ),
    both(
      "More clocks keep rows further apart: among 4096 rows the closest two are 0.044 apart with d = 4 and 3.714 with d = 512 (base 10000).",
      "钟越多，各行分得越开：4096 行里最近的两行，d = 4 时相距 0.044，d = 512 时相距 3.714（底数 10000）。",
    ),
    both(
      "Two angles, α and π − α, have the same sine, which is the height of the hand. The sign of the cosine distinguishes them.",
      "α 与 π − α 两个角的正弦（指针的高度）相同，余弦的符号可以区分它们。",
    ),
  ],
  papers: [{ text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" }],
  own: OWN,
  styles,
  controls: [
    { name: "p", label: both("position p", "位置 p") },
    { name: "clocks", label: both("clocks (d / 2)", "时钟数（d / 2）") },
    { name: "base", label: both("base", "底数"), scale: "log" },
    { name: "sine", label: both("sine only", "只看正弦") },
  ],
  build(stage) {
    const { t } = stage;
    let between = (_: number): void => {};
    const play = player(stage, { name: "p", speed: "speed", parameter: OWN.p, between: (value) => between(value) });
    const halves = h("button", { type: "button", "data-role": "halves", click: () => stage.set({ clocks: BITS, base: 2 ** BITS }) },
      t(both("Clocks like bits: each half as fast", "像二进制那样：每只慢一半")));
    const count = counter(stage);
    const faces = dials(stage, (clock) => stage.set({ clock }));
    const reading = h("p", { class: "reading" });
    const big = s("svg", { class: "big", viewBox: "-70 -70 140 140", role: "img" });
    const chart = lineChart(stage, {
      label: both("Distance of the row at each position from row 0", "各位置的行与第 0 行的距离"), x: both("position", "位置"),
      y: both("distance from row 0", "与第 0 行的距离"), height: 230,
      pick: (index) => stage.set({ p: start + index }),
    });
    let start = 0;
    const closest = h("div", {});
    const hands = h("div", {});
    const numbers = folded(t(both("Numbers of the clocks", "各时钟的数值")), hands);
    const question = predict(stage, {
      question: both(
        "A hand shows sin = 0.5 and you do not see its cosine. How many angles between 0 and 2π could it have?",
        "只知道指针的 sin = 0.5，看不到余弦。在 0 到 2π 之间，它可能有几个角度？",
      ),
      choices: [both("one", "一个"), both("two", "两个"), both("more than two", "两个以上")],
      right: 1,
      because: both(
        "Two: π/6 and π − π/6 = 5π/6. The clocks now show only sines: each has two possible hands. The cosine, +0.87 or −0.87, distinguishes them.",
        "两个：π/6 和 π − π/6 = 5π/6。时钟现在只显示正弦：每只钟都有两根可能的指针。由余弦是 +0.87 还是 −0.87 来区分。",
      ),
    }, () => stage.set({ sine: true }));
    stage.root.append(h("div", { class: "split" }, faces.element, count.element), h("div", { class: "row" }, play.element, halves),
      h("div", { class: "closer" }, big, h("div", {}, reading, chart.element)), numbers, h("div", { class: "split" }, closest, question));
    let known: Data | null = null;
    let table = () => {};
    numbers.addEventListener("toggle", () => table());
    let before = -1;

    return (data, state) => {
      const omega = array(data, "omega").values as Float64Array;
      const p = number(state, "p");
      const clock = Math.min(number(state, "clock"), omega.length - 1);
      const sine = state["sine"] === true;
      if (known !== data) {
        known = data;
        check(stage, data, omega);
        faces.make(omega);
        fill(closest, uniqueness(stage, data, omega.length));
      }
      play.draw(state);
      count.draw(p);
      faces.choose(clock);
      const hand = (value: number) => {
        faces.turn(omega, value, sine);
        drawBig(big, omega[clock]! * value, sine);
      };
      hand(p);
      between = hand;
      const angle = turned(omega[clock]! * p);
      const [sin, cos] = [Math.sin(omega[clock]! * p), Math.cos(omega[clock]! * p)];
      const other = turned(Math.PI - angle);
      big.setAttribute("aria-label", t(both(`clock ${clock}: sin ${shown(sin)}, cos ${shown(cos)}`, `时钟 ${clock}：sin ${shown(sin)}，cos ${shown(cos)}`)));
      refill(reading, ...(sine
        ? [t(both("Clock ", "时钟 ")), put(clock, "channel"), t(both(" shows sin = ", " 的 sin = ")), h("b", {}, shown(sin)),
          t(both(". Two angles are possible: ", "。有两个可能的角度：")), h("output", { "data-role": "angle", "data-value": angle }, shown(angle, 3)), t(both(" and ", " 和 ")),
          h("output", { "data-role": "other", "data-value": other }, shown(other, 3)),
            t(both(" (π minus the first). Their cosines are ", "（π 减去前者）。它们的余弦分别是 ")), h("b", {}, shown(cos)), t(both(" and ", " 和 ")),
            h("b", {}, shown(-cos)), t(both(".", "。"))]
        : [t(both("Clock ", "时钟 ")), put(clock, "channel"), t(both(" has the angle ", " 的角度是 ")),
          h("output", { "data-role": "angle", "data-value": angle }, shown(angle, 3)), t(both(": the only one with sin ", "：同时满足 sin ")),
          h("b", {}, shown(sin)), t(both(" and cos ", " 与 cos ")), h("b", {}, shown(cos)), t(both(".", " 的角只有这一个。"))]));
      start = Math.min(Math.floor(p / STRETCH) * STRETCH, LAST + 1 - STRETCH);
      const stretch = (name: string) => array(data, name).values.subarray(start, start + STRETCH);
      const [apart, alone] = [stretch("apart"), stretch("one_apart")];
      const x = Float64Array.from({ length: STRETCH }, (_, index) => start + index);
      const together = { name: t(both(`all ${omega.length} clocks`, `全部 ${omega.length} 只钟`)), x, y: apart, colour: "var(--line-1)" };
      const single = { name: t(both("the fastest clock alone", "只看最快的一只")), x, y: alone, colour: "var(--line-3)", dashed: true };
      chart.draw({ series: omega.length > 1 ? [together, single] : [single], cursor: p - start, yFrom: 0 });
      const turns = (omega[clock]! * p) / (2 * Math.PI);
      refill(stage.formula, formula(
        [t(both("angle", "角度")), sub("i"), " = ", v("p"), " · ", v("ω"), sub("i"), ",  ", v("ω"), sub("i"), " = base", sup("−2i/d"), ",  d = ",
          put(2 * omega.length)],
        [t(both("angle", "角度")), sub(put(clock, "channel")), " = ", put(p, "position"), " · ", put(shown(omega[clock]!, 6), "channel"), " = ",
          put(shown(omega[clock]! * p, 4)), " = ", h("output", { "data-role": "turns", "data-value": turns }, shown(turns, 5)), " ", t(both("turns", "圈"))],
        ["(sin, cos) = (", h("output", { "data-role": "sin", "data-value": sin }, shown(sin)), ", ",
          h("output", { "data-role": "cos", "data-value": cos }, shown(cos)), ")"],
      ));
      table = () => {
        if (!numbers.matches("[open]")) return;
        const head = both("clock|frequency ω|wavelength|angle|sin|cos", "时钟|频率 ω|波长|角度|sin|cos");
        refill(hands, plainTable(t(both(`All clocks at position ${p}`, `位置 ${p} 处的各时钟`)), t(head).split("|"),
          [...omega].map((w, i) => [String(i), w, (2 * Math.PI) / w, turned(w * p), Math.sin(w * p), Math.cos(w * p)])));
      };
      table();
      if (before >= 0 && before !== p && !stage.root.hasAttribute("data-playing"))
        stage.announce(t(both(`position ${p}, ${bits(p)} in binary; distance from row 0: ${shown(apart[p - start]!)}`, `位置 ${p}，二进制 ${bits(p)}；与第 0 行的距离：${shown(apart[p - start]!)}`)));
      before = p;
      stage.code(`angle = ${p} * omega[${clock}]  # ${p * omega[clock]!}`);
    };
  },
};

const bits = (p: number) => p.toString(2).padStart(BITS, "0");

/** The same angle between 0 and 2π. */
function turned(angle: number): number {
  const rest = angle % (2 * Math.PI);
  return rest < 0 ? rest + 2 * Math.PI : rest;
}

function check(stage: Stage, data: Data, omega: Float64Array): void {
  const { shape, values } = array(data, "table");
  const [rows, d] = [shape[0]!, shape[1]!];
  let worst = 0;
  for (let p = 0; p < rows; p++) for (let c = 0; c < d; c++)
    worst = Math.max(worst, Math.abs((c % 2 ? Math.cos : Math.sin)(p * omega[c >> 1]!) - values[p * d + c]!));
  stage.checked(worst, rows * d);
}

/** Rows of bits around p, the lowest bit on the right. */
function counter(stage: Stage): { element: HTMLElement; draw(p: number): void } {
  const { t } = stage;
  const rows = Array.from({ length: 2 * AROUND + 1 }, () => {
    const name = h("th", { scope: "row" });
    const cells = Array.from({ length: BITS }, () => h("td", {}));
    return { name, cells, element: h("tr", {}, name, ...cells) };
  });
  const caption = t(both("Binary: each bit flips once in … steps", "二进制：各位每隔几步翻转一次"));
  const table = h("table", { class: "columns" }, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "p"),
      ...Array.from({ length: BITS }, (_, index) => h("th", { scope: "col" }, 2 ** (BITS - 1 - index))))), h("tbody", {}, ...rows.map((one) => one.element)));
  return {
    element: h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table),
    draw(p) {
      const first = Math.min(Math.max(p - AROUND, 0), LAST - 2 * AROUND);
      rows.forEach(({ name, cells, element }, index) => {
        const q = first + index;
        const [now, last] = [bits(q), bits(Math.max(q - 1, 0))];
        say(name, String(q));
        element.toggleAttribute("aria-current", q === p);
        if (q === p) element.dataset["value"] = now;
        else delete element.dataset["value"];
        cells.forEach((cell, bit) => {
          say(cell, now[bit]!);
          cell.classList.toggle("one", now[bit] === "1");
          cell.classList.toggle("flipped", now[bit] !== last[bit]);
        });
      });
    },
  };
}

interface Dials {
  element: HTMLElement;
  make(omega: Float64Array): void;
  choose(clock: number): void;
  turn(omega: Float64Array, p: number, sine: boolean): void;
}

/** A clock for each pair; angle 0 is on the right, and hands turn against the clock, as angles do. */
function dials(stage: Stage, pick: (clock: number) => void): Dials {
  const { t } = stage;
  const faces = h("div", { class: "faces" });
  const element = h("div", { role: "group", "aria-label": t(both("Clocks, fast to slow", "时钟，由快到慢")) },
    h("p", { class: "caption" }, t(both("Clocks, fast to slow: one turn takes … positions", "时钟，由快到慢：转一圈需要多少个位置"))), faces);
  let made: { face: HTMLElement; hand: SVGLineElement; mirror: SVGLineElement; level: SVGLineElement }[] = [];
  return {
    element,
    make(omega) {
      made = Array.from(omega, (w, clock) => {
        const hand = s("line", { class: "hand" });
        const mirror = s("line", { class: "hand mirror" });
        const level = s("line", { class: "level" });
        hand.style.setProperty("--k", ordered(clock, omega.length));
        const turn = shown((2 * Math.PI) / w, 1);
        const face = h("button", { type: "button", class: "face", "data-clock": clock,
          "aria-label": t(both(`clock ${clock}, one turn in ${turn} positions`, `时钟 ${clock}，${turn} 个位置转一圈`)), click: () => pick(clock) },
          s("svg", { viewBox: "-50 -50 100 100", "aria-hidden": "true" }, s("circle", { class: "rim", r: 46 }),
            s("line", { class: "zero", x1: 40, x2: 46 }), level, mirror, hand, s("circle", { class: "hub", r: 3.5 })), h("span", {}, turn));
        return { face, hand, mirror, level };
      });
      fill(faces, ...made.map((one) => one.face));
    },
    choose: (clock) => made.forEach(({ face }, index) => face.setAttribute("aria-pressed", String(index === clock))),
    turn(omega, p, sine) {
      element.classList.toggle("sine-only", sine);
      made.forEach(({ hand, mirror, level }, clock) => {
        const [x, y] = [40 * Math.cos(omega[clock]! * p), -40 * Math.sin(omega[clock]! * p)];
        place(hand, 0, 0, x, y);
        place(mirror, 0, 0, -x, y);
        place(level, -46, y, 46, y);
      });
    },
  };
}

function place(line: SVGLineElement, x1: number, y1: number, x2: number, y2: number): void {
  for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(name, value.toFixed(2));
}

/** The chosen clock with its sine as a height and its cosine as a width. */
function drawBig(big: SVGElement, angle: number, sine: boolean): void {
  const [x, y] = [52 * Math.cos(angle), -52 * Math.sin(angle)];
  const line = (name: string, x1: number, y1: number, x2: number, y2: number) => s("line", { class: name, x1, y1, x2, y2 });
  refill(big, s("circle", { class: "rim", r: 52 }), line("axis", -62, 0, 62, 0), line("axis", 0, -62, 0, 62),
    ...(sine ? [line("level", -66, y, 66, y), line("hand mirror", 0, 0, -x, y),
      s("circle", { class: "tip mirror", cx: -x, cy: y, r: 4 })] : [line("cos", 0, 0, x, 0), line("drop", x, 0, x, y)]),
    line("sin", 0, 0, 0, y), line("hand", 0, 0, x, y), s("circle", { class: "tip", cx: x, cy: y, r: 4 }), s("circle", { class: "hub", r: 2.5 }),
    s("text", { x: 4, y: -58 }, "sin"), !sine && s("text", { x: 69, y: -4, "text-anchor": "end" }, "cos"));
  big.classList.toggle("sine-only", sine);
}

/** The closest two of 4096 rows by width, each with a way to go and see. */
function uniqueness(stage: Stage, data: Data, clocks: number): HTMLElement {
  const { t } = stage;
  const [widths, found] = [array(data, "widths").values, array(data, "closest").values];
  const caption = t(both(`The closest two of ${data.facts["length"]} rows, by width`, `${data.facts["length"]} 行中最近的两行（按宽度）`));
  const held = stage.source.offered("binary");
  const line = (d: number, index: number) => {
    const [distance, lag] = [found[2 * index]!, found[2 * index + 1]!];
    const see = d <= 32 && (!held || held.some((one) => one["clocks"] === d / 2)) ? h("button",
      { type: "button", "data-see": d, "aria-label": t(both(`d = ${d}: go to position ${lag}`, `d = ${d}：跳到位置 ${lag}`)),
      click: () => stage.set({ clocks: d / 2, p: lag }) }, t(both("see", "看"))) : "–";
    return h("tr", { "aria-current": d === 2 * clocks && "true" }, h("th", { scope: "row" }, d),
      h("td", { "data-value": distance }, distance < 0.001 ? distance.toExponential(2).replace("e-", "e−") : shown(distance, 3)),
      h("td", { "data-value": lag }, lag), h("td", {}, see));
  };
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", { class: "plain closest" }, h("caption", {}, caption),
    h("thead", {}, h("tr", {}, ...t(both("d|distance|positions apart|look", "d|距离|相隔位置数|查看")).split("|").map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...Array.from(widths, line))));
}
