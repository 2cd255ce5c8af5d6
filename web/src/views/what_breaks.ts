// Six real bugs, each switched on and off on the same map of scores.

import { array, type Numbers } from "../data";
import { fill, h } from "../dom";
import { formula, put } from "../parts/formula";
import { heatMap } from "../parts/heatmap";
import { number, own, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./what_breaks.css";

const BUGS: Record<string, Words> = {
  bf16_positions: both("positions in bfloat16", "位置用 bfloat16"), layout: both("half and interleaved", "两种排布混用"), left_padding: both("left padding", "左侧填充"),
  t5_buckets: both("off by one in T5's buckets", "T5 的桶差一"), packed_documents: both("packed documents", "文档拼接"), stale_cache: both("stale cache", "缓存过期"),
};

interface Facts {
  what: Words;
  mend: Words;
  report: string;
  largest: number;
  changed: number;
  limit: number;
}

export const view: View = {
  name: "what_breaks",
  title: both("What breaks", "哪里会出错"),
  idea: both(
    "Six bugs that libraries have shipped: switch one on and see which scores of query and key change. None of them raises an error, and a trained model only gets worse.",
    "六个曾随各种库发布的错误：打开一个，看看哪些查询与键的分数变了。它们都不会报错，训练好的模型只是变差。",
  ),
  notice: [
    both("Empty cells are masked: the key comes after the query, is padding, or belongs to another document.", "空白的格子被遮住：键在查询之后，或者是填充，或者属于另一篇文档。"),
    both("posenc check finds these bugs in your own implementation, with the smallest input that shows them.", "posenc check 能在你自己的实现里找出这些错误，并给出能复现的最小输入。"),
  ],
  own: { on: own.yes(true), i: own.whole(30, 0, 39), j: own.whole(21, 0, 39) },
  controls: [{ name: "bug", label: both("bug", "错误"), choices: BUGS }, { name: "on", label: both("bug on", "打开错误") }],
  styles,
  build(stage) {
    const t = stage.t;
    const map = heatMap(stage, {
      label: both("Scores of query and key", "查询与键的分数"), rows: both("query i", "查询 i"), columns: both("key j", "键 j"),
      around: innerWidth < 640 ? 2 : 3, pick: (i, j) => stage.set({ i, j }),
    });
    const said = h("p", { class: "said", role: "status" });
    const about = h("dl", { class: "about-bug" });
    stage.root.append(map.element, said, about);

    return (data, state) => {
      const facts = data.facts as unknown as Facts;
      const on = state["on"] === true;
      const [right, wrong] = [array(data, "right"), array(data, "wrong")];
      const numbers: Numbers = on ? wrong : right;
      const cursor: [number, number] = [number(state, "i"), number(state, "j")];
      map.draw({ numbers, cursor, limit: facts.limit });
      const percent = shown(100 * facts.changed, 0);
      fill(said, on
        ? t(both(`With the bug, ${percent} % of the scores change, by up to `, `有这个错误时，${percent}% 的分数改变，最多改变 `))
        : t(both(`As it should be. The bug would change ${percent} % of the scores, by up to `, `正确的结果。这个错误会改变 ${percent}% 的分数，最多改变 `)),
      h("b", { "data-role": "largest", "data-value": facts.largest }, shown(facts.largest)), t(both(".", "。")));
      const row = (name: Words, ...text: (string | Node)[]) => [h("dt", {}, t(name)), h("dd", {}, ...text)];
      fill(about, ...row(both("What goes wrong", "错在哪里"), t(facts.what)), ...row(both("What mends it", "怎样修正"), t(facts.mend)),
        ...row(both("Where it was reported", "哪里报告过"), h("a", { href: facts.report, rel: "noreferrer", target: "_blank" }, facts.report.replace("https://github.com/", ""))));
      const [i, j] = cursor;
      const at = (of: Numbers) => of.values[i * 40 + j]!;
      const cell = (of: Numbers) => (Number.isFinite(at(of)) ? shown(at(of)) : t(both("masked", "被遮住")));
      fill(stage.formula, formula([
        t(both("score of query ", "查询 ")), put(i, "position"), t(both(" with key ", " 与键 ")), put(j, "channel"), t(both(": right ", " 的分数：正确 ")),
        h("output", { "data-role": "right", "data-value": at(right) }, cell(right)), t(both(", with the bug ", "，有错误时 ")), h("output", { "data-role": "wrong", "data-value": at(wrong) }, cell(wrong)),
      ]));
      stage.announce(`i = ${i}, j = ${j}: ${cell(numbers)}`);
      stage.code(`right[${i}, ${j}], wrong[${i}, ${j}]`);
    };
  },
};
