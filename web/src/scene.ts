// The start page's scene: one sentence, eight steps. Each has a sentence, something to touch, and something to predict.

import { isDark } from "./colours";
import { array, row, type Data } from "./data";
import { fill, h, refill } from "./dom";
import { colourKey } from "./parts/colour_key";
import { plainTable } from "./parts/numbers";
import { predict, type Question } from "./parts/predict";
import { picture } from "./scene_picture";
import { chosen, posed, slice, wordsOf } from "./scene_poses";
import { STEPS } from "./steps";
import type { State } from "./source";
import { number, own, type Stage, type View } from "./view";
import { both, joined, shown, SPLIT, type Words } from "./words";

interface Asked {
  /** Of the page's own parameters, the one that the step moves. */
  touch: { name: string; label: Words; from?: number; to?(data: Data): number; called?(value: number, data: Data): string };
  asks(data: Data): Question;
  /** What is to be seen now; said once the reader has answered. */
  fact(data: Data, state: State): Words;
}

const apart = (one: ArrayLike<number>, other: ArrayLike<number>) => Array.from(one, (value, index) => Math.abs(value - other[index]!)).reduce((most, value) => Math.max(most, value), 0);
const turned = (values: ArrayLike<number>, width: number) => {
  const rows = Array.from({ length: values.length / width }, (_, index) => Array.from(values).slice(index * width, (index + 1) * width));
  return rows.reverse().flat();
};
/** How far results of the words backwards are from those as written, word by word. */
function moved(results: ReturnType<typeof slice>): number {
  return apart(turned(slice(results, 1).values, 8), slice(results, 0).values);
}
const changed = (data: Data, name: string, start: number) => apart(slice(array(data, name), start).values, slice(array(data, name), 0).values);
const slope = (data: Data, head: number) => (head ? `1/${Math.round(1 / array(data, "slopes").values[head]!)}` : "0");
const lastWord = (data: Data) => wordsOf(data).length - 1;
const choices = (...all: [string, string][]) => all.map(([en, zh]) => both(en, zh));
const degrees = (angle: number) => `${shown((angle * 180) / Math.PI, 1)}°`;

