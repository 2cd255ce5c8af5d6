"""How wide the house is: what a newcomer has to hold in the head, counted.

python tools/house.py             the figures, and the lines of each room
python tools/house.py --json      the same for machines

top floor      modules and packages directly below src/posenc
floors         the longest chain of imports between them; docs/architecture.md draws them
contract       public names of PositionalEncoding; those above CONTRACT, each with the class that needs it
attend …       files, functions and Python calls that a call runs through, and moves from one file to another
comparison     files and lines of the lab that `posenc compare` loads until its report is written
first hour     lines of the files that CONTRIBUTING.md names in reading order; next: those after them
lines          of Python in src/posenc, by room
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src" / "posenc"

CONTRACT = 18  # public names
NEEDED = {
    "exact_parameters": "encodings/bases/learned_rope.py: LeRoPE, whose factors stay float32 in a model of bfloat16",
    "extra_repr": "torch.nn.Module prints a model by it",
    "learned_tables": "encodings/bases/learned_rope.py: LeRoPE, whose tables hold parameters",
    "reads_vectors": "encoding.py: DistanceBias, which stays relative in a Stack with a rotation",
}
"""The names of the contract beyond CONTRACT, and what needs them."""


def rooms() -> dict[str, list[Path]]:
    """The files of each room: a module of the top floor, or a package with all that is in it."""
    found: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        found.setdefault(path.relative_to(SOURCE).parts[0].removesuffix(".py"), []).append(path)
    return found


def imported(path: Path) -> set[str]:
    """The rooms that a file imports from when it runs; posenc itself is `__init__`."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    found = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "posenc":
            parts = str(node.module).split(".")[1:]
            found |= {parts[0]} if parts else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("posenc.")}
    return {name if name in rooms_by_name() else "__init__" for name in found}


@functools.cache
def rooms_by_name() -> frozenset[str]:
    return frozenset(rooms())


def floors() -> list[list[str]]:
    """The rooms by the longest chain of imports below them, the highest first. Raises ValueError for a circle."""
    below = {name: set().union(*map(imported, paths)) - {name} for name, paths in rooms().items()}
    height: dict[str, int] = {}
    while left := [name for name in below if name not in height]:
        ready = [name for name in left if below[name] <= height.keys()]
        if not ready:
            raise ValueError(f"these rooms import each other: {', '.join(left)}")
        height |= {name: max((height[other] for other in below[name]), default=-1) + 1 for name in ready}
    return [[name for name in below if height[name] == level] for level in range(max(height.values()), -1, -1)]


def contract() -> list[str]:
    """The public names that PositionalEncoding has and torch's Module has not."""
    from torch import nn

    from posenc import PositionalEncoding

    bases = PositionalEncoding.__mro__[: PositionalEncoding.__mro__.index(nn.Module)]
    own = {name for base in bases for name in (*vars(base), *inspect.get_annotations(base))}
    return sorted(
        name for name in own if not name.startswith("_") and (name not in vars(nn.Module) or name == "extra_repr")
    )


def journeys() -> dict[str, dict[str, int]]:
    """What calls run through: the README's attend, one with a bias, and one token decoded with a cache."""
    import torch

    import posenc

    rope, alibi = (posenc.create(name, d_model=512, n_heads=8) for name in ("rope", "alibi"))
    plain = posenc.Positions.arange(1, 128)
    turned, biased = rope.prepare(plain), alibi.prepare(plain)
    q, k, v = (torch.randn(1, 8, 128, 64) for _ in range(3))
    layer, at = posenc.Attention(512, 8, rope), posenc.Positions.decode([128])
    with torch.no_grad():
        _, cache = layer.decode(torch.randn(1, 128, 512), turned)
        token = torch.randn(1, 1, 512)
        return {
            "attend, RoPE": through(lambda: posenc.attend(q, k, v, rope, turned)),
            "attend, ALiBi": through(lambda: posenc.attend(q, k, v, alibi, biased)),
            "decode, RoPE": through(lambda: layer.decode(token, at, cache)),
        }


