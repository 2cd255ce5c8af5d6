// Two trained models and a slider: what they write after longer and longer texts, and the loss at every position of those texts.

import { encodingColour } from "../colours";
import { array } from "../data";
import { type Child, fill, h, refill, s } from "../dom";
import { lineChart } from "../parts/chart";
import { formula, put, sub } from "../parts/formula";
import { folded } from "../parts/numbers";
import { predict } from "../parts/predict";
import { number, own, type Stage, type View } from "../view";
import { both, shown, type Words } from "../words";
import styles from "./stretch.css";

const END = 959; // the cursor at the end of the text, however long it is
const OWN = { at: own.whole(END, 0, END) };
const NAMES = ["ALiBi", "RoPE", "RoPE + YaRN"];
const COLOURS = ["alibi", "rope", "yarn"].map(encodingColour);
const TIMES = [1, 2, 4, 8];
const PAUSE = 900; // milliseconds at each stop on the way to 8×
const MOST_BITS = 13;
const SEEN_BEFORE = 36; // letters of the prompt that stand before what is written

interface Facts {
  models: string[];
  prompt: string;
  texts: string[];
  trained: number;
  longest: number;
  near: number;
  keys: Record<string, string>;
  size: Record<string, number>;
  seed: number;
  training: { steps: number; rows: number };
  training_loss: Record<string, number[]>;
  preset: string;
  command: string;
  date: string;
}