const ASKED: Record<string, Asked> = {
  bag: {
    touch: { name: "backwards", label: both("Turn the sentence round", "把句子倒过来") },
    asks: (data) => ({
      question: both("Turn the sentence round: whose result changes?", "把句子倒过来：哪些词的结果会变？"),
      choices: choices(["every one's", "每个词"], ["the outer ones'", "两头的词"], ["none", "没有"]), right: 2,
      because: both(`Every word takes its result along: the largest change is ${shown(moved(array(data, "bag")))}, which is rounding.`, `每个词都带着自己的结果走：最大的变化是 ${shown(moved(array(data, "bag")))}，只是舍入误差。`),
    }),
    fact: (_, state) => (state["backwards"] ? both("Backwards: the same results, in another order.", "倒过来：结果一样，只是换了顺序。") : both("As written. The strips are the results.", "原句。色条就是结果。")),
  },
  hands: {
    touch: { name: "start", label: both("position of the first word", "第一个词的位置") },
    asks: (data) => {
      const rounds = Array.from(array(data, "omega").values, (omega) => shown((2 * Math.PI) / omega, 1));
      return {
        question: both("Would the fastest hand alone be enough?", "只用最快的那根指针够吗？"),
        choices: choices(["yes", "够"], ["no", "不够"]), right: 1,
        because: both(`It is back after ${rounds[0]} positions, and position 0 then looks like 6. The slowest needs ${rounds.at(-1)}.`, `它走 ${rounds[0]} 个位置就转回来，于是位置 0 与 6 几乎一样；最慢的一根要走 ${rounds.at(-1)} 个位置。`),
      };
    },
    fact: (data, state) => {
      const turns = Array.from(array(data, "omega").values, (omega) => degrees(omega * number(state, "start"))).join(", ");
      return both(`First word, fast hand to slow: ${turns}.`, `第一个词，由快到慢：${turns}。`);
    },
  },
  row: {
    touch: { name: "word", label: both("word", "词"), to: lastWord, called: (value, data) => wordsOf(data)[Math.min(value, lastWord(data))]! },
    asks: () => ({
      question: both("At position 0 all hands point to the right. What is its row?", "在位置 0，指针都指向右边。它的一行是什么？"),
      choices: choices(["0 0 0 0 …", "0 0 0 0 …"], ["0 1 0 1 …", "0 1 0 1 …"], ["1 0 1 0 …", "1 0 1 0 …"]), right: 1,
      because: both("The height is sin 0 = 0, to the right it is cos 0 = 1.", "高度是 sin 0 = 0，向右是 cos 0 = 1。"),
    }),
    fact: (data, state) => {
      const p = number(state, "start") + chosen(data, state);
      const [sine, cosine] = row(array(data, "table"), p);
      return both(`Position ${p}: sin(${p}) = ${shown(sine!)}, cos(${p}) = ${shown(cosine!)}.`, `位置 ${p}：sin(${p}) = ${shown(sine!)}，cos(${p}) = ${shown(cosine!)}。`);
    },
  },
  table: {
    touch: { name: "pair", label: both("hand", "指针"), called: (value) => String(value + 1) },
    asks: (data) => ({
      question: both("Are two rows of the table ever the same?", "表里会有两行一样吗？"),
      choices: choices(["yes", "会"], ["no", "不会"]), right: 1,
      because: both(`One hand repeats, all four together do not: of 64 rows the closest two are ${shown(array(data, "closest").values[0]!, 2)} apart.`, `一根指针会重复，四根合起来不会：64 行里最接近的两行相距 ${shown(array(data, "closest").values[0]!, 2)}。`),
    }),
    fact: (data, state) => {
      const [pair, round] = [number(state, "pair"), shown((2 * Math.PI) / array(data, "omega").values[number(state, "pair")]!, 1)];
      return both(`Hand ${pair + 1}: one wave is ${round} rows long.`, `第 ${pair + 1} 根指针：一个波长 ${round} 行。`);
    },
  },
  shift: {
    touch: { name: "shift", label: both("move on by k", "后移 k") },
    asks: (data) => ({
      question: both("All words move on by 3. At which word does the hand turn furthest?", "所有的词后移 3 个位置。哪个词的指针转得最多？"),
      choices: choices(["the first", "第一个"], ["the last", "最后一个"], ["the same at all", "都一样"]), right: 2,
      because: both(`(p + 3)·ω − p·ω = 3·ω: p has gone. One matrix makes every row of the row 3 before it, with an error of at most ${shown(array(data, "missed").values[3]!)}.`, `(p + 3)·ω − p·ω = 3·ω，与 p 无关。同一个矩阵把每一行变成后面第 3 行，误差最多 ${shown(array(data, "missed").values[3]!)}。`),
    }),
    fact: (data, state) => {
      const [k, angle] = [number(state, "shift"), degrees(number(state, "shift") * array(data, "omega").values[number(state, "pair")]!)];
      return both(`k = ${k}: hand ${number(state, "pair") + 1} turns by ${angle} at every word.`, `k = ${k}：第 ${number(state, "pair") + 1} 根指针在每个词那里都转 ${angle}。`);
    },
  },
  scores: {
    touch: { name: "start", label: both("position of the first word", "第一个词的位置") },
    asks: (data) => ({
      question: both("Move the whole sentence to position 32. Which scores change?", "把整句移到位置 32。哪些分数会变？"),
      choices: choices(["all", "全部"], ["of distant words", "远处的词"], ["none", "没有"]), right: 2,
      because: both(`The largest change is ${shown(changed(data, "rotated", 32))}. With the rows of the table added instead it would be ${shown(changed(data, "added", 32), 2)}.`, `最大的变化是 ${shown(changed(data, "rotated", 32))}。如果改为加上表里的行，变化会到 ${shown(changed(data, "added", 32), 2)}。`),
    }),
    fact: (data, state) => both(`At ${number(state, "start")}: largest change ${shown(changed(data, "rotated", number(state, "start")))}; with added rows ${shown(changed(data, "added", number(state, "start")), 2)}.`, `起点 ${number(state, "start")}：最大变化 ${shown(changed(data, "rotated", number(state, "start")))}；改用相加则为 ${shown(changed(data, "added", number(state, "start")), 2)}。`),
  },
  mask: {
    touch: { name: "head", label: both("slope", "斜率"), called: (value, data) => slope(data, value) },
    asks: (data) => ({
      question: both("The steeper the slope: which scores sink most?", "斜率越大，哪些分数降得最多？"),
      choices: choices(["with itself", "词与自己的"], ["far apart", "相隔远的"], ["all alike", "一样多"]), right: 1,
      because: both(`Slope times distance: with 1/2 the last word's score with the first sinks by ${shown(lastWord(data) / 2, 1)}, its own with itself by 0.`, `斜率乘以距离：斜率为 1/2 时，最后一个词与第一个词的分数降 ${shown(lastWord(data) / 2, 1)}，与自己的不降。`),
    }),
    fact: (data, state) => {
      const [head, last] = [number(state, "head"), lastWord(data)];
      const values = slice(array(data, "logits"), head);
      return both(`Slope ${slope(data, head)}: the last word's score with the first is ${shown(row(values, last)[0]!, 2)}.`, `斜率 ${slope(data, head)}：最后一个词与第一个词的分数为 ${shown(row(values, last)[0]!, 2)}。`);
    },
  },
  attention: {
    touch: { name: "word", label: both("word that looks", "正在看的词"), to: lastWord, called: (value, data) => wordsOf(data)[Math.min(value, lastWord(data))]! },
    asks: (data) => {
      const change = moved(slice(array(data, "seen"), 2));
      return {
        question: both("Turn the sentence round once more. Do the results change now?", "再把句子倒过来一次。现在结果会变吗？"),
        choices: choices(["no, as at the start", "不变，和开头一样"], ["yes", "会变"]), right: Number(change > 1e-9),
        because: both(`Their largest change is ${shown(change, 2)}; in the bag it was ${shown(moved(array(data, "bag")))}. Mask and penalty have brought the order in.`, `最大的变化是 ${shown(change, 2)}，在袋子里是 ${shown(moved(array(data, "bag")))}。掩码和惩罚带来了次序。`),
      };
    },
    fact: (data, state) => {
      const [words, word] = [wordsOf(data), chosen(data, state)];
      const weights = Array.from(row(slice(array(data, "weights"), number(state, "head")), word));
      const most = weights.indexOf(Math.max(...weights));
      return both(`“${words[word]}” takes most from “${words[most]}” at ${most}: ${Math.round(weights[most]! * 100)}%.`, `“${words[word]}”从位置 ${most} 的“${words[most]}”取得最多：${Math.round(weights[most]! * 100)}%。`);
    },
  },
};

