"""The page of costs: every entry of the catalogue relative to no encoding."""

from __future__ import annotations

from posenc.catalogue.choose import costs
from posenc.catalogue.entry import KINDS, SHORT
from posenc.catalogue.lookup import ENTRIES
from posenc.support.languages import Language

HEADS = {
    "en": ("name", *(words.en for words in costs.MEASURES.values()), "memory beyond NoPE's"),
    "zh": ("名称", *(words.zh for words in costs.MEASURES.values()), "超出 NoPE 的内存"),
}


def costs_page(language: Language) -> str:
    """A table for each kind, and how it was measured."""
    zh = language == "zh"
    measured = costs.measured()
    lines = [
        "# 代价\n" if zh else "# Costs\n",
        "[目录](catalogue.md)\n" if zh else "[catalogue](catalogue.md)\n",
        conditions(language),
    ]
    for kind, words in KINDS.items():
        rows = [entry for entry in ENTRIES if entry.kind == kind and entry.name in measured]
        lines += [
            f"\n## {SHORT[kind].in_language(language).capitalize()}\n",
            f"{words.in_language(language)}\n",
            "| " + " | ".join(HEADS[language]) + " |",
            "|---" + "|--:" * (len(HEADS[language]) - 1) + "|",
        ]
        for entry in rows:
            found = measured[entry.name]
            cells = [f"[{entry.name}](encodings/{entry.name}.md)"]
            cells += [ratio.text() if isinstance(ratio, costs.Ratio) else "–" for ratio in found.ratios.values()]
            cells.append(memory(found.memory, language) if isinstance(found.memory, costs.Memory) else "–")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def memory(held: costs.Memory, language: Language) -> str:
    if held.order == "few":
        return "–"
    order = {"1": "O(1)", "n": "O(n)", "n²": "O(n²)"}[held.order]
    return f"{held.bytes / costs.MiB:.0f} MiB, {order}"


def conditions(language: Language) -> str:
    """How the numbers came about, from the file itself."""
    found = costs.conditions()
    sizes, machine = found["sizes"], found["machine"]
    (low, high), load = sizes["rounds"], f"{found['load']:.1f}"
    width, heads, layers = sizes["d_model"], sizes["n_heads"], sizes["layers_of_presets"]
    short, long, before = sizes["tokens"], sizes["tokens_long"], sizes["tokens"] - 1
    where = f"{machine['cpu']}, torch {machine['torch']}, {machine['kernels']}, {machine['date'][:10]}"
    again = "`python -m posenc.pictures.costs --all`"
    if language == "zh":
        return f"""CPU 时间与无位置编码（NoPE）之比，越小越好：各轮比值的中位数，括号内为四分位数。
每一轮中两者轮流运行，每项 {low} 到 {high} 轮。测量时机器还在做别的事（平均负载最高 {load}），因此测的是本进程的 CPU 时间；
相差不到一成的比值视为相同。

一个注意力层，含投影；d_model {width}，{heads} 个头，float32，一个线程。预填充 {short} 和 {long} 个词，
解码在 {before} 个词的缓存之后，训练是前向与反向。模型预设用 {layers} 层，NoPE 也用同样多层。
编号方式与读取其坐标的 RoPE 一起测量。改变远处距离的方法（`rerope`、`self_extend`、`lm_infinite`、`dual_chunk`、
`shifted_rope`）取小的窗口，例如词数的四分之一，使一部分词处在窗口之外。图像高 14 个图块。
内存是一次前向最多比 NoPE 多占的量，O(…) 由一半词数与全部词数之比得出，测不出的用“–”表示；
做不到的也用“–”表示，原因见各条目的页面。
FIRE 按创建时的样子测量，适用于任何长度；请求不超过其阈值时，`encoding.at_length(n)` 只取决于距离，代价与 KERPLE 相近。

{where}。重新测量：{again}。
"""
    return f"""CPU time relative to no encoding (NoPE), smaller is better: the median of the ratios of all rounds, with
quartiles in brackets. In each round both take turns; {low} to {high} rounds for each number. The machine did other work
meanwhile (load average up to {load}), so the CPU time of the process itself is what was measured; ratios less than a tenth
apart are alike.

One attention layer with its projections; d_model {width}, {heads} heads, float32, one thread. Prefill of {short} and
{long} tokens, decoding after a cache of {before}, training is forward and backward. Presets of models run {layers} layers,
and so does NoPE beside them. Ways to number tokens are measured with the RoPE that reads their coordinates. Methods that
change far distances (`rerope`, `self_extend`, `lm_infinite`, `dual_chunk`, `shifted_rope`) have small windows, of a quarter
of the tokens for example, so that some tokens are far. Images are 14 patches high. Memory is the most that a forward pass
holds beyond NoPE's; its order follows from the amounts at all tokens
and at half of them, and "–" means too little to be measured. What an entry cannot do has "–" too; its page says why.
FIRE is measured as it is created, for any length; where a request stays within its threshold, `encoding.at_length(n)` is a
bias of the distance alone and costs about what KERPLE costs.

{where}. To measure again: {again}.
"""
