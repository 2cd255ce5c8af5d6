"""Which modules of posenc a module needs when it runs, read from the sources without importing any.

    closure(["posenc.lab.trial.training", "posenc.encodings.rope"])  ─►  {"posenc.attention", "posenc.kernels.sin_cos", …}

An import counts wherever it stands: at the top, in a function, in a `try`. Imports under `if TYPE_CHECKING` do not run and
do not count. `importlib.import_module(f"posenc.attention.backends.{name}")` counts as an import of every module in that
package. The two packages in BY_NAME are the exception: a trial names the one module of each that it uses.

`posenc/__init__.py` is left out. It holds the version and the table of public names, and it computes nothing.
"""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parents[2]  # the package posenc
ROOT = "posenc"
BY_NAME = ("posenc.encodings", "posenc.lab.tasks")


def closure(names: Iterable[str], sources: Path = SOURCES) -> frozenset[str]:
    """The modules themselves, the packages they stand in, and everything that these import."""
    closure, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in closure and name != ROOT:
            closure.add(name)
            waiting += [imported for imported in imports(name, sources) if imported not in closure]
    return frozenset(closure)


@cache
def imports(name: str, sources: Path = SOURCES) -> frozenset[str]:
    """The modules of posenc that one module imports, and the packages it stands in."""
    package = name if file_of(name, sources).name == "__init__.py" else name.rpartition(".")[0]
    return frozenset({name.rpartition(".")[0], *imports_of(tree_of(name, sources), package, sources)} - {ROOT})


def imports_of(tree: ast.AST, package: str, sources: Path = SOURCES) -> set[str]:
    """The same of a syntax tree; `package` is where its relative imports start."""
    names = set[str]()
    for node in _running(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if is_module(alias.name, sources)}
        elif isinstance(node, ast.ImportFrom):
            names |= _imported_from(node, package, sources)
        elif isinstance(node, ast.Call) and _name(node.func) == "import_module" and node.args:
            names |= _by_text(node.args[0], sources)
    return names


def is_module(name: str, sources: Path = SOURCES) -> bool:
    return name.split(".")[0] == ROOT and any(path.is_file() for path in _candidates(name, sources))


def file_of(name: str, sources: Path = SOURCES) -> Path:
    """The file of a module. Raises ValueError where there is none."""
    path = next((path for path in _candidates(name, sources) if path.is_file()), None)
    if path is None:
        raise ValueError(f"{name}: expected a module of posenc, found no file {_candidates(name, sources)[0]}")
    return path


@cache
def tree_of(name: str, sources: Path = SOURCES) -> ast.Module:
    """The syntax tree of a module. Not to be changed in place."""
    return ast.parse(file_of(name, sources).read_bytes(), str(file_of(name, sources)))


def _candidates(name: str, sources: Path) -> tuple[Path, Path]:
    path = sources.joinpath(*name.split(".")[1:])
    return path.with_name(f"{path.name}.py"), path / "__init__.py"


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node except those under `if TYPE_CHECKING`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _name(node: ast.expr) -> str:
    """The last part of a dotted name, "" for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _imported_from(node: ast.ImportFrom, package: str, sources: Path) -> set[str]:
    """`from posenc.lab import tasks` needs posenc.lab and posenc.lab.tasks; a public name of posenc needs its module."""
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, *([node.module] if node.module else [])])
    if not is_module(base, sources):
        return set()
    modules = {base}
    for alias in node.names:
        if is_module(f"{base}.{alias.name}", sources):
            modules.add(f"{base}.{alias.name}")
        elif base == ROOT and alias.name in _public_names(sources):
            modules.add(_public_names(sources)[alias.name])
    return modules


@cache
def _public_names(sources: Path) -> dict[str, str]:
    """Which module a public name of posenc comes from, as the imports for type checkers in posenc/__init__.py say it."""
    statements = ast.walk(tree_of(ROOT, sources))
    return {
        alias.asname or alias.name: node.module
        for node in statements
        if isinstance(node, ast.ImportFrom) and node.module and is_module(node.module, sources)
        for alias in node.names
    }


def _by_text(argument: ast.expr, sources: Path) -> set[str]:
    """The modules that the argument of import_module can name: one, or all that begin like its text."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return {argument.value} if is_module(argument.value, sources) else set()
    first = argument.values[0] if isinstance(argument, ast.JoinedStr) and argument.values else None
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
        return set()
    package = first.value.rpartition(".")[0]
    if package == ROOT or package in BY_NAME or not is_module(package, sources):
        return set()
    return {f"{package}.{module.name}" for module in pkgutil.iter_modules([str(file_of(package, sources).parent)])}
