"""To be written."""

from __future__ import annotations

from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base


class Parameters(Base):
    pass


EXPORTED = (Parameters(),)


def data(asked: Parameters) -> Data:
    return Data({}, "import posenc")