export const view: View = {
  name: "stretch",
  title: both("Stretch a trained model", "拉长一个训练好的模型"),
  idea: both(
    "Two models were trained on 128 bytes: lengthen the text, read what they write. RoPE meets angles that it has not seen in training, ALiBi's penalty goes on as a straight line, and YaRN changes the frequencies of the trained RoPE model.",
    "两个小模型训练时每次只读 128 字节：把文本拉长，看它们写出什么。RoPE 会遇到训练中没有见过的角度，ALiBi 的惩罚照样沿直线延伸，YaRN 则修改已训练好的 RoPE 模型的频率。",
  ),
  notice: [
    both(
      "On 128 texts that no model has read, as long as in training, 2, 4 and 8 times as long: the next byte costs ALiBi 0.82, 0.82, 0.82 and 0.82 bits; RoPE 0.82, 4.86, 8.03 and 8.57; RoPE with YaRN 0.82, 0.89, 1.14 and 1.58. A byte by chance costs 8 bits.",
      "128 篇模型没有读过的文本，1、2、4、8 倍训练长度：下一个字节 ALiBi 要 0.82、0.82、0.82、0.82 比特；RoPE 0.82、4.86、8.03、8.57；RoPE 加 YaRN 0.82、0.89、1.14、1.58。随便猜一个字节是 8 比特。",
    ),
    both(
      "YaRN needs no training here: it slows the slow pairs of channels by the factor, which keeps them at angles seen in training, and sharpens the attention. It mends most of the damage, and less of it the longer the text.",
      "YaRN 在这里没有再训练：它把慢的通道对按倍数放慢，使角度留在训练中见过的范围内，并让注意力更集中。损坏大半被修好，但文本越长，修好的越少。",
    ),
    both(
      "That ALiBi stays readable does not show that it uses the far text. It looks mostly at nearby bytes, and in the study no encoding gained more than 0.001 bits from bytes farther back than 128.",
      "ALiBi 读得通，并不说明它用到了远处的文本。它主要看近处的字节；在这项研究里，没有一种编码从 128 字节以外的内容获益超过 0.001 比特。",
    ),
  ],
  papers: [
    { text: "Press et al. 2021, ALiBi", href: "https://arxiv.org/abs/2108.12409" },
    { text: "Su et al. 2021, RoPE", href: "https://arxiv.org/abs/2104.09864" },
    { text: "Peng et al. 2023, YaRN", href: "https://arxiv.org/abs/2309.00071" },
  ],
  own: OWN,
  styles,
  controls: [{
    name: "prompt", label: both("the text ends with", "文本的结尾"), as: "sentence", rule: both(
      "Your words follow a tale that the models have not read, which makes the text as long as you set. English words follow an English tale, Chinese words a Chinese one. The models know nothing but such tales, so other words cost them many bits.",
      "你的话接在一篇模型没有读过的故事后面，文本因此有你所设的长度。英文接英文故事，中文接中文故事。除了这类故事，模型什么都没有读过，别的词要花很多比特。",
    ),
  }],
  build(stage) {
    const { t } = stage;
    const { from, to, step } = stage.source.schemas["stretch"]!["length"] as { from: number; to: number; step: number };
    const stops = Array.from({ length: (to - from) / step + 1 }, (_, n) => from + n * step);
    const nearest = (wanted: number) => stops.reduce((best, one) => (Math.abs(one - wanted) < Math.abs(best - wanted) ? one : best));

    const tape = h("div", { class: "tape", "aria-hidden": "true" });
    const said = h("output", { class: "said", "data-role": "length" });
    const slider = h("input", { type: "range", min: 0, max: to, step, "data-role": "stretch",
      input: () => stage.set({ length: nearest(Number(slider.value)) }),
      keydown: (event: KeyboardEvent) => {
        const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        const at = stops.indexOf(number(stage.state(), "length")) + by;
        stage.set({ length: stops[Math.min(Math.max(at, 0), stops.length - 1)]! });
      } });
    const jumps = h("div", { class: "jumps", role: "group", "aria-label": t(both("times the trained length", "训练长度的倍数")) });
    const buttons = TIMES.map((times) => h("button", { type: "button", "data-times": times, click: () => stage.set({ length: times * from }) }, `${times}×`));
    buttons.forEach((button, n) => button.style.setProperty("--at", String(TIMES[n]! / TIMES.at(-1)!)));
    jumps.append(...buttons);

    const panels = NAMES.map((name, model) => {
      const text = h("p", { class: "written" });
      const element = h("section", { class: "writer", "data-model": model }, h("h2", {}, name), text);
      element.style.setProperty("--k", COLOURS[model]!);
      return { element, text };
    });
    const chart = lineChart(stage, {
      label: both("Loss by position", "各位置的损失"), x: both("position (bytes)", "位置（字节）"), y: both("bits a byte", "比特／字节"),
      height: window.innerWidth < 760 ? 140 : 180, pick: (index) => stage.set({ at: index }),
    });
    const [words, prompt] = [h("p", { class: "of-words" }), h("p", { class: "prompt" })];
    const from_ = h("p", { class: "small" });
    const question = predict(stage, {
      question: both("And at 8×: whose next byte still costs what it cost at the trained length?", "再到 8 倍：哪一个每字节的代价还和训练长度时一样？"),
      choices: [...NAMES.map((name) => both(name, name)), both("none of them", "都不一样")], right: 0,
      because: both("ALiBi: 0.82 bits for each byte of texts that it has not read, as at 1×. YaRN has risen to 1.58, and RoPE to 8.57, which is worse than chance.",
        "是 ALiBi：在留出的文本上每字节 0.82 比特，和 1 倍时一样。YaRN 升到 1.58，RoPE 升到 8.57，比随便猜还差。"),
    }, () => stretchTo(stage, stops, 8 * from));
    stage.root.append(
      h("div", { class: "ruler controls" }, tape, h("label", {}, h("span", { class: "away" }, t(both("length of the text", "文本的长度"))), slider), jumps), said,
      h("div", { class: "writers" }, ...panels.map(({ element }) => element)), h("div", { class: "lost" }, chart.element), words, question,
      folded(t(both("The text before", "前面的文本")), prompt), from_);

    let drawn = () => {};
    const watch = new ResizeObserver(() => drawn());
    watch.observe(tape);
    stage.leaving(() => watch.disconnect());

    return (data, state) => {
      const facts = data.facts as Facts;
      const length = number(state, "length");
      const written = array(data, "written").shape[1]!;
      const read = length - written;
      const times = length / facts.trained;
      drawn = () => fill(tape, ruler(tape.clientWidth, facts, read, written, t));
      drawn();
      slider.value = String(number(stage.state(), "length"));
      const spoken = t(both(`${shown(times, times % 1 ? 1 : 0)} times the trained length: ${read} bytes of text, then ${written} that each model writes`,
        `训练长度的 ${shown(times, times % 1 ? 1 : 0)} 倍：${read} 字节的文本，再由各个模型写 ${written} 字节`));
      slider.setAttribute("aria-valuetext", spoken);
      said.dataset["value"] = String(length);
      refill(said, h("b", {}, `${shown(times, times % 1 ? 1 : 0)}×`), " ", spoken.replace(/^.*?[:：]\s*/u, ""));
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(Number(button.dataset["times"]) === times)));

      const loss = array(data, "loss");
      const [, count] = loss.shape as [number, number];
      const at = Math.min(number(state, "at"), count - 1);
      const x = Float64Array.from([...Array.from({ length: count }, (_, n) => n + facts.near), facts.longest]);
      panels.forEach(({ text }, model) => fill(text, h("span", {}, tail(facts.prompt)), h("mark", {}, ...facts.texts[model]!.split(/(\ufffd+)/).map((piece) => (piece.startsWith("\ufffd") ? h("i", {}, piece) : piece)))));
      chart.draw({
        series: NAMES.map((name, model) => ({ name, x, y: Float64Array.from([...loss.values.subarray(model * count, (model + 1) * count), NaN]), colour: COLOURS[model]! })),
        cursor: at, yFrom: 0, yTo: MOST_BITS, marks: [{ x: facts.trained, word: t(both("trained to here", "训练到这里")) }],
      });
      const ofEach = (name: string, said: (value: number) => string) => NAMES.flatMap((model, m): Child[] => {
        const value = array(data, name).values[m]!;
        return [m ? ", " : "", `${model} `, h("b", { "data-role": name, "data-value": value }, said(value))];
      });
      refill(words, t(both("The words at the end cost ", "结尾的话：")), ...ofEach("words", (value) => shown(value, 2)), t(both(" bits a byte. Of this the length adds ", " 比特／字节。其中由长度带来的：")), ...ofEach("added", (value) => `${value >= 0.005 ? "+" : ""}${shown(Math.round(100 * value) / 100, 2)}`), t(both(
        "; the rest says how unusual the words are to models this small, which have read nothing but generated tales: 0.82 for a tale like those, 8 by chance. Compare what the length adds.",
        "；其余的说明这些话对这么小、只读过生成故事的模型有多陌生：同类故事是 0.82，随便猜是 8。要比较的是长度带来的部分。",
      )));
      prompt.textContent = facts.prompt;
      refill(stage.formula, formula(
        [t(both("loss", "损失")), sub("n"), ` = −log`, sub("2"), t(both(" p(byte n | bytes before it)", " p(第 n 字节 | 前面的字节)")), t(both(`,  mean of ${facts.near} bytes up to `, `，到 `)), put(x[at]!, "position"),
          t(both(":  ", ` 为止 ${facts.near} 个字节的平均：  `)), ...NAMES.flatMap((name, model) => [model ? ",  " : "", `${name} `, h("output", {}, shown(loss.values[model * count + at]!))])],
        [t(both("YaRN with factor s = ", "YaRN，倍数 s = ")), put(length), " / ", put(facts.trained), " = ", h("output", {}, shown(times, 2))]));
      const final = facts.models.slice(0, 2).map((name) => facts.training_loss[name]?.at(-1));
      refill(from_, t(both(
        `Two models of the lab's study (seed ${facts.seed}): ${facts.size["n_layers"]} layers, d_model ${facts.size["d_model"]}, ${facts.size["n_heads"]} heads, ${facts.training.steps} steps of ${facts.training.rows} × ${facts.trained} bytes of generated tales, English and Chinese, ${facts.date}. Training loss at the end: ALiBi ${shown(final[0]!, 2)}, RoPE ${shown(final[1]!, 2)} bits a byte. YaRN has the RoPE model's weights. Always the most probable byte is written. Trained by `,
        `两个模型来自实验室的研究（随机种子 ${facts.seed}）：${facts.size["n_layers"]} 层，d_model ${facts.size["d_model"]}，${facts.size["n_heads"]} 个头，${facts.training.steps} 步，每步 ${facts.training.rows} × ${facts.trained} 字节的中英文生成故事，${facts.date}。结束时的训练损失：ALiBi ${shown(final[0]!, 2)}、RoPE ${shown(final[1]!, 2)} 比特／字节。YaRN 用的是 RoPE 模型的权重。每次写出概率最大的字节。训练命令：`)),
        h("code", {}, facts.command), t(both("; their records are ", "；记录：")), h("code", {}, Object.entries(facts.keys).map(([name, key]) => `results/study/trials/language_model-${name}-s${facts.seed}-${key}.parquet`).join(", ")), t(both(", made by ", "，由 ")), h("code", {}, `posenc lab run ${facts.preset}`), t(both(".", " 得出。")));
      stage.announce(`${spoken}${t(both(". ", "。"))}${NAMES.map((name, model) => `${name}: ${shown(loss.values[model * count + at]!)}`).join(", ")}`);
      stage.code(`loss[:, ${at}].tolist()  # ${NAMES.map((_, model) => loss.values[model * count + at]!).join(", ")}`);
    };
  },
};

