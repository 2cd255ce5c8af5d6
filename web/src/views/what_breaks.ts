// Seven real bugs: the clock hands that cause each, the attention before and after with a wipe, and the difference.
//
//   hands as they should be   ◷ ◶ ◵ ◴ …       before │ after        difference
//   hands with the bug        ◷ ◷ ◷ ◷ …       ╲      │▚             ▫▪
//                                               ╲    │ ▚              ▫▪

import { array, type Numbers } from "../data";
import { fill, h, refill, s } from "../dom";
import { colourKey } from "../parts/colour_key";
import { formula, put } from "../parts/formula";
import { linked } from "../parts/linked";
import { folded, plainTable } from "../parts/numbers";
import { number, own, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./what_breaks.css";

const BUGS: Record<string, Words> = {
  bf16_positions: both("positions in bfloat16", "位置用 bfloat16"), layout: both("half and interleaved", "两种布局混用"), left_padding: both("left padding", "左侧填充"),
  cache_twice: both("cache counted twice", "缓存数了两遍"), packed_documents: both("packed documents", "文档打包"), t5_buckets: both("off by one in T5's buckets", "T5 的桶差一"),
  stale_cache: both("stale cache", "缓存过期"),
};
const OWN = { wipe: own.whole(50, 0, 100), i: own.whole(30, 0, 39), j: own.whole(27, 0, 39) };
const ALIKE = 1e-9; // radians

interface Facts {
  head: Words;
  hands: Words;
  what: Words;
  mend: Words;
  report: string;
  law: string;
  largest: number;
  moved: number;
}

export const view: View = {
  name: "what_breaks",
  title: both("What breaks", "哪里会出错"),
  idea: both(
    "Seven bugs that libraries have shipped, each on one attention head: drag the line to wipe from right to wrong. None of them raises an error, and a trained model only gets worse.",
    "七个曾随各种库发布的错误，各画在一个注意力头上：拖动分界线，从正确擦到出错。它们都不会报错，训练好的模型只是变差。",
  ),
  notice: [
    both("The same word stands everywhere, so nothing but the position can move the bright line. Empty cells are masked: the key comes after the query, is padding, or belongs to another document.", "每个位置都是同一个词，所以能移动亮线的只有位置。空白的格子被遮住：键在查询之后，或者是填充，或者属于另一篇文档。"),
    both("Above, the cause: clock hands as they should be, and below them those with the bug, red where they differ.", "图的上方是原因：一行是正确的指针，下面一行是有错误时的指针，不同的画成红色。"),
    both("posenc check finds these bugs in your own implementation, with the smallest input that shows them.", "posenc check 能在你自己的实现里找出这些错误，并给出能复现的最小输入。"),
  ],
  own: OWN,
  controls: [{ name: "bug", label: both("bug", "错误"), choices: BUGS }],
  styles,
  build(stage) {
    const t = stage.t;
    const maps = linked(stage, { label: both("Attention before and after the bug, and the difference; query by key", "出错前后的注意力与两者之差，查询 × 键"), pick: (i, j) => stage.set({ i, j }), class: "maps" });
    const [before, apart] = [maps.tile(), maps.tile()];
    const [amount, signed] = [colourKey(), colourKey()];
    const wipe = h("input", { type: "range", min: 0, max: 100, class: "wipe", "aria-label": t(both("how much of the map is as it should be", "图中正确部分的比例")), input: () => stage.set({ wipe: Number(wipe.value) }) });
    const hands = h("figure", { class: "hands" });
    const [said, about, table] = [h("p", { class: "said", role: "status" }), h("dl", { class: "about-bug" }), h("div", {})];
    maps.element.append(
      h("div", { class: "keyed" }, h("h2", { class: "sides" }, h("span", {}, t(both("right", "正确"))), h("span", { class: "bad" }, t(both("with the bug", "有错误")))), h("div", { class: "wiped" }, before.element), wipe, amount.element),
      h("div", { class: "keyed" }, h("h2", {}, t(both("difference", "两者之差"))), apart.element, signed.element));
    stage.root.append(hands, h("div", { class: "bug-and-words" }, maps.element, h("div", { class: "words" }, said, about)), folded(t(both("Numbers of this row", "这一行的数值")), table));
    let differs: { of: Numbers | null; numbers: Numbers } = { of: null, numbers: { shape: [0, 0], values: new Float64Array() } };
    let handsOf: Numbers | null = null;

    return (data, state) => {
      const facts = data.facts as unknown as Facts;
      const [right, wrong] = [array(data, "right"), array(data, "wrong")];
      if (differs.of !== right) differs = { of: right, numbers: difference(right, wrong) };
      if (handsOf !== right) drawHands(hands, handsOf = right);
      const cursor: [number, number] = [number(state, "i"), number(state, "j")];
      const at = number(state, "wipe");
      wipe.value = String(at);
      before.draw({ numbers: right, map: "amount", limit: 1, cursor, wiped: { by: wrong, at: at / 100 } });
      apart.draw({ numbers: differs.numbers, limit: 1, cursor });
      amount.draw("amount", 1);
      signed.draw("diverging", 1);
      const percent = shown(100 * facts.moved, 0);
      refill(said, h("b", { "data-role": "moved", "data-value": facts.moved }, `${percent} %`), t(both(" of each word's attention goes elsewhere.", " 的注意力去了别处（各词平均）。")));
      const row = (name: Words, ...text: (string | Node)[]) => [h("dt", {}, t(name)), h("dd", {}, ...text)];
      fill(about, ...row(both("The head", "这个头"), t(facts.head)), ...row(both("What goes wrong", "错在哪里"), t(facts.what)), ...row(both("What mends it", "怎样修正"), t(facts.mend)),
        ...row(both("Reported", "报告"), h("a", { href: facts.report, rel: "noreferrer", target: "_blank" }, facts.report.replace("https://github.com/", ""))),
        ...row(both("Caught by", "由谁发现"), h("code", { "data-role": "law" }, facts.law), t(both(" of posenc check", "（posenc check）"))));
      const [i, j] = cursor;
      const value = (of: Numbers) => of.values[i * 40 + j]!;
      const cell = (of: Numbers) => (Number.isFinite(value(of)) ? shown(value(of)) : t(both("masked", "被遮住")));
      refill(stage.formula, formula([
        t(both("attention of query ", "查询 ")), put(i, "position"), t(both(" to key ", " 给键 ")), put(j, "channel"), t(both(": right ", " 的注意力：正确 ")),
        h("output", { "data-role": "right", "data-value": value(right) }, cell(right)), t(both(", with the bug ", "，有错误时 ")), h("output", { "data-role": "wrong", "data-value": value(wrong) }, cell(wrong)),
      ]));
      refill(table, plainTable(t(both(`Attention of query ${i}`, `查询 ${i} 的注意力`)), [t(both("key", "键")), t(both("right", "正确")), t(both("with the bug", "有错误"))],
        Array.from({ length: 40 }, (_, key) => [String(key), right.values[i * 40 + key]!, wrong.values[i * 40 + key]!])));
      stage.announce(`i = ${i}, j = ${j}: ${t(both("right", "正确"))} ${cell(right)}, ${t(both("with the bug", "有错误"))} ${cell(wrong)}`);
      stage.code(`right[${i}, ${j}], wrong[${i}, ${j}]`);

      /** Dials in rows of 40, or of 20 on a telephone; each row twice, as it should be and with the bug. */
      function drawHands(place: HTMLElement, _: Numbers): void {
        const [good, bad] = [array(data, "right_hands").values, array(data, "wrong_hands").values];
        const line = innerWidth < 640 ? 20 : 40;
        const rows = Array.from({ length: Math.ceil(good.length / line) }, (_, n) => {
          const dials = Array.from({ length: Math.min(line, good.length - n * line) }, (_, c) => c + n * line).flatMap((index, c) => [
            dial(c, 0, good[index]!, false), dial(c, 1, bad[index]!, !(Math.abs(good[index]! - bad[index]!) < ALIKE))]);
          return s("svg", { viewBox: `0 0 ${line * 12} 25`, "aria-hidden": "true" }, ...dials);
        });
        fill(place, ...rows, h("figcaption", { class: "small" }, t(both(`Above: ${facts.hands.en}. Below: the same with the bug.`, `上：${facts.hands.zh}。下：有错误时。`))));
      }
    };
  },
};

function dial(column: number, row: number, angle: number, red: boolean): SVGElement {
  const [x, y] = [column * 12 + 6, row * 12.5 + 6];
  if (Number.isNaN(angle)) return s("circle", { class: "none", cx: x, cy: y, r: 1 });
  return s("g", { class: red ? "dial red" : "dial" }, s("circle", { cx: x, cy: y, r: 5.2 }),
    s("path", { d: `M${x} ${y}L${(x + 4.6 * Math.sin(angle)).toFixed(2)} ${(y - 4.6 * Math.cos(angle)).toFixed(2)}` }));
}

/** NaN where both are masked; what only one of them masks counts as 0 there. */
function difference(right: Numbers, wrong: Numbers): Numbers {
  const values = Float64Array.from(right.values, (value, index) => {
    const other = wrong.values[index]!;
    return value !== value && other !== other ? NaN : (other || 0) - (value || 0);
  });
  return { shape: right.shape, values };
}
