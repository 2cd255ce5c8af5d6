"""The table of laws, and the two ways to try them: `check` raises, `report` tells."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Literal

from posenc.checking.laws.errors import NotApplicable
from posenc.checking.laws.fitting import fitting
from posenc.checking.laws.world import Setting, backends_used
from posenc.encoding import PositionalEncoding
from posenc.support.checked import checked
from posenc.support.checks import shown

Law = Callable[[PositionalEncoding, Setting], None]
LAWS: dict[str, Law] = {}


@checked
def law(function: Law) -> Law:
    """Adds the function to LAWS under its own name, behind a check of its arguments."""
    if not isinstance(function, FunctionType) or len(inspect.signature(function).parameters) != 2:
        raise TypeError(f"function: expected a function of an encoding and a setting, got {shown(function)}")
    LAWS[function.__name__] = checked(function)
    return LAWS[function.__name__]


@dataclass(frozen=True)
class LawResult:
    """What came of one law.

    law       its name in LAWS
    verdict   "holds", "broken", or "not applicable": the encoding does not declare the trait, or the backend that was
              asked for refuses such positions
    detail    by how much it is broken, or why it is not applicable
    backends  the names of the backends that computed attention, in the order of first use
    """

    law: str
    verdict: Literal["holds", "broken", "not applicable"]
    detail: str = ""
    backends: tuple[str, ...] = ()

    @property
    def held(self) -> bool:
        """False where the law is broken."""
        return self.verdict != "broken"


@checked
def check(encoding: PositionalEncoding, setting: Setting | None = None, laws: Sequence[str] | None = None) -> None:
    """Tries every law, or those named, in the setting; without one, with the encoding's own heads and widths.

    Raises LawBroken at the first law that is broken, and ValueError for an unknown law, a setting that does not fit the
    encoding or a backend that cannot express it. Laws that are not applicable are passed over.
    """
    setting = fitting(encoding, setting)
    for name in LAWS if laws is None else laws:
        try:
            _named(name)(encoding, setting)
        except NotApplicable:
            continue


@checked
def report(
    encoding: PositionalEncoding, setting: Setting | None = None, laws: Sequence[str] | None = None
) -> list[LawResult]:
    """The result of every law, or of those named, in the setting; without one, with the encoding's own heads and widths.

    Raises ValueError for an unknown law, and for a setting that does not fit the encoding.
    """
    setting = fitting(encoding, setting)
    return [_result(name, _named(name), encoding, setting) for name in (LAWS if laws is None else laws)]


def _named(name: str) -> Law:
    if name not in LAWS:
        raise ValueError(f"laws: unknown law {name!r}; known: {', '.join(LAWS)}")
    return LAWS[name]


def _result(name: str, law: Law, encoding: PositionalEncoding, setting: Setting) -> LawResult:
    with backends_used() as used:
        try:
            law(copy.deepcopy(encoding), setting)  # which has seen no call of the laws before
        except NotApplicable as why:
            return LawResult(name, "not applicable", str(why), tuple(used))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a law that cannot even be tried is broken, also where sys.exit() ends it
            return LawResult(name, "broken", f"{type(error).__name__}: {error}", tuple(used))
    return LawResult(name, "holds", "", tuple(used))
