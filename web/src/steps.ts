// The story in eight steps, which is also the map of the views. The start page's scene shows them with one sentence.
//
//   bag ─► hands ─► row ─► table ─► shift ─► scores ─► mask ─► attention

import { both, type Words } from "./words";

export interface Step {
  /** As in the address: #/story?step=hands. */
  name: string;
  title: Words;
  /** One sentence, above the picture. */
  says: Words;
  /** In the order in which the story leads through them; ORDER of explorer/views/NAME.py says the same. */
  views: string[];
}

export const STEPS: Step[] = [
  {
    name: "bag",
    title: both("A bag of words", "一袋词"),
    says: both(
      "Attention lets every word look at all words and adds up what it finds; a sum does not depend on order.",
      "注意力让每个词看所有的词，再把看到的加起来，而求和与次序无关。",
    ),
    views: ["order"],
  },
  {
    name: "hands",
    title: both("Clock hands", "时钟的指针"),
    says: both("Every position gets four clock hands, each slower than the one before it.", "每个位置都有四根指针，一根比一根转得慢。"),
    views: ["binary"],
  },
  {
    name: "row",
    title: both("The row of a position", "一个位置的一行数"),
    says: both(
      "Sine and cosine say how high and how far to the right each hand points: eight numbers, the row of the position.",
      "正弦和余弦记下每根指针指得多高、多靠右：八个数，就是这个位置的一行。",
    ),
    views: ["table"],
  },
  {
    name: "table",
    title: both("The table", "位置编码表"),
    says: both(
      "The rows one below the other are the table that is added to the word vectors: its columns are waves, from fast to slow.",
      "把各行上下叠起来，就是加到词向量上的表：每一列是一条波，从快到慢。",
    ),
    views: ["wavelengths", "precision"],
  },
  {
    name: "shift",
    title: both("A shift is a rotation", "平移就是旋转"),
    says: both(
      "When all words move on by k positions, a hand turns by the same angle at every word.",
      "所有的词一起后移 k 个位置，同一根指针在每个词那里都转过相同的角度。",
    ),
    views: ["shift", "similarity", "paths"],
  },
  {
    name: "scores",
    title: both("RoPE's scores", "RoPE 的分数"),
    says: both(
      "RoPE turns queries (rows) and keys (columns) like the hands: only how far apart two words are enters their score.",
      "RoPE 像转指针一样旋转查询（行）和键（列）：进入分数的，只有两个词相隔多远。",
    ),
    views: ["rotary_pair", "layouts", "terms", "taylor"],
  },
  {
    name: "mask",
    title: both("Mask and penalty", "掩码与惩罚"),
    says: both(
      "ALiBi rotates nothing: it lowers a score a little for every position in between, and the mask hides the words still to come.",
      "ALiBi 不旋转：两个词每隔一个位置，分数就降一点；掩码则挡住后面的词。",
    ),
    views: ["bias"],
  },
  {
    name: "attention",
    title: both("Attention", "注意力"),
    says: both(
      "The softmax turns one row of scores into shares: how much a word takes from itself and from each word before it.",
      "softmax 把一行分数变成份额：一个词从自己和前面每个词那里各取多少。",
    ),
    views: ["attention", "heads", "compare", "measured", "extrapolation", "what_breaks"],
  },
];

/** The step that leads to a view; undefined for a view that stands before the story. */
export function stepOf(view: string): Step | undefined {
  return STEPS.find(({ views }) => views.includes(view));
}

/** Where the scene shows a step, with the sentence that it has. */
export function stepAddress(name: string, sentence?: string): string {
  return `#/story?${new URLSearchParams({ step: name, ...(sentence === undefined ? {} : { sentence }) })}`;
}
