// The rows of an encoding as a path in a plane and as a similarity map, and how both change during training.

import { LINES } from "../colours";
import { array, row, type Data } from "../data";
import { type Child, fill, h, refill } from "../dom";
import { lineChart } from "../parts/chart";
import { formula, fraction, put, sub, v } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { player } from "../parts/player";
import type { State } from "../source";
import { number, own, type Stage, type View } from "../view";
import { both, shown } from "../words";
import styles from "./paths.css";
import { headsOf } from "./paths_heads";
import { layer, planeOf } from "./paths_plane";

const OWN = { snapshot: own.whole(10, 0, 10), speed: own.real(2, 1, 100), p: own.whole(12, 0, 199), q: own.whole(45, 0, 199),
  distance: own.whole(1, 0, 31), seen: own.yes(false) };
const SINUSOIDAL = (state: State) => state["encoding"] === "sinusoidal";

export const view: View = {
  name: "paths",
  title: both("Paths of positions", "位置的路径"),
  idea: both(
    "The rows of an encoding, joined in order of position, form a path, drawn here in the plane of the first two principal components. For a formula the path is fixed, FLOATER solves a differential equation for it, and a learned table starts as random numbers and becomes ordered in training.",
    "一种编码的各行按位置依次相连，构成一条路径，这里画在前两个主成分的平面上。公式编码的路径是固定的，FLOATER 用微分方程求出路径，可学习的位置表从随机数开始，在训练中逐渐变得有序。",
  ),
  notice: [
    both(
      "The learned table: the mean cosine of neighbouring rows rises from 0.02 to 0.17 in 2000 steps, and that of rows half a table apart falls from −0.02 to −0.10. Its path is not smooth: two components explain less than a quarter of the variance.",
      "可学习的位置表：相邻行逐渐变得相似，2000 步内平均余弦由 0.02 升到 0.17；相隔半张表以上的行则由 −0.02 降到 −0.10。它的路径不光滑：两个主成分占不到全部方差的四分之一。",
    ),
    both(
      "FLOATER's path is smooth before training, because neighbouring positions are 0.01 apart in time. Training makes it longer and more curved. It continues past position 31 (grey) without new parameters.",
      "FLOATER 的路径在训练之前就是光滑的，因为相邻位置只相隔 0.01 的时间；训练使它更长、更弯。位置 31 之后路径继续延伸（灰色部分），不需要新的参数。",
    ),
    both(
      "With the learned table, after training one head of eight attends to the previous token (0.99) and one mostly to the token two before (0.56). None attends to the first token. With FLOATER no head gives half of its attention to one distance: the four heads of layer 1 give 0.36 to 0.40 to the previous token.",
      "用可学习位置表时，八个头里有一个最终几乎只看前一个词元（0.99），还有一个多半看向再前面一个（0.56）；没有一个看向行首。用 FLOATER 时，没有哪个头把一半注意力给某个固定的距离：第 1 层的四个头给前一个词元 0.36 到 0.40。",
    ),
    both(
      "The text is program code. It does not show whether heads attend to the word after a verb or to an antecedent. “What trained heads look at” shows heads that link an adjective to its noun, and how they form.",
      "训练文本是程序代码，因此看不出有没有头专门看动词之后的词或回指先行词。“训练好的头看向哪里”展示了把形容词与名词联系起来的头，以及它们怎样形成。",
    ),
  ],
  papers: [
    { text: "Liu et al. 2020, FLOATER", href: "https://arxiv.org/abs/2003.09229" },
    { text: "Gehring et al. 2017, learned positions", href: "https://arxiv.org/abs/1705.03122" },
  ],
  own: OWN,
  styles,
  controls: [
    {
      name: "encoding", label: both("encoding", "编码"),
      choices: { sinusoidal: both("sinusoidal", "正弦"), learned: both("learned table", "可学习位置表"), floater: both("FLOATER", "FLOATER") },
    },
    { name: "length", label: both("positions", "位置数"), when: SINUSOIDAL },
    { name: "d_model", label: both("channels", "通道数"), when: SINUSOIDAL },
    { name: "base", label: both("base", "底数"), scale: "log", when: SINUSOIDAL },
  ],
  build(stage) {
    const { t } = stage;
    const play = player(stage, { name: "snapshot", speed: "speed", parameter: OWN.snapshot });
    const slider = h("input", { type: "range", min: 0, max: OWN.snapshot.to!, step: 1, "aria-label": t(both("training step", "训练步")),
      "data-role": "scrub", input: () => stage.set({ snapshot: Number(slider.value) }) });
    const when = h("output", { "data-role": "when" });
    const scrubber = h("div", { class: "scrubber" }, play.element, h("label", { class: "scrub" }, slider), when);
    const plane = planeOf(stage);
    const map = heatMap(stage, { label: both("Cosine of two rows", "两行的余弦相似度"), rows: both("position p", "位置 p"),
      columns: both("position p′", "位置 p′"), around: 2, tallest: 9, pick: (p, q) => stage.set({ p, q }) });
    const alike = lineChart(stage, { label: both("Mean cosine of rows while training", "训练中各行的平均余弦"), x: both("training step", "训练步"),
      y: both("cosine", "余弦"), height: 200, pick: (snapshot) => stage.set({ snapshot }) });
    const heads = headsOf(stage);
    const trained = h("div", { class: "training" }, heads.element);
    const picture = h("div", { class: "two" }, scrubber, plane.element, map.element, h("div", { class: "alike" }, h("h2", {}, t(both("During training", "训练过程"))), alike.element));
    stage.root.append(picture, trained);

    return (data, state) => {
      const { facts } = data;
      const steps = (facts["steps"] ?? [0]) as number[];
      const at = facts["trained"] ? Math.min(number(state, "snapshot"), steps.length - 1) : 0;
      const similarity = layer(array(data, "similarity"), at);
      const rows = similarity.shape[0]!;
      const [p, q] = [Math.min(number(state, "p"), rows - 1), Math.min(number(state, "q"), rows - 1)];
      scrubber.hidden = trained.hidden = !facts["trained"];
      picture.classList.toggle("still", !facts["trained"]);
      plane.draw(data, at, p, q);
      map.draw({ numbers: similarity, cursor: [p, q], ends: ["cos = −1", "cos = 1"] });
      const cosine = similarity.values[p * rows + q]!;
      if (facts["trained"]) {
        play.draw({ ...state, snapshot: at });
        slider.value = String(at);
        slider.setAttribute("aria-valuetext", t(both(`step ${steps[at]}`, `第 ${steps[at]} 步`)));
        const bits = array(data, "bits").values[at]!;
        fill(when, t(both("step ", "第 ")), h("b", { "data-value": steps[at]! }, `${steps[at]}`),
          t(both(` of ${steps.at(-1)}`, ` 步，共 ${steps.at(-1)} 步`)),
          Number.isFinite(bits) ? t(both(` · ${shown(bits, 2)} bits per byte`, ` · 每字节 ${shown(bits, 2)} 比特`)) : "");
        alike.draw({ series: [
          { name: t(both("neighbours", "相邻两行")), x: steps, y: array(data, "near").values, colour: LINES[0]!, dots: true },
          { name: t(both("half a table apart or more", "相隔半张表以上")), x: steps, y: array(data, "far").values, colour: LINES[1]!, dashed: true, dots: true },
        ], cursor: at });
      }
      refill(stage.formula, formula(...substituted(stage, data, at, p, q, cosine, state["encoding"] as string)));
      const where = facts["trained"] ? `${t(both(`step ${steps[at]}`, `第 ${steps[at]} 步`))}, ` : "";
      stage.announce(`${where}${t(both("positions", "位置"))} ${p}, ${q}: ${t(both("cosine", "余弦"))} ${shown(cosine)}`);
      if (facts["trained"]) heads.draw(data, state, at);
      stage.code(`similarity[${at}, ${p}, ${q}]  # ${cosine}`);
    };
  },
};

