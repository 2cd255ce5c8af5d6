"""What the story's chapters show of stored results; the page computes the other numbers by itself.

growth    what two trained models do with a text that grows: explorer/growth.py
today     which model types have which encoding: explorer/today.py
"""

from __future__ import annotations

from posenc.explorer import growth, today
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base


class Parameters(Base):
    """None: a chapter is the page's own."""


EXPORTED = (Parameters(),)
PYTHON = "from posenc.explorer import growth, today\n\ngrowth, today = growth.record(), today.record()"


def data(params: Parameters) -> Data:
    return Data({}, PYTHON, {"growth": growth.record(), "today": today.record()})
