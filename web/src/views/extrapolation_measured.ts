// Measured loss of trained models at greater lengths: the lab's shipped results, by task, with every seed.

import { encodingColour } from "../colours";
import { array, row, type Data } from "../data";
import { type Child, fill, h, refill } from "../dom";
import { lineChart, type Series } from "../parts/chart";
import { controls } from "../parts/controls";
import { plainTable } from "../parts/numbers";
import { predict } from "../parts/predict";
import type { State } from "../source";
import { number, own, type Draw, type Stage } from "../view";
import { both, shown, type Words } from "../words";

export const MEASURED = {
  shown: own.text("sinusoidal learned t5 alibi rope", 200),
  curves: own.choice("encodings", "encodings", "changed"),
  at: own.whole(5, 0, 9),
  seen: own.yes(false),
};

const TASKS: Record<string, Words> = {
  language_model: both("language model on bytes", "字节语言模型"), chains: both("random Markov chains", "随机马尔可夫链"),
  passkey: both("passkey", "密钥检索"), recall: both("associative recall", "联想回忆"), word_order: both("word order", "汉语语序判断"),
  copy: both("copy", "复制"), counting: both("counting", "计数"), addition: both("addition", "加法"),
};

interface Cell {
  mean?: number;
  seeds?: number[];
  interval?: number[];
  why?: Words;
}
interface Arm {
  name: string;
  title: Words;
  learnt?: boolean;
  why?: Words | null;
  cells: Cell[];
}
interface Task {
  name: string;
  title: Words;
  unit: Words;
  measure: "bits" | "exact";
  length: number;
  lengths: number[];
  steps: number;
  rule: Words;
  arms: Arm[];
  after: Arm[];
}