/** From stop to stop, so that the eye follows; at once where less motion is wanted. */
function stretchTo(stage: Stage, stops: number[], length: number): void {
  const way = [2, 4].map((times) => (times * length) / 4).filter((one) => stops.includes(one));
  if (!stage.motion) return stage.set({ length, at: END });
  let timer = 0;
  stage.leaving(() => clearTimeout(timer));
  const go = () => {
    const next = way.shift();
    if (next === undefined) return;
    stage.set({ length: next, at: END });
    timer = window.setTimeout(go, PAUSE);
  };
  go();
}

/** The end of the text before, from the start of a word. */
function tail(text: string): string {
  const end = text.slice(-SEEN_BEFORE);
  return `…${/[\u3400-\u9fff]/u.test(end) ? end.slice(-SEEN_BEFORE / 2) : end.slice(end.indexOf(" ") + 1)}`;
}

/** The text as a tape: what was seen in training, what is longer, and what the models write. */
function ruler(width: number, facts: Facts, read: number, written: number, t: (words: Words) => string): SVGElement {
  const wide = Math.max(width, 200);
  const place = (byte: number) => (byte / facts.longest) * wide;
  const tall = 60;
  const part = (name: string, start: number, end: number) => s("rect", { class: name, x: place(start), width: Math.max(place(end) - place(start), 0), y: 20, height: 28 });
  return s("svg", { viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall },
    part("room", 0, facts.longest), part("trained", 0, Math.min(read, facts.trained)), part("longer", facts.trained, read), part("writes", read, read + written),
    s("line", { class: "edge", x1: place(facts.trained), x2: place(facts.trained), y1: 4, y2: 58 }),
    s("text", { class: "edge", x: place(facts.trained) + 5, y: 14 }, t(both("trained to here", "训练到这里"))),
    wide > 500 && read > 3 * facts.trained ? s("text", { class: "on", x: place((facts.trained + read) / 2), y: 39, "text-anchor": "middle" }, t(both("never so long in training", "训练中从未这么长"))) : null,
    s("text", { class: "writes", x: Math.min(place(read), wide - 4), y: 14, "text-anchor": read > facts.longest * 0.7 ? "end" : "start", visibility: read < 3 * facts.trained && wide < 500 ? "hidden" : "visible" }, read < 2 * facts.trained ? "" : t(both("they write here", "在这里续写"))));
}
