"""A fingerprint of the code that a trial runs through: training, its encoding, its task, and all that these import.

    modules (import_closure)  ─►  syntax trees without text for readers  ─┐
    C++ beside them           ─►  text without comments                  ─┴─►  SHA-256, 16 digits

What does not change it: comments, docstrings, blank space, messages of errors, sentences (`say`, `Words`), catalogue
entries (ENTRY), lists of public names, and every module outside the closure. A renamed variable does change it: whether
the numbers are still the same is then checked by `posenc lab verify`. It is the same for all versions of Python. Needs no
torch.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from posenc.lab import tasks
from posenc.lab.records.import_closure import SOURCES, closure, file_of, imports_of, tree_of

if TYPE_CHECKING:
    from posenc.lab.experiment import Trial

TRAINING = "posenc.lab.trial.training"
DIGITS = 16
FOR_READERS = {"ENTRY", "__all__"}  # variables whose values are read by people and tools, not by a trial
NOT_CODE = {"ctx", "kind", "type_comment", "type_ignores"}  # fields of syntax nodes
COMPILED = {".cpp", ".h"}


def fingerprint(trial: Trial, sources: Path = SOURCES) -> str:
    """16 hexadecimal digits. Raises ValueError for an encoding or a task that this posenc does not have."""
    return _of_modules(modules_of(trial, sources), sources)


def fingerprint_of(names: Iterable[str], sources: Path = SOURCES) -> str:
    """The fingerprint of other modules and of all that they import."""
    return _of_modules(closure(names, sources), sources)


def modules_of(trial: Trial, sources: Path = SOURCES) -> frozenset[str]:
    """Every module of posenc that the trial can run through. A user's own encoding or task adds what its file
    imports."""
    roots, task = {TRAINING}, tasks.module_of(trial.task.name)
    roots |= imports_of(ast.parse(trial.task.source or ""), "", sources) if task is None else {task}
    if trial.source is None:
        roots.add(f"posenc.encodings.{trial.encoding.partition('+')[0]}")
    else:
        roots |= imports_of(ast.parse(trial.source), "", sources)
    return closure(roots, sources)


@cache
def _of_modules(names: frozenset[str], sources: Path) -> str:
    lines = [f"{name} {_of_module(name, sources)}\n" for name in names]
    folders = {file_of(name, sources).parent for name in names}
    files = [path for folder in folders for path in folder.iterdir() if path.suffix in COMPILED]
    lines += [f"{path.relative_to(sources).as_posix()} {_digest([compiled(path.read_text('utf-8'))])}\n" for path in files]
    return _digest(sorted(lines))[:DIGITS]


@cache
def _of_module(name: str, sources: Path) -> str:
    return _digest(told(tree_of(name, sources)))


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
    return digest.hexdigest()


def told(tree: ast.AST) -> list[str]:
    """A syntax tree as pieces of text, without what is written for readers.

    Written out here because the results of ast.dump and ast.unparse depend on the version of Python.
    """
    pieces = list[str]()

    def tell(node: object, quiet: bool) -> None:
        """`quiet`: the text of strings is left out."""
        if isinstance(node, list):
            pieces.append("[")
            for child in node:
                if not _is_for_readers(child):
                    tell(child, quiet)
            pieces.append("]")
        elif isinstance(node, ast.Constant):
            pieces.append("text " if quiet and isinstance(node.value, str) else f"{node.value!r} ")
        elif isinstance(node, ast.AST):
            pieces.append(f"{type(node).__name__}(")
            for field, value in ast.iter_fields(node):
                if field not in NOT_CODE and value is not None and value != [] and not _is_sentence(node, field):
                    pieces.append(f"{field}=")
                    tell(value, quiet or _is_message(node, field))
            pieces.append(")")
        else:
            pieces.append(f"{node!r} ")

    tell(tree, quiet=False)
    return pieces


def _is_for_readers(node: object) -> bool:
    """Docstrings, and assignments to ENTRY and __all__."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return bool(targets) and all(isinstance(target, ast.Name) and target.id in FOR_READERS for target in targets)


def _is_sentence(node: ast.AST, field: str) -> bool:
    """The arguments of say(…): a sentence for readers, and the values that are put into it."""
    return isinstance(node, ast.Call) and field != "func" and isinstance(node.func, ast.Name) and node.func.id == "say"


def _is_message(node: ast.AST, field: str) -> bool:
    """The strings in what is raised, and in the arguments of Words(…)."""
    if isinstance(node, ast.Raise):
        return field == "exc"
    return isinstance(node, ast.Call) and field != "func" and isinstance(node.func, ast.Name) and node.func.id == "Words"


CPP = re.compile(
    r"""
      (?P<kept> R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"   # a raw string
              | "(?:\\.|[^"\\\n])*"                            # a string
              | '(?:\\.|[^'\\\n])*' )                          # a character
    | (?: \s | //[^\n]* | /\*.*?\*/ )+                       # blank space and comments
    """,
    re.VERBOSE | re.DOTALL,
)


def compiled(text: str) -> str:
    """C++ without comments, every stretch of blank space as one space."""

    return CPP.sub(lambda match: match["kept"] or " ", text).strip()