export function measured(stage: Stage): { element: HTMLElement; draw: Draw } {
  const { t, source } = stage;
  const asked = source.schemas["extrapolation"]!;
  const chips = h("div", { class: "chips", role: "group", "aria-label": t(both("Encodings in the chart", "图中显示的编码")) });
  const body = h("div", { class: "answers" });
  const how = h("p", { class: "small" });
  const unjudged = h("ul", { class: "unjudged" });
  const learnt = h("p", { class: "small" });
  const table = h("div", {});
  let state: State = {};
  let task: Task | null = null;
  const panel = controls(
    [
      { name: "task", label: both("task", "任务"), choices: TASKS },
      {
        name: "curves", label: both("compare", "比较"), when: () => !!task?.after.length,
        choices: { encodings: both("encodings, each trained", "各编码（分别训练）"), changed: both("RoPE, frequencies changed after training", "RoPE（训练后修改频率）") },
      },
    ],
    { ...asked, ...MEASURED },
    { t, set: stage.set, offered: () => null },
  );
  const bits = chart(both("bits", "比特"));
  const exact = chart(both("% of rows correct", "整行全对 %"));
  function chart(y: Words) {
    const [label, x] = [both("Measured, by length", "按长度的实测结果"), both("length (logarithmic)", "长度（对数刻度）")];
    return lineChart(stage, { label, x, y, xScale: "log2", pick: (at) => stage.set({ at }) });
  }
  const question = predict(stage, {
    question: both("Trained at 128 bytes, tested at 1024: whose loss stays the same?", "用 128 字节训练，用 1024 字节测试：哪一个的损失不变？"),
    choices: [both("RoPE", "RoPE"), both("ALiBi", "ALiBi"), both("sinusoidal", "正弦"), both("all three", "三个都不变")],
    right: 1,
    because: both("ALiBi: 0.82 bits per byte at 128 and at 1024. RoPE goes from 0.82 to 7.98, sinusoidal from 0.82 to 7.37. ALiBi attends mostly to a window of nearby text, so its constant loss does not show that it uses distant text: choose the task “random Markov chains” to see who does.",
      "是 ALiBi：128 字节和 1024 字节时都是每字节 0.82 比特。RoPE 从 0.82 升到 7.98，正弦从 0.82 升到 7.37。ALiBi 主要关注近处的一个窗口，所以损失不变并不说明它用到了远处的内容：选“随机马尔可夫链”任务，看谁用到了。"),
  }, () => stage.set({ seen: true }));
  const skip = h("button", { type: "button", "data-role": "show", click: () => stage.set({ seen: true }) }, t(both("Show without guessing", "直接看结果")));
  const element = h("section", { class: "measured" }, h("h2", {}, t(both("Measured: train short, test long", "实测：短训长测"))), question, skip, body);
  body.append(panel.element, chips, bits.element, exact.element, how, unjudged, learnt, table);

  function toggle(name: string): void {
    const on = new Set(String(state["shown"]).split(" ").filter(Boolean));
    if (!on.delete(name)) on.add(name);
    stage.set({ shown: [...on].join(" ") });
  }

  function draw(data: Data, now: State): void {
    state = now;
    task = data.facts["task"] as Task;
    panel.draw(now);
    skip.hidden = now["seen"] === true;
    body.hidden = now["seen"] !== true;
    if (body.hidden) return;
    const changed = now["curves"] === "changed" && task.after.length > 0;
    const arms = changed ? task.after : task.arms;
    const on = changed ? new Set(arms.map((arm) => arm.name)) : new Set(String(now["shown"]).split(" "));
    chips.hidden = changed;
    const had = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["arm"] : undefined;
    fill(chips, ...arms.map((arm) => {
      const swatch = h("i", { class: dashed(arm.name) ? "dashed" : "" });
      swatch.style.setProperty("--k", colour(arm.name));
      const pressed = String(on.has(arm.name));
      return h("button", { type: "button", "data-arm": arm.name, "aria-pressed": pressed, click: () => toggle(arm.name) }, swatch, t(arm.title));
    }));
    if (had) chips.querySelector<HTMLElement>(`[data-arm="${CSS.escape(had)}"]`)?.focus();
    const isBits = task.measure === "bits";
    const percent = isBits ? 1 : 100;
    const at = Math.min(number(now, "at"), task.lengths.length - 1);
    const series = lines(data, arms, on, changed, percent, task);
    const drawn = { series, marks: [{ x: task.length, word: t(both("trained here", "训练长度")) }], cursor: at };
    bits.element.hidden = !isBits;
    exact.element.hidden = isBits;
    (isBits ? bits : exact).draw(isBits ? drawn : { ...drawn, yFrom: 0, yTo: 108 });
    fill(how, ...explained(stage, data, task, changed));
    const silent = arms.filter((arm) => arm.cells.some((cell) => cell.why));
    fill(unjudged, ...silent.map((arm) => h("li", { "data-arm": arm.name }, ...reasons(stage, arm, task!, percent))));
    unjudged.hidden = learnt.hidden = !silent.length;
    learnt.textContent = t(both(`Learnt means: ${task.rule.en}.`, `“学会”是指：${task.rule.zh}。`));
    const unit = isBits ? both("bits, mean of the seeds", "比特（各种子的平均）") : both("% of rows entirely correct, mean of the seeds", "整行全对的百分比（各种子的平均）");
    refill(table, plainTable(`${t(task.title)}: ${t(unit)}`,
      [t(changed ? both("frequencies", "频率设置") : both("encoding", "编码")), ...task.lengths.map((length) => `${length} (${tidy(length / task!.length)}×)`)],
      arms.filter((arm) => on.has(arm.name)).map((arm) => [t(arm.title),
        ...arm.cells.map((cell) => (cell.mean === undefined ? t(cell.why!) : shown(cell.mean * percent, isBits ? 2 : 1)))])));
  }
  return { element, draw };
}

/** The best known have full lines, the others and what is done to them broken ones. */
const BROKEN = ["shaw", "floater", "nope", "xpos", "cope"];
const dashed = (name: string) => BROKEN.includes(name) || name.includes("+");
/** RoPE as it was trained has its own colour among those with changed frequencies. */
const colour = (name: string) => encodingColour(name === "none" ? "rope" : name);