function substituted({ t }: Stage, data: Data, at: number, p: number, q: number, cosine: number, encoding: string): Child[][] {
  const norm = row(array(data, "norm"), at);
  const [first, second] = [put(p, "position"), put(q, "position")];
  const x = (of: Child) => [v("x"), sub(of)];
  const lines: Child[][] = [[
    "cos(", ...x(first), ", ", ...x(second), ") = ",
    fraction(h("span", {}, ...x(put(p, "position")), " · ", ...x(put(q, "position"))),
      h("span", {}, "‖", ...x(put(p, "position")), "‖ ‖", ...x(put(q, "position")), "‖")), " = ",
    fraction(put(shown(cosine * norm[p]! * norm[q]!, 3)), h("span", {}, put(shown(norm[p]!, 3)), " · ", put(shown(norm[q]!, 3)))), " = ",
    h("output", { "data-role": "value", "data-value": cosine }, shown(cosine)),
  ]];
  const moved = row(array(data, "moved"), at);
  if (p < moved.length) {
    const far = h("output", { "data-role": "moved", "data-value": moved[p]! }, shown(moved[p]!));
    if (encoding === "floater") {
      const step = data.facts["step"] as number;
      const time = (position: number) => shown(position * step, 2);
      lines.push(
        [v("x"), "(", v("p"), " + Δ) = ", v("x"), "(", v("p"), ") + ∫ ", v("h"), "(τ, ", v("x"), "(τ)) dτ", t(both(",  τ from ", "，τ 从 ")),
          `${step}·`, v("p"), t(both(" to ", " 到 ")), `${step}·(`, v("p"), " + Δ)"],
        ["‖", v("x"), "(", put(p + 1, "position"), ") − ", v("x"), "(", put(p, "position"), ")‖ = ‖∫", v("h"), " dτ‖", t(both(" from ", "，从 ")),
          put(time(p), "position"), t(both(" to ", " 到 ")), put(time(p + 1), "position"), " = ", far],
        [t(both("velocity at ", "速度，在 ")), put(time(p), "position"), t(both(": ", "：")), `${step}·‖`, v("h"), "‖ = ", h("output", { "data-role": "velocity", "data-value": row(array(data, "speed"), at)[p]! }, shown(row(array(data, "speed"), at)[p]!)), t(both(" a position", " 每个位置"))]);
    } else lines.push(["‖", ...x(put(p + 1, "position")), " − ", ...x(put(p, "position")), "‖ = ", far]);
  }
  return lines;
}
