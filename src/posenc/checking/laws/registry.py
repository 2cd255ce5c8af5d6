"""The laws of encodings: `law` adds one, `check` raises at the first that is broken, `report` has the results of all."""

from __future__ import annotations

import contextlib
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
BOTH_WAYS = ("storage_order_does_not_matter", "packed_equals_separate", "shift_invariance", "backends_agree")


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
        where = f"{name}: {label(encoding)}{'' if setting.causal else ', causal=False'}"
        try:
            measured = decisive(function(encoding, setting))
        except LawBroken as error:
            raise LawBroken(f"{where}: {error}") from error
        if not measured.holds:
            raise LawBroken(f"{where}: {measured}")

    name = function.__name__
    engine.LAWS.setdefault("encoding", {})[name] = engine.Law(name, bug, ({},), least, True, measure)
    LAWS[name] = checked(raising)
    return LAWS[name]


@checked
def check(encoding: PositionalEncoding, setting: Setting | None = None, laws: Sequence[str] | None = None) -> None:
    """Tries every law, or those named, in the setting; without one, with the encoding's own heads and widths, and those
    of BOTH_WAYS with causal=False too unless it is `causal_only`.

    Raises LawBroken at the first law that is broken, and ValueError for an unknown law, a setting that does not fit the
    encoding or a backend that cannot express it. Laws that are not applicable are passed over.
    """
    fitted = fitting(encoding, setting)
    for law in engine.chosen("encoding", laws):
        for causal in _directions(law, encoding, setting):
            with contextlib.suppress(NotApplicable):
                LAWS[law.name](encoding, replace(fitted, causal=causal))


@checked
def report(encoding: PositionalEncoding, setting: Setting | None = None, laws: Sequence[str] | None = None) -> list[Result]:
    """The result of every law, or of those named, in the setting; without one, with the encoding's own heads and widths,
    and of those of BOTH_WAYS with causal=False too unless it is `causal_only`.

    Raises ValueError for an unknown law, and for a setting that does not fit the encoding.
    """
    fitted = fitting(encoding, setting)
    return [_result(law, encoding, fitted, _directions(law, encoding, setting)) for law in engine.chosen("encoding", laws)]


def _directions(law: engine.Law, encoding: PositionalEncoding, setting: Setting | None) -> tuple[bool, ...]:
    """Values of `causal` to try: that of the setting; without one, both where keys after the query tell more."""
    if setting is not None:
        return (setting.causal,)
    return (True, False) if law.name in BOTH_WAYS and "causal_only" not in encoding.traits else (True,)


def _result(law: engine.Law, encoding: PositionalEncoding, setting: Setting, directions: tuple[bool, ...]) -> Result:
    sizes = {name: getattr(setting, name) for name in law.least}
    inputs = tuple(sizes if causal == setting.causal else sizes | {"causal": causal} for causal in directions)
    with backends_used() as used:
        result = tried(replace(law, inputs=inputs), InSetting(encoding, setting))
    return replace(result, backends=tuple(used))
