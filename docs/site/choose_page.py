"""The page that `posenc choose` prints from: the short list for usual answers, and the evidence of every entry on it."""

from __future__ import annotations

import itertools

from posenc.catalogue.choose.choice import Answers, Choice, recommend
from posenc.support.languages import Language, Words

DOMAINS = {
    "text": Words("Text", "文本"),
    "audio": Words("Audio", "音频"),
    "image": Words("Images", "图像"),
    "graph": Words("Graphs", "图"),
}
TRAINED, LONGER = 2048, 16384
SHOWN = 3  # entries of a cell
INTRODUCTION = Words(
    f"""`posenc choose` asks a few questions and prints a short list. Each reason is a figure that we measured or a cited
one, and says which. The table holds its results for usual answers. "Longer" means {LONGER // TRAINED} times the trained
length. A "plain kernel" takes queries, keys, values and a causal mask only; the last column allows no learned parameters
either. Measured quality comes from small models (results/standard); costs are those of [costs](costs.md).
""",
    f"""`posenc choose` 提几个问题，给出一份简短的列表；每个理由要么是我们实测的数字，要么是引用的结论，
并注明是哪一种。下表是它对常见回答的结果。“更长”指使用时的长度是训练长度的 {LONGER // TRAINED} 倍。
“普通内核”只接受查询、键、值和因果掩码，最后一列还不允许可学习的参数。
实测的质量来自小模型（results/standard），代价见[代价](costs.md)。
""",
)
STARTS = {"scratch": Words("from scratch", "从头训练"), "trained": Words("change a trained model", "改动已训练的模型")}
DIRECTIONS = {True: Words("causal", "因果"), False: Words("both ways", "双向")}
LENGTHS = {TRAINED: Words("as trained", "与训练相同"), LONGER: Words("longer", "更长")}
KIND = {"measured": Words("measured", "实测"), "cited": Words("cited", "引用")}


def choose_page(language: Language) -> str:
    zh = language == "zh"
    lines = [
        "# 选择编码\n" if zh else "# Which encoding to take\n",
        "[目录](catalogue.md)\n" if zh else "[catalogue](catalogue.md)\n",
        INTRODUCTION.in_language(language),
    ]
    seen: dict[str, Choice] = {}
    head = (
        ("从何开始", "方向", "长度", "任意内核，可有参数", "普通内核，无参数")
        if zh
        else ("start", "direction", "length", "any kernel, parameters allowed", "plain kernel, no parameters")
    )
    for domain, title in DOMAINS.items():
        lines += [f"\n## {title.in_language(language)}\n", "| " + " | ".join(head) + " |", "|---|---|---|---|---|"]
        for start, causal, wanted in itertools.product(STARTS, DIRECTIONS, LENGTHS):
            cells = [words.in_language(language) for words in (STARTS[start], DIRECTIONS[causal], LENGTHS[wanted])]
            for kernel, parameters in (("any", True), ("plain", False)):
                answers = Answers(domain, causal, TRAINED, wanted, start, kernel, parameters)  # type: ignore[arg-type]
                found = recommend(answers, SHOWN)
                seen |= {one.name: one for one in found if one.name not in seen}
                cells.append(", ".join(f"[{one.name}](encodings/{one.name}.md)" for one in found))
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["\n## 理由\n" if zh else "\n## Reasons\n"]
    for name in sorted(seen):
        choice = seen[name]
        lines += [f"**[{choice.title.in_language(language)}](encodings/{name}.md)**\n"]
        lines += [
            f"- {KIND[reason.kind].in_language(language)}{'：' if zh else ': '}{reason.says.in_language(language)}"
            f"{'（' if zh else ' ('}{reason.source}{'）' if zh else ')'}"
            for reason in choice.reasons
        ]
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"
