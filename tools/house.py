"""How wide the house is: what a newcomer has to hold in the head, counted.

python tools/house.py             the figures, and the lines of each room
python tools/house.py --json      the same for machines

top floor      modules and packages directly below src/posenc
floors         the longest chain of imports between them; docs/architecture.md draws them
contract       public names of PositionalEncoding
attend         files, functions and Python calls that attend(q, k, v, rope) runs through
core           lines of the files that CONTRIBUTING.md names in reading order
lines          of Python in src/posenc, by room
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src" / "posenc"


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


def through_attend() -> dict[str, int]:
    """What a call of the README's attend runs through, after a first call that loads it."""
    import torch

    import posenc

    encoding = posenc.create("rope", d_model=512, n_heads=8)
    at = encoding.prepare(posenc.Positions.arange(1, 128))
    q, k, v = (torch.randn(1, 8, 128, 64) for _ in range(3))
    calls: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{SOURCE}{os.sep}"):
            calls[code.co_filename, code.co_qualname] += 1

    posenc.attend(q, k, v, encoding, at)
    sys.setprofile(count)
    try:
        posenc.attend(q, k, v, encoding, at)
    finally:
        sys.setprofile(None)
    return {"files": len({file for file, _ in calls}), "functions": len(calls), "calls": calls.total()}


def core() -> dict[str, int]:
    """Lines of each file of the core. A name without a folder is in the folder of the one before it."""
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    chapter = text.split("\n## The core\n")[1].split("\n## ")[0]
    counted = {}
    for item in re.findall(r"^\d\. (.*(?:\n   .*)*)", chapter, re.MULTILINE):
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
    by_room, names, drawn, attend, read_first = lines(), contract(), floors(), through_attend(), core()
    total = sum(by_room.values())
    if "--json" in sys.argv[1:]:
        print(
            json.dumps(
                {"lines": total, "attend": attend, "names": names, "drawn": drawn, "core": read_first, "rooms": by_room},
                indent=1,
            )
        )
        return
    print(f"top floor   {len(by_room)} names on {len(drawn)} floors")
    print(f"contract    {len(names)} public names: {', '.join(names)}")
    print(f"attend      {attend['files']} files, {attend['functions']} functions, {attend['calls']} Python calls")
    print(f"core        {sum(read_first.values()):,} lines in {len(read_first)} files")
    print(f"lines       {total:,} of Python")
    for name, count in by_room.items():
        print(f"  {count:>7,}  {name}")


if __name__ == "__main__":
    main()
