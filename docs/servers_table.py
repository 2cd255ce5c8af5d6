"""The tables of docs/servers.md: which rotary settings vLLM, SGLang and llama.cpp read, from servers.json."""

from __future__ import annotations

from typing import Any

from posenc.configs.report.runtimes import servers
from posenc.lab.report.markdown import grid
from posenc.support.languages import Language

SERVERS = ("vLLM", "SGLang")
WORDS = {
    "settings": ("all", "全部"),
    "base": ("the base alone", "只读底数"),
    "unknown": ("not known", "未知"),
    "nothing": ("none", "无"),
    "branch": ("no such type", "没有这种类型"),
    "family": ("model type", "模型类型"),
    "architecture": ("llama.cpp's architecture", "llama.cpp 的架构"),
}


def servers_table(language: Language) -> str:
    """Two tables: of each rope_type the keys that are read, and of each model type whether its settings get there."""
    known = servers()
    word = {name: words[language == "zh"] for name, words in WORDS.items()}
    head = [f"{name} {known[name]['version']}" for name in SERVERS]
    kinds = sorted({kind for name in SERVERS for kind in known[name]["keys"]})
    rows = [[f"`{kind}`", *(_keys(known[name]["keys"].get(kind), word) for name in SERVERS)] for kind in kinds]
    architectures = known["llama.cpp"]["architectures"]
    families = sorted(
        {*architectures, *(one for name in SERVERS for part in ("settings", "base") for one in known[name][part])}
    )
    served = [
        [
            f"`{family}`",
            *(_read(known[name], family, word) for name in SERVERS),
            _code(architectures.get(family), word["unknown"]),
        ]
        for family in families
    ]
    of_types = grid(["rope_type", *head], rows)
    of_families = grid([word["family"], *head, word["architecture"]], served)
    return f"{of_types}\n\n{of_families}"


def _keys(read: list[str] | None, word: dict[str, str]) -> str:
    return word["branch"] if read is None else ", ".join(f"`{key}`" for key in read) or word["nothing"]


def _read(server: dict[str, Any], family: str, word: dict[str, str]) -> str:
    return next((word[part] for part in ("settings", "base") if family in server[part]), word["unknown"])


def _code(name: str | None, unknown: str) -> str:
    return f"`{name}`" if name else unknown
