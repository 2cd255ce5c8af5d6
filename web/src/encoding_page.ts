// The page of one encoding: what it is, a program, where it breaks, what it costs.

import { fill, h, type Child } from "./dom";
import { codeCard } from "./parts/code";
import { sourced } from "./parts/sources";
import type { Source } from "./source";
import { both, phrased, shown, type Words } from "./words";

type Lists = Record<"en" | "zh", string[]>;
type Ratio = { median: number; low: number; high: number } | { why: string };

/** As Python says it (explorer/views/encoding.py). */
interface Facts {
  name: string;
  title: Words;
  idea: Words;
  formula: string;
  how: Words;
  published: string;
  seams: Lists;
  traits: Lists;
  needs: Lists;
  axes: number;
  also_called: string[];
  used_by: Lists;
  source: string;
  code: string;
  in_a_row: boolean;
  example: string;
  breaks: Words | null;
  differs: Words | null;
  options: { name: string; default: string | null; means: Words }[];
  costs: Partial<Record<"prefill" | "prefill_long" | "decode" | "training", Ratio>> & { memory?: { bytes: number } | { why: string } };
  conditions: Record<string, number | string>;
  parameters_at: Record<string, number>;
}

interface Asked {
  t(words: Words): string;
  source: Source;
  /** The parameters of the address. */
  given: Record<string, string>;
  go(name: string): void;
}

export function encodingPage(main: HTMLElement, { t, source, given, go }: Asked): void {
  const { name = "rope", ...others } = given;
  const called = source.schemas["encoding"]!["name"]!.called!;
  const known = name in called;
  const choice = h("select", { change: () => go(choice.value) }, known ? null : h("option", {}, name),
    ...Object.entries(called).map(([one, words]) => h("option", { value: one, selected: one === name }, t(words))));
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const refused = (why: string) => {
    trouble.textContent = why;
    trouble.hidden = false;
    main.dataset["ready"] = "true";
  };
  const place = h("div", { class: "view-encoding" });
  const title = h("h1", {}, phrased(known ? t(called[name]!) : name));
  fill(main, h("div", { class: "view-title" }, title), h("div", { class: "control-row controls" }, h("label", {}, h("span", {}, t(both("encoding", "编码"))), choice)), trouble, place);
  if (!known) return refused(t(both(`No encoding is called ${name}: choose one above.`, `没有叫 ${name} 的编码，请在上面选一个。`)));
  const [other] = Object.keys(others);
  if (other) return refused(t(both(`The address says ${other}, which is no setting of this page; it takes name.`, `地址里的 ${other} 不是本页的设置；本页只有 name。`)));
  source.ask("encoding", { name }).then(
    ({ facts, arrays }) => {
      fill(place, ...written(facts as Facts, arrays["parameters"]!.values[0]!, t));
      main.dataset["ready"] = "true";
    },
    (error: Error) => refused(error.message));
}

