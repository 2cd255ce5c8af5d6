// The view *measured* of `posenc explore RESULTS`: the report of that folder in place of the study that is shipped.

import { both } from "../words";
import { fill, h } from "../dom";
import type { View } from "../view";
import { reportOf, type Report } from "./report";
import styles from "./results.css";

export const results: View = {
  name: "measured",
  title: both("What your folder measured", "你的结果文件夹测得什么"),
  idea: both("Every number of a folder of results: its conclusions, its curves, and every table.", "一个结果文件夹的全部数值：结论、曲线和所有表格。"),
  notice: [
    both("A flat line beyond the dashed one means that the quality is kept on longer texts.", "虚线以外仍然平直的曲线，说明在更长的文本上质量不变。"),
    both("Hatched cells were not learnt at this budget and are not ranked; cells without a number say why.", "画斜线的格子在这个预算内没有学会，不参加排名；没有数值的格子写明原因。"),
    both("A chart's cursor follows the mouse or the arrow keys; “Numbers of this chart” has its values as a table.", "图上的光标跟随鼠标或方向键；“这张图的数值”是同样数值的表格。"),
  ],
  own: {},
  styles,
  controls: [],
  build(stage) {
    return (data) => {
      const report = data.facts["report"] as Report;
      const lead = h("p", { class: "small" }, typeof report.lead === "string" ? report.lead : stage.t(report.lead));
      fill(stage.root, lead, reportOf(stage, report));
    };
  },
};
