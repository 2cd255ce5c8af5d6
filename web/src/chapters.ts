// The story in eight chapters, which is also the map of the views.
//
//   blindness ─► integers ─► binary ─► sinusoid ─► rotation ─► relative ─► bias ─► extrapolation

import { both, type Words } from "./words";

export interface Chapter {
  title: Words;
  text: Words;
  /** In the order in which the story shows them; ORDER of explorer/views/NAME.py says the same. */
  views: string[];
}

export const CHAPTERS: Chapter[] = [
  {
    title: both("Attention is blind to order", "注意力看不见顺序"),
    text: both(
      "Attention compares every word with every other word and sums the results. The sum does not depend on order: 我爱你 (I love you) and 你爱我 (you love me) are the same set of three words. If you reorder the words, each word keeps its own result.",
      "注意力让每个词与所有词比较，再对结果求和。求和与次序无关：我爱你与你爱我是同样的三个词。把词重新排列，每个词的结果不变。",
    ),
    views: ["order", "attention", "heads"],
  },
  {
    title: both("First idea: number the positions", "第一种做法：给位置编号"),
    text: both(
      "Add the position number to every word vector. The numbers grow and become larger than the word vectors, and a network trained on positions 0 to 500 has never seen 5000. Dividing by the length does not help: one step then has a different size in every text.",
      "把位置编号加到每个词向量上。编号越来越大，会盖过词向量；只训练过 0 到 500 的网络没有见过 5000。除以总长度也不行：一步的大小会随文章长度而变。",
    ),
    views: [],
  },
  {
    title: both("Binary: many frequencies", "二进制：许多种频率"),
    text: both(
      "In binary no digit exceeds 1. The last digit flips at every step, the digit before it at every second step, the next at every fourth. Together they repeat only after many steps. But each flip is a jump, and networks learn smooth functions more easily.",
      "写成二进制，每一位都不超过 1。最后一位每步翻转一次，前一位每两步翻转一次，再前一位每四步。合在一起，要过很多步才会重复。但每次翻转都是跳变，而网络更容易学习平滑的函数。",
    ),
    views: ["binary"],
  },
  {
    title: both("Sinusoids: smooth digits", "正弦波：平滑的数位"),
    text: both(
      "Replace the digits by clock hands that turn at different speeds, from fast to slow, and write down the sine and cosine of each hand. Fast hands separate neighbouring positions; slow hands separate distant positions. One hand alone would repeat. The resulting row of numbers is added to the word vector.",
      "用转速不同的指针代替数位，由快到慢，记下每根指针的正弦与余弦。快针区分相邻的位置，慢针区分相距很远的位置；单独一根转一圈就会重复。得到的一行数加到词向量上。",
    ),
    views: ["table", "wavelengths", "precision", "audit"],
  },
  {
    title: both("A shift is a rotation", "平移就是旋转"),
    text: both(
      "Moving by k positions turns each hand by a fixed angle, whatever its angle was before. So one fixed matrix maps every row to the row k positions later. A network can learn “three to the left” once for all positions.",
      "向后移动 k 个位置，每根指针转过固定的角度，与原来的角度无关。所以同一个矩阵能把任意一行变成 k 个位置之后的那一行。“往左数第三个”，网络只需学一次，对所有位置都适用。",
    ),
    views: ["shift", "similarity", "paths"],
  },
  {
    title: both("Relative: rotate queries and keys", "相对位置：旋转查询和键"),
    text: both(
      "RoPE adds nothing to the word vectors. It rotates queries and keys by angles that depend on their positions. The product of two arrows depends only on the angle between them, so the score depends only on the difference of the positions. In the map below, values are equal along each diagonal.",
      "RoPE 不往词向量上加任何东西。它按位置旋转查询和键。两支箭头的乘积只取决于夹角，所以分数只取决于位置之差。在下面的分数图里，每条对角线上的值都相同。",
    ),
    views: ["rotary_pair", "layouts", "terms", "taylor"],
  },
  {
    title: both("Bias: add it to the score", "偏置：直接加到分数上"),
    text: both(
      "Or lower the score itself: the larger the distance, the larger the penalty. ALiBi subtracts a straight line with a different slope for each head. Heads with a steep slope see only nearby words; heads with a flat slope see far. T5 learns one number for each range of distances.",
      "也可以直接降低分数：距离越大，降得越多。ALiBi 给每个头一条斜率不同的直线：斜率大的头只看近处的词，斜率小的头看得远。T5 为每一段距离学一个数。",
    ),
    views: ["bias", "compare", "measured"],
  },
  {
    title: both("Beyond the trained length", "超出训练长度"),
    text: both(
      "Now read texts longer than any in training. Slow hands reach angles not seen in training, and a model that relies on them makes errors. A straight line continues unchanged. The curves below are measured.",
      "现在读比训练时更长的文章。慢针会转到训练中没有见过的角度，依赖它们的模型就会出错；而直线照样延伸，不受影响。下面的曲线是测量结果。",
    ),
    views: ["extrapolation", "what_breaks", "true_or_false"],
  },
];

/** The chapter of a view; undefined for a view of none, which stands before the story. */
export function chapterOf(view: string): number | undefined {
  const found = CHAPTERS.findIndex((chapter) => chapter.views.includes(view));
  return found < 0 ? undefined : found;
}
