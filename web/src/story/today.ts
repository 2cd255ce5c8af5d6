// how many of the model types that posenc inspect reads have each encoding, at the month of its paper (explorer/today.py)
//
//   one line for each encoding, as high as the number of its model types; the marker goes along the years

import { encodingColour } from "../colours";
import { s, set } from "../dom";
import { draggable } from "../parts/drag";
import { animate, clamp, ease } from "../parts/motion";
import { both } from "../words";
import type { Chapter, Drawn, Scene } from "./chapter";

interface Today {
  total: number;
  encodings: { name: string; month: string; models: string[] }[];
}

const NAMES: Record<string, { en: string; zh: string }> = {
  learned: both("learned table", "学出的表"), sinusoidal: both("sinusoids", "正弦余弦"), shaw: both("Shaw", "Shaw"), transformer_xl: both("Transformer-XL", "Transformer-XL"), t5: both("T5", "T5"), rope: both("RoPE", "RoPE"), alibi: both("ALiBi", "ALiBi"),
};
const KNOWN = ["bert", "gpt2", "vit", "whisper", "t5", "xlnet", "bloom", "mpt", "llama", "qwen3", "mistral", "gemma3_text", "deepseek_v3", "bart", "detr", "mt5", "speecht5", "funnel"];
const SHOWN = 3; // names of models beside an encoding

export const today: Chapter = {
  title: both("Which do models use today?", "今天的模型用哪一种？"),
  found: both("RoPE is used most", "用得最多的是 RoPE"),
  need: both(
    "posenc reads the configurations of {total} types of model. Each encoding stands at the month of its paper, as high as the number of types that have it today; the few that are left have others. Drag the marker along the years.",
    "posenc 读取 {total} 种模型的配置。每种编码位于它的论文发表的月份，高度是今天有多少种模型用它；剩下的少数用别的编码。沿年份拖动标记。",
  ),
  question: both("Which encoding do more of the {total} types have than any other?", "这 {total} 种模型里，用得最多的是哪一种编码？"),
  answers: [both("sinusoids", "正弦余弦"), both("a learned table", "学出的表"), both("RoPE", "RoPE"), both("ALiBi", "ALiBi")],
  right: 2,
  verdict: both("RoPE: {rope} of {total}. A learned table has {learned}, ALiBi {alibi}.", "RoPE：{total} 种里有 {rope} 种。学出的表有 {learned} 种，ALiBi 有 {alibi} 种。"),
  before: both("Published by {month}: {known} of these encodings.", "到 {month} 已发表：这些编码中的 {known} 种。"),
  after: both(
    "Published by {month}: {known} of these encodings; the newest of them, {newest}, is in {count} types of model today. RoPE needs no parameters, only the distance counts, and the fast programs that compute attention stay as they are.",
    "到 {month} 已发表：这些编码中的 {known} 种；其中最新的是 {newest}，今天有 {count} 种模型用它。RoPE 不需要参数，只有距离起作用，计算注意力的快速程序也不用改。",
  ),
  next: both("This is the end of the story. The contents have views that go deeper, and a workbench for models.", "故事到此结束。目录里还有更深入的视图，以及给模型用的工作台。"),
  views: ["compare", "measured", "heads", "attention"],
  draw,
};

