"""The table of laws of docs/check.md: what each says, and what it is tried on."""

from __future__ import annotations

import posenc.checking.checking
import posenc.checking.laws
import posenc.transformers.model_laws  # noqa: F401 (each adds its laws to the table)
from posenc.checking.table import rows
from posenc.support.languages import Language, Words

HEADS = Words("law | says | tried on", "定律 | 内容 | 检验的对象")
KINDS = {"cache": Words("cache", "缓存"), "encoding": Words("encoding", "编码"), "model": Words("model", "模型")}


def laws_table(language: Language) -> str:
    lines = [f"| {HEADS.in_language(language)} |", "|---|---|---|"]
    for name, kinds, sentence in rows():
        on = ", ".join(KINDS[kind].in_language(language) if kind in KINDS else f"`{kind}`" for kind in kinds)
        lines.append(f"| `{name}` | {sentence.in_language(language)} | {on} |")
    return "\n".join(lines)
