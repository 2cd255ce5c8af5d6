"""Every sentence of the summary and the page, in both languages, with the names of the numbers that go into it.

say("lead", done)            numbers of the whole comparison
say("best", done, pick=…)    and of one sentence; where a value is Words, each language takes its own
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.bilingual import Words
from posenc.lab.trial.limits import TABLE_ENDS
from posenc.lab.verdict import NOT_LEARNT

PROSE = {
    # The answer
    "need home": Words("Text no longer than in training ({home} bytes)", "文本不超过训练长度（{home} 字节）"),
    "need far": Words("Text {times}× as long as in training ({far} bytes)", "文本长达训练长度的 {times} 倍（{far} 字节）"),
    "need training": Words("Least time to train, and learnt", "训练最省时，且已学会"),
    "need prefill": Words("Least time on a prompt, and learnt", "读入提示最省时，且已学会"),
    "need plain": Words(
        "Nothing to learn, the same at any offset, no largest position", "无需学习参数、整体平移不变、位置没有上限"
    ),
    "why home": Words("{bits} bits per byte", "{bits} 比特/字节"),
    "why far": Words("{bits} bits per byte, {rise} from {home}", "{bits} 比特/字节，比 {home} 字节时 {rise}"),
    "why time": Words("{ratio}× the time of NoPE", "NoPE 耗时的 {ratio} 倍"),
    "why plain": Words("{bits} bits per byte at {far}, 0 parameters", "{far} 字节时 {bits} 比特/字节，0 个参数"),
    "best": Words(
        "At the trained length of {home} bytes {pick} predicts best: {bits} bits per byte, where a uniform guess costs "
        "{chance}. {learnt} of {arms} learnt that length, to within {margin} bits of it.",
        "在训练长度 {home} 字节上，{pick} 预测最好：每字节 {bits} 比特（随机猜测为 {chance}）。"
        "{arms} 种中有 {learnt} 种学会了这个长度，即与它相差不超过 {margin} 比特。",
    ),
    "flat": Words(
        "At {times}× the trained length, on the same target bytes, these lose no more than {flat} bits: {rows}.",
        "在训练长度的 {times} 倍、目标字节不变时，变差不超过 {flat} 比特的有：{rows}。",
    ),
    "fades": Words("These fade: {rows}.", "逐渐变差的有：{rows}。"),
    "breaks": Words("These break, by {breaks} bit or more: {rows}.", "失效（变差 {breaks} 比特以上）的有：{rows}。"),
    "not learnt": Words(
        "Not learnt at this budget: {rows}; the bar is {limit} bits at {home} bytes. What they do beyond it is "
        "therefore not judged; a larger --budget may change that.",
        "在此预算下没有学会：{rows}；门槛是 {home} 字节处 {limit} 比特。因此不评价它们的外推；加大 --budget 可能改变结果。",
    ),
    "cannot": Words("{pick} from {length} bytes on: {why}.", "{pick} 从 {length} 字节起：{why}。"),
    "order": Words(
        "Without an encoding, attention that looks both ways cannot tell 我爱你 from 你爱我 (difference {both}); "
        "a causal mask alone already can ({causal}).",
        "没有位置编码时，双向注意力分不清“我爱你”和“你爱我”（差 {both}）；仅有因果掩码就已能分清（{causal}）。",
    ),
    "reversal": Words(
        "These pairs are reversals, and {rows} looking both ways misses a reversal, since |i−j| is the same from either "
        "side; other re-orderings it sees ({reordered}).",
        "这些句对恰好是整句倒序，而双向的 {rows} 看不出倒序，因为 |i−j| 从两边看都一样；"
        "其他次序变化它能看出（{reordered}）。",
    ),
    "cache right": Words(
        "Token by token with a cache equals all at once for every one of them, to {worst}.",
        "对其中每一种，用缓存逐词计算都与一次算完相同，误差不超过 {worst}。",
    ),
    "cache wrong": Words(
        "Token by token with a cache differs from all at once for {rows}: up to {worst}.",
        "用缓存逐词计算与一次算完不一致：{rows}，最大差 {worst}。",
    ),
    "failed": Words("Came to nothing: {rows}.", "未能得出结果：{rows}。"),
    "state not learnt": Words(NOT_LEARNT, "此预算下未学会"),
    "state table": Words("cannot: " + TABLE_ENDS + " {limit}", "不能：表止于 {limit}"),
    "state cannot": Words("cannot", "不能"),
    "state failed": Words("failed", "失败"),
    # The page
    "title": Words("Which positional encoding, and why", "用哪种位置编码，为什么"),
    "lead": Words(
        "{arms} ways to tell a Transformer where its tokens stand, trained on windows of {home} bytes and asked to read "
        "up to {far}. Text: {text}.",
        "{arms} 种告诉 Transformer 词元位置的方法：用 {home} 字节的窗口训练，再读到 {far} 字节。文本：{text}。",
    ),
    "answer": Words("The answer", "结论"),
    "curves": Words("Trained short, read long", "短训练，长阅读"),
    "curves text": Words(
        "Bits per byte (lower is better) on the same last {targets} bytes of every held-out window, while the context in "
        "front of them grows. Every dot is one of {seeds} seeds, the curve their mean.",
        "在完全相同的目标字节（每个保留窗口的最后 {targets} 字节）上，随着前文变长，每字节多少比特（越低越好）。"
        "每个点是 {seeds} 个随机种子之一，曲线是平均。",
    ),
    "kind flat": Words("stays: at most {flat} bits worse", "保持：变差不超过 {flat} 比特"),
    "kind fades": Words("fades", "逐渐变差"),
    "kind breaks": Words("breaks: {breaks} bit worse or more", "失效：变差 {breaks} 比特以上"),
    "kind home": Words("cannot be asked further", "无法用于更长的文本"),
    "not drawn": Words(
        "Not drawn, since they did not learn the trained length: {rows}.", "没有学会训练长度，因此未画出：{rows}。"
    ),
    "ends at": Words("ends at {length}", "止于 {length}"),
    "context": Words("bytes of context", "上文字节数"),
    "bits": Words("bits per byte", "比特/字节"),
    "trained": Words("trained length", "训练长度"),
    "pairs": Words("knowing only the byte before", "只看前一个字节"),
    "heat": Words("Every encoding at every length", "每种编码，每个长度"),
    "heat text": Words(
        "Bits per byte, mean above, every seed below. “Flat to” is the longest length at which no more than {flat} bits "
        "are lost. Hatched cells have no number, and say why.",
        "每字节比特数：上为平均，下为各个种子。“保持到”是变差不超过 {flat} 比特的最大长度。斜纹格没有数值，并写明原因。",
    ),
    "encoding": Words("encoding", "编码"),
    "flat to": Words("flat to", "保持到"),
    "places": Words("Where in the text it happens", "在文本的哪里发生"),
    "places text": Words(
        "One reading of {far} bytes, scored along the way in stretches of {targets} bytes, mean of the seeds. The "
        "stretches hold different text, the same for every encoding: compare curves, not places.",
        "一次读完 {far} 字节，沿途每 {targets} 字节计一次，取各种子的平均。"
        "各段文字不同，但对每种编码相同：应比较曲线，不应比较位置。",
    ),
    "place": Words("position in the window", "窗口中的位置"),
    "cost": Words("What it costs on this machine", "在这台机器上的代价"),
    "cost text": Words(
        "Time relative to no encoding (1×, logarithmic scale), the contenders taking turns in one process on one thread. "
        "Dot: median of {rounds} rounds; line: quartiles. NoPE's own row is a second copy of it: its spread is the noise. "
        "Prefill and decode: one attention layer, d_model {cost_width}, {cost_heads} heads; training: {batch} × {home} "
        "bytes, d_model {width}, {layers} layers. Tables are computed within the time measured; FLOATER solves its path "
        "anew for every token, which a caller who keeps it need not.",
        "相对于没有编码的耗时（1×，对数坐标）；各方法在同一进程、单线程里轮流计时。点：{rounds} 轮的中位数；线：四分位数。"
        "NoPE 一行是它自己的另一份拷贝，其散布就是噪声。预填充与解码：一个注意力层，d_model {cost_width}，"
        "{cost_heads} 个头；训练：{batch} × {home} 字节，d_model {width}，{layers} 层。表格的计算包含在内；"
        "FLOATER 对每个词元重新求解整条路径，若调用者保留路径则可省去。",
    ),
    "cost prefill": Words("Prefill: {prompt} tokens at once", "预填充：一次 {prompt} 个词元"),
    "cost decode": Words("Decode: one token after {prompt}", "解码：{prompt} 个之后的一个词元"),
    "cost training": Words("Training step", "一个训练步"),
    "facts": Words("What holds exactly", "严格成立的性质"),
    "facts text": Words(
        "Word order: how much the output changes beyond a re-ordering when the words of 我爱你 and three more sentences "
        "change places; without an encoding {both} looking both ways and {causal} under a causal mask. Shift and decode: "
        "largest differences in fp64. Sizes are those of the model trained here, d_model {width}, {heads} heads, {layers} "
        "layers, float32. Tables are shared by all layers.",
        "词序：把“我爱你”等四个句子的词对调后，输出除了跟着换位以外还变了多少；没有编码时，双向为 {both}，因果掩码下为 "
        "{causal}。平移与解码：fp64 下的最大差。大小按此处训练的模型计：d_model {width}，{heads} 个头，{layers} 层，"
        "float32。表由各层共用。",
    ),
    "fact both": Words("word order, both ways", "词序（双向）"),
    "fact causal": Words("word order, causal", "词序（因果）"),
    "fact shift": Words("shift invariant", "平移不变"),
    "fact decode": Words("decode = prefill", "解码＝预填充"),
    "fact parameters": Words("parameters", "参数"),
    "fact bytes": Words("parameter bytes", "参数字节"),
    "fact tables": Words("table bytes a token", "每词元的表（字节）"),
    "fact largest": Words("largest position", "最大位置"),
    "fact sites": Words("acts on", "作用于"),
    "causal only": Words("causal only", "仅因果"),
    "any": Words("any", "不限"),
    "yes": Words("yes", "是"),
    "no": Words("no", "否"),
    "how": Words("How to reproduce, and what to keep in mind", "如何重现，以及应当注意什么"),
    "how command": Words("command", "命令"),
    "how training": Words("training", "训练"),
    "how training text": Words(
        "{steps} steps of {batch} × {home} bytes: {bytes} bytes an encoding and seed; AdamW, learning rate {rate}, the "
        "same for all; shared initial weights and data order",
        "{steps} 步，每步 {batch} × {home} 字节：每种编码、每个种子 {bytes} 字节；AdamW，学习率 {rate}，全部相同；"
        "初始权重与数据次序共用",
    ),
    "how seeds": Words("seeds", "随机种子"),
    "how seeds text": Words("{list} (exploratory: too few for an interval)", "{list}（探索性：太少，不足以给出区间）"),
    "how text": Words("text", "文本"),
    "how text text": Words(
        "{text}: {train} bytes to train on, {held} held out, by document",
        "{text}：{train} 字节用于训练，{held} 字节保留，按文档划分",
    ),
    "how versions": Words("versions", "版本"),
    "how machine": Words("machine", "机器"),
    "how machine text": Words("{machine}, {cores} cores, {vectors}", "{machine}，{cores} 核，{vectors}"),
    "mind size": Words(
        "Small models, little training: the order of the encodings and the shape of the curves may carry over to larger "
        "ones, the bits do not.",
        "模型小、训练少：编码之间的次序与曲线的形状对更大的模型或有参考价值，比特数本身没有。",
    ),
    "mind gate": Words(
        "Not learnt means more than {margin} bits above the best at {home} bytes, or no better than a table of byte pairs "
        "({pair_bits}). It is no statement about longer training.",
        "“未学会”指在 {home} 字节处比最好的差 {margin} 比特以上，或不优于字节对统计（{pair_bits}）。"
        "这并不代表训练更久以后的结果。",
    ),
    "mind random": Words(
        "Random positions: trained on a sorted random subset of 0 … {last}, scored at plain positions.",
        "随机位置：训练时取 0 … {last} 中排好序的随机子集，计分时用普通位置。",
    ),
    "mind learned": Words(
        "Learned positions: the table has the {home} rows that training can reach.",
        "可学习位置：表只有训练能用到的 {home} 行。",
    ),
    "mind t5": Words(
        "T5's buckets reach distance {reach}; trained at {home}, those beyond were never trained. Its paper trained at "
        "512.",
        "T5 的距离桶一直到 {reach}；训练长度为 {home}，更远的桶从未训练过。其论文的训练长度是 512。",
    ),
}


def say(name: str, done: Mapping[str, Any], **more: object) -> Words:
    """The sentence with its numbers filled in."""
    values = {**_numbers(done), **more}
    spoken = ({key: value[n] if isinstance(value, Words) else value for key, value in values.items()} for n in range(2))
    return Words(*(template.format(**words) for template, words in zip(PROSE[name], spoken, strict=True)))


def _numbers(done: Mapping[str, Any]) -> dict[str, object]:
    """What any sentence may name."""
    recipe, gate, cost, text = done["recipe"], done["gate"], done["cost"], done["text"]
    return {
        "arms": len(done["rows"]),
        "learnt": sum(row["learnt"] for row in done["rows"]),
        "home": recipe["length"],
        "far": max(recipe["lengths"]),
        "last": max(recipe["lengths"]) - 1,
        "times": max(recipe["lengths"]) // recipe["length"],
        "targets": recipe["targets"],
        "batch": recipe["batch"],
        "rate": recipe["learning_rate"],
        "width": recipe["shape"]["d_model"],
        "heads": recipe["shape"]["n_heads"],
        "layers": recipe["shape"]["n_layers"],
        "seeds": len(done["settings"]["seeds"]),
        "list": ", ".join(map(str, done["settings"]["seeds"])),
        "steps": done["steps"],
        "bytes": f"{done['bytes_per_arm']:,}",
        "text": text["source"],
        "train": f"{text['train']['bytes']:,}",
        "held": f"{text['held_out']['bytes']:,}",
        "chance": f"{done['chance']:g}",
        "pair_bits": f"{done['byte_pairs']:.2f}",
        "margin": f"{gate['margin']:g}",
        "limit": "" if gate["limit"] is None else f"{gate['limit']:.2f}",
        "flat": f"{gate['flat']:g}",
        "breaks": f"{gate['breaks']:g}",
        "both": small(done["order_without"]["bidirectional"]),
        "causal": small(done["order_without"]["causal"]),
        "rounds": cost["rounds"],
        "prompt": cost["sizes"]["prompt"],
        "cost_width": cost["sizes"]["d_model"],
        "cost_heads": cost["sizes"]["n_heads"],
        "machine": f"{done['machine']['system']} {done['machine']['processor']}",
        "cores": done["machine"]["cores"],
        "vectors": done["machine"]["vector_instructions"],
    }


def small(value: float) -> str:
    """Two digits, and rounding error as a power of ten."""
    return "0" if value == 0 else f"{value:.2f}" if value >= 0.005 else f"{value:.0e}"


def state_words(state: str) -> Words:
    """Why a cell has no number."""
    if state == NOT_LEARNT:
        return PROSE["state not learnt"]
    kind, _, why = state.partition(": ")
    if why.startswith(TABLE_ENDS):
        return Words(*(template.format(limit=why.rsplit(" ", 1)[1]) for template in PROSE["state table"]))
    return Words(*(f"{word}: {why}" for word in PROSE[f"state {kind}"]))


def times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def largest(exact: Mapping[str, Any]) -> str:
    """The largest position; 0 in front where the encoding knows no negative one."""
    top = "any" if exact["largest_position"] is None else str(exact["largest_position"])
    return f"0…{top}" if exact["from_zero"] else top


def factor(row: Mapping[str, Any]) -> str:
    """How many trained lengths it stays flat for, if it learnt one at all."""
    keeps = row["keeps"]
    return "" if keeps is None else f"≥{keeps['factor']}×" if keeps["at_least"] else f"{keeps['factor']}×"