function draw(scene: Scene): Drawn {
  const { t, figure, width, narrow } = scene;
  const { total, encodings } = scene.stored["today"] as Today;
  const [from, to] = [2017, 2022];
  const months = (month: string) => Number(month.slice(0, 4)) * 12 + Number(month.slice(5)) - 1 - from * 12;
  const last = (to - from) * 12;
  const state = scene.keep({ at: months("2021-12") });
  const [left, right] = [narrow ? 14 : 30, width - (narrow ? 44 : 120)];
  const tall = clamp(scene.height - 70, 180, 380);
  const line = 24 + tall;
  const height = line + 54;
  const most = Math.max(...encodings.map(({ models }) => models.length));
  const X = (month: number) => left + (month / last) * (right - left);
  const Y = (count: number) => line - (count / most) * (tall - 40);
  const lines = encodings.map(({ name, month, models }, n) => {
    const x = X(months(month));
    // Names of papers of about the same time stand above one another.
    const up = narrow ? ((n + 1) % 3 + (n > 4 ? 1 : 0)) * 18 : n % 2 && x - X(months(encodings[n - 1]!.month)) < 60 ? 20 : 0;
    const some = KNOWN.filter((one) => models.includes(one)).slice(0, SHOWN).join(", ");
    const [stem, dot, label, of] = [s("path", { class: "stem" }), s("circle", { r: 6, class: "dot" }), s("text", { class: "named" }), s("text", { class: "models" }, narrow ? "" : some)];
    return { name, at: months(month), x, count: models.length, up, stem, dot, label, of, element: s("g", { style: `--c: ${encodingColour(name)}`, "data-part": `${name} ${name === "alibi" || name === "rope" || name === "learned" ? "" : "other"} total` }, stem, dot, label, of) };
  });
  const knob = s("g", {}, s("path", { class: "hair dark", d: `M0 24V${line}` }), s("circle", { class: "grip", r: narrow ? 14 : 11, cy: line }), s("text", { class: "on-grip", y: line + 4, "text-anchor": "middle" }, "↔"));
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": t(both("Encodings by the year of their paper, and how many types of model have them", "各种编码的论文年份和使用它的模型种数")) },
    s("path", { d: `M${left} ${line}H${right}`, class: "hair dark" }), ...Array.from({ length: to - from }, (_, n) => s("text", { x: X(n * 12), y: line + 34, "text-anchor": "middle" }, String(from + n))), ...lines.map(({ element }) => element), s("g", { "data-part": "month" }, knob));
  figure.append(svg);
  let shares = scene.told() ? 1 : 0; // how much of the heights is drawn: they are the answer

  function show(): void {
    const month = `${from + Math.floor(state.at / 12)}-${String((state.at % 12) + 1).padStart(2, "0")}`;
    const known = lines.filter(({ at }) => at <= state.at);
    lines.forEach(({ at, x, count, up, stem, dot, label, of, name, element }) => {
      const y = Y(count * shares);
      const raised = line - y < 60 ? up : 0;
      set(stem, { d: `M${x} ${line}V${y}` });
      set(dot, { cx: x, cy: y });
      set(label, { x: x + 10, y: y - 6 - raised });
      label.textContent = shares ? `${t(NAMES[name]!)} ${count}` : t(NAMES[name]!);
      set(of, { x: x + 10, y: y + 11, visibility: shares === 1 && line - y > 40 ? "visible" : "hidden" });
      element.style.opacity = at <= state.at ? "1" : ".15";
    });
    set(knob, { transform: `translate(${X(state.at)} 0)` });
    const newest = known.at(-1);
    scene.say({ total: String(total), month, known: String(known.length), newest: newest ? t(NAMES[newest.name]!) : "–", count: String(newest?.count ?? 0), ...Object.fromEntries(lines.map(({ name, count }) => [name, String(count)])) });
  }
  let stop = () => {};
  scene.leaving(() => stop());
  const put = (month: number) => {
    state.at = clamp(Math.round(month), 0, last - 1);
    show();
  };
  draggable(knob, svg, {
    label: t(both("Month", "月份")), from: 0, to: last - 1, now: () => state.at, value: () => `${from + Math.floor(state.at / 12)}-${(state.at % 12) + 1}`,
    move: ({ x }) => put(((x - left) / (right - left)) * last), key: (by) => put(state.at + by),
  });
  show();
  return {
    tell() {
      stop = animate(1400, (share) => {
        shares = ease(share);
        show();
      });
    },
    numbers: () => ({ head: [both("encoding", "编码"), both("month of its paper", "论文的年月"), both("types of model", "模型种数")], rows: encodings.map(({ name, month, models }) => [t(NAMES[name]!), month, String(models.length)]) }),
    python: () => `from posenc.explorer import today

record = today.record()  # made by: python -m posenc.explorer.today
month, total = "${from + Math.floor(state.at / 12)}-${String((state.at % 12) + 1).padStart(2, "0")}", record["total"]
until = [one for one in record["encodings"] if one["month"] <= month]
known, count = len(until), len(until[-1]["models"]) if until else 0
rope, learned, alibi = (len(one["models"]) for name in ("rope", "learned", "alibi") for one in record["encodings"] if one["name"] == name)`,
  };
}
