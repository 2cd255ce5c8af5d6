"""Mutants of a Python file, found by its syntax tree.

A mutant is named by the function it stands in and by what it replaces, both as `ast.unparse` writes them: neither line
numbers nor formatting take part, so reformatting a file changes no mutant.

Messages, docstrings, annotations and what a `raise` says are left alone: changing them breaks nothing that is computed.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Change = Callable[[ast.AST], ast.AST]

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"all": "any", "min": "max", "floor": "ceil", "sin": "cos"}
NAMES |= {other: name for name, other in NAMES.items()}
DTYPES = {"float64": "float32", "int64": "int32", "double": "float", "bool": "long"}
DROPPED = {
    "abs",
    "clamp",
    "clone",
    "contiguous",
    "detach",
    "double",
    "expand",
    "flip",
    "float",
    "long",
    "masked_fill",
    "movedim",
}
DROPPED |= {
    "neg",
    "repeat_interleave",
    "reverse",
    "round",
    "softmax",
    "sort",
    "to",
    "transpose",
    "tril",
    "triu",
    "unsqueeze",
}
SILENT = ("__repr__", "__str__", "extra_repr", "describe")  # functions that only say something


@dataclass(frozen=True)
class PythonMutant:
    """In `scope` of the file, the `ordinal`-th `before` becomes `after`."""

    scope: str
    kind: str
    before: str
    after: str
    ordinal: int = 0
    line: int = 0  # of today's file, to see whether laws run it; takes no part in the name

    @property
    def name(self) -> str:
        again = f" ({self.ordinal + 1})" if self.ordinal else ""
        return f"{self.scope}: {self.before} → {self.after}{again}"


def mutants(source: str) -> list[PythonMutant]:
    """Every mutant of the file, in the order of its syntax tree."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for scope, kind, node, made in _sites(ast.parse(source)):
        key = scope, _text_of(node), _text_of(made)
        if key[1] != key[2]:
            found.append(PythonMutant(scope, kind, key[1], key[2], seen[key], getattr(node, "lineno", 0)))
            seen[key] += 1
    return found


def mutated(source: str, mutant: PythonMutant) -> str | None:
    """The file with that mutant, or None where it is not found."""
    tree, ordinal = ast.parse(source), 0
    for scope, _, node, made in _sites(tree):
        if (scope, _text_of(node), _text_of(made)) == (mutant.scope, mutant.before, mutant.after):
            if ordinal == mutant.ordinal:
                return _source(tree, node, made)
            ordinal += 1
    return None


def rewritten(source: str, scope: str, before: str, after: str) -> str | None:
    """The file where the one piece of syntax `before` in `scope` becomes `after`; None where it is not there once."""
    tree, old, new = ast.parse(source), ast.parse(before).body[0], ast.parse(after).body[0]
    if isinstance(old, ast.Expr) and isinstance(new, ast.Expr):
        old, new = old.value, new.value
    hits = [node for within, node in _walk(tree) if within == scope and ast.unparse(node) == ast.unparse(old)]
    hits = [node for node in hits if isinstance(node, type(old))]
    return _source(tree, hits[0], new) if len(hits) == 1 else None


def _source(tree: ast.AST, old: ast.AST, new: ast.AST) -> str:
    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(tree))) + "\n"


def _sites(tree: ast.Module) -> Iterator[tuple[str, str, ast.AST, ast.AST]]:
    for scope, node in _walk(tree):
        for kind, made in _changes(node):
            yield scope, kind, node, made


def _walk(node: ast.AST, scope: str = "") -> Iterator[tuple[str, ast.AST]]:
    """(scope, node) of whatever is computed, outermost first."""
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if not isinstance(child, ast.AST) or _says(child):
                continue
            inner = scope
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                if child.name in SILENT:
                    continue
                inner = f"{scope}.{child.name}".lstrip(".")
            yield inner, child
            yield from _walk(child, inner)


def _says(node: ast.AST) -> bool:
    """Messages, docstrings, imports, what the catalogue says, and what type checkers alone read."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        is_type = isinstance(node.value, ast.Subscript) and name[:1].isupper() and name[1:2].islower()
        return name == "__all__" or is_type
    return False


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        made = copy.deepcopy(node)
        made.ops[0] = COMPARISONS[type(node.ops[0])]()
        yield "comparison", made
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not (_text(node.left) or _text(node.right)):
        made = copy.deepcopy(node)
        made.op = ARITHMETIC[type(node.op)]()
        yield "arithmetic", made
    elif isinstance(node, ast.BoolOp):
        made = copy.deepcopy(node)
        made.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", made
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign" if isinstance(node.op, ast.USub) else "not", node.operand
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "boolean", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "off by one", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is float:
        yield "constant", ast.Constant(node.value * 1.5 if node.value else 1.0)
    elif isinstance(node, ast.IfExp) and not (_text(node.body) or _text(node.orelse)):
        yield "branches", ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.If):
        if not node.orelse and all(isinstance(one, ast.Raise) for one in node.body):
            yield "removed check", ast.Pass()
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "removed check" if "check" in ast.unparse(node.value.func) else "dropped call", ast.Pass()
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DROPPED:
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "F", "math", "tl")):
            yield "dropped call", node.func.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        made = copy.deepcopy(node)
        made.func = ast.Name(NAMES[node.func.id], ast.Load())
        yield "swapped name", made
    if isinstance(node, ast.Attribute):
        if node.attr in NAMES:
            yield "swapped name", ast.Attribute(node.value, NAMES[node.attr], node.ctx)
        elif node.attr in DTYPES:
            yield "dtype", ast.Attribute(node.value, DTYPES[node.attr], node.ctx)


def _text_of(node: ast.AST) -> str:
    """How a name says the node; of a check, without the message."""
    return f"if {ast.unparse(node.test)}: raise" if isinstance(node, ast.If) else ast.unparse(node)


def _text(node: ast.AST) -> bool:
    """Whether the node is text, which % and + format and join."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
