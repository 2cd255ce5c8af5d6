// The sinusoidal table, row by row, and how each of its cells is made.

import { array } from "../data";
import { fill, h, refill } from "../dom";
import { lineChart, type Series } from "../parts/chart";
import { formula, put, sub, sup, v } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { player } from "../parts/player";
import { number, own, type View } from "../view";
import { both, shown } from "../words";
import styles from "./table.css";

const OWN = { p: own.whole(2, 0, 1023), channel: own.whole(5, 0, 1023), speed: own.real(10, 1, 100), pins: own.text("0 32 64", 30) };
const PINNED = ["var(--line-2)", "var(--line-3)", "var(--line-5)", "var(--line-6)"];

export const view: View = {
  name: "table",
  title: both("A table of waves", "由波组成的表"),
  idea: both(
    "Every position has one row of numbers between −1 and +1, which is added to the embedding of the word at that position. Each cell is the sine or the cosine of an angle: the position times the frequency of the column.",
    "每个位置对应一行介于 −1 与 +1 之间的数，这一行加到该位置的词向量上。每个格子是一个角度的正弦或余弦，角度等于位置乘以这一列的频率。",
  ),
  notice: [
    both("Columns on the left change from row to row; columns on the far right hardly change over the whole table.", "左边的列逐行变化；最右边的列从头到尾几乎不变。"),
    both("Neighbours come in pairs: a sine and a cosine of the same angle. Row 0 is 0 1 0 1 …", "相邻两列成对：同一个角度的正弦与余弦。第 0 行是 0 1 0 1 ……"),
    both("The distance between neighbouring rows is the same at every position.", "在任何位置，相邻两行之间的距离都相同。"),
  ],
  papers: [{ text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" }],
  own: OWN,
  controls: [
    { name: "length", label: both("positions", "位置数") },
    { name: "d_model", label: both("channels", "通道数") },
    { name: "base", label: both("base", "底数"), scale: "log" },
    { name: "layout", label: both("order of channels", "通道顺序"), choices: { interleaved: both("sin cos sin cos", "sin cos 交替"), sin_cos: both("sines first", "先正弦后余弦"), cos_sin: both("cosines first", "先余弦后正弦") } },
    { name: "dtype", label: both("rounded to", "数值精度") },
  ],
  styles,
  build(stage) {
    const t = stage.t;
    let rows = 1;
    let p = 0;
    const map = heatMap(stage, { label: both("Sinusoidal table", "正弦位置编码表"), rows: both("position", "位置"), columns: both("channel", "通道"), around: innerWidth < 640 ? 2 : 3, pick: (row, channel) => stage.set({ p: row, channel }) });
    const click = h("p", { class: "hint" }, t(both("Click any cell: below are its formula, its column as a wave and its neighbours.", "点击任意格子：下面给出它的公式、所在列的波形和相邻的数值。")));
    const play = player(stage, { name: "p", speed: "speed", parameter: OWN.p, end: () => rows - 1, between: (value) => between(value) });
    const waves = lineChart(stage, {
      label: both("Columns as waves", "各列的波形"), x: both("position", "位置"), y: both("value", "数值"), height: 230,
      pick: (index) => stage.set({ p: Math.round(index / samples) }),
    });
    const pinned = h("div", { class: "pins", role: "group", "aria-label": t(both("Pinned channels", "固定显示的通道")) });
    stage.root.append(map.element, click, play.element, waves.element, pinned);
    let samples = 1;
    let between = (_: number): void => {};
    let checkedOf: unknown = null;

    return (data, state) => {
      const [numbers, omega] = [array(data, "table"), array(data, "omega")];
      const [length, d] = [numbers.shape[0]!, numbers.shape[1]!];
      rows = length;
      p = Math.min(number(state, "p"), length - 1);
      const channel = Math.min(number(state, "channel"), d - 1);
      const layout = state["layout"] as string;
      const at = (c: number): [number, boolean] => place(c, d, layout);
      const [pair, isSine] = at(channel);
      const mine = (q: number, c: number) => {
        const [i, sine] = at(c);
        return (sine ? Math.sin : Math.cos)(q * omega.values[i]!);
      };
      if (checkedOf !== data && state["dtype"] === "float64") {
        checkedOf = data;
        let worst = 0;
        for (let q = 0; q < length; q++) for (let c = 0; c < d; c++) worst = Math.max(worst, Math.abs(mine(q, c) - numbers.values[q * d + c]!));
        stage.checked(worst, length * d);
      }
      map.draw({ numbers, cursor: [p, channel] });
      // While it plays, the rows beyond the position are not yet there.
      between = (value) => map.draw({ numbers, cursor: [Math.floor(value), channel], upTo: value + 1 });
      const pins = String(state["pins"]).split(" ").filter((one) => one !== "").map(Number).filter((one) => one < d && one !== channel);
      samples = Math.max(1, Math.round(600 / length));
      const x = Float64Array.from({ length: (length - 1) * samples + 1 }, (_, index) => index / samples);
      const wave = (c: number, colour: string, dashed: boolean): Series =>
        ({ name: `${t(both("channel", "通道"))} ${c}`, x, y: x.map((q) => mine(q, c)), colour, dashed });
      waves.draw({
        series: [wave(channel, "var(--channel)", false), ...pins.map((one, index) => wave(one, PINNED[index % PINNED.length]!, true))],
        cursor: p * samples, every: samples, yFrom: -1.1, yTo: 1.1,
      });
      const change = (to: number[]) => stage.set({ pins: to.join(" ") });
      fill(pinned, h("button", { type: "button", "data-role": "pin", disabled: pins.length >= PINNED.length, click: () => change([...pins, channel]) }, t(both(`Keep channel ${channel}`, `固定通道 ${channel}`))),
        ...pins.map((one) => h("button", { type: "button", "data-pin": one, "aria-label": t(both(`Remove channel ${one}`, `移除通道 ${one}`)), click: () => change(pins.filter((other) => other !== one)) }, `${one} ×`)));
      play.draw({ ...state, p });
      const value = numbers.values[p * d + channel]!;
      const name = isSine ? "sin" : "cos";
      refill(stage.formula, formula(
        [`PE(`, v("p"), `, ${isSine ? "2i" : "2i+1"}) = ${name}(`, v("p"), " · ", v("ω"), sub("i"), "),  ", v("ω"), sub("i"), " = base", sup("−2i/d")],
        ["PE(", put(p, "position"), ", ", put(channel, "channel"), `) = ${name}(`, put(p, "position"), " · ", put(shown(state["base"] as number, 0)), sup("−2·", put(pair, "channel"), "/", put(d)), `) = ${name}(`, put(p, "position"), " · ", put(shown(omega.values[pair]!, 6), "channel"), ") = ", h("output", { "data-role": "value", "data-value": value }, shown(value, 6))],
      ));
      stage.announce(`${stage.t(both("position", "位置"))} ${p}, ${stage.t(both("channel", "通道"))} ${channel}: ${shown(value)}`);
      stage.code(`table[${p}, ${channel}]  # ${value}`);
    };
  },
};

/** The pair of a channel, and whether it is its sine. */
function place(channel: number, d: number, layout: string): [number, boolean] {
  const pairs = Math.ceil(d / 2);
  if (layout === "interleaved") return [channel >> 1, channel % 2 === 0];
  const first = layout === "sin_cos" ? pairs : d - pairs;
  return channel < first ? [channel, layout === "sin_cos"] : [channel - first, layout !== "sin_cos"];
}
