// The sinusoidal table, row by row, and how each of its cells is made.

import { array } from "../data";
import { fill, h, s } from "../dom";
import { formula, put, sub, sup, v } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { player } from "../parts/player";
import { number, own, type View } from "../view";
import { both, shown } from "../words";

const OWN = { p: own.whole(2, 0, 1023), channel: own.whole(5, 0, 1023), speed: own.real(10, 1, 100) };

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
  build(stage) {
    let rows = 1;
    const map = heatMap(stage, { label: both("Sinusoidal table", "正弦位置编码表"), rows: both("position", "位置"), columns: both("channel", "通道"), pick: (p, channel) => stage.set({ p, channel }) });
    const wave = h("div", { class: "wave", role: "img" });
    const play = player(stage, { name: "p", speed: "speed", parameter: OWN.p, end: () => rows - 1, between: (value) => between(value) });
    stage.root.append(play.element, map.element, wave);
    let between = (_: number): void => {};
    let checkedOf: unknown = null;

    return (data, state) => {
      const [numbers, omega] = [array(data, "table"), array(data, "omega")];
      const [length, d] = [numbers.shape[0]!, numbers.shape[1]!];
      rows = length;
      const p = Math.min(number(state, "p"), length - 1);
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
      const moved = draw(wave, mine, channel, length, stage.t(both("Column", "列")));
      map.draw({ numbers, cursor: [p, channel] });
      moved(p);
      // While it plays, the rows beyond the position are not yet there, and the wave is followed in between as well.
      between = (value) => {
        map.draw({ numbers, cursor: [Math.floor(value), channel], upTo: value + 1 });
        moved(value);
      };
      play.draw({ ...state, p });
      const value = numbers.values[p * d + channel]!;
      const name = isSine ? "sin" : "cos";
      fill(stage.formula, formula(
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

/** One column as a curve over positions; the function moves the position on it. */
function draw(place: HTMLElement, value: (p: number, c: number) => number, channel: number, length: number, word: string): (p: number) => void {
  const [width, height] = [Math.max(place.clientWidth, 260), 90];
  const x = (q: number) => 4 + (q / Math.max(length - 1, 1)) * (width - 8);
  const y = (w: number) => height / 2 - w * (height / 2 - 8);
  let d = "";
  const steps = Math.min(width, 700);
  for (let index = 0; index <= steps; index++) {
    const q = (index / steps) * (length - 1);
    d += `${index ? "L" : "M"}${x(q).toFixed(1)} ${y(value(q, channel)).toFixed(1)}`;
  }
  const dot = s("circle", { r: 5.5, fill: "var(--position)" });
  fill(place, s("svg", { viewBox: `0 0 ${width} ${height}`, width, height },
    s("line", { class: "grid", x1: 0, x2: width, y1: y(0), y2: y(0) }), s("path", { class: "line", d, stroke: "var(--channel)" }), dot));
  return (p) => {
    dot.setAttribute("transform", `translate(${x(p)} ${y(value(p, channel))})`);
    place.setAttribute("aria-label", `${word} ${channel}: ${shown(value(p, channel))}`);
  };
}
