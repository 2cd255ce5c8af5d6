// What the heads of small trained models attend to: one sentence, read without positions and with them, and how it came about.

import { encodingColour } from "../colours";
import { array } from "../data";
import { h, refill, say } from "../dom";
import { lineChart, type Series } from "../parts/chart";
import { formula, put, sub, sup } from "../parts/formula";
import { folded, plainTable } from "../parts/numbers";
import { player } from "../parts/player";
import { predict } from "../parts/predict";
import { number, own, type View } from "../view";
import { both, shown } from "../words";
import styles from "./heads.css";
import { headName, headsOf, sentenceOf, type Reading } from "./heads_pictures";

const OWN = {
  query: own.whole(3, 0, 47), left: own.whole(-1, -1, 8), right: own.whole(-1, -1, 8),
  snapshot: own.whole(8, 0, 8), speed: own.real(2, 1, 10), distance: own.whole(0, 0, 60),
};
const NAMES: Record<string, string> = { rope: "RoPE", sinusoidal: "Sinusoidal", alibi: "ALiBi", nope: "NoPE" };

/** Offered where one is typed, and as buttons below the drawing. */
const EXAMPLES = [
  "The film is very boring, but the actors' acting is brilliant.", "这部电影很无聊，但演员表演精彩。", "The red car is parked outside the building.",
  "The actors' acting is brilliant, but the film is very boring.", "演员表演精彩，但这部电影很无聊。", "The old bus is hidden behind the new school.",
  "It was a great meal, but the service was really slow.", "他说小说很感人，有出色的台词，但动画很平淡。",
];

interface Facts {
  task: "descriptions" | "reviews" | "translation";
  reads: { words: string[]; answers: string[] }[];
  asked: string[];
  unknown: string[];
  vocabulary: string[];
  steps: number[];
  training: { steps: number; rows: number };
  held_out: number;
  size: Record<string, number>;
  seed: number;
  date: string;
  preset: string;
}

