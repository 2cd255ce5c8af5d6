// weight at distance d = e^(b(d)) / Σ e^(b)        ALiBi: b = -m·d, so the weights fall by the factor e^(-m) at each step
//
//   bars     the weights of the words before the last one, with ALiBi and without a bias, all words fitting equally well
//   small    what each method writes beside the score at each distance

import { encodingColour } from "../colours";
import { s, set } from "../dom";
import { slopes } from "../math/alibi";
import { softmax } from "../math/attention";
import { clipped } from "../math/shaw";
import { bucketsOf } from "../math/t5";
import { sines } from "../math/transformer_xl";
import { draggable } from "../parts/drag";
import { animate, clamp, ease, mix } from "../parts/motion";
import { both, type Words } from "../words";
import type { Chapter, Drawn, Scene } from "./chapter";

const [TRAINED, LONGEST, HEADS, HEAD] = [16, 128, 8, 1];
const SLOPE = slopes(HEADS)[HEAD]!;
const [CLIP, BUCKETS, FARTHEST, D] = [4, 32, 128, 16];
const NAMES: Record<string, [string, Words]> = {
  alibi: ["ALiBi", both("a penalty that grows evenly", "均匀增大的惩罚")],
  t5: ["T5", both("a learned number for each bucket", "每一桶一个学出的数")],
  shaw: ["Shaw", both("a learned vector, one for all far words", "学出的向量，远处共用一个")],
  transformer_xl: ["Transformer-XL", both("sinusoids of the distance", "距离的正弦余弦")],
};
const t5 = bucketsOf(BUCKETS, FARTHEST, false);
/** What is drawn of each, between 0 and 1. */
const WRITES: Record<string, (distance: number) => number> = {
  alibi: (d) => 1 - d / LONGEST, t5: (d) => 1 - t5.of(d) / BUCKETS, shaw: (d) => 1 + clipped(d, CLIP) / (CLIP + 1), transformer_xl: (d) => (1 + sines(d, D, 10000)[1]!) / 2,
};
const percent = (share: number) => (100 * share).toFixed(1);

export const beside: Chapter = {
  title: both("Write the distance beside the score", "把距离写在分数旁边"),
  found: both("With ALiBi, near words keep their weight", "用 ALiBi，近处的词权重不变"),
  need: both(
    "Other methods leave the words alone and change the score by the distance. ALiBi subtracts a little for each word in between; the small curves show what four methods write. Drag the beginning of the text.",
    "另一类方法不动词本身，而是按距离改变分数。ALiBi 每隔一个词就减一点；几条小曲线是四种方法各写了什么。拖动文本开头的圆点。",
  ),
  question: both("Training showed {trained} words. The text gets {times} times as long. How much weight do the nearest {trained} words keep with ALiBi?", "训练时有 {trained} 个词。文本长到 {times} 倍。用 ALiBi，最近的 {trained} 个词还有多少权重？"),
  answers: [both("about an eighth", "约八分之一"), both("about half", "约一半"), both("almost all", "几乎全部")],
  right: 2,
  verdict: both("Almost all. Without this penalty it is an eighth.", "几乎全部。没有这种惩罚时只剩八分之一。"),
  before: both("In a text of {n} words, ALiBi gives the nearest {trained} words {alibi} % of the weight; without this penalty they get {even} %.", "{n} 个词的文本里，ALiBi 给最近 {trained} 个词 {alibi}% 的权重；没有这种惩罚时是 {even}%。"),
  after: both(
    "In a text of {n} words, ALiBi gives the nearest {trained} words {alibi} % of the weight; without this penalty they get {even} %. So a model with ALiBi sees on long text what it saw in training, and hardly the rest.",
    "{n} 个词的文本里，ALiBi 给最近 {trained} 个词 {alibi}% 的权重；没有这种惩罚时是 {even}%。所以用 ALiBi 的模型在长文本上看到的与训练时一样，远处几乎不看。",
  ),
  next: both("RoPE has no such penalty. What breaks when its text gets too long?", "RoPE 没有这样的惩罚。文本太长时，它坏在哪里？"),
  views: ["bias", "compare"],
  draw,
};

