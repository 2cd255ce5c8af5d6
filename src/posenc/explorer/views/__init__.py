"""The views, one file each, found by looking at this folder. A view has

ORDER                 its position among the views; web/src/views/NAME.ts draws it. Without it the file gives the numbers
                      of another page: `story` of the start page, `encoding` of an encoding's, `row` of a row of the notes
Parameters            its typed and bounded parameters
data(asked)           the numbers, the Python that makes them, and facts
POSITION              the page's parameter for a position; only for views that show one
EXPORTED              the requests whose numbers an exported page carries, the default first. Without it the
                      page computes them by itself, as far as it can: web/src/computed/NAME.ts
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import posenc
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters, Refused, one_of, parse, schema
from posenc.learn.ledger import CLAIMS, ROWS

HERE = Path(__file__).parent


def _orders() -> dict[str, int | None]:
    """The line `ORDER = …` of every file, by its name; None without it."""
    orders = {}
    for file in sorted(HERE.glob("[a-z]*.py")):
        order = re.search(r"^ORDER = (\d+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        orders[file.stem] = int(order[1]) if order else None
    return orders


ORDERS = _orders()
PAGES = tuple(name for _, name in sorted((order, name) for name, order in ORDERS.items() if order is not None))
NAMES = (*PAGES, *(name for name, order in ORDERS.items() if order is None))


def view(name: str) -> ModuleType:
    """The module of a view. Raises Refused for an unknown name."""
    if name not in NAMES:
        raise Refused(f"view: expected {one_of(NAMES, name)}, got {name[:40]!r}")
    return importlib.import_module(f"posenc.explorer.views.{name}")


def exported(name: str) -> tuple[Parameters, ...]:
    """The requests whose numbers an exported page carries."""
    requests: tuple[Parameters, ...] = getattr(view(name), "EXPORTED", ())
    return requests


def data(name: str, values: object) -> Data:
    """The data of a view for unchecked parameters. Raises Refused if they are invalid."""
    module = view(name)
    parameters: Parameters = parse(module.Parameters, values)
    try:
        result: Data = module.data(parameters)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise error if isinstance(error, Refused) else Refused(str(error)) from error
    return result


def known() -> dict[str, Any]:
    """What a page knows before it asks: the version, the parameters of every view, where the rows of the notes lead, and
    beside which row each of the notes' statements stands."""
    rows, claims = {row.name: row.view for row in ROWS.values()}, {claim.id: claim.row for claim in CLAIMS.values()}
    return {"version": posenc.__version__, "schemas": schemas(), "rows": rows, "claims": claims}


def schemas() -> dict[str, dict[str, dict[str, object]]]:
    """The parameters of every view, for the page's controls."""
    return {name: schema(view(name).Parameters) for name in NAMES}
