"""Every sentence that the report adds to the findings, in both languages.

say("lead", tasks=2, …)      a value that is Words is filled in language by language
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.lab.experiment.change import Change
from posenc.lab.findings.titles import with_factor
from posenc.support.languages import Words, joined

PROSE = {
    "title": Words("Train short, test long", "短序列训练，长序列测试"),
    "lead": Words(
        "{arms} positional encodings on {tasks} tasks, {seeds} each, in models that differ by the encoding "
        "only. Experiment “{name}”: {about}",
        "{arms} 种位置编码，{tasks} 个任务，各 {seeds}；各模型只有位置编码不同。实验“{name}”：{about}",
    ),
    "lead one": Words(
        "{arms} positional encodings on one task, {seeds} each, in models that differ by the encoding only. "
        "Experiment “{name}”: {about}",
        "{arms} 种位置编码，一个任务，各 {seeds}；各模型只有位置编码不同。实验“{name}”：{about}",
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
    "baseline": Words("baseline", "基线"),
    "baseline causal": Words("only the byte before", "只看前一个字节"),
    "baseline masked": Words("without context", "不看上下文"),
    "bits": Words("bits", "比特"),
    "bits low": Words("bits per target, lower is better", "每个目标的比特数，越低越好"),
    "exact high": Words("% of rows entirely right, higher is better", "整行全对的百分比，越高越好"),
    "exact": Words("% all right", "整行全对 %"),
    "not learnt": Words("not learnt at this budget", "此预算下未学会"),
    "not learnt short": Words("not learnt", "未学会"),
    "improving short": Words("still improving", "仍在改善"),
    "cannot": Words("cannot: {why}", "不能：{why}"),
    "failed": Words("failed: {why}", "失败：{why}"),
    "missing": Words("missing", "缺失"),
    "trained far": Words(" (trained at the longest length)", "（在最长长度上训练）"),
    "not asked": Words("not part of this task", "未参与此任务"),
    "none": Words("none", "无"),
    "change ": Words("none", "不改动"),
    "change interpolation": Words("interpolation", "位置插值"),
    "change ntk": Words("NTK", "NTK"),
    "change yarn": Words("YaRN", "YaRN"),
    "change self_extend": Words("Self-Extend", "Self-Extend"),
    "numbers": Words("The same numbers as a table", "同样的数据，以表格给出"),
    # 1 The answer
    "answer": Words("The answer", "结论"),
    "answer text": Words(
        "Every number below is computed from this experiment. Encodings listed together cannot be told from the first: the "
        "95% interval of their difference (t, paired by seed) holds 0, with fewer than three seeds one seed reverses their "
        "order, or their times differ by less than the spread. An encoding with fewer than three seeds is not compared "
        "with those that have more.",
        "以下所有数字均由本实验算出。并列的编码无法与第一个区分：按种子配对之差的 95% 区间（t）含 0，"
        "不足三个种子时有一个种子的次序相反，或耗时之差小于其波动。"
        "不足三个种子的编码不与种子更多的编码相比。",
    ),
    # 2 The measured table
    "stars": Words("Measured values instead of star ratings", "以测量值代替星级"),
    "stars text": Words(
        "Quality, valid length factor and area are measured on “{task}”, trained at length {home}. Valid length "
        "factor: the largest scored length, as a multiple of the trained length, up to which every scored length loses at "
        "most 0.05 bits (for tasks scored by exact match: keeps at least nine tenths of the exact match). “>”: the longest "
        "length tested was still valid. Brackets: the interval; with fewer than five seeds, the score of every seed in "
        "their order, and the factors of the worst and the best seed. Brackets of exact match with few seeds: Wilson "
        "intervals over the rows of all seeds, which are the same rows. Area: the mean score over log₂ length, from the "
        "trained length on. Other tasks: quality at the trained length, and beside it the valid length factor.",
        "质量、有效长度倍数与面积在“{task}”上测得，训练长度 {home}。"
        "有效长度倍数：评测过的最大长度与训练长度之比，直到该长度的各评测长度都变差不超过 0.05 比特"
        "（按整行判对错的任务：全对率保持九成以上）。“>”：测过的最长长度仍然有效。括号：区间；不足五个种子时，依次为每个种子的分数，倍数则为最差与最好的种子。"
        "种子少而按整行判对错时，括号为对所有种子的行（各种子的行相同）求的威尔逊区间。"
        "面积：从训练长度起，分数对 log₂ 长度的平均。其他任务：训练长度上的质量，旁为有效长度倍数。",
    ),
    "stars rank": Words(
        "Mean rank beyond: mean over the seeds {seeds} and the lengths above the trained one, among the ranked encodings "
        "that have a score at all of them; 1 is best.",
        "外推平均名次：在种子 {seeds} 和超过训练长度的各长度上取平均，只比较参与排名且在这些长度上都有分数的编码；1 最好。",
    ),
    "stars cost": Words(
        "Cost: time relative to no encoding. All encodings take turns in one process on {device}, for {rounds} rounds; "
        "small figures are quartiles.",
        "代价：相对于没有编码的耗时。各编码在同一进程中轮流计时（{device}），共 {rounds} 轮；小字为四分位数。",
    ),
    "no cost": Words("Cost was not measured in this experiment.", "本实验没有测量代价。"),
    "quality": Words("quality at the trained length", "训练长度上的质量"),
    "factor": Words("valid length factor", "有效长度倍数"),
    "area": Words("area under the curve", "曲线下面积"),
    "training": Words("training × NoPE", "训练 × NoPE"),
    "prefill": Words("prefill × NoPE", "预填充 × NoPE"),
    "decode": Words("decode × NoPE", "解码 × NoPE"),
    "parameters": Words("extra parameters", "额外参数"),
    "memory": Words("table bytes a token", "每词元的表（字节）"),
    "rank": Words("mean rank beyond", "外推平均名次"),
    # 3 Curves
    "curves": Words("Quality against length", "质量随长度的变化"),
    "curves text": Words(
        "On text, the targets are the same at every length; only the context before them grows. The other tasks have "
        "separate examples at each length. Each dot is one seed, each line is the mean over seeds, and the dashed "
        "vertical line marks the trained length. A flat line means that the quality is kept. The number after a name "
        "is the change at the longest length.",
        "在文本上，每个长度的目标完全相同，只有它们前面的上下文变长；其他任务在每个长度上各有自己的样例。"
        "每个点是一个随机种子，曲线是各种子的平均，竖虚线是训练长度。曲线平直表示质量得以保持。"
        "名字后的数字是在最长长度上的变化。",
    ),
    "hollow": Words("A ring: not learnt at this budget.", "空心圈：此预算下未学会。"),
    "rings": Words(
        "A ring is a model trained at the longest length. It shows what can be reached at that length.",
        "空心圈是直接在最长长度上训练的模型，表示该长度上可以达到的水平。",
    ),
    "nobody": Words(
        "No encoding learnt the trained length at this budget. The chart shows the score of each encoding at the "
        "trained length; no curves are drawn.",
        "此预算下没有编码学会训练长度：只画各编码在训练长度上的分数，不画曲线。",
    ),
    "not drawn": Words(
        "Not drawn, because it was not learnt or is not possible: {rows}.", "未画出（未学会或无法进行）：{rows}。"
    ),
    "ends at": Words("ends at {length}", "止于 {length}"),
    "learning": Words("While training", "训练过程"),
    "step": Words("training step", "训练步"),
    "loss": Words("training loss in bits", "训练损失（比特）"),
    # 4 Heat map
    "behaviour flat": Words("stays", "保持"),
    "behaviour fades": Words("fades", "渐差"),
    "behaviour breaks": Words("breaks", "失效"),
    "side by side": Words(
        "Non-overlapping windows: different targets at every length", "不重叠的窗口：每个长度上的目标不同"
    ),
    "side text": Words(
        "Longer windows contain fewer targets with little context, so these numbers fall with the length even if the "
        "model uses no distant context.",
        "窗口越长，上下文很短的目标就越少，因此即使模型没有用到更远的内容，这里的数值也会随长度下降。",
    ),
    "heat intervals": Words(
        "Each cell shows the mean and, below it, the 95 % interval over seeds and documents. Hatched: the trained "
        "length was not learnt, so the encoding is not ranked. Empty cells state the reason. The colour shows the same "
        "number: green is better.",
        "每格上为平均，下为对随机种子与文档的 95% 区间。斜纹：训练长度尚未学会，因此不作排名。空格写明原因。"
        "颜色表示同一数字：绿色为好。",
    ),
    "heat": Words("Every encoding at every length", "每种编码，每个长度"),
    "heat text": Words(
        "Each cell shows the mean and, below it, every seed. Hatched: the trained length was not learnt, so the encoding "
        "is not ranked. Empty cells state the reason. The colour shows the same number: green is better.",
        "每格上为平均，下为各个种子。斜纹：训练长度尚未学会，因此不作排名。空格写明原因。颜色表示同一数字：绿色为好。",
    ),
    # 5 Changes after training
    "after": Words("Changed after training", "训练之后的改动"),
    "after text": Words(
        "The frequencies or the positions of the trained RoPE models are changed, without further training. Do not "
        "compare these scores with encodings that were trained in the form in which they are scored.",
        "在训练好的 RoPE 模型上修改频率或位置，不再训练。这些分数不应与按计分时的形式训练的编码直接比较。",
    ),
    "after best": Words(
        "{task}: at {times} the trained length, {change} is best with {value} {unit}; without a change the score is "
        "{none}.",
        "{task}：在训练长度的 {times}处，{change}最好：{value} {unit}；不改动时为 {none}。",
    ),
    # Cost
    "cost": Words("Cost on this machine", "在这台机器上的代价"),
    "cost text": Words(
        "Time relative to no encoding (1×, logarithmic scale). All encodings take turns in one process on one thread. "
        "Dot: median of {rounds} rounds; line: quartiles. The NoPE row times a second copy of NoPE; its spread is the "
        "measurement noise. Prefill and decode: one attention layer, d_model {d_model}, {n_heads} heads. Training: "
        "{batch} rows of length {length}, d_model {trained_d_model}, {n_layers} layers. The time to compute the tables "
        "is included. FLOATER keeps the solution of its differential equation: prefill and decoding look it up, and every "
        "training step solves it again.",
        "相对于没有编码的耗时（1×，对数坐标）。各编码在同一进程、单线程里轮流计时。点：{rounds} 轮的中位数；线："
        "四分位数。NoPE 一行是对 NoPE 另一份拷贝的计时，其散布就是测量的噪声。预填充与解码：一个注意力层，"
        "d_model {d_model}，{n_heads} 个头。训练：{batch} 行，长度 {length}，d_model {trained_d_model}，{n_layers} 层。"
        "计算表格的时间包含在内。FLOATER 保留微分方程的解：预填充和解码只查表，每个训练步重新求解。",
    ),
    "cost prefill": Words("Prefill: {prompt} tokens at once", "预填充：一次 {prompt} 个词元"),
    "cost decode": Words("Decode: one token after {prompt}", "解码：{prompt} 个之后的一个词元"),
    "cost training": Words("Training step", "一个训练步"),
    # Properties
    "properties": Words("Properties that hold exactly", "严格成立的性质"),
    "properties text": Words(
        "Word order: how much the output changes, beyond the same re-ordering, when the words of 我爱你 and of three "
        "more sentences are reversed. Without an encoding this is {bidirectional} with bidirectional attention and "
        "{causal} with a causal mask. Shift and decode: largest differences in fp64. Sizes are those of the model "
        "trained here: d_model {d_model}, {n_heads} heads, {n_layers} layers, float32. All layers share the tables.",
        "词序：把“我爱你”等四个句子的词倒序后，输出除了跟着换序以外还变了多少。没有编码时，"
        "双向注意力下为 {bidirectional}，因果掩码下为 {causal}。平移与解码：fp64 下的最大差。大小按此处训练的模型计："
        "d_model {d_model}，{n_heads} 个头，{n_layers} 层，float32。各层共用表格。",
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
    "pareto": Words("Cost against valid length", "代价与有效长度"),
    "pareto text": Words(
        "Filled dots: no other encoding is both faster to train and better. Bars: quartiles of the time and intervals "
        "of the factor. Only encodings that learnt the trained length of “{task}” are shown.",
        "实心点：没有其他编码既训练更快又更好。横竖线：耗时的四分位数、倍数的区间。只画学会“{task}”训练长度的编码。",
    ),
    "pareto front": Words("Pareto front: {rows}.", "帕累托前沿：{rows}。"),
    "pareto time": Words("training time, × NoPE", "训练耗时（× NoPE）"),
    "pareto factor": Words("valid length factor, higher is better", "有效长度倍数，越大越好"),
    "pareto area": Words(
        "area: {unit} over log₂ length, {better} is better", "面积：{unit}对 log₂ 长度取平均，越{better}越好"
    ),
    "more": Words("higher", "大"),
    "less": Words("lower", "小"),
    # 7 By position
    "positions": Words("Loss by position", "各位置的损失"),
    "positions text": Words(
        "Loss at each position of a window of length {length}, mean over seeds; each point averages {width} positions. "
        "A curve that rises beyond the trained length shows where the encoding breaks. The text differs between "
        "positions but is the same for all encodings: compare curves, not positions.",
        "长度为 {length} 的窗口中各位置的损失（各种子平均，每点为 {width} 个位置的平均）。曲线越过训练长度后上升之处，"
        "就是编码失效之处。各位置的文字不同，但对每种编码相同：应比较曲线，不应比较位置。",
    ),
    "window position": Words("position in the window", "窗口中的位置"),
    # 8 Attention
    "attention": Words("Attention by distance during training", "训练过程中各距离上的注意力"),
    "attention text": Words(
        "Mean attention probability at each distance, for each layer and head, first seed, on logarithmic scales. "
        "{direction} The slider selects the training step.",
        "每层每头在各个距离上的平均注意力概率，第一个种子，对数坐标。{direction}拖动滑块选择训练步。",
    ),
    "attention back": Words("Left: earlier tokens; 0: the token itself.", "左边是前文；0 是词元自身。"),
    "attention both": Words(
        "Left: earlier tokens; right: later tokens; 0: the token itself.", "左边是前文，右边是后文；0 是词元自身。"
    ),
    "attention thinned": Words(
        "The panels show layers {layers} and heads {heads} at {distances} of {all} distances; the trial files contain "
        "all of them.",
        "此处显示第 {layers} 层、第 {heads} 头，{all} 个距离中的 {distances} 个；试验文件包含全部。",
    ),
    "head": Words("layer {layer}, head {head}", "层 {layer}，头 {head}"),
    "shown encoding": Words("Encoding shown", "显示的编码"),
    "shown step": Words("Training step", "训练步"),
    "strongest": Words(
        "Distance with the highest probability, for each head at the last step", "最后一步时每个头概率最大的距离"
    ),
    "at distance": Words("{p} at {where}", "{where}：{p}"),
    "back": Words("{n} back", "前 {n}"),
    "ahead": Words("{n} ahead", "后 {n}"),
    "itself": Words("itself", "自身"),
    "similarity": Words("Similarity between the rows of the learned table", "可学习位置表各行之间的相似度"),
    "similarity text": Words(
        "Cosine of every two rows: blue −1, white 0, red 1. The rows are random at first. A band along the diagonal "
        "means that neighbouring rows have become similar.",
        "每两行的余弦：蓝 −1，白 0，红 1。各行起初是随机的；沿对角线出现的色带，表示相邻的行变得相似。",
    ),
    "similarity here": Words("Rows of the learned table at step {step}", "第 {step} 步时可学习位置表各行的相似度"),
    "similarity rows": Words("Mean cosine, by the number of rows between the two", "平均余弦，按两行相隔的行数"),
    "apart": Words("rows apart", "相隔行数"),
    "links": Words("Links between words", "词与词之间的联系"),
    "links text": Words(
        "Attention from one word to another at the last step: the highest probability among {heads} heads, and its "
        "ratio to uniform attention. The highest of {heads} heads is above 1× even if nothing was learnt, so compare "
        "encodings with each other.",
        "最后一步时从一个词到另一个词的注意力：{heads} 个头中的最大概率，以及它是均匀注意力的多少倍。即使什么都没学到，"
        "{heads} 个头中的最大者也会大于 1×：应在编码之间比较。",
    ),
    "link": Words("link", "联系"),
    "even": Words("uniform attention", "均匀注意力"),
    # 9 Published
    "published": Words("Published claims and these results", "已发表的论断与本实验的结果"),
    "published text": Words(
        "Claims of papers: {papers}. Statements of the founding notes, which measured nothing: {notes}. Agree: every "
        "inequality of the claim holds in every seed that its encodings share, and the 95% interval of the mean difference "
        "over these seeds (t, paired) leaves out 0. Disagree: one of them fails likewise. Undecided: anything else, and "
        "fewer than {fewest} seeds. No correction is made for the number of rows. Times have no seeds: quartiles that "
        "overlap leave an order undecided. OUT in a command is the folder of these results. The models are small and "
        "trained little, so a disagreement is not a refutation. Disagreements stay in the table.",
        "论文的论断：{papers}。项目最初的笔记中的陈述（未作测量）：{notes}。"
        "一致：论断中的每个不等式在各编码共有的每个种子上都成立，且这些种子上平均之差的 95% 区间（配对 t）不含 0。"
        "不一致：其中有一个以同样的标准不成立。未定：其余情形，以及种子不足 {fewest} 个。未按行数作校正。"
        "耗时没有种子：四分位数重叠则次序未定。命令中的 OUT 是这些结果所在的文件夹。"
        "模型小、训练少，因此不一致并不等于反驳。不一致者保留在表中。",
    ),
    "verdicts": Words(
        "{agree} agree, {disagree} disagree, {undecided} undecided, {not_tested} not tested",
        "{agree} 项一致，{disagree} 项不一致，{undecided} 项未定，{not_tested} 项未检验",
    ),
    "source": Words("source", "来源"),
    "source of notes": Words("founding notes {numbers}", "项目最初的笔记 {numbers}"),
    "claim": Words("claim", "论断"),
    "ours": Words("here", "本实验"),
    "verdict": Words("verdict", "判断"),
    "depth": Words("Retrieval by depth", "按深度的检索"),
    "depth text": Words(
        "{task}: per cent of rows all right, by where the key or the pair that is asked for stands: first quarter "
        "(farthest from the question) to last.",
        "{task}：整行全对的百分比，按所问的密钥或键值对的位置分为四段，从最前（离提问最远）到最后。",
    ),
    "tuning": Words("What tuning changed", "调参改变了什么"),
    "tuning text": Words(
        "{task}: {tries} tries for every encoding, on one seed that is not compared. Untuned: learning rate {rate}. Scores "
        "at the trained length of these shorter models; rank 1 is best.",
        "{task}：每种编码各试 {tries} 次，用一个不参与比较的种子。未调参时学习率为 {rate}。"
        "分数为这些较短训练的模型在训练长度上所得；第 1 名最好。",
    ),
    "tuning moved": Words(
        "Tuning changed the rank of {moved} of {count} encodings, at most by {most}.",
        "{count} 种编码中，{moved} 种的名次因调参而变，最多变 {most}。",
    ),
    "tuning kept": Words("Tuning changed no rank.", "调参没有改变名次。"),
    "tuning steps": Words(
        "A try has {steps} of the {full} steps of the full training.", "每次尝试训练 {steps} 步，完整训练为 {full} 步。"
    ),
    "tuning scales": Words(
        "Values of an encoding's own scale were tried at the learning rate {rate} only.",
        "编码自身尺度的各个值只在学习率 {rate} 下试过。",
    ),
    "tuning edge": Words(
        "Edge: no smaller or no larger value was tried, so that a better one may lie beyond.",
        "“边缘”：没有试过更小或更大的值，更好的值可能在试过的范围之外。",
    ),
    "at edge": Words("{setting} (edge)", "{setting}（边缘）"),
    "tuning waiting": Words("Not all tries are finished for {count} more.", "另有 {count} 种尚未试完。"),
    "untuned": Words("untuned", "未调参"),
    "tuned": Words("tuned", "已调参"),
    "chosen": Words("chosen", "选定"),
    "rank change": Words("rank", "名次"),
    "would take": Words("a test would take {needs}", "检验需要：{needs}"),
    "would decide": Words("would decide it: {command}", "可作判定：{command}"),
    "why": Words("why", "原因"),
    "agree": Words("agree", "一致"),
    "disagree": Words("disagree", "不一致"),
    "undecided": Words("undecided", "未定"),
    "not tested": Words("not tested", "未检验"),
    # 10 How
    "how": Words("Method, and how to repeat it", "方法与重现"),
    "how text": Words(
        "Within a seed, all encodings share initial weights and data order, so differences between encodings are "
        "paired. Averages are weighted by tokens. Equal values share a rank. Missing results are shown as missing.",
        "同一随机种子共用初始权重与数据次序，因此编码之间的差异成对比较。平均按词元加权。并列者名次相同。"
        "缺失的结果标为缺失。",
    ),
    "how repeat": Words(
        "posenc lab repeat {task} {arm} seed {seed} --in OUT trains this model again and compares its scores; they may "
        "differ by up to {bits:g} bits, or {exact:g} of the exact match, or by as much as the seeds do where "
        "that is more. The same command takes other tasks, encodings and seeds. posenc lab run --resume --out OUT trains "
        "what is missing.",
        "posenc lab repeat {task} {arm} seed {seed} --in OUT 重新训练此模型并比较分数，"
        "差异不应超过 {bits:g} 比特或 {exact:g} 的全对比例，种子之间相差更大处则不应超过种子之差；"
        "其他任务、编码与种子同样如此。"
        "posenc lab run --resume --out OUT 训练缺失的模型。",
    ),
    "how command": Words("command", "命令"),
    "how trials": Words("trials", "试验"),
    "how trials text": Words(
        "{found} of {expected} present, {failed} of them failed", "{expected} 个中有 {found} 个，其中 {failed} 个失败"
    ),
    "how seeds": Words("seeds", "随机种子"),
    "how model": Words("model", "模型"),
    "text used": Words(
        "Text: {source}, {documents} documents of {bytes} bytes to train on and {others} of {more} bytes held out",
        "文本：{source}；训练用 {documents} 篇、{bytes} 字节，留出 {others} 篇、{more} 字节",
    ),
    "text scored": Words(
        "{task}: scored on {rows} windows of held-out documents, the last {targets} bytes of each, at every length",
        "{task}：在留出文档的 {rows} 个窗口上计分，每个长度都取各窗口的最后 {targets} 个字节",
    ),
    "how text used": Words("text", "文本"),
    "how no text": Words("no text: the tasks generate their own data", "不用文本：任务自行生成数据"),
    "how surroundings": Words("versions", "版本"),
    "how machine": Words("machine", "机器"),
    "tasks": Words("Tasks, training and the criterion for “learnt”", "任务、训练与学会的标准"),
    "lengths": Words("lengths", "长度"),
    "trained with": Words("training", "训练"),
    "steps": Words("{steps} steps, {tokens} tokens a model", "{steps} 步，每个模型 {tokens} 个词元"),
    "tokens": Words("{tokens} tokens a model", "每个模型 {tokens} 个词元"),
    "rate": Words("learning rate", "学习率"),
    "rate tuned": Words(
        "chosen from {rates} at the trained length, per encoding: {rows}", "在训练长度上为每种编码从 {rates} 中选出：{rows}"
    ),
    "rate and scale": Words(
        "chosen from {rates}, and {count} values of the own scale at {first}: {rows}",
        "从 {rates} 以及在 {first} 下的 {count} 个自身尺度中选出：{rows}",
    ),
    "rate as": Words("{name} as {other}: {rate}", "{name}与 {other} 相同：{rate}"),
    "rate same": Words("{rate} for all, not tuned", "全部为 {rate}，未调参"),
    "gate": Words("criterion for “learnt”", "学会的标准"),
    "gate limit": Words("limit {limit} {unit}", "门槛 {limit} {unit}"),
    "limits": Words("Limitations", "局限"),
    "limit size": Words(
        "The models are small and trained little. Their scores do not carry over to larger models, and the order of the "
        "encodings may change.",
        "模型小、训练少：分数不能套用到更大的模型，编码之间的次序也可能改变。",
    ),
    "limit gate": Words(
        "“Not learnt” applies to this training budget only. Longer training may change it.",
        "“未学会”只针对此训练预算，增加训练可能改变结果。",
    ),
    "limit random": Words(
        "Random positions: trained and scored at sorted random subsets of 0 … {drawn} ({task}); a score is the mean "
        "over several draws. Scores at positions 0, 1, 2, … stand beside.",
        "随机位置：训练和计分都用 0 … {drawn} 中排好序的随机子集（{task}），分数是多次抽取的平均；"
        "另列位置 0, 1, 2, … 上的分数。",
    ),
    "limit random in training": Words(
        "Random positions: trained on a sorted random subset of 0 … {last} ({task}), scored at positions 0, 1, 2, ….",
        "随机位置：训练时取 0 … {last} 中排好序的随机子集（{task}），计分时用位置 0, 1, 2, …。",
    ),
    "limit learned": Words(
        "Learned positions: the table has as many rows as training can reach, {trained} ({task}).",
        "可学习位置：表只有训练能用到的 {trained} 行（{task}）。",
    ),
    "limit t5": Words(
        "T5's buckets distinguish distances up to {reach}. Training on {trained} tokens ({task}) never uses the buckets "
        "of longer distances; the T5 paper trained at 512.",
        "T5 的距离桶一直区分到 {reach}。训练只有 {trained} 个词元（{task}），更远的桶从未训练过；T5 论文的训练长度是 512。",
    ),
    "limit settings": Words(
        "{task}: set in place of the defaults, for this trained length: {rows}.",
        "{task}：按训练长度设定，不取默认值：{rows}。",
    ),
    "lost": Words("Missing and failed trials", "缺失与失败的试验"),
    "nothing lost": Words("No trial is missing and none failed.", "没有试验缺失或失败。"),
    "seed": Words("seed", "种子"),
}


def say(key: str, /, **values: object) -> Words:
    """The sentence with its values filled in."""
    spoken = ({name: value[n] if isinstance(value, Words) else value for name, value in values.items()} for n in range(2))
    return Words(*(template.format(**words) for template, words in zip(PROSE[key], spoken, strict=True)))


def change_name(word: str) -> Words:
    """A change after training as a heading: none; YaRN; YaRN (factor 2)."""
    return with_factor(say(f"change {Change.parse(word).method if word else ''}"), word)


def of(given: Mapping[str, Any]) -> Words:
    """A text of the findings, from its JSON form."""
    return Words(given["en"], given["zh"])


def same(text: object) -> Words:
    """A text that is the same in both languages."""
    return Words(str(text), str(text))


def listed(parts: list[Words]) -> Words:
    return joined(parts, ", ", "、")
