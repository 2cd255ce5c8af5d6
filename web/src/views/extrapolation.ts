// The angles of each pair seen in training and not seen, and measured results beyond the trained length.

import { array } from "../data";
import { h, refill } from "../dom";
import { controls } from "../parts/controls";
import { folded, plainTable } from "../parts/numbers";
import type { State } from "../source";
import { number, own, type View } from "../view";
import { both, shown } from "../words";
import styles from "./extrapolation.css";
import { substituted } from "./extrapolation_formula";
import { measured, MEASURED } from "./extrapolation_measured";
import { METHODS, NAMES, reader, tidy, TURN, type Method } from "./extrapolation_methods";
import { drawRing } from "./extrapolation_ring";
import { stripChart } from "./extrapolation_strips";

const OWN = { pair: own.whole(50, 0, 255), method: own.choice("none", ...METHODS), ...MEASURED };
const NO_FILE = (state: State) => !String(state["config"]).trim();

export const view: View = {
  name: "extrapolation",
  title: both("Beyond the trained length", "超出训练长度"),
  idea: both(
    "Frequencies do not change, but slow pairs complete no turn within the trained length: longer texts bring new angles. The first chart shows the angles seen in training and the new ones, for five settings of the frequencies; the second shows the measured loss of trained models at greater lengths.",
    "频率不变，但低频的通道对在训练长度内转不满一圈，文本更长时就会出现训练中没有见过的角度。第一幅图画出五种频率设置下训练中见过的角度与新的角度，第二幅图是训练好的模型在更长文本上实测的损失。",
  ),
  notice: [
    both(
      "At base 10 000 with 128 channels and 4096 positions, 18 of 64 pairs do not complete a turn. The other 46 reach every angle in training, so a longer text gives no new ones.",
      "底数 10000、128 个通道、4096 个位置时，64 个通道对里有 18 个转不满一圈。其余 46 个在训练中见过所有角度，文本更长也没有新角度。",
    ),
    both(
      "With interpolation, YaRN and Llama 3 there are no new angles at s·L here. With NTK-aware scaling there are some: only the slowest pair is slowed by the full factor s.",
      "在这里，线性插值、YaRN 和 Llama 3 在 s·L 处都没有新角度；NTK-aware 仍有一些，因为它只有最慢的一对真正放慢了 s 倍。",
    ),
    both(
      "New angles are not the only cause of errors. Interpolation also slows the fast pairs by s, so the angles between neighbours are smaller than in training. In the measured curves it is worse than YaRN at every greater length.",
      "新角度不是误差的唯一原因：线性插值把高频的通道对也放慢了 s 倍，相邻位置之间的角度比训练时更小。实测中，它在每个更长的长度上都不如 YaRN。",
    ),
    both("A sinusoidal table has the same frequencies, with d_model instead of d_head.", "正弦位置编码表用的是同一组频率，只是宽度 d 换成 d_model。"),
  ],
  papers: [
    { text: "Chen et al. 2023, interpolation", href: "https://arxiv.org/abs/2306.15595" },
    { text: "Peng et al. 2023, YaRN", href: "https://arxiv.org/abs/2309.00071" },
    { text: "Llama 3", href: "https://arxiv.org/abs/2407.21783" },
    { text: "Press et al. 2021, ALiBi", href: "https://arxiv.org/abs/2108.12409" },
  ],
  own: OWN,
  styles,
  controls: [
    { name: "d", label: both("channels of a head, d", "每个头的通道数 d"), when: NO_FILE },
    { name: "base", label: both("base", "底数"), scale: "log", when: NO_FILE },
    { name: "trained", label: both("trained length L", "训练长度 L"), scale: "log", when: NO_FILE },
    { name: "factor", label: both("times as long, s", "长度倍数 s"), scale: "log" },
  ],
  build(stage) {
    const { t } = stage;
    const said = h("p", { class: "said" });
    const file = controls([{ name: "config", label: both("config.json", "config.json"), as: "lines" }], stage.source.schemas["extrapolation"]!,
      { t, set: stage.set, offered: () => null });
    const paste = both("Or paste a model's config.json: its frequencies and trained length", "或粘贴某个模型的 config.json：用它的频率和训练长度");
    const pasted = folded(t(paste), file.element);
    pasted.hidden = !stage.source.live;
    const strips = stripChart(stage);
    const ring = h("div", { class: "ring", role: "img" });
    const table = h("div", {});
    const all = h("div", {});
    const details = folded(t(both("All pairs of the chosen method", "所选方法的全部通道对")), all);
    const beyond = measured(stage);
    stage.root.append(h("div", { class: "phases" }, strips.element, ring), said, pasted, table, details, beyond.element);
    let last: (() => void) | null = null;
    details.addEventListener("toggle", () => last?.());

    return (data, state) => {
      const { facts } = data;
      file.draw(state);
      const omega = array(data, "omega");
      const pairs = omega.shape[1]!;
      const methods = facts["methods"] as Method[];
      const pair = Math.min(number(state, "pair"), pairs - 1);
      const chosen = Math.max(methods.findIndex((one) => one.name === state["method"]), 0);
      const of = reader(data);
      const factor = number(state, "factor");
      const name = t(NAMES[methods[chosen]!.name]!);
      refill(said, facts["family"] ? h("b", {}, `${facts["family"]}: `) : null,
        t(both("", "训练长度 ")), h("b", {}, `${facts["trained"]}`), t(both(" positions in training: ", "：")),
        h("b", { "data-role": "unfinished", "data-value": facts["unfinished"] }, `${facts["unfinished"]}`),
        t(both(` of ${pairs} pairs do not complete a turn.`, ` 个通道对（共 ${pairs} 个）转不满一圈。`)),
        h("span", { class: "key" }, h("i", { class: "covered" }), t(both("seen in training", "训练中见过")), h("i", { class: "new" }),
          t(both(`new at ${tidy(facts["trained"] * factor)}`, `到 ${tidy(facts["trained"] * factor)} 时新出现`))));
      strips.draw(data, methods, pair, chosen);
      drawRing(ring, of, chosen, pair, stage);
      refill(table, plainTable(`${t(both("Pair", "通道对"))} ${pair}`, [
        t(both("frequencies", "频率设置")), t(both("ω′, radians per position", "ω′（弧度／位置）")), t(both("turns in training", "训练中转的圈数")),
        t(both(`turns at ${tidy(factor)}·L`, `${tidy(factor)}·L 处的圈数`)),
        t(both("new, of a turn", "新增（圈）")), t(both("pairs with new angles", "有新角度的通道对数量")), t(both("cos/sin ×", "cos/sin 乘以")),
        t(both("softmax scale ×", "softmax 缩放乘以")),
      ], methods.map((one, m) => [
        t(NAMES[one.name]!), shown(of.omega(m, pair), 6), of.trained(pair) / TURN, of.target(m, pair) / TURN, of.fresh(m, pair) / TURN,
        String(of.count(m)), one.cos_sin_scale, one.softmax_scale,
      ])));
      table.querySelectorAll("tbody tr").forEach((line, m) => m === chosen && line.setAttribute("aria-current", "true"));
      last = () => {
        if (!details.matches("[open]")) return;
        const rows = Array.from({ length: pairs }, (_, n) => [String(n), of.omega(chosen, n), of.trained(n), of.target(chosen, n), of.fresh(chosen, n)]);
        refill(all, plainTable(name, [t(both("pair", "通道对")), "ω′", t(both("angle at L", "L 处的角度")),
          t(both("angle at s·L", "s·L 处的角度")), t(both("new angle", "新增角度"))], rows));
      };
      last();
      refill(stage.formula, h("h2", {}, name), substituted(stage, facts, methods[chosen]!, of, chosen, pair, factor));
      beyond.draw(data, state);
      const turned = shown(of.fresh(chosen, pair) / TURN);
      stage.announce(t(both(`${name}, pair ${pair}: new ${turned} of a turn`, `${name}，通道对 ${pair}：新增 ${turned} 圈`)));
      stage.code(`new[${chosen}, ${pair}]  # ${of.fresh(chosen, pair)} radians, ${methods[chosen]!.name}`);
    };
  },
};