function lines(data: Data, arms: Arm[], on: Set<string>, changed: boolean, percent: number, task: Task): Series[] {
  const [mean, seeds] = [array(data, changed ? "changed" : "mean"), array(data, changed ? "changed_seeds" : "seeds")];
  const [low, high] = [array(data, "low"), array(data, "high")];
  const several = seeds.shape[1]!;
  return arms.flatMap((arm, index) => {
    if (!on.has(arm.name)) return [];
    const times = (values: ArrayLike<number>) => Float64Array.from(values, (value) => value * percent);
    const each = Array.from({ length: several }, (_, seed) => times(row(seeds, index * several + seed)));
    const y = times(row(mean, index));
    const claimed = !changed && row(low, index).some(Number.isFinite);
    const ends = (pick: (...of: number[]) => number) => y.map((_, n) => pick(...each.map((one) => one[n]!)));
    return [{
      name: arm.title.en, x: task.lengths, y, colour: colour(arm.name), dashed: dashed(arm.name), dots: true, points: each,
      low: claimed ? times(row(low, index)) : ends(Math.min), high: claimed ? times(row(high, index)) : ends(Math.max),
    }];
  });
}

function explained({ t }: Stage, data: Data, task: Task, changed: boolean): Child[] {
  const about = data.facts["measured"] as Record<string, any>;
  const seeds = Math.max(...(changed ? task.after : task.arms).flatMap((arm) => arm.cells.map((cell) => cell.seeds?.length ?? 0)));
  const claimed = !changed && task.arms.some((arm) => arm.cells.some((cell) => cell.interval));
  const size = about["size"] as Record<string, number>;
  const band = !claimed
    ? both(`Small dots are the ${seeds} seeds, large ones their mean; the band reaches from the lowest seed to the highest.`,
      `小点是 ${seeds} 个随机种子，大点是平均，色带从最低的种子到最高的种子。`)
    : task.measure === "bits"
    ? both("Small dots are the seeds, large ones their mean. The band is the 95 % interval (bootstrap of seeds and documents).",
      "小点是各随机种子，大点是平均。色带是 95% 区间（对种子与文档自助抽样）。")
    : both(`Small dots are the ${seeds} seeds, large ones their mean. The band is the 95 % interval over the seeds and the examples.`,
      `小点是 ${seeds} 个随机种子，大点是平均。色带是对随机种子和样例的 95% 区间。`);
  const targets = task.measure === "bits"
    ? both(" The targets are the same at every length. Lower is better.", "各长度的预测目标相同，越低越好。")
    : both(" Higher is better.", "越高越好。");
  const same = changed ? both(" The RoPE models are not trained further; s is L over the trained length.", "RoPE 模型没有继续训练；s 等于长度除以训练长度。") : both("", "");
  const models = both(` Experiment “${about["experiment"]}”, ${about["date"]}: ${size["n_layers"]} layers, d_model ${size["d_model"]}, ${size["n_heads"]} heads, ${task.steps} steps; code ${String(about["code"]).slice(0, 8)}, `,
    `实验“${about["experiment"]}”，${about["date"]}：${size["n_layers"]} 层，d_model ${size["d_model"]}，${size["n_heads"]} 个头，${task.steps} 步；代码 ${String(about["code"]).slice(0, 8)}，`);
  return [t(band), t(targets), t(same), t(models), h("code", {}, about["command"]), t(both(".", "。"))];
}

/** Why an arm has no numbers at some lengths; at the trained one it may have. */
function reasons({ t }: Stage, arm: Arm, task: Task, percent: number): Child[] {
  const home = arm.cells[task.lengths.indexOf(task.length)];
  const unit = task.measure === "bits" ? t(both(" bits", " 比特")) : " %";
  const value = home?.mean === undefined ? "" : `${shown(home.mean * percent, percent === 1 ? 2 : 1)}${unit}`;
  const first = arm.cells.findIndex((cell) => cell.why);
  const from = first > 0 ? t(both(`, from ${task.lengths[first]} on: `, `，从 ${task.lengths[first]} 起：`)) : t(both(": ", "："));
  const there = value && t(both(` ${value} at ${task.length}`, ` 长度 ${task.length} 时 ${value}`));
  const why = arm.cells[first]!.why!;
  const besides = arm.why && arm.why.en !== why.en ? t(both(`, ${arm.why.en}`, `，${arm.why.zh}`)) : "";
  return [h("b", {}, t(arm.title)), there, besides, from, t(why)];
}

function tidy(value: number): string {
  return String(Number(value.toPrecision(3)));
}
