"""The laws of encodings: `law` adds one, `check` raises at the first that is broken, `report` has the results of all."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from posenc.checking import engine
from posenc.checking.engine import Measured, decisive, tried
from posenc.checking.errors import LawBroken, NotApplicable
from posenc.checking.laws.fitting import fitting
from posenc.checking.laws.world import Setting, backends_used
from posenc.checking.result import Result
from posenc.encoding import PositionalEncoding
from posenc.support.checked import checked
from posenc.support.checks import shown
from posenc.support.identity import label

Law = Callable[[PositionalEncoding, Setting], Any]  # raises LawBroken
Measures = Callable[[PositionalEncoding, Setting], Iterable[Measured] | None]
LAWS: dict[str, Law] = {}


@dataclass(frozen=True)
class InSetting:
    """An encoding in a setting: what the engine tries the laws of encodings on."""

    encoding: PositionalEncoding
    setting: Setting

    def fresh(self) -> InSetting:
        return replace(self, encoding=copy.deepcopy(self.encoding))


@checked
def law(function: Law) -> Law:
    """Adds the function to LAWS under its own name, behind a check of its arguments. It raises LawBroken, or it yields
    what it measured."""
    if not isinstance(function, FunctionType) or len(inspect.signature(function).parameters) != 2:
        raise TypeError(f"function: expected a function of an encoding and a setting, got {shown(function)}")
    return _added(function, "")


def breaks(bug: str, **least: int) -> Callable[[Measures], Law]:
    """`law` with the class of bug that breaks it, and the least sizes of the setting down to which a failure is shrunk."""
    return lambda function: _added(function, bug, **least)


def _added(function: Any, bug: str, **least: int) -> Law:
    def measure(subject: InSetting, **sizes: Any) -> Measured:
        try:
            return decisive(function(subject.encoding, replace(subject.setting, **sizes)))
        except NotImplementedError as error:  # of an adapter it is a refusal, of an encoding a failure
            raise LawBroken(f"raises NotImplementedError: {error}") from error

    @functools.wraps(function)
    def raising(encoding: PositionalEncoding, setting: Setting) -> None:
        try:
            measured = decisive(function(encoding, setting))
        except LawBroken as error:
            raise LawBroken(f"{name}: {label(encoding)}: {error}") from error
        if not measured.holds:
            raise LawBroken(f"{name}: {label(encoding)}: {measured}")

    name = function.__name__
    engine.LAWS.setdefault("encoding", {})[name] = engine.Law(name, bug, ({},), least, True, measure)
    LAWS[name] = checked(raising)
    return LAWS[name]


@checked
def check(encoding: PositionalEncoding, setting: Setting | None = None, laws: Sequence[str] | None = None) -> None:
    """Tries every law, or those named, in the setting; without one, with the encoding's own heads and widths.

    Raises LawBroken at the first law that is broken, and ValueError for an unknown law, a setting that does not fit the
    encoding or a backend that cannot express it. Laws that are not applicable are passed over.
    """
    setting = fitting(encoding, setting)
    for law in engine.chosen("encoding", laws):
        try:
            LAWS[law.name](encoding, setting)
        except NotApplicable:
            continue


@checked
def report(encoding: PositionalEncoding, setting: Setting | None = None, laws: Sequence[str] | None = None) -> list[Result]:
    """The result of every law, or of those named, in the setting; without one, with the encoding's own heads and widths.

    Raises ValueError for an unknown law, and for a setting that does not fit the encoding.
    """
    setting = fitting(encoding, setting)
    return [_result(law, encoding, setting) for law in engine.chosen("encoding", laws)]


def _result(law: engine.Law, encoding: PositionalEncoding, setting: Setting) -> Result:
    sizes = {name: getattr(setting, name) for name in law.least}
    with backends_used() as used:
        result = tried(replace(law, inputs=(sizes,)), InSetting(encoding, setting))
    return replace(result, backends=tuple(used))