def through(call: Callable[[], Any]) -> dict[str, int]:
    """Files, functions, Python calls and moves between files of a call, after a first one that loads what it needs."""
    found: list[tuple[str, str]] = []

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{SOURCE}{os.sep}"):
            found.append((code.co_filename, code.co_qualname))

    call()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = [file for file, _ in found]
    moves = sum(one != other for one, other in itertools.pairwise(files))
    return {"files": len(set(files)), "functions": len(set(found)), "calls": len(found), "moves": moves}


def comparison() -> dict[str, int]:
    """The lab's part of what `posenc compare` loads; to be asked in a process that has loaded nothing else of the lab."""
    asked = ("commands.compare", "commands.run", "commands.answer", "run.sweep", "engines.local", "trial.training")
    for name in (*asked, "findings.assemble", "report"):
        importlib.import_module(f"posenc.lab.{name}")
    for name in ("page", "markdown", "pictures", "tables"):
        importlib.import_module(f"posenc.lab.report.{name}")
    found = {module.__file__ for name, module in sys.modules.items() if name.startswith("posenc.lab")}
    paths = [Path(file) for file in found if file]
    return {"files": len(paths), "lines": sum(path.read_text("utf-8").count("\n") for path in paths)}


def to_read(heading: str) -> dict[str, int]:
    """Lines of each file of a list in CONTRIBUTING.md. A name without a folder is in the folder of the one before it."""
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    chapter = re.split(r"\n##+ ", text.split(f" {heading}\n")[1])[0]
    counted = {}
    for item in re.findall(r"^\d+\. (.*(?:\n   .*)*)", chapter, re.MULTILINE):
        folder = Path()
        for name in re.findall(r"`([\w/]+\.py)`", item):
            path = Path(name) if "/" in name else folder / name
            folder = path.parent
            counted[path.as_posix()] = (SOURCE / path).read_text("utf-8").count("\n")
    return counted


def lines() -> dict[str, int]:
    """Lines of Python of each room, the largest first."""
    counted = {name: sum(path.read_text("utf-8").count("\n") for path in paths) for name, paths in rooms().items()}
    return dict(sorted(counted.items(), key=lambda one: -one[1]))


def refuse_another_copy() -> None:
    """Ends with a line where `import posenc` finds other files than those that are counted here."""
    import posenc

    found = Path(posenc.__file__).resolve().parent
    if found != SOURCE:
        raise SystemExit(
            f"house: this counts {SOURCE}, and `import posenc` finds {found}; use that copy's Python, or "
            f"PYTHONPATH={SOURCE.parent}"
        )


def main() -> None:
    refuse_another_copy()
    by_room, names, drawn, calls = lines(), contract(), floors(), journeys()
    first, after = to_read("The first hour"), to_read("The next")
    total, compared = sum(by_room.values()), comparison()
    if "--json" in sys.argv[1:]:
        counted = {"lines": total, "calls": calls, "names": names, "drawn": drawn, "first": first, "next": after}
        print(json.dumps(counted | {"comparison": compared, "rooms": by_room}, indent=1))
        return
    print(f"top floor   {len(by_room)} names on {len(drawn)} floors")
    print(f"contract    {len(names)} public names: {', '.join(names)}")
    for name in names:
        if name in NEEDED:
            print(f"            {name}: {NEEDED[name]}")
    for name, of in calls.items():
        print(f"{name:<15} " + ", ".join(f"{count} {what}" for what, count in of.items()))
    print(f"comparison  {compared['lines']:,} lines of the lab in {compared['files']} files")
    for name, files in (("first hour", first), ("next", after)):
        print(f"{name:<11} {sum(files.values()):,} lines in {len(files)} files")
    print(f"lines       {total:,} of Python")
    for name, count in by_room.items():
        print(f"  {count:>7,}  {name}")


if __name__ == "__main__":
    main()
