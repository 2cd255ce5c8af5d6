// What the study measured: bits per byte of every encoding as points with their seeds, and the table of all measures.

import { ordered } from "../colours";
import { array } from "../data";
import { fill, h, refill } from "../dom";
import { formula, put } from "../parts/formula";
import { rowsChart } from "../parts/rows_chart";
import { number, own, type View } from "../view";
import { both, shown } from "../words";
import styles from "./measured.css";
import { COLUMNS, sortedRows, tableOf, type Measured } from "./measured_table";

const OWN = { sorted: own.choice("bits8", ...COLUMNS), reversed: own.yes(false), arm: own.whole(0, 0, 20) };
/** The longer the text, the smaller the point, so that none hides another. */
const radius = (n: number) => [9, 7, 4.8][n] ?? 4.8;

export const view: View = {
  name: "measured",
  title: both("What was measured", "实测结果"),
  idea: both(
    "Small models were trained on text of 128 bytes and then read longer text: the further right a point, the worse the model predicts. Filled points are the mean of five seeds, the line behind reaches from the lowest seed to the highest, and the table below has every measure.",
    "小模型的训练长度为 128 字节，再读更长的文本：点越靠右，预测越差。实心点是五个随机种子的平均，背后的线从最低的种子画到最高的种子，下面的表给出全部测量。",
  ),
  notice: [
    both("At the trained length all encodings lie within 0.04 bits of each other, except RoPE whose positions were dropped at the end (DroPE). At eight times that length ALiBi, KERPLE, FoX and Transformer-XL have not moved; RoPE, sinusoidal and FLOATER have moved by about 7 bits.", "在训练长度上，各种编码相差不到 0.04 比特，只有训练末期去掉位置的 RoPE（DroPE）例外。到八倍长度时，ALiBi、KERPLE、FoX 和 Transformer-XL 没有移动；RoPE、正弦编码和 FLOATER 移动了约 7 比特。"),
    both("A point that does not move does not show that far text is used. The column “gained beyond” is of random Markov chains, on the same symbols, against the same model cut to its trained length: ALiBi gains little there, KERPLE and Transformer-XL more.", "点没有移动，并不说明模型用到了远处的文本。“训练长度以外的收益”一列来自随机马尔可夫链，在同样的符号上与截到训练长度的同一模型相比：ALiBi 收益很少，KERPLE 和 Transformer-XL 较多。"),
    both("A learned table has no row beyond the trained length, so it has one point only.", "可学习的位置表在训练长度之外没有行，所以只有一个点。"),
    both("These are small models, with five seeds. The line shows the seeds' range, which is no 95 % interval.", "这些是小模型，五个随机种子。线段是种子的范围，不是 95% 区间。"),
  ],
  own: OWN,
  styles,
  controls: [{ name: "also", label: both("also show the costs of", "再列出这种编码的耗时") }],
  build(stage) {
    const { t } = stage;
    let names: string[] = [];
    const figure = rowsChart(stage, {
      label: both("Bits per byte of each encoding at three lengths.", "每种编码在三个长度上的每字节比特数。"), x: both("bits per byte → worse", "每字节比特数 → 越大越差"),
      pick: (name) => stage.set({ arm: names.indexOf(name) }),
    });
    const legend = h("ul", { class: "legend" });
    const table = tableOf(stage);
    stage.root.append(legend, figure.element, table.element);

    return (data, state) => {
      const found = data.facts["measured"] as Measured & { factors: number[] };
      const [bits, seeds, lowest, highest] = (["bits", "seeds", "lowest", "highest"] as const).map((name) => array(data, name));
      const lengths = found.factors.length;
      const arms = bits!.shape[0]!;
      const rows = sortedRows(found.rows.filter((_, arm) => arm < arms), state);
      names = found.rows.map((row) => row.name);
      const chosen = Math.min(number(state, "arm"), arms - 1);
      const of = (numbers: typeof bits, arm: number, n: number) => numbers!.values[arm * lengths + n]!;
      const several = seeds!.shape[1]!;
      const each = (arm: number, n: number) => Array.from({ length: several }, (_, seed) => seeds!.values[(arm * several + seed) * lengths + n]!).filter(Number.isFinite);
      fill(legend, ...found.factors.map((factor, n) => {
        const dot = h("i", { class: "dot" });
        dot.style.background = ordered(n, lengths);
        dot.style.width = dot.style.height = `${2 * radius(n)}px`;
        return h("li", {}, dot, n < lengths - 1 ? `${factor}×` : t(both(`${factor}× the trained length`, `${factor}× 训练长度`)));
      }), rows.some((row) => row.converged === false) && h("li", {}, t(both("† was still learning when training ended", "† 训练结束时仍在进步"))));

      figure.draw({ rows: rows.map((row) => {
        const arm = names.indexOf(row.name);
        const there = found.factors.map((_, n) => n).filter((n) => Number.isFinite(of(bits, arm, n)));
        return {
          key: row.name, name: `${t(row.title)}${row.converged === false ? " †" : ""}`, chosen: arm === chosen,
          values: there.map((n) => ({ value: of(bits, arm, n), low: of(lowest, arm, n), high: of(highest, arm, n), colour: ordered(n, lengths), radius: radius(n) })),
        };
      }) });
      table.draw(data, state);

      const row = found.rows[chosen]!;
      refill(stage.formula, formula(...found.factors.map((factor, n) => {
        const value = of(bits, chosen, n);
        const why = row.why[n];
        return [`${t(row.title)}, ${factor}×: `, ...(Number.isFinite(value)
          ? ["(", ...each(chosen, n).flatMap((one, seed) => [seed ? " + " : "", put(shown(one, 3))]), `) / ${each(chosen, n).length} = `, h("output", { "data-role": `bits-${factor}`, "data-value": value }, shown(value, 3)), t(both(" bits per byte", " 比特每字节"))]
          : [why ? t(why) : "–"])];
      })));
      stage.announce(`${t(row.title)}: ${found.factors.map((factor, n) => `${factor}× ${shown(of(bits, chosen, n), 3)}`).join(", ")}`);
      stage.code(`dict(zip(names, bits.tolist()))["${row.name}"]`);
    };
  },
};
