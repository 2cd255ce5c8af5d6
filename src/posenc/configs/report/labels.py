"""The words of the report's page, in both languages."""

from __future__ import annotations

from posenc.support.languages import Words

LABELS = {
    "trained": Words("trained on {0:,} positions", "训练长度 {0:,}"),
    "not said": Words("trained length not in the file", "文件没有给出训练长度"),
    "scaled": Words("scaled to {0:,} by {1}", "由 {1} 扩展到 {0:,}"),
    "by": Words("with {0}", "用 {0}"),
    "up to": Words(
        "up to {0:,}: every position and angle was seen in training", "到 {0:,} 为止：位置和角度都在训练中出现过"
    ),
    "beyond": Words("beyond {0:,}: {1}", "超过 {0:,}：{1}"),
    "longer": Words("longer: {0}", "更长时：{0}"),
    "do": Words("what to do: {0}", "怎么办：{0}"),
    "errors": Words("first: {0} in this file, under findings", "先看下面的发现：文件中有 {0}"),
    "error": Words("1 error", "1 个错误"),
    "many errors": Words("{0} errors", "{0} 个错误"),
    "nothing": Words("no attention layers of its own", "自身没有注意力层"),
    "comma": Words(", ", "，"),
    "layers": Words("{0} layers", "{0} 层"),
    "layer": Words("1 layer", "1 层"),
    "heads": Words(", {0} heads of {1} channels", "，{0} 个头，每头 {1} 个通道"),
    "positions": Words("positions: {0}", "位置：{0}"),
    "input": Words("input", "输入"),
    "every layer": Words("every layer", "每一层"),
    "every layer but": Words("every layer but {0}", "除 {0} 外的每一层"),
    "layers n": Words("layers {0}", "第 {0} 层"),
    "layer n": Words("layer {0}", "第 {0} 层"),
    "causal": Words("causal", "因果"),
    "both": Words("both directions", "双向"),
    "window": Words(", a window of {0:,} tokens", "，窗口 {0:,} 个词元"),
    "chunk": Words(", in chunks of {0:,} tokens", "，每块 {0:,} 个词元"),
    "not attention": Words("not attention: no positions", "不是注意力：没有位置"),
    "from embeddings": Words("from the embeddings only", "只来自输入嵌入"),
    "no positions": Words("no positions", "没有位置"),
    "pairs": Words("pairs", "成对"),
    "base": Words("base", "基数"),
    "scaling": Words("scaling", "缩放"),
    "axes": Words("axes", "坐标轴"),
    "axes are": Words("{0} coordinates for each token; {1} pairs read them", "每个词元 {0} 个坐标；分别由 {1} 对读取"),
    "cos and sin": Words("cos and sin", "cos 和 sin"),
    "softmax scale": Words("softmax scale", "softmax 缩放"),
    "note": Words("note", "说明"),
    "half": Words("half: channel i pairs with i + d/2", "half：通道 i 与 i + d/2 成对"),
    "interleaved": Words("interleaved: channel 2i pairs with 2i + 1", "interleaved：通道 2i 与 2i + 1 成对"),
    "all": Words("all {0} channels", "全部 {0} 个通道"),
    "first": Words("the first {1} of {0} channels", "{0} 个通道中的前 {1} 个"),
    "last": Words("the last {1} of {0} channels", "{0} 个通道中的后 {1} 个"),
    "reverse": Words(", the other way round", "，方向相反"),
    "too": Words("; {0} too", "；{0} 也旋转"),
    "and": Words(" and ", "和"),
    "wavelengths": Words("wavelengths", "波长"),
    "from to": Words("{0} … {1} positions", "{0} … {1} 个位置"),
    "still": Words("{0} of {1} pairs never rotate", "{1} 对中有 {0} 对从不旋转"),
    "unfinished": Words("unfinished", "未转满"),
    "unfinished are": Words(
        "{0} of {1} rotating pairs do not complete a turn in {2:,}", "{1} 对旋转的通道中有 {0} 对在 {2:,} 内转不满一圈"
    ),
    "the window": Words(", all that the layer sees", "（该层能看到的范围）"),
    "from pair": Words(", from pair {0} on", "，从第 {0} 对起"),
    "largest angle": Words("largest angle", "最大角度"),
    "angle is": Words("{0} rad at position {1:,}", "位置 {1:,} 处 {0} 弧度"),
    "error there": Words("error there", "该处误差"),
    "error is": Words(
        "{0:.1e} with fp32 angles (exact='model'), {1:.1e} with bf16 tables; exact='fp64' has none",
        "fp32 角度（exact='model'）{0:.1e}，bf16 表 {1:.1e}；exact='fp64' 没有误差",
    ),
    "at": Words("at {0:,}:", "在 {0:,}："),
    "new": Words("{0} of {1} pairs have angles not seen in training: {2}", "{1} 对中有 {0} 对出现训练中没有的角度：{2}"),
    "none new": Words("no pair has angles not seen in training", "没有一对出现训练中没有的角度"),
    "findings": Words("findings", "发现"),
    "no findings": Words("no findings", "没有发现"),
    "facts": Words("facts of nearly every model", "几乎所有模型都有的事实"),
    "more facts": Words("--facts: layouts and precision", "--facts：布局与精度"),
    "grade error": Words("error", "错误"),
    "grade warning": Words("warning", "警告"),
    "grade note": Words("note", "说明"),
    "learned tables": Words("learned tables", "学习的表"),
    "mean cosine": Words("mean cosine of rows by distance", "各距离上行向量的平均余弦"),
    "columns": Words(
        "weight,rows,at 1,at 8,at 64,by distance,offset,dead", "权重,行数,距离 1,距离 8,距离 64,由距离,偏移,未训练"
    ),
    "explained": Words(
        "by distance: share of the variance of all cosines that distance alone explains; offset: 0 if a row is equally "
        "similar to the k-th row after and before it; dead: rows with a norm near 0.",
        "由距离：所有余弦的方差中，距离单独能解释的比例；"
        "偏移：若一行与其后第 k 行、前第 k 行同样相似，则为 0；未训练：范数接近 0 的行。",
    ),
    "to": Words("to {0:,} positions", "扩展到 {0:,} 个位置"),
    "factor": Words("factor {0:.6g}; frequencies in radians per position", "倍数 {0:.6g}；频率以弧度/位置计"),
    "frequencies": Words(",fastest,middle,slowest,cos/sin,what it is", ",最快,居中,最慢,cos/sin,是什么"),
    "now": Words("now", "现在"),
    "run": Words("to run it with {0}", "用 {0} 运行"),
    "ignores": Words("ignores {0}", "忽略 {0}"),
    "other methods": Words("   (others: --method)", "   （其他方法：--method）"),
    "shortened": Words(
        "long lists are shortened here; --json and --out have them in full", "长列表在此缩短；--json 和 --out 给出全部"
    ),
}
