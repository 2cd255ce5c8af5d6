"""Every sentence that the report adds to the findings, in both languages.

say("lead", tasks=2, …)      where a value is Words, each language takes its own
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.bilingual import Words, joined

PROSE = {
    "title": Words("Train short, test long", "短序列训练，长序列测试"),
    "lead": Words(
        "{arms} positional encodings on {tasks} tasks, {seeds} seeds each, in models that differ by the encoding "
        "only. Experiment “{name}”: {about}",
        "{arms} 种位置编码，{tasks} 个任务，各 {seeds} 个随机种子；各模型只有位置编码不同。实验“{name}”：{about}",
    ),
    "lead one": Words(
        "{arms} positional encodings on one task, {seeds} seeds each, in models that differ by the encoding only. "
        "Experiment “{name}”: {about}",
        "{arms} 种位置编码，一个任务，各 {seeds} 个随机种子；各模型只有位置编码不同。实验“{name}”：{about}",
    ),
    "exploratory": Words(
        "Fewer than five seeds: exploratory, no intervals over seeds.", "不足五个随机种子：仅供探索，不给出种子间的区间。"
    ),
    "contents": Words("On this page", "本页内容"),
    # Short words
    "encoding": Words("encoding", "编码"),
    "task": Words("task", "任务"),
    "length": Words("length", "长度"),
    "change": Words("change", "改动"),
    "trained": Words("trained length", "训练长度"),
    "chance": Words("chance", "随机水平"),
    "baseline": Words("without context", "不看上文"),
    "bits": Words("bits", "比特"),
    "bits low": Words("bits per target, less is better", "每个目标的比特数，越低越好"),
    "exact high": Words("all right, % of rows, more is better", "整行全对的百分比，越高越好"),
    "exact": Words("% all right", "整行全对 %"),
    "not learnt": Words("not learnt at this budget", "此预算下未学会"),
    "not learnt short": Words("not learnt", "未学会"),
    "cannot": Words("cannot: {why}", "不能：{why}"),
    "failed": Words("failed: {why}", "失败：{why}"),
    "missing": Words("missing", "缺失"),
    "causal only": Words("causal only", "仅用于因果注意力"),
    "table ends": Words("table ends at {limit}", "位置表止于 {limit}"),
    "not run": Words("not run", "未运行"),
    "trained far": Words(" (trained at the longest length)", "（在最长长度上训练）"),
    "not asked": Words("not part of this task", "未参与此任务"),
    "none": Words("none", "无"),
    "change ": Words("none", "不改动"),
    "change interpolation": Words("interpolation", "位置插值"),
    "change ntk": Words("NTK", "NTK"),
    "change yarn": Words("YaRN", "YaRN"),
    "numbers": Words("The same numbers as a table", "同样的数据，以表格给出"),
    # 1 The answer
    "answer": Words("The answer", "结论"),
    "answer text": Words(
        "Every number below is computed from this experiment. Names that stand together cannot be told apart: at "
        "least one seed, or the spread of the times, puts them the other way round.",
        "以下所有数字均由本实验算出。并列的名字难分高下：至少有一个随机种子给出相反的次序，或耗时的波动大于差距。",
    ),
    # 2 The measured table
    "stars": Words("Measured, where tables give stars", "用测量代替星级"),
    "stars text": Words(
        "Quality, reach and area are those of “{task}”, trained at length {home}. Valid length factor: the largest "
        "length, in trained lengths, at which no more than 0.05 bits are lost (where rows are right or wrong: at "
        "which nine tenths of the exact match are kept). “>” means that the longest one tried was still valid; "
        "brackets hold the interval, of few seeds the worst and the best one. Area: the mean over log₂ length from "
        "the trained one on. Other tasks: quality at the trained length and, small below it, the valid length factor.",
        "质量、外推与面积取自“{task}”，训练长度 {home}。有效长度倍数：变差不超过 0.05 "
        "比特的最大长度与训练长度之比（按整行判对错的任务：全对率保持九成以上）。“>”表示测过的最长长度仍然有效；"
        "括号内是区间，种子少时为最差与最好的种子。面积：从训练长度起，对 log₂ 长度取平均。其他任务："
        "训练长度内的质量，其下小字为有效长度倍数。",
    ),
    "stars cost": Words(
        "Cost: time relative to no encoding, the contenders taking turns in one process on {device}; small figures "
        "are quartiles. {rounds} rounds.",
        "代价：相对于没有编码的耗时，各方法在同一进程中轮流计时（{device}）；小字为四分位数。共 {rounds} 轮。",
    ),
    "no cost": Words("Cost was not measured in this experiment.", "本实验没有测量代价。"),
    "quality": Words("quality at the trained length", "训练长度内的质量"),
    "factor": Words("valid length factor", "有效长度倍数"),
    "area": Words("area under the curve", "曲线下面积"),
    "training": Words("training × NoPE", "训练 × NoPE"),
    "prefill": Words("prefill × NoPE", "预填充 × NoPE"),
    "decode": Words("decode × NoPE", "解码 × NoPE"),
    "parameters": Words("extra parameters", "额外参数"),
    "memory": Words("table bytes a token", "每词元的表（字节）"),
    "rank": Words("mean rank beyond", "外推平均名次"),
    # 3 Curves
    "curves": Words("Trained short, read long", "短训练，长阅读"),
    "curves text": Words(
        "On text the targets are the same at every length, and what grows is what stands before them; the other tasks "
        "have rows of their own at each length. Every dot is one seed, the line "
        "their mean, the dashed upright the trained length. A flat line keeps what it learnt; the figure behind a "
        "name is the change at the longest length.",
        "在文本上，每个长度的目标完全相同，变长的是它们前面的内容；其他任务在每个长度上各有自己的样例。"
        "每个点是一个随机种子，曲线是平均，竖虚线是训练长度。"
        "平直的线保住了学到的能力；名字后的数字是在最长长度上的变化。",
    ),
    "hollow": Words("A ring: not learnt at this budget.", "空心圈：此预算下未学会。"),
    "rings": Words(
        "A ring is a model trained at the longest length: what can be reached there.",
        "空心圈是直接在最长长度上训练的模型：即那里可以达到的水平。",
    ),
    "nobody": Words(
        "No encoding learnt the trained length at this budget: shown is what each reached there, and no curve is drawn.",
        "此预算下没有编码学会训练长度：只画各自在该长度上达到的水平，不画曲线。",
    ),
    "not drawn": Words("Not drawn, since not learnt or not possible: {rows}.", "未画出（未学会或无法进行）：{rows}。"),
    "ends at": Words("ends at {length}", "止于 {length}"),
    "learning": Words("While training", "训练过程"),
    "step": Words("training step", "训练步"),
    "loss": Words("training loss in bits", "训练损失（比特）"),
    # 4 Heat map
    "behaviour flat": Words("stays", "保持"),
    "behaviour fades": Words("fades", "渐差"),
    "behaviour breaks": Words("breaks", "失效"),
    "side by side": Words(
        "Windows of each length side by side: other targets at every length", "各长度的窗口首尾相接：每个长度上的目标不同"
    ),
    "side text": Words(
        "Longer windows have fewer targets with little before them, so these numbers fall with the length even where "
        "nothing farther away is used.",
        "窗口越长，前文很少的目标就越少，因此即使没有用到更远的内容，这里的数值也会随长度下降。",
    ),
    "heat intervals": Words(
        "Mean above, its 95 % interval over seeds and documents below. Hatched: the trained length was not learnt, so "
        "nothing is said beyond it. Empty cells say why they are empty. Colour repeats the number: green is good.",
        "上为平均，下为对随机种子与文档的 95% 区间。斜纹：训练长度尚未学会，因此不评价外推。空格写明原因。"
        "颜色只是重复数字：绿色为好。",
    ),
    "heat": Words("Every encoding at every length", "每种编码，每个长度"),
    "heat text": Words(
        "Mean above, every seed below. Hatched: the trained length was not learnt, so nothing is said beyond it. "
        "Empty cells say why they are empty. Colour repeats the number: green is good.",
        "上为平均，下为各个种子。斜纹：训练长度尚未学会，因此不评价外推。空格写明原因。颜色只是重复数字：绿色为好。",
    ),
    # 5 Changes after training
    "after": Words("Changed after training", "训练之后的改动"),
    "after text": Words(
        "The trained RoPE models with their frequencies changed, and not trained further: not to be held against "
        "encodings that were trained as they are.",
        "在训练好的 RoPE 模型上修改频率，不再训练：不应与按原样训练的编码直接比较。",
    ),
    "after best": Words(
        "{task}: at {times} the trained length {change} is best: {value} {unit}, against {none} unchanged.",
        "{task}：在训练长度的 {times} 处，{change}最好：{value} {unit}，不改动时为 {none}。",
    ),
    # Cost
    "cost": Words("What it costs on this machine", "在这台机器上的代价"),
    "cost text": Words(
        "Time relative to no encoding (1×, logarithmic scale). All encodings take turns in one process on one thread. "
        "Dot: median of {rounds} rounds; line: quartiles. The row of NoPE is a second copy of it: its spread is the "
        "measurement noise. Prefill and decode: one attention layer, d_model {d_model}, {n_heads} heads. Training: "
        "{batch} rows of length {length}, d_model {trained_d_model}, {n_layers} layers. Computing the tables is included. "
        "FLOATER solves its path again for every token; a caller who keeps the path saves this time.",
        "相对于没有编码的耗时（1×，对数坐标）。各方法在同一进程、单线程里轮流计时。点：{rounds} 轮的中位数；线：四分位数。"
        "NoPE 一行是它自己的另一份拷贝，其散布就是测量的噪声。预填充与解码：一个注意力层，"
        "d_model {d_model}，{n_heads} 个头。训练：{batch} 行，长度 {length}，d_model {trained_d_model}，{n_layers} 层。"
        "计算表格的时间包含在内。"
        "FLOATER 对每个词元重新求解整条路径；保留路径的调用者可省去这段时间。",
    ),
    "cost prefill": Words("Prefill: {prompt} tokens at once", "预填充：一次 {prompt} 个词元"),
    "cost decode": Words("Decode: one token after {prompt}", "解码：{prompt} 个之后的一个词元"),
    "cost training": Words("Training step", "一个训练步"),
    # Properties
    "properties": Words("What holds exactly", "严格成立的性质"),
    "properties text": Words(
        "Word order: how much the output changes, beyond a re-ordering, when the words of 我爱你 and three more sentences "
        "exchange places; without an encoding {bidirectional} with bidirectional attention, {causal} with a causal mask. "
        "Shift and decode: largest differences in fp64. Sizes are those of the model trained here: d_model {d_model}, "
        "{n_heads} heads, {n_layers} layers, float32. Tables are shared by all layers.",
        "词序：把“我爱你”等四个句子的词对调后，输出除了跟着换位以外还变了多少；没有编码时，双向注意力下为 {bidirectional}，"
        "因果掩码下为 {causal}。平移与解码：fp64 下的最大差。大小按此处训练的模型计：d_model {d_model}，{n_heads} 个头，"
        "{n_layers} 层，float32。表由各层共用。",
    ),
    "property bidirectional": Words("word order, bidirectional", "词序（双向）"),
    "property causal": Words("word order, causal", "词序（因果）"),
    "property shift": Words("shift invariant", "平移不变"),
    "property decode": Words("decode = prefill", "解码＝预填充"),
    "property parameters": Words("parameters", "参数"),
    "property bytes": Words("parameter bytes", "参数字节"),
    "property tables": Words("table bytes a token", "每词元的表（字节）"),
    "property largest": Words("largest position", "最大位置"),
    "property sites": Words("acts on", "作用于"),
    "any": Words("any", "不限"),
    "yes": Words("yes", "是"),
    "no": Words("no", "否"),
    # 6 Pareto
    "pareto": Words("What length costs", "长度的代价"),
    "pareto text": Words(
        "Full dots: no other encoding is both faster to train and better here. Bars: quartiles of the time, intervals "
        "of the factor. Shown are the encodings that learnt the trained length of “{task}”.",
        "实心点：没有其他编码既训练更快又更好。横竖线：耗时的四分位数、倍数的区间。只画学会“{task}”训练长度的编码。",
    ),
    "pareto front": Words("Nothing beats {rows}.", "无可超越：{rows}。"),
    "pareto time": Words("training time, × NoPE", "训练耗时（× NoPE）"),
    "pareto factor": Words("valid length factor, more is better", "有效长度倍数，越大越好"),
    "pareto area": Words(
        "area: {unit} over log₂ length, {better} is better", "面积：{unit}对 log₂ 长度取平均，越{better}越好"
    ),
    "more": Words("more", "大"),
    "less": Words("less", "小"),
    # 7 By position
    "places": Words("Where in the text it happens", "在文本的哪里发生"),
    "places text": Words(
        "Loss along one reading of length {length}, mean of the seeds, each point a stretch of {width} places. A "
        "curve that climbs beyond the trained length shows where the encoding breaks. The text differs from place to "
        "place but is the same for all: compare curves, not places.",
        "一次读完长度 {length}，沿途的损失（各种子平均，每点为 {width} 个位置）。曲线越过训练长度后上升之处，"
        "就是编码失效之处。各处文字不同，但对每种编码相同：应比较曲线，不应比较位置。",
    ),
    "place": Words("position in the window", "窗口中的位置"),
    # 8 Attention
    "attention": Words("Where attention looks, and how it gets there", "注意力看向哪里，又是怎样学会的"),
    "attention text": Words(
        "Mean probability at each distance, per layer and head, first seed, on logarithmic scales. {direction} Move "
        "the slider from the first step of training to the last.",
        "每层每头在各个距离上的平均注意力概率，第一个种子，对数坐标。{direction}拖动滑块，从训练的第一步看到最后一步。",
    ),
    "attention back": Words("Left is back in the text; 0 is the token itself.", "左边是前文；0 是词元自身。"),
    "attention both": Words(
        "Left is back in the text, right is ahead; 0 is the token itself.", "左边是前文，右边是后文；0 是词元自身。"
    ),
    "attention thinned": Words(
        "Shown are layers {layers} and heads {heads}, at {distances} of {all} distances; the trial files hold all.",
        "此处显示第 {layers} 层、第 {heads} 头，{all} 个距离中的 {distances} 个；其余见试验文件。",
    ),
    "head": Words("layer {layer}, head {head}", "层 {layer}，头 {head}"),
    "shown encoding": Words("Encoding shown", "显示的编码"),
    "shown step": Words("Training step", "训练步"),
    "strongest": Words("Strongest distance of every head at the last step", "最后一步时每个头最强的距离"),
    "at distance": Words("{p} at {where}", "{where}：{p}"),
    "back": Words("{n} back", "前 {n}"),
    "ahead": Words("{n} ahead", "后 {n}"),
    "itself": Words("itself", "自身"),
    "similarity": Words("The learned table's rows against each other", "可学习位置表各行之间的相似度"),
    "similarity text": Words(
        "Cosine of every two rows: blue −1, white 0, red 1. It starts without order; a band along the diagonal means "
        "that neighbours have become alike.",
        "每两行的余弦：蓝 −1，白 0，红 1。开始时没有次序；沿对角线出现的色带，表示相邻位置变得相像。",
    ),
    "similarity here": Words("Rows of the learned table at step {step}", "第 {step} 步时可学习位置表各行的相似度"),
    "similarity rows": Words("Mean cosine of rows that stand apart by", "相隔若干行的两行的平均余弦"),
    "apart": Words("rows apart", "相隔行数"),
    "links": Words("Links between words", "词与词之间的联系"),
    "links text": Words(
        "Attention from one word to another at the last step: the head that looks most, out of {heads}, and how many "
        "times an even look that is. The largest of {heads} is above 1× even where nothing was learnt: compare "
        "encodings.",
        "最后一步时从一个词到另一个词的注意力：{heads} 个头中看得最多的那个，以及它是均匀注意力的多少倍。"
        "即使什么都没学到，{heads} 个中的最大者也会大于 1×：应比较各编码。",
    ),
    "link": Words("link", "联系"),
    "even": Words("even look", "均匀注意力"),
    # 9 Published
    "published": Words("Published, and found here", "已发表的结论，与本实验"),
    "published text": Words(
        "{agree} agree, {disagree} disagree, {not_tested} not tested. Small models and little training: a "
        "disagreement is a question, no refutation, and stays in the table.",
        "{agree} 项一致，{disagree} 项不一致，{not_tested} 项未检验。模型小、训练少：不一致是疑问而非反驳，并保留在表中。",
    ),
    "source": Words("source", "来源"),
    "claim": Words("claim", "结论"),
    "ours": Words("here", "本实验"),
    "verdict": Words("verdict", "判断"),
    "why": Words("why", "原因"),
    "agree": Words("agree", "一致"),
    "disagree": Words("disagree", "不一致"),
    "not tested": Words("not tested", "未检验"),
    # 10 How
    "how": Words("How it was done, and how to repeat it", "怎样完成，怎样重现"),
    "how text": Words(
        "Shared initial weights and data order within a seed: differences between encodings are paired. Averages are "
        "weighted by tokens; equal values share their rank; what is missing is shown.",
        "同一随机种子共用初始权重与数据次序，编码之间的差异成对比较。平均按词元加权；并列者名次相同；缺失之处照样显示。",
    ),
    "how command": Words("command", "命令"),
    "how trials": Words("trials", "试验"),
    "how trials text": Words(
        "{found} of {expected} present, {failed} of them failed", "{expected} 个中有 {found} 个，其中 {failed} 个失败"
    ),
    "how seeds": Words("seeds", "随机种子"),
    "how model": Words("model", "模型"),
    "how text used": Words("text", "文本"),
    "how no text": Words("no text: tasks that draw themselves", "不用文本：任务自行生成"),
    "how surroundings": Words("versions", "版本"),
    "how machine": Words("machine", "机器"),
    "tasks": Words("Tasks, training and what counts as learnt", "任务、训练与学会的标准"),
    "lengths": Words("lengths", "长度"),
    "trained with": Words("training", "训练"),
    "steps": Words("{steps} steps, {tokens} tokens a model", "{steps} 步，每个模型 {tokens} 个词元"),
    "tokens": Words("{tokens} tokens a model", "每个模型 {tokens} 个词元"),
    "rate": Words("learning rate", "学习率"),
    "rate tuned": Words(
        "chosen from {rates} at the trained length, per encoding: {rows}", "在训练长度上为每种编码从 {rates} 中选出：{rows}"
    ),
    "rate same": Words("{rate} for all, not tuned", "全部为 {rate}，未调参"),
    "gate": Words("learnt means", "学会的标准"),
    "gate limit": Words("limit {limit} {unit}", "门槛 {limit} {unit}"),
    "limits": Words("What to keep in mind", "应当注意什么"),
    "limit size": Words(
        "The models are small and trained little. The order of the encodings and the shape of the curves may carry over to "
        "larger models; the scores do not.",
        "模型小、训练少：编码之间的次序与曲线的形状对更大的模型或有参考价值，分数本身没有。",
    ),
    "limit gate": Words(
        "“Not learnt” is a statement about this budget, not about longer training.",
        "“未学会”只针对此预算，不代表更久的训练。",
    ),
    "limit random": Words(
        "Random positions: trained on a sorted random subset of 0 … {last}, scored at plain positions.",
        "随机位置：训练时取 0 … {last} 中排好序的随机子集，计分时用普通位置。",
    ),
    "limit learned": Words(
        "Learned positions: the table has the {trained} rows that training can reach.",
        "可学习位置：表只有训练能用到的 {trained} 行。",
    ),
    "limit t5": Words(
        "T5's buckets reach distance {reach}. Training at {trained} never uses those beyond; its paper trained at 512.",
        "T5 的距离桶一直到 {reach}。训练长度为 {trained}，更远的桶从未训练过；其论文的训练长度是 512。",
    ),
    "lost": Words("Missing and failed trials", "缺失与失败的试验"),
    "nothing lost": Words("No trial is missing and none failed.", "没有试验缺失或失败。"),
    "seed": Words("seed", "种子"),
}


def say(key: str, /, **values: object) -> Words:
    """The sentence with its values filled in."""
    spoken = ({name: value[n] if isinstance(value, Words) else value for name, value in values.items()} for n in range(2))
    return Words(*(template.format(**words) for template, words in zip(PROSE[key], spoken, strict=True)))


def of(given: Mapping[str, Any]) -> Words:
    """What the findings say in both languages."""
    return Words(given["en"], given["zh"])


def same(text: object) -> Words:
    """What reads the same in both."""
    return Words(str(text), str(text))


def listed(parts: list[Words]) -> Words:
    return joined(parts, ", ", "、")