/** The page turns the hands itself: the largest difference of their sines and cosines to the table, over how many. */
function ourOwn(data: Data): [number, number] {
  const [omega, table] = [array(data, "omega").values, array(data, "table")];
  const ours = Array.from({ length: table.values.length }, (_, at) => (at % 2 ? Math.cos : Math.sin)(Math.floor(at / 8) * omega[(at % 8) >> 1]!));
  return [apart(ours, table.values), ours.length];
}

/** The touch of a step: a button, or a slider with what its value is called. */
function touching({ touch }: Asked, stage: Stage): { element: HTMLElement; draw(data: Data, state: State, said: string): void } {
  const { name, label, to, called } = touch;
  const parameter = OWN[name]!;
  if (parameter.kind === "boolean") {
    const button = h("button", { type: "button", class: "primary", "data-touch": name, click: () => stage.set({ [name]: !stage.state()[name] }) }, stage.t(label));
    return { element: button, draw: (_, state) => button.setAttribute("aria-pressed", String(state[name])) };
  }
  const output = h("output", {});
  const range = h("input", { type: "range", "data-touch": name, min: 0, max: parameter.to, step: 1, "aria-label": stage.t(label), input: () => stage.set({ [name]: Number(range.value) }) });
  return {
    element: h("label", {}, h("span", {}, stage.t(label)), range, output),
    draw(data, state, said) {
      range.max = String(to?.(data) ?? parameter.to);
      range.value = String(state[name]);
      output.textContent = called?.(number(state, name), data) ?? String(state[name]);
      range.setAttribute("aria-valuetext", `${output.textContent}${said && `: ${said}`}`);
    },
  };
}

const OWN = {
  step: own.choice("bag", ...STEPS.map(({ name }) => name)),
  backwards: own.yes(false), start: own.whole(0, 0, 32), word: own.whole(23, 0, 23), pair: own.whole(1, 0, 3), shift: own.whole(3, 0, 8), head: own.whole(2, 0, 8),
} satisfies View["own"] as View["own"];

/** How long words glide within a step, in ms: as in story.css. */
const GLIDE = 250;
/** Narrower than this, everything stands in one column. */
const NARROW = 760;
export const heightOf = (width: number) => (width < 500 ? 250 : 380);

