"""The sentences of posenc that have no Chinese yet, and the translations that no sentence uses; exit code 0.

    python tools/translated_messages.py

Every folder of src/posenc and of the study of claims that has a zh.po is read: the sentences from its Python files,
say("…"), and from its tables of data (posenc.support.data_files), and the entries of its catalogue. An entry that is marked
fuzzy counts as missing. A changed English sentence shows up twice: the new one is missing, the translation of the old one
unused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from babel.messages.pofile import read_po

from posenc.support import data_files

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src" / "posenc", ROOT / "results" / "claims")


class Sentence(NamedTuple):
    context: str  # tells apart two uses of the same English; mostly empty
    english: str

    def shown(self) -> str:
        return repr(self.english) + f" (context {self.context!r})" * bool(self.context)


def rooms(sources: Sequence[Path] = SOURCES) -> list[Path]:
    return sorted(path.parent for folder in sources for path in folder.glob("*/zh.po"))


def said(room: Path) -> dict[Sentence, str]:
    """Every sentence of a room, and the first line that says it. Raises ValueError for one that is not written out."""
    found: dict[Sentence, str] = {}
    for path in sorted(room.rglob("*.py")):
        for call in calls(ast.parse(path.read_text(encoding="utf-8")), room.name):
            where = f"{path.relative_to(room.parent)}:{call.lineno}"
            context = next((one.value for one in call.keywords if one.arg == "context"), ast.Constant(""))
            parts = [context, *call.args]
            values = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(parts) != 2 or len(values) != 2:
                raise ValueError(f"{where}: say takes one sentence, written out, and named values; got {ast.unparse(call)}")
            found.setdefault(Sentence(*values), where)
    for path in sorted(room.rglob("*.toml")):
        data_files.read(
            path, lambda english, of=path: found.setdefault(Sentence("", english), str(of.relative_to(room.parent)))
        )
    return found


def calls(tree: ast.Module, room: str) -> Iterator[ast.Call]:
    """The calls of `say` in a module that imports it from that room."""
    modules = (f"posenc.{room}.say", f"{room}.say")
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in modules)
    if not any(name.name == "say" for node in imports for name in node.names):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
            yield node


def translated(room: Path) -> dict[Sentence, str]:
    """The entries of a room's catalogue that have a translation."""
    with (room / "zh.po").open("rb") as file:
        entries = [one for one in read_po(file) if one.id and one.string and not one.fuzzy]
    return {Sentence(one.context or "", str(one.id)): str(one.string) for one in entries}


def listed(sources: Sequence[Path] = SOURCES) -> list[str]:
    """A line for every sentence without a translation, and for every translation without a sentence."""
    lines = []
    for room in rooms(sources):
        sentences, entries = said(room), translated(room)
        lines += [f"{where}: missing: {one.shown()}" for one, where in sentences.items() if one not in entries]
        lines += [f"{room.name}/zh.po: unused: {one.shown()}" for one in entries if one not in sentences]
    return lines


if __name__ == "__main__":
    print("\n".join(listed()) or "every sentence has its translation, and every translation its sentence")
