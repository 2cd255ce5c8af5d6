// A sentence as tutorials print it: guess whether it is true, then see the computed verdict.

import { array, type Data } from "../data";
import { fill, h, refill } from "../dom";
import { formula } from "../parts/formula";
import { own, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./true_or_false.css";

interface Claim {
  words: Words;
  verdict: string;
  verdict_words: Words;
  value: Words;
}

/** What can be guessed, and the verdicts for which the guess is right. */
const GUESSES: Record<string, { words: Words; of: string[] }> = {
  t: { words: both("True", "正确"), of: ["true"] },
  p: { words: both("In part", "部分正确"), of: ["partly", "truncated", "limit", "convention"] },
  f: { words: both("False", "错误"), of: ["false", "contradiction"] },
  o: { words: both("Cannot be computed", "无法计算"), of: ["opinion"] },
};
const OPEN = "-";
const LONGEST = 60;

export const view: View = {
  name: "true_or_false",
  title: both("True or false?", "对还是错？"),
  idea: both(
    "Tutorials repeat these sentences about positions, and posenc computes whether each of them holds. Guess first; then the page shows the verdict, the computed value and the Python behind it.",
    "教程常常重复这些关于位置的句子，posenc 逐句计算它们是否成立。先猜一猜，再看结论、算出的数值和背后的 Python 代码。",
  ),
  notice: [
    both("A sentence is judged as it is printed: digits that are cut off instead of rounded, or a bound that is never reached, make it true only in part.", "按句子的原文判断：数字被截断而没有舍入，或者界限永远达不到，都只算部分正确。"),
    both("Whoever opens your link sees your answers; “Copy link to this state” is at the end of the page.", "打开链接的人能看到你的答案；“复制当前状态的链接”在页面末尾。"),
  ],
  own: { answers: own.text("", LONGEST) },
  controls: [],
  styles,
  build(stage) {
    const t = stage.t;
    const quote = h("blockquote", {});
    const stamp = h("p", { class: "stamp", role: "status" });
    const value = h("p", { class: "value" });
    const guesses = h("div", { class: "guesses", role: "group", "aria-label": t(both("Your guess", "你的判断")) });
    const next = h("button", { type: "button", class: "primary", "data-role": "next" }, t(both("Next sentence", "下一句")));
    const score = h("p", { class: "small" });
    const deck = h("ol", { class: "deck", "aria-label": t(both("All sentences", "全部句子")) });
    stage.root.append(h("div", { class: "claim" }, quote, guesses, stamp, value), h("p", { class: "guesses" }, next), deck, score);
    next.addEventListener("click", () => onward());
    let onward = (): void => {};
    const verdicts = new Map<string, string>();

    return (data, state) => {
      const claim = data.facts["claim"] as Claim;
      const ids = data.facts["ids"] as string[];
      const at = ids.indexOf(state["claim"] as string);
      const answers = String(state["answers"]).padEnd(ids.length, OPEN).slice(0, ids.length);
      const guess = GUESSES[answers[at]!];
      const right = guess?.of.includes(claim.verdict);
      verdicts.set(ids[at]!, claim.verdict);
      refill(quote, "“", t(claim.words), "”");
      const changed = (to: string) => answers.slice(0, at) + to + answers.slice(at + 1);
      fill(guesses, ...Object.entries(GUESSES).map(([key, { words }]) =>
        h("button", { type: "button", "data-guess": key, "aria-pressed": String(answers[at] === key), click: () => stage.set({ answers: changed(key) }) }, t(words))));
      stamp.className = `stamp ${right ? "right" : "wrong"}`;
      stamp.textContent = guess ? `${t(right ? both("Right. The verdict: ", "猜对了。结论：") : both("Not right. The verdict: ", "猜错了。结论："))}${t(claim.verdict_words)}` : "";
      value.textContent = guess ? t(claim.value) : "";
      const open = (index: number) => answers[index] === OPEN;
      onward = () => {
        const later = [...ids.keys()].map((index) => (at + 1 + index) % ids.length);
        stage.set({ claim: ids[later.find(open) ?? (at + 1) % ids.length]! });
      };
      const mark = (index: number) => {
        const verdict = verdicts.get(ids[index]!);
        if (open(index) || verdict === undefined) return "";
        return GUESSES[answers[index]!]!.of.includes(verdict) ? "right" : "wrong";
      };
      fill(deck, ...ids.map((id, index) => h("li", {}, h("button", {
        type: "button", class: mark(index), "data-claim": id, "aria-current": index === at && "true", "aria-label": t(both(`Sentence ${index + 1}`, `第 ${index + 1} 句`)),
        click: () => stage.set({ claim: id }),
      }, index + 1))));
      const answered = ids.filter((_, index) => !open(index)).length;
      score.textContent = t(both(`${answered} of ${ids.length} answered`, `已回答 ${answered} / ${ids.length}`));
      refill(stage.formula, formula([guess ? numbersOf(data) : t(both("The numbers behind the verdict appear here after your guess.", "猜完之后，这里给出结论背后的数值。"))]));
      stage.announce(guess ? `${stamp.textContent}. ${value.textContent}` : t(claim.words));
    };
  },
};

/** The first of the numbers behind the verdict. */
function numbersOf(data: Data): string {
  const { values } = array(data, "numbers");
  const first = Array.from(values.slice(0, 8), (value) => shown(value, 6)).join(", ");
  return `numbers = [${first}${values.length > 8 ? ", …" : ""}]`;
}