export const SCENE: View = {
  name: "story",
  title: both("How a Transformer knows the order of words", "Transformer 如何知道词的次序"),
  idea: both("Type a sentence and follow it in eight steps, from a bag of words to what attention sees.", "输入一个句子，分八步跟着它走：从一袋词到注意力看到的东西。"),
  notice: [],
  own: OWN,
  controls: [{ name: "sentence", label: both("Your sentence", "你的句子"), as: "sentence", rule: SPLIT, examples: ["我爱你，你爱我吗", "猫 追 老鼠", "The cat chases the mouse", "Artificial intelligence is rapidly growing"] }],
  build(stage) {
    const { root, t } = stage;
    const drawing = picture((word) => ASKED[String(stage.state()["step"])]!.touch.name === "word" && stage.set({ word }));
    const key = colourKey();
    const title = h("h2", { tabindex: -1 });
    const go = (by: number) => {
      const next = STEPS[at() + by];
      if (!next) return;
      stage.set({ step: next.name });
      stage.announce(`${t(next.title)}. ${t(next.says)}`);
    };
    const at = () => STEPS.findIndex(({ name }) => name === stage.state()["step"]);
    const [back, on] = [h("button", { type: "button", "data-role": "back", "aria-label": t(both("Step back", "上一步")), click: () => go(-1) }, "‹"), h("button", { type: "button", class: "primary", "data-role": "on", click: () => go(1) }, t(both("Next", "下一步")), " ›")];
    const beyond = h("a", { class: "beyond", href: "#/stretch" }, t(both("Longer texts", "更长的文本")), " ›");
    const [says, touch, question, fact, table] = [h("p", { class: "says" }), h("div", { class: "touch" }), h("div", { class: "question" }), h("p", { class: "fact" }), h("div", {})];
    const numbers = h("details", { class: "numbers", toggle: () => last && draw(...last) }, h("summary", {}, t(both("Numbers", "数值"))), table);
    const frame = h("div", { class: "picture keyed" }, drawing.element, key.element);
    fill(root, h("div", { class: "step-head" }, back, title, on, beyond), says, frame, touch, question, fact, numbers);
    const answered = new Set<string>();
    let step = "";
    let shownData: Data | null = null;
    let moving = { draw: (_data: Data, _state: State, _said: string) => {} };
    let keyed = "";
    let last: [Data, State] | null = null;
    let movedAt = -GLIDE; // what moves again before it has arrived follows the hand
    let width = 0; // measured when it changes: to ask for it while words move costs a layout of the page
    const watch = new ResizeObserver(() => {
      width = frame.clientWidth;
      if (last) draw(...last);
    });
    watch.observe(frame);
    stage.leaving(() => watch.disconnect());

    function draw(data: Data, state: State): void {
      const byHand = last !== null && last[1] !== state;
      last = [data, state];
      const name = String(state["step"]);
      const [index, asked] = [STEPS.findIndex((one) => one.name === name), ASKED[name]!];
      const now = STEPS[index]!;
      const fresh = name !== step;
      if (fresh) {
        root.dataset["step"] = step = name;
        fill(title, h("span", { class: "count-of-steps" }, `${index + 1}/${STEPS.length}`), " ", t(now.title));
        says.textContent = t(now.says);
        back.disabled = index === 0;
        on.hidden = index === STEPS.length - 1;
        beyond.hidden = !on.hidden;
        const made = touching(asked, stage);
        moving = made;
        fill(touch, made.element);
      }
      if (fresh || data !== shownData) {
        fill(question, predict(stage, asked.asks(data), () => {
          answered.add(name);
          if (last) draw(...last);
          fact.scrollIntoView({ block: "nearest" });
        }));
        answered.delete(name);
        shownData = data;
      }
      const known = answered.has(name);
      const said = known ? t(asked.fact(data, state)) : "";
      moving.draw(data, state, said);
      if (fact.textContent !== said) fact.textContent = said;
      root.classList.toggle("hidden-results", name === "bag" && !known);
      width ||= frame.clientWidth || 360;
      const { poses, behind, before, key: colours, height } = posed(data, state, [width, heightOf(width)]);
      drawing.element.classList.toggle("stepping", fresh);
      if (fresh) drawing.element.classList.remove("following");
      else if (byHand) drawing.element.classList.toggle("following", performance.now() - movedAt < GLIDE);
      movedAt = fresh ? -GLIDE : byHand ? performance.now() : movedAt;
      drawing.draw([width, height], wordsOf(data), poses, behind, before);
      drawing.element.setAttribute("aria-label", `${t(now.title)}: ${joined(wordsOf(data))}`);
      key.element.style.visibility = colours ? "visible" : "hidden";
      const like = `${colours} ${isDark(frame)}`;
      if (colours && like !== keyed) key.draw(...colours);
      keyed = like;
      numbers.hidden = name === "bag" && !known;
      if (numbers.open) {
        const rows = poses.map(({ cells, clocks }, word) => [wordsOf(data)[word]!, ...Array.from(cells?.values ?? clocks!.angles)]);
        refill(table, plainTable(t(now.title), ["", ...rows[0]!.slice(1).map((_, column) => String(column + 1))], rows));
      }
      if (fresh) stage.checked(...ourOwn(data));
    }
    return draw;
  },
};

/** The steps in small, drawn from the same numbers. */
export function thumbnails(): { elements: SVGSVGElement[]; draw(data: Data, state: State): void } {
  const small = STEPS.map(() => picture());
  for (const { element } of small) element.setAttribute("aria-hidden", "true");
  let drawn: unknown[] = [];
  return {
    elements: small.map(({ element }) => element),
    draw(data, state) {
      const dark = isDark(small[0]!.element);
      if (drawn[0] === data && drawn[1] === dark) return;
      drawn = [data, dark];
      small.forEach(({ draw }, index) => {
        const { poses, behind, before, height } = posed(data, { ...state, step: STEPS[index]!.name }, [NARROW / 2, 250]);
        draw([NARROW / 2, height], wordsOf(data), poses, behind, before);
      });
    },
  };
}
