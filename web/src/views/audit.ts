// An uploaded table or an example: the recognised formula, its values, and the difference.

import { array, type Data, type Numbers } from "../data";
import { type Child, h, refill } from "../dom";
import { tidy } from "../parts/chart";
import { formula, put, sup, v } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./audit.css";

const MOST_BYTES = 2 ** 24;
const SAMPLES: Record<string, Words> = {
  interleaved: both("the paper's table", "论文的表"),
  sin_cos: both("sines first, base 500", "先正弦后余弦，底数 500"),
  tensor2tensor: both("tensor2tensor's exponent", "tensor2tensor 的指数"),
  offset: both("starts at 2, with a row of zeros", "从 2 开始，含全零行"),
  odd_zero: both("33 channels, the last is zero", "33 个通道，末列补零"),
  normalised: both("rows of length 1", "每行长度为 1"),
  transposed: both("transposed, base 100", "转置，底数 100"),
  rope_cache: both("RoPE cosine cache", "RoPE 余弦缓存"),
  bfloat16_positions: both("positions cast to bfloat16", "位置先转成 bfloat16"),
  bfloat16_table: both("exact, rounded to bfloat16", "精确，再舍入到 bfloat16"),
  textbook: both("float32 tutorial code", "float32 教程代码"),
  per_channel: both("a common error in the exponent", "指数上的常见错误"),
  one_cell: both("one wrong cell", "一个格子有错"),
  learned: both("a random walk, like a learned table", "随机游走的表，类似学到的表"),
  random: both("random numbers", "随机数"),
};
const MARKS: Record<string, { sign: string; words: Words }> = {
  good: { sign: "✓", words: both("correct", "正确") },
  note: { sign: "i", words: both("note", "提示") },
  wrong: { sign: "!", words: both("error", "错误") },
};

interface Found {
  level: string;
  en: string;
  zh: string;
}