export const view: View = {
  name: "heads",
  title: both("What trained heads look at", "训练好的头看向哪里"),
  idea: both(
    "Small models were trained on generated sentences, once without positions and once with them. Those for one task say who describes whom, in English or in Chinese; those for the other translate English word by word.",
    "小模型在生成的句子上训练，一次没有位置，一次有位置。一种任务是判断谁形容谁，读英语或汉语；另一种是把英语逐词译成汉语。",
  ),
  notice: [
    both(
      "Who describes whom: any adjective suits any noun, so without positions a model can only guess among them, and no head gives the right word more than a third of its attention on average. With RoPE or sinusoids every held-out sentence is right (ALiBi: 99 %), and each head of layer 2 looks from boring to film and from acting to brilliant (RoPE: 0.92 to 1.00).",
      "谁形容谁：任何形容词都配得上任何名词，没有位置的模型只能猜，平均而言，没有一个头把三分之一以上的注意力给对的词。有了位置，留出的句子全部答对，第 2 层的每个头都从“无聊”看向“电影”、从“表演”看向“精彩”（RoPE：0.87 到 1.00）。",
    ),
    both(
      "In this sentence single heads without positions also look from boring to film (0.82), but by luck: the answer for boring is acting, and no answer is surer than 66 %.",
      "在这个句子里，没有位置的模型也有头从“无聊”看向“电影”（0.94），但只是碰巧：它给“表演”的答案是“无聊”，没有一个答案的把握超过 58%。",
    ),
    both(
      "Translation: the model reads from left to right, and this mask alone shows the order. Without positions it translates every held-out sentence too. In both, heads of layer 2 look from a Chinese word to its English word, at another position: 红色 to red, 建筑物 to building. No head does so for every word; “max” shows the largest weight of all heads.",
      "翻译：模型从左往右读，单凭这个掩码就能看出次序。没有位置，留出的句子也全部译对。两种模型的第 2 层都有头从汉语词看向位置不同的英语词：红色看 red，建筑物看 building。没有一个头对每个词都这样；“最大”显示所有头中最大的权重。",
    ),
    both(
      "One seed, and models that were trained for exactly this. A model of ordinary text need not have such heads.",
      "只有一个随机种子，而且模型就是为此训练的。在普通文本上训练的模型未必有这样的头。",
    ),
  ],
  papers: [
    { text: "Haviv et al. 2022", href: "https://arxiv.org/abs/2203.16634" },
    { text: "Bahdanau et al. 2014, alignment", href: "https://arxiv.org/abs/1409.0473" },
  ],
  own: OWN,
  styles,
  controls: [
    { name: "sentence", label: both("your sentence", "你的句子"), as: "sentence", rule: both(
      "English is cut at spaces and goes to the models that know its words: nouns with adjectives, or a sentence to translate. Chinese is cut from the left into the longest known words. A word that they do not know is read as a blank, a vector of zeros at its position. A missing full stop is added.",
      "汉语从左往右切成模型认识的最长的词。英语在空格处断开，交给认识这些词的模型：名词带形容词，或一个要翻译的句子。不认识的词读作空白，即该位置上的零向量。末尾缺少的句号会补上。",
    ), examples: EXAMPLES },
    { name: "encoding", label: both("positions", "位置编码") , choices: {
      rope: both("RoPE", "RoPE"), sinusoidal: both("sinusoidal", "正弦"), alibi: both("ALiBi", "ALiBi"),
    } },
  ],
  build(stage) {
    const { t } = stage;
    const sides = (["left", "right"] as const).map((side, index) => {
      const label = index ? both("The sentence as read with positions", "有位置的模型读这个句子") : both("The sentence as read without positions", "没有位置的模型读这个句子");
      const [title, said] = [h("h2", {}), h("p", { class: "small" })];
      const sentence = sentenceOf(stage, label, (query) => stage.set({ query }));
      const maps = headsOf(stage, t(index ? both("Heads with positions", "有位置的模型的头") : both("Heads without positions", "没有位置的模型的头")), (head) => stage.set({ [side]: head }));
      return { side, title, said, sentence, maps, element: h("section", { class: "model" }, title, h("div", { class: "scroll" }, sentence.element), maps.element, said) };
    });
    const table = h("div", {});
    const [unknown, words] = [h("p", { class: "unknown-words" }), h("p", { class: "vocabulary" })];
    const play = player(stage, { name: "snapshot", speed: "speed", parameter: OWN.snapshot, speeds: [1, 2, 5, 10] });
    const when = h("output", { "data-role": "when" });
    const rising = lineChart(stage, { label: both("Held-out sentences while training", "训练中留出句子的情况"), x: both("training step", "训练步"), y: both("share", "比例"), height: 260,
      pick: (snapshot) => stage.set({ snapshot }) });
    const profile = lineChart(stage, { label: both("Attention by distance at this step", "这一步按距离的注意力"), x: both("query − key: left of 0 is ahead, right of 0 is back", "查询 − 键：0 以左是后文，0 以右是前文"),
      y: both("mean probability", "平均概率"), height: 260, pick: (distance) => stage.set({ distance }) });
    const question = predict(stage, {
      question: both("The model with RoPE that says who describes whom in English has two layers. In which of them do heads look from an adjective to its noun?", "用 RoPE 读汉语的模型有两层。从形容词看向它的名词的头在哪一层？"),
      choices: [both("in layer 1", "第 1 层"), both("in layer 2", "第 2 层"), both("in both", "两层都有")], right: 1,
      because: both("In layer 2. Layer 1 gives the noun 5 % on average, as uniform attention does: it does not yet know the word's own surroundings. What it gathers lets layer 2 choose the right noun with up to 98 %.",
        "第 2 层。第 1 层平均只给名词 4% 到 8%，与均匀注意力（6%）相差无几：它还不知道一个词的周围有什么。它收集到的信息让第 2 层能以最高 97% 的概率选中正确的名词。"),
    });
    const training = h("div", { class: "training" }, h("h2", {}, t(both("While training", "训练过程"))), h("div", { class: "scrubber" }, play.element, when), h("div", { class: "split" }, rising.element, profile.element));
    const from = h("p", { class: "small" });
    const tries = h("div", { class: "choices tries" }, h("span", {}, t(both("Read", "读"))), ...EXAMPLES.map((sentence) => h("button", { type: "button", click: () => stage.set({ sentence, query: 3 }) }, sentence)));
    stage.root.append(h("div", { class: "models" }, ...sides.map((one) => one.element)), unknown, tries, question, training, folded(t(both("Numbers of the chosen word", "所选的词的数值")), table), folded(t(both("Words that the models know", "模型认识的词")), words), from);

    return (data, state) => {
      const facts = data.facts as Facts;
      const name = NAMES[state["encoding"] as string]!;
      const linked = array(data, "linked");
      const [, snapshots, layers, heads, kinds] = linked.shape as [number, number, number, number, number];
      const count = layers * heads;
      /** Mean probability of linked words, over kinds of links. */
      const ofHead = (model: number, step: number, head: number) => {
        const start = ((model * snapshots + step) * count + head) * kinds;
        return Array.from(linked.values.subarray(start, start + kinds)).reduce((sum, one) => sum + one, 0) / kinds;
      };
      const best = (model: number) => Array.from({ length: count }, (_, n) => ofHead(model, snapshots - 1, n)).reduce((most, one, n, all) => (one > all[most]! ? n : most), 0);
      const readings = sides.map(({ side }, model): Reading & { head: number } => {
        const { words, answers } = facts.reads[model]!;
        const head = number(state, side) >= 0 ? number(state, side) : facts.task === "translation" ? count : best(model);
        const all = array(data, model ? "weights_with" : "weights_without").values;
        const size = words.length ** 2;
        const weights = head < count ? all.subarray(head * size, (head + 1) * size) : largest(all, size);
        const arrow = words.indexOf("→");
        const asked = words.flatMap((word, i) => (arrow < 0 ? (facts.asked.includes(word) ? [i] : []) : i >= arrow && i < words.length - 1 ? [i] : []));
        return { words, answers, beside: facts.reads[1 - model]!.answers, unknown: facts.unknown, head, ofAll: head === count, asked, weights, chances: array(data, model ? "chances_with" : "chances_without").values, ...(arrow < 0 ? {} : { translated: arrow + 1 }) };
      });
      const right = array(data, "right").values;
      const chosenIn = ({ asked }: Reading) => (asked.includes(number(state, "query")) ? number(state, "query") : asked[0] ?? 0);
      sides.forEach(({ title, said, sentence, maps }, model) => {
        const reading = readings[model]!;
        const share = right[(model + 1) * snapshots - 1]!;
        refill(title, h("span", {}, model ? t(both(`With ${name}`, `有位置：${name}`)) : t(both("Without positions", "没有位置"))),
          h("b", { class: share > 0.5 ? "right" : "wrong", "data-role": model ? "right-with" : "right-without", "data-value": share }, t(both(`${shown(100 * share, 0)} % right`, `${shown(100 * share, 0)}% 答对`))));
        sentence.draw(reading, chosenIn(reading));
        maps.element.dataset["title"] = t(model ? both(`Heads with ${name}`, `${name} 的各头`) : both("Heads without positions", "没有位置的各头"));
        maps.draw(array(data, model ? "weights_with" : "weights_without"), reading.head, Array.from({ length: count }, (_, n) => ofHead(model, snapshots - 1, n)));
        refill(said, t(both(`Right: of ${facts.held_out} held-out sentences, with all words. Below each head, its mean attention to the word that the answer is in.`, `答对：${facts.held_out} 个留出的句子中全部答对的比例。每个头下面是它给答案所在的词的平均注意力。`)));
      });

      const [some, none] = [facts.unknown.length > 0, readings[1]!.asked.length === 0];
      unknown.hidden = !some && !none;
      say(unknown, [
        some && both(`Not known to the models: ${facts.unknown.join(", ")}. Such a word is read as a blank, a vector of zeros at its position.`, `模型不认识：${facts.unknown.join("、")}。这样的词读作空白，即该位置上的零向量。`),
        none && both("The models answer for nouns and adjectives that they know, and find none here.", "模型只为认识的名词和形容词作答，这里没有。"),
      ].flatMap((one) => (one ? [t(one)] : [])).join(" "));

      play.draw(state);
      const at = Math.min(number(state, "snapshot"), snapshots - 1);
      const step = facts.steps[at]!;
      refill(when, t(both("step ", "第 ")), h("b", { "data-value": step }, step), t(both(` of ${facts.steps.at(-1)}`, ` 步，共 ${facts.steps.at(-1)} 步`)));
      const over = (f: (step: number) => number) => Array.from({ length: snapshots }, (_, n) => f(n));
      const colours = [encodingColour("nope"), encodingColour(state["encoding"] as string)];
      const called = [t(both("without", "没有位置")), name];
      rising.draw({ cursor: at, yFrom: 0, yTo: 1.05, series: [0, 1].flatMap((model): Series[] => [
        { name: `${called[model]}${t(both(": sentences all right", "：全部答对的句子"))}`, x: facts.steps, y: over((n) => right[model * snapshots + n]!), colour: colours[model]!, dots: true },
        { name: `${called[model]}${t(both(": best head's attention to the linked word", "：最好的头给相关词的注意力"))}`, x: facts.steps, y: over((n) => ofHead(model, n, best(model))), colour: colours[model]!, dashed: true, dots: true },
      ]) });
      const single = (model: number) => (readings[model]!.head < count ? readings[model]!.head : best(model));
      const attention = array(data, "attention");
      const wide = attention.shape.at(-1)!;
      const causal = facts.task === "translation";
      const [start, tokens] = [causal ? (wide - 1) / 2 : 0, (wide + 1) / 2];
      const x = Array.from({ length: wide - start }, (_, n) => n + start - (tokens - 1));
      profile.draw({ cursor: Math.min(number(state, "distance") || x.indexOf(causal ? 1 : 2), x.length - 1), yFrom: 0, series: [0, 1].map((model): Series => ({
        name: `${called[model]}, ${t(headName(single(model), heads))}`, x, colour: colours[model]!, dashed: model === 0,
        y: attention.values.subarray(((model * snapshots + at) * count + single(model)) * wide + start, ((model * snapshots + at) * count + single(model) + 1) * wide),
      })) });

      const reading = readings[1]!;
      const query = chosenIn(reading);
      const size = reading.words.length;
      const row_ = Array.from({ length: size }, (_, j) => reading.weights[query * size + j]!);
      const key = row_.indexOf(Math.max(...row_));
      const [asks, looked] = [causal ? reading.words[query + 1]! : reading.words[query]!, reading.words[key]!];
      const weight = row_[key]!;
      refill(stage.formula, formula(
        [`${name}, ${t(headName(reading.head, heads))}:  softmax`, sub("j"), "(q", sub("i"), sup("⊤"), "k", sub("j"), ` / √${facts.size["d_model"]! / heads})`],
        [causal ? t(both(`predicting ${asks}, at ${query}`, `预测“${asks}”，在位置 ${query}`)) : `${asks} `, causal ? "" : put(query, "position"), " → ", `${looked} `, put(key, "position"), ":  ",
          h("output", { "data-role": "value", "data-value": weight }, shown(weight)), t(both(",  answer ", "，答案 ")), h("b", {}, reading.answers[query]!), " ",
          h("output", { "data-role": "chance", "data-value": reading.chances[query]! }, shown(reading.chances[query]!))]));
      const other = readings[0]!;
      const same = other.words.join(" ") === reading.words.join(" ");
      refill(table, plainTable(t(both(`Attention from ${asks}`, `“${asks}”的注意力`)), [t(both("word", "词")), t(both("without positions", "没有位置")), name],
        reading.words.map((word, j) => [`${word} ${j}`, same ? rounded(other.weights[query * size + j]!) : NaN, rounded(row_[j]!)])));
      say(words, facts.vocabulary.join(" "));
      refill(from, t(both(
        `Four models for this task, one seed (${facts.seed}): ${layers} layers, d_model ${facts.size["d_model"]}, ${heads} heads, ${facts.training.steps} steps of ${facts.training.rows} sentences, ${facts.date}. Made by `,
        `这个任务有四个模型，一个随机种子（${facts.seed}）：${layers} 层，d_model ${facts.size["d_model"]}，${heads} 个头，${facts.training.steps} 步，每步 ${facts.training.rows} 个句子，${facts.date}。命令：`)),
        h("code", {}, "python -m posenc.explorer.train_words"), t(both("; measured by ", "；测量：")), h("code", {}, `posenc lab run ${facts.preset}`), t(both(".", "。")));
      stage.announce(`${asks} → ${looked}: ${shown(weight)}, ${t(both("answer", "答案"))} ${reading.answers[query]} ${shown(reading.chances[query]!)}`);
      const of = reading.head < count ? `[${Math.floor(reading.head / heads)}, ${reading.head % heads}, ${query}, ${key}]` : `.amax((0, 1))[${query}, ${key}]`;
      stage.code(`with_.weights${of}  # ${asks} → ${looked}: ${weight}`);
    };
  },
};

/** For every query and key the largest weight of all heads. */
function largest(all: ArrayLike<number>, size: number): Float64Array {
  return Float64Array.from({ length: size }, (_, at) => Math.max(...Array.from({ length: all.length / size }, (_, head) => all[head * size + at]!)));
}

const rounded = (value: number) => Math.round(value * 1e4) / 1e4;