/** The weights of distances 0 … n - 1. */
const weights = (n: number, slope: number) => softmax(Float64Array.from({ length: n }, (_, d) => -slope * d));
const near = (all: Float64Array) => all.subarray(0, TRAINED).reduce((sum, one) => sum + one, 0);

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const state = scene.keep({ n: TRAINED });
  const [left, right] = [narrow ? 16 : 20, width - (narrow ? 8 : 14)];
  const small = narrow ? 38 : 76;
  const head = narrow ? 26 : 46;
  const rows = narrow ? 2 : 1;
  const tall = clamp((scene.height - 118 - rows * (small + head)) / 2, narrow ? 52 : 70, 130);
  const [first, second] = [26, 26 + tall + 34];
  const line = second + tall + 26;
  const bottom = line + 50;
  const height = bottom + rows * (small + head);
  const X = (distance: number) => right - ((distance + 0.5) / LONGEST) * (right - left);
  const wide = (right - left) / LONGEST;
  const most = Math.max(...weights(TRAINED, SLOPE));
  const [above, below] = [{ base: first + tall, path: s("path", { class: "dot" }) }, { base: second + tall, path: s("path", { class: "amount" }) }];
  const text = s("path", { class: "text" });
  const start = s("g", {}, s("circle", { class: "grip", r: narrow ? 14 : 11, cy: line }), s("text", { class: "on-grip", y: line + 4, "text-anchor": "middle" }, "↔"));
  const length = s("text", { class: "strong", y: line + 28 });
  const back = s("text", { x: right, y: line + 28, "text-anchor": "end" }, t(both("the last word looks back ←", "最后一个词向前看 ←")));
  const kinds = Object.keys(NAMES);
  const columns = narrow ? 2 : 4;
  const apart = (right - left + 24) / columns;
  const panels = kinds.map((name, n) => {
    const [x, y] = [left + (n % columns) * apart, bottom + Math.floor(n / columns) * (small + head)];
    const across = apart - 24;
    const points = Array.from({ length: LONGEST }, (_, d) => `${(x + across - (d / (LONGEST - 1)) * across).toFixed(1)} ${(y + (narrow ? 22 : 40) + (1 - WRITES[name]!(d)) * (small - 10)).toFixed(1)}`);
    const path = (to: number) => `M${points.slice(0, to).join("L")}`;
    const now = s("path", { class: "line" });
    return { path, now, element: s("g", { style: `--c: ${encodingColour(name)}`, "data-part": name === "alibi" ? "alibi n" : "n" }, s("text", { x, y: y + 12, class: "named" }, NAMES[name]![0]), s("text", { x, y: y + 28 }, narrow ? "" : t(NAMES[name]![1])), s("path", { d: path(LONGEST), class: "hair dark" }), now) };
  });
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": t(both("Attention by distance", "按距离的注意力")), style: "--c: var(--alibi)" },
    s("rect", { class: "marked", x: X(TRAINED - 1) - wide / 2, y: first - 4, width: TRAINED * wide, height: line - first + 4, "data-part": "trained alibi even" }),
    s("g", { "data-part": "alibi" }, s("text", { x: left, y: first - 8, class: "named" }, t(both("weight with ALiBi", "用 ALiBi 的权重"))), above.path),
    s("g", { "data-part": "even" }, s("text", { x: left, y: second - 8, class: "strong" }, t(both("weight without a penalty", "没有惩罚的权重"))), below.path),
    s("path", { d: `M${left} ${line}H${right}`, class: "hair" }), text, length, back, ...panels.map(({ element }) => element), start);
  figure.append(svg);

  function show(): void {
    const n = Math.round(state.n);
    const [alibi, even] = [weights(n, SLOPE), weights(n, 0)];
    for (const [{ base, path }, of] of [[above, alibi], [below, even]] as const) {
      const bar = (share: number, d: number) => `M${(X(d) - wide / 2 + 0.5).toFixed(1)} ${base}v${-Math.max((share / most) * tall, 0.7).toFixed(2)}h${Math.max(wide - 1, 1).toFixed(1)}V${base}Z`;
      set(path, { d: Array.from(of, bar).join("") });
    }
    set(text, { d: `M${X(n - 1)} ${line}H${right}` });
    set(start, { transform: `translate(${X(n - 1)} 0)` });
    set(length, { x: Math.max(X(n - 1), left) - 10, "text-anchor": X(n - 1) > left + 100 ? "middle" : "start" });
    length.textContent = t(both(`${n} words`, `${n} 个词`));
    back.style.display = right - X(n - 1) < 260 ? "none" : ""; // there stands how long the text is
    for (const { path, now } of panels) set(now, { d: path(n) });
    scene.say({ trained: String(TRAINED), times: String(LONGEST / TRAINED), n: String(n), alibi: percent(near(alibi)), even: percent(near(even)) });
  }
  let stop = () => {};
  scene.leaving(() => stop());
  const say = draggable(start, svg, {
    label: t(both("Length of the text", "文本的长度")), from: TRAINED, to: LONGEST, now: () => Math.round(state.n), value: () => t(both(`${Math.round(state.n)} words`, `${Math.round(state.n)} 个词`)), start: () => stop(),
    move({ x }) {
      state.n = clamp(((right - x) / (right - left)) * LONGEST, TRAINED, LONGEST);
      show();
    },
    key(by) {
      state.n = clamp(Math.round(state.n) + by, TRAINED, LONGEST);
      show();
    },
  });
  show();
  return {
    tell() {
      const from = state.n;
      stop = animate(1600, (share) => {
        state.n = mix(from, LONGEST, ease(share));
        show();
        say();
      });
    },
    numbers() {
      const n = Math.round(state.n);
      const [alibi, even] = [weights(n, SLOPE), weights(n, 0)];
      return { head: [both("words back", "往前第几个词"), both("weight with ALiBi", "用 ALiBi 的权重"), both("weight without a penalty", "没有惩罚的权重")], rows: Array.from({ length: n }, (_, d) => [String(d), alibi[d]!, even[d]!]) };
    },
    python: () => `import posenc
import torch

n, trained, times = ${Math.round(state.n)}, ${TRAINED}, ${LONGEST / TRAINED}
slope = posenc.alibi_slopes(${HEADS})[${HEAD}]  # of head ${HEAD + 1} of ${HEADS}
distance = torch.arange(n, dtype=torch.float64)  # from the last word; all words fit equally well
alibi = 100 * float(torch.softmax(-slope * distance, 0)[:trained].sum())
even = 100 * float(torch.softmax(0 * distance, 0)[:trained].sum())`,
  };
}