function written(facts: Facts, parameters: number, t: Asked["t"]): Child[] {
  const list = (words: Lists) => t(both(words.en.join(", "), words.zh.join("、")));
  const code = codeCard(t);
  code.draw(facts.example);
  const rows: [Words, Child][] = [
    [both("how position enters", "位置如何进入"), t(facts.how)],
    [both("acts on", "作用处"), list(facts.seams)],
    [both("properties", "性质"), list(facts.traits)],
    [both("needs", "需要"), list(facts.needs)],
    [both("coordinates of a token", "每个词的坐标数"), facts.axes],
    [both("parameters", "参数量"), `${parameters.toLocaleString("en")} (${Object.entries(facts.parameters_at).map(([name, size]) => `${name} ${size}`).join(", ")})`],
    [both("also called", "又名"), facts.also_called.join(t(both(", ", "、")))],
    [both("used by", "使用者"), list(facts.used_by)],
    [both("first published", "首次发表"), facts.published],
    [both("paper", "论文"), h("span", {}, ...sourced(facts.source))],
    [both("authors' code", "作者代码"), facts.code && h("a", { href: `https://github.com/${facts.code}`, rel: "noreferrer", target: "_blank" }, facts.code)],
  ];
  const part = (heading: Words, ...children: Child[]) => h("section", {}, h("h2", {}, t(heading)), ...children);
  return [
    h("p", { class: "lead" }, t(facts.idea)),
    h("p", { class: "formula rule" }, facts.formula),
    facts.in_a_row && h("p", {}, h("a", { class: "beside", href: `#/compare?first=nope&second=${facts.name}` }, t(both("See what it changes, beside attention without positions", "看它改变了什么，与没有位置的注意力并排")))),
    h("div", { class: "pair" },
      h("div", {},
        facts.breaks && part(both("Where it breaks", "局限"), h("p", {}, ...marked(t(facts.breaks)))),
        part(both("What differs from the paper or the authors' code", "与论文或作者代码的差异"), h("p", {}, ...marked(t(facts.differs ?? both("Nothing that is known.", "没有已知的差异。"))))),
        part(both("What it costs", "代价"), ...costs(facts, t))),
      code.element),
    facts.options.length > 0 && part(both("Options", "选项"), region(t(both("Options", "选项")), h("thead", {}, h("tr", {}, ...[both("name", "名称"), both("default", "默认值"), both("meaning", "含义")].map((one) => h("th", { scope: "col" }, t(one))))),
      h("tbody", {}, ...facts.options.map((one) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, one.name)), h("td", {}, one.default === null ? t(both("a size", "尺寸")) : h("code", {}, one.default)), h("td", {}, ...marked(t(one.means)))))))),
    part(both("More", "更多"), region(t(both("More", "更多")), h("tbody", {}, ...rows.filter(([, cell]) => cell).map(([label, cell]) => h("tr", {}, h("th", { scope: "row" }, t(label)), h("td", {}, cell)))))),
  ];
}

/** A text whose parts between back-quotes are code. */
const marked = (text: string): Child[] => text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));

const region = (label: string, ...parts: Child[]) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, h("table", { class: "plain" }, ...parts));

/** Times over those of no encoding, memory beyond it; where there is no number, why. */
function costs({ costs: found, conditions: at }: Facts, t: Asked["t"]): Child[] {
  const measures: [keyof Facts["costs"], Words][] = [
    ["prefill", both(`prefill, ${at["tokens"]} tokens`, `预填充 ${at["tokens"]} 个词元`)], ["prefill_long", both(`prefill, ${at["tokens_long"]} tokens`, `预填充 ${at["tokens_long"]} 个词元`)],
    ["decode", both("decode, one token", "解码一个词元")], ["training", both("training", "训练")],
  ];
  if (!Object.keys(found).length) return [h("p", {}, t(both("Not measured.", "没有测量。")))];
  /** The library's own message, which is English. */
  const refused = ({ why }: { why: string }): Child[] => [t(both("cannot; Python says: ", "不能，Python 的报错：")), h("q", { lang: "en" }, why)];
  const ratio = (one: Ratio | undefined): Child[] => (!one ? ["–"] : "why" in one ? refused(one) : [`${shown(one.median, 2)}× (${shown(one.low, 2)}–${shown(one.high, 2)})`]);
  const { memory } = found;
  return [
    h("dl", {}, ...measures.flatMap(([name, words]) => [h("dt", {}, t(words)), h("dd", { "data-cost": name }, ...ratio(found[name] as Ratio | undefined))]),
      h("dt", {}, t(both(`memory at ${at["tokens_long"]} tokens`, `${at["tokens_long"]} 个词元时的内存`))), h("dd", { "data-cost": "memory" }, ...(!memory ? ["–"] : "why" in memory ? refused(memory) : [`+ ${shown(memory.bytes / 1e6, 1)} MB`]))),
    h("p", { class: "small" }, t(both(
      `Relative to no encoding: medians, with quartiles in brackets; one attention layer, d_model ${at["d_model"]}, ${at["n_heads"]} heads, float32, one thread of ${at["cpu"]}.`,
      `相对于不用编码：中位数，括号内是四分位数；一层注意力，d_model ${at["d_model"]}，${at["n_heads"]} 个头，float32，${at["cpu"]} 单线程。`))),
  ];
}
