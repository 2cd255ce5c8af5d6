"""Where a release of vLLM compares a model type with a family that posenc's plug-in serves: vllm_model_types.json.

    python tests/vllm_model_types.py FOLDER        FOLDER: what pip download brought, unpacked: vllm/

The files are read, not run. A comparison is `==`, `!=`, `in`, a look-up in a table or `startswith` whose one side says
"model_type". Its other side is text, or a name: then of a table of the same file. A name from another file is listed
under "elsewhere": somebody must read it.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_suffix(".json")
Place = dict[str, Any]


def places(folder: Path, families: set[str]) -> dict[str, list[Place]]:
    """The comparisons that some family fits, and those that cannot be read within their file."""
    found: dict[str, list[Place]] = {"compared": [], "elsewhere": []}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text("utf-8")
        if "model_type" in text:
            file = path.relative_to(folder).as_posix()
            for kind, place in in_file(ast.parse(text), families):
                if (place := {"file": file} | place) not in found[kind]:
                    found[kind].append(place)
    return found


def in_file(tree: ast.Module, families: set[str]) -> Iterator[tuple[str, Place]]:
    tables: dict[str, Any] = {
        name: value for node in ast.walk(tree) for name in targets(node) if is_table(value := getattr(node, "value", None))
    }
    for node in ast.walk(tree):
        for how, said, other in comparisons(node):
            if isinstance(other, ast.Call) and other.args:  # sorted(TABLE), get_args(Type)
                other = other.args[0]
            if isinstance(other, ast.Name) and other.id in tables:
                other = tables[other.id]
            place = {"said": ast.unparse(node), "how": how}
            names = sorted({one for part in ast.walk(said if how == "within" else keys(other)) for one in texts(part)})
            if any(fits(family, how, name) for family in families for name in names):
                yield "compared", place | {"names": [one for one in names if any(fits(f, how, one) for f in families)]}
            elif not names and isinstance(other, (ast.Name, ast.Attribute)) and not says(other):
                yield "elsewhere", {"said": place["said"]}


def comparisons(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """How the model type is compared, the first side, the other side."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right, op = node.left, node.comparators[0], node.ops[0]
        if isinstance(op, (ast.Eq, ast.NotEq)):
            if says(left) != says(right):
                yield ("equal", left, right) if says(left) else ("equal", right, left)
        elif isinstance(op, (ast.In, ast.NotIn)):
            if says(left):
                yield "equal", left, right
            elif says(right) and texts(left):  # "moe" in config.model_type
                yield "within", left, right
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and says(node.slice):
        yield "equal", node.slice, node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr == "startswith" and says(node.func.value):
            yield "start", node.func.value, node.args[0]
        elif node.func.attr in ("get", "pop") and says(node.args[0]):
            yield "equal", node.args[0], node.func.value


def targets(node: ast.AST) -> list[str]:
    names = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [one.id for one in names if isinstance(one, ast.Name)]


def keys(node: ast.expr) -> ast.expr:
    """What is compared: of a table its keys."""
    return ast.Tuple([one for one in node.keys if one is not None]) if isinstance(node, ast.Dict) else node


def is_table(node: ast.expr | None) -> bool:
    if isinstance(node, (ast.Call, ast.Subscript)):
        return ast.unparse(node).startswith(("frozenset(", "Literal["))
    return isinstance(node, (ast.Dict, ast.Tuple, ast.List, ast.Set))


def says(node: ast.expr) -> bool:
    """Whether it is a model type; 'model_type' alone is the name of a key."""
    return not texts(node) and "model_type" in ast.unparse(node)


def texts(node: ast.AST) -> list[str]:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def fits(model_type: str, how: str, name: str) -> bool:
    """Whether a comparison of the table is true for the model type."""
    return {"equal": model_type == name, "within": name in model_type, "start": model_type.startswith(name)}[how]


if __name__ == "__main__":
    from posenc.transformers.vllm import SERVED

    (folder,) = map(Path, sys.argv[1:])
    TABLE.write_text(json.dumps(places(folder / "vllm", set(SERVED)), indent=1) + "\n", "utf-8")