export const view: View = {
  name: "audit",
  title: both("Check your own table", "检查你自己的表"),
  idea: both(
    "Upload a table made by your code, and the page finds its layout, base, first position, precision and known errors from the numbers. Nothing leaves this machine, and nothing in the file is executed.",
    "上传你的代码生成的表，本页根据数值找出它的布局、底数、起始位置、精度和常见错误。数据不会离开本机，文件中的任何内容都不会被执行。",
  ),
  notice: [
    both("The difference map is almost blank where the difference is rounding only. For an error it shows where the error begins and how it grows.", "差值图中，只有舍入误差的地方几乎是空白。如果有错误，可以看出它从哪里开始、怎样变大。"),
    both("Choose positions cast to bfloat16: up to row 256 no number differs; beyond it, about half of the rows are copies of other rows.", "选择“位置先转成 bfloat16”：到第 256 行为止没有一个数不同，此后约有一半的行与别的行相同。"),
    both("Random numbers and a random walk match no formula; the page then reports only general properties of the table.", "随机数和随机游走的表不符合任何公式，本页只报告表的一般性质。"),
  ],
  papers: [{ text: "Vaswani et al. 2017, section 3.5", href: "https://arxiv.org/abs/1706.03762" }],
  own: { row: own.whole(0, 0, 511), column: own.whole(0, 0, 511) },
  styles,
  controls: [{ name: "sample", label: both("example table", "示例表"), choices: SAMPLES }],
  build(stage) {
    const pick = (row: number, column: number) => stage.set({ row, column });
    const map = (label: Words) => heatMap(stage, { label, rows: both("row", "行"), columns: both("column", "列"), pick, around: 1 });
    const titles = [both("The table", "这张表"), both("By the recognised formula", "按识别出的公式"), both("Difference", "差值")] as const;
    const [given, wanted, difference] = [map(titles[0]), map(titles[1]), map(titles[2])];
    const scale = h("p", { class: "small", "data-role": "scale" });
    const titled = (words: Words, ...inside: HTMLElement[]) => h("section", {}, h("h2", {}, stage.t(words)), ...inside);
    const right = titled(titles[1], wanted.element);
    const apart = titled(titles[2], difference.element, scale);
    const maps = h("div", { class: "maps" }, titled(titles[0], given.element), right, apart);
    const excerpt = h("p", { class: "small", "data-role": "excerpt" });
    const findings = h("ul", { class: "findings", "data-role": "findings" });
    const verdict = h("p", { class: "verdict", "data-role": "verdict" });
    const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
    let sample: Data | null = null;
    const back = h("button", { type: "button", hidden: true, click: () => sample && stage.show(sample) }, stage.t(both("Back to the example table", "回到示例表")));
    const drop = fileZone(stage, trouble);
    let worst: [number, number] | null = null;
    const worstButton = h("button", { type: "button", "data-role": "worst", click: () => worst && pick(...worst) }, stage.t(both("Go to the largest difference", "移到差值最大处")));
    stage.root.append(verdict, maps, findings, h("div", { class: "give" }, drop, back), trouble, h("div", { class: "under" }, excerpt, worstButton));
    let gap: Numbers | null = null;
    let gapOf: Data | null = null;
    let told: Data | null = null;

    return (data, state) => {
      const uploaded = data.facts["uploaded"] === true;
      if (!uploaded) sample = data;
      back.hidden = !uploaded;
      const table = array(data, "table");
      const recognised = data.arrays["recognised"];
      const [rows, columns] = table.shape as [number, number];
      const cursor: [number, number] = [Math.min(number(state, "row"), rows - 1), Math.min(number(state, "column"), columns - 1)];
      const limit = (data.facts["limit"] as number) || 1;
      given.draw({ numbers: table, cursor, limit });
      right.hidden = apart.hidden = !recognised;
      if (recognised) {
        if (gapOf !== data) [gap, gapOf] = [minus(table, recognised), data];
        const largest = largestOf(gap!);
        // Rounding alone stays pale.
        const strongest = Math.max(largest, 4 * (data.facts["allowed"] as number) * (data.facts["formula"]["amplitude"] as number));
        wanted.draw({ numbers: recognised, cursor, limit });
        difference.draw({ numbers: gap!, cursor, limit: strongest });
        scale.textContent = largest ? `${stage.t(both("Strongest colour:", "最深的颜色："))} ±${shown(strongest)}` : stage.t(both("No difference at all.", "没有任何差别。"));
      }
      worst = data.facts["at"] as [number, number] | null;
      worstButton.hidden = !worst || !data.facts["residual"] || worst[0] >= rows || worst[1] >= columns;
      const [height, width] = data.facts["shape"] as [number, number];
      const dtype = data.facts["dtype"] as string;
      excerpt.textContent = rows < height || columns < width ? stage.t(both(`Shown: ${rows} × ${columns} of ${height} × ${width}; all of it was checked.`, `显示 ${height} × ${width} 中的 ${rows} × ${columns}；检查的是全部。`)) : `${height} × ${width}, ${dtype}`;
      const found = data.facts["findings"] as Found[];
      const wrong = found.filter(({ level }) => level === "wrong").length;
      verdict.textContent = stage.t(!recognised ? both("Not recognised as sinusoidal", "没有识别出正弦编码") : wrong ? both(`Recognised, with ${wrong} ${wrong === 1 ? "error" : "errors"}`, `已识别，有 ${wrong} 处错误`)
        : data.facts["arithmetic"] !== "exact" ? both("Recognised; some precision is lost", "已识别，损失了一些精度") : both("Recognised, no errors", "已识别，没有错误"));
      verdict.dataset["level"] = wrong ? "wrong" : recognised ? "good" : "note";
      refill(findings, ...found.map((one) => {
        const mark = MARKS[one.level]!;
        return h("li", { class: one.level }, h("span", { class: "mark", "aria-hidden": "true" }, mark.sign), h("span", { class: "away" }, `${stage.t(mark.words)}: `), stage.t(one));
      }));
      refill(stage.formula, substituted(stage, data, table, recognised, cursor));
      if (told !== data) {
        if (told) stage.announce(`${verdict.textContent}. ${found[0] ? stage.t(found[0]) : ""}`);
        told = data;
      } else stage.announce(`${stage.t(both("row", "行"))} ${cursor[0]}, ${stage.t(both("column", "列"))} ${cursor[1]}: ${shown(table.values[cursor[0] * columns + cursor[1]]!)}`);
      stage.code(`table[${cursor[0]}, ${cursor[1]}]  # ${table.values[cursor[0] * columns + cursor[1]]}`);
    };
  },
};

function minus(table: Numbers, recognised: Numbers): Numbers {
  return { shape: table.shape, values: Float64Array.from(table.values, (value, index) => value - recognised.values[index]!) };
}

function largestOf(numbers: Numbers): number {
  let most = 0;
  for (const value of numbers.values) most = Math.max(most, Math.abs(value));
  return most;
}

