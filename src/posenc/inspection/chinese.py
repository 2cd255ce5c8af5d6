"""Sentences that many families share, of posenc.dialects, in Chinese: for `posenc inspect --lang zh`.

Those of single families stay in English, as in the table of families.
"""

from __future__ import annotations

import re

from posenc.bilingual import Language

# A pattern of the English sentence, and the Chinese one with its groups.
SENTENCES = tuple(
    (re.compile(pattern), chinese)
    for pattern, chinese in (
        (r"0, 1, 2, … along the sequence", "沿序列 0, 1, 2, …"),
        (r"missing: (\w+) assumes (.+)", r"缺失：\1 默认为 \2"),
        (r"(\w+)'s code does not read it", r"\1 的代码不读这个键"),
        (r"not in the file: (\w+) assumes (\w+)", r"文件中没有：\1 默认为 \2"),
        (r"not in the file: (\d+) by the shapes of the weights", r"文件中没有：由权重的形状得 \1"),
        (r"not a key of (\w+), which takes (.+): it is not read", r"\1 没有这个键，它的键是 \2：此键不读"),
        (r"([\d.e-]+) shortens the context: .+", r"\1 会缩短上下文：训练长度要乘以它；应不小于 1"),
        (
            r"missing: transformers uses max_position_embeddings=(\d+), as if .+",
            r"缺失：transformers 用 max_position_embeddings=\1，如同模型是在扩展后的长度上训练的",
        ),
        (
            r"the file also has rope_parameters; transformers uses rope_scaling and ignores the other",
            "文件还有 rope_parameters；transformers 用 rope_scaling，忽略前者",
        ),
        (
            r"(.+) has rope_type=(.+) and type=(.+); transformers uses rope_type",
            r"\1 有 rope_type=\2 和 type=\3；transformers 用 rope_type",
        ),
        (r"(\S+)=(\S+) overrides (\S+)=(\S+)", r"\1=\2 取代 \3=\4"),
        (r"not used: use_sliding_window is false", "不使用：use_sliding_window 为 false"),
        (r"this family's code does not read it: all channels rotate", "该家族的代码不读它：所有通道都旋转"),
        (
            r"(\d+) of (\d+) layers are .+, which keep order; attention is in layers (.+)",
            r"\2 层中有 \1 层不是注意力，也保持次序；注意力在第 \3 层",
        ),
        (r"(\d+) of (\d+) layers are linear attention, which is recurrent", r"\2 层中有 \1 层是线性注意力，逐步递推"),
        (
            r"remote code( \(.+\))?: read from the published code's facts, not compared with it.*",
            r"远程代码\1：按公开代码的事实读取，未与其代码对照",
        ),
        (
            r"remote code: with trust_remote_code, (\S+) runs instead of .+",
            r"远程代码：设 trust_remote_code 时，运行的是 \1，而不是这里所读的 transformers 自己的代码",
        ),
        (
            r"('.+') is not known, (.+): read as (\w+), which (\w+) in architectures names",
            r"\1 未知（远程代码）：architectures 中写的是 \4，按 \3 读取",
        ),
        (
            r"converted weights: channels pair as (\w+), unlike transformers' code for (\S+); .+",
            r"权重已转换：通道按 \1 成对，与 transformers 的 \2 代码不同；只有读这种布局的程序才能载入",
        ),
        (r"('\w+') here, but the weights record ('\w+')", r"此处为 \1，而权重记录的是 \2"),
    )
)


def translated(text: str, language: Language) -> str:
    """`text` in `language`; in English where there is no translation."""
    if language == "en":
        return text
    for pattern, chinese in SENTENCES:
        if match := pattern.fullmatch(text):
            return match.expand(chinese)
    return text