/** A button that opens a file, in a field that lights up when one is dragged over the page. */
function fileZone(stage: Stage, trouble: HTMLElement): HTMLElement {
  const input = h("input", { type: "file", id: "audit-file", class: "away", accept: ".npy,.csv,.txt,.tsv,.json,.safetensors", change: () => {
    const file = input.files?.[0];
    if (file) void give(file);
    input.value = "";
  } });
  const zone = h("div", { class: "zone" }, input, h("label", { class: "button", for: "audit-file" }, stage.t(both("Choose a file", "选择文件"))),
    h("span", {}, stage.t(both("or drop it here: .npy, .csv, .txt, .json, .safetensors with one tensor; up to 16 MB", "或拖到这里：.npy、.csv、.txt、.json、只含一个张量的 .safetensors，不超过 16 MB"))));
  async function give(file: File): Promise<void> {
    trouble.hidden = true;
    stage.root.setAttribute("aria-busy", "true");
    try {
      if (file.size > MOST_BYTES) throw new Error(stage.t(both(`${file.name} has ${(file.size / 2 ** 20).toFixed(0)} MB; up to 16 MB are read`, `${file.name} 有 ${(file.size / 2 ** 20).toFixed(0)} MB；最多读取 16 MB`)));
      stage.show(await stage.source.upload("audit", await file.arrayBuffer()));
    } catch (error) {
      trouble.textContent = `${file.name}: ${inLanguage(stage, error instanceof Error ? error.message : String(error))}`;
      trouble.hidden = false;
    }
    stage.root.removeAttribute("aria-busy");
  }
  // On the whole page: a file dropped beside the field must not replace the page.
  const over = (event: DragEvent) => {
    event.preventDefault();
    zone.classList.toggle("over", event.type === "dragover");
  };
  const dropped = (event: DragEvent) => {
    over(event);
    const file = event.dataTransfer?.files[0];
    if (file) void give(file);
  };
  const listeners = [["dragover", over], ["dragleave", over], ["drop", dropped]] as const;
  for (const [kind, listener] of listeners) document.addEventListener(kind, listener);
  stage.leaving(() => listeners.forEach(([kind, listener]) => document.removeEventListener(kind, listener)));
  return zone;
}

/** Refusals come in both languages, "English · 中文". */
function inLanguage(stage: Stage, message: string): string {
  const [en, zh] = message.split(" · ");
  return (stage.language === "zh" ? zh : en) ?? message;
}

function substituted(stage: Stage, data: Data, table: Numbers, recognised: Numbers | undefined, [row, column]: [number, number]): HTMLElement {
  const index = row * table.shape[1]! + column;
  const value = h("output", { "data-role": "value", "data-value": table.values[index]! }, shown(table.values[index]!, 6));
  const found = data.facts["formula"] as Record<string, number | string> | null;
  const cell = ["table[", put(row, "position"), ", ", put(column, "channel"), "] = ", value];
  if (!found || !recognised) return formula(cell);
  const [offset, base, scale, amplitude] = [found["offset"] as number, found["base"] as number, found["scale"] as number, found["amplitude"] as number];
  const [p, channel] = data.facts["transposed"] ? [column, row] : [row, column];
  const [pair, kind] = (data.facts["channels"] as [number, string][])[channel]!;
  const sure = recognised.values[index]!;
  const at = (...letter: Child[]): Child[] => [scale === 1 ? "" : put(`${shown(scale)} · `), ...(offset ? ["(", ...letter, offset < 0 ? " − " : " + ", put(Math.abs(offset), "position"), ")"] : letter)];
  const times = amplitude === 1 ? "" : put(`${shown(amplitude)} · `);
  const power = (...above: Child[]): Child[] => [put(tidy(base)), sup("−", ...above, "/", tidy(data.facts["divisor"] as number))];
  const silent = (data.facts["silent"] as number[]).includes(p);
  const made: Child[] = silent ? [stage.t(both("a row of zeros: ", "全零的行："))] : kind === "0" ? ["0"] : [times, `${kind}(`, ...at(put(p, "position")), " · ", ...power(put(pair, "channel")), ")"];
  return formula(
    [times, kind === "0" ? "sin" : kind, "(", ...at(v("p")), " · ", ...power(v("i")), ")"],
    [...made, silent ? "" : " = ", h("output", { "data-role": "should", "data-value": sure }, shown(sure, 6))],
    [...cell, stage.t(both(",  difference ", "，相差 ")), h("output", { "data-role": "difference", "data-value": table.values[index]! - sure }, shown(table.values[index]! - sure, 6))],
  );
}
