"""The front door: one implementation in, a report out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import torch

from posenc.checking import arrangements, attention, biases, caches, rotation, surroundings, tokenwise
from posenc.checking.adapters import of_positions
from posenc.checking.bugs import BUGS
from posenc.checking.diagnosis import EXPECTED, diagnosed, of_failures
from posenc.checking.engine import Law, chosen, tried
from posenc.checking.errors import FewerChannels, Unusable
from posenc.checking.identify import FACTS, identity
from posenc.checking.replacement import replacement
from posenc.checking.result import Identity, Report, Result
from posenc.checking.subject import TRAITS, Seam, prepared
from posenc.encoding import PositionalEncoding
from posenc.support import checks
from posenc.support.checked import checked

MODULES = (rotation, arrangements, tokenwise, biases, attention, surroundings, caches)  # imported for their laws
AFTER_ALL_OTHERS = "earlier_calls_do_not_matter"
TAKEN, GIVEN_BACK, TOLD = "positions_are_taken", "all_channels_are_given_back", "no_fact_is_nan"
_CLASS = {
    "layout": "layout",
    "pairs": "layout",
    "rotary_dim": "layout",
    "slopes": "slopes",
    "sign": "bias sign",
    "rotate sign": "other way",
} | {
    "bucket_starts": "buckets",
    "n_buckets": "buckets",
    "max_distance": "buckets",
    "softmax_scale": "softmax scale",
    "offset": "row offset",
    "future_slope": "bias sign",
}


@checked
def check(
    encoding: PositionalEncoding | None = None,
    *,
    rotate: Callable[..., Any] | None = None,
    embed: Callable[..., Any] | None = None,
    bias: Callable[..., Any] | None = None,
    attention: Callable[..., Any] | None = None,
    table: Callable[..., Any] | None = None,
    name: str = "",
    width: int | None = None,
    n_heads: int = 2,
    n_kv_heads: int | None = None,
    without: Sequence[str] = (),
    expect: Mapping[str, Any] | None = None,
    laws: Sequence[str] | None = None,
    seed: int = 0,
) -> Report:
    """Tries every law of a seam on an implementation, and identifies what it is. Prints nothing; `print(report)` does.

        report = posenc.check(rotate=lambda x, positions: my_rope(x, positions))
        report.passed

    One of these is given, a callable of PyTorch tensors or NumPy arrays with explicit integer positions:
    rotate     f(x [b, h, t, d], positions [b, t]) -> [b, h, t, d]
    embed      f(x [b, t, d], positions [b, t]) -> [b, t, d]
    table      f(positions [b, t]) -> [b, t, d] or [t, d]; or a tuple of such, such as (cos, sin)
    bias       f(q_positions [b, i], k_positions [b, j]) -> [b, h, i, j] or [h, i, j]
    attention  f(q [b, h, i, d], k, v [b, g, j, d], q_positions, k_positions) -> [b, h, i, d]; where it also takes
               q_documents and k_documents (-1 is padding), it is tried on packed and padded rows
    encoding   a posenc encoding: its rotation, embedding or bias of distances where it is that alone, else its attention.
               All laws of the contract: posenc.laws.report(encoding)

    name        what the report calls it
    width       channels of a head (rotate, attention) or of a token (embed); None: the usual widths are tried
    n_heads     query heads to try it with;  n_kv_heads key heads, as many if None
    without     traits that it lacks by design, of "shift_invariant", "norm_preserving", "heads_alike", "causal",
                "averages_values"
    expect      facts that it must be identified with, such as {"layout": "half", "base": 10000.0} or, for a bias,
                {"slopes": [0.0625, 0.00390625]}: by how much each head falls with one position of distance
    laws        the names of some laws; None: all of the seam
    seed        of the tokens; the same seed gives the same report

    An exception raised by the implementation is a refusal ("not declared") unless the plainest use needs the call. What
    would end Python, such as sys.exit(), is a failure. A failure is tried again before it is reported. Raises ValueError
    for wrong arguments, and `Unusable`, a ValueError, where the callable fails on the plainest input.
    """
    callables = {"rotate": rotate, "embed": embed, "bias": bias, "attention": attention, "table": table}
    sizes = {"width": width, "n_heads": n_heads, "n_kv_heads": n_kv_heads}
    try:
        *_, report = steps(encoding, callables, sizes, name=name, without=without, expect=expect, laws=laws, seed=seed)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise Unusable(f"the callable ends Python: {type(error).__name__}: {error}") from error
    assert isinstance(report, Report)
    return report


def steps(
    encoding: PositionalEncoding | None,
    callables: Mapping[str, Callable[..., Any] | None],
    sizes: Mapping[str, int | None],
    *,
    name: str = "",
    without: Sequence[str] = (),
    expect: Mapping[str, Any] | None = None,
    laws: Sequence[str] | None = None,
    seed: int = 0,
) -> Iterator[str | Report]:
    """What `check` does: the name of each law before it is tried, and the report at the end.

    Passes on what ends Python outside the laws: at the first calls, and where it is identified.
    """
    begin = time.perf_counter()
    width, n_heads, n_kv_heads = sizes.get("width"), sizes.get("n_heads") or 2, sizes.get("n_kv_heads")
    checks.whole(0, seed=seed)
    traits = TRAITS - set(without)
    if unknown := sorted(set(without) - TRAITS):
        raise ValueError(f"without: expected some of {', '.join(sorted(TRAITS))}, got {', '.join(map(str, unknown))}")
    if encoding is not None:
        from posenc.checking.encodings import as_subject

        if any(function is not None for function in callables.values()):
            raise ValueError("encoding: expected an encoding or one callable, got both")
        seam, function, sizes_of_encoding, lacking = as_subject(encoding, n_heads, width)
        traits, width, name = traits - lacking, sizes_of_encoding.get("width", width), name or type(encoding).__name__
        n_heads = sizes_of_encoding.get("n_heads", n_heads)
    else:
        seam, function = _one(callables)
    name = name or _name(function)
    function, takes = of_positions(function, seam) if encoding is None else (function, "positions")
    wanted = _laws(seam, laws)
    if other := [fact for fact in expect or () if fact not in FACTS[seam]]:
        raise ValueError(f"expect: {seam} has no fact {other[0]!r}; it has {', '.join(FACTS[seam])}")
    state = torch.random.get_rng_state()
    results = list[Result]()
    if takes == "none":
        results.append(_broken(TAKEN, "no positions", "its arguments are the tokens or a length; calls from 0 are tried"))
    try:
        try:
            subject = prepared(
                function, seam, width=width, n_heads=n_heads, n_kv_heads=n_kv_heads or n_heads, traits=traits, seed=seed
            )
        except Unusable as error:
            if not isinstance(error.__cause__, FewerChannels):
                raise
            results.append(_broken(GIVEN_BACK, "part of the head", str(error.__cause__)))
            seconds = time.perf_counter() - begin
            yield Report(name, seam, tuple(results), seconds=seconds, diagnosis=of_failures(seam, results))
            return
        for law in wanted:
            yield law.name
            results.append(tried(law, subject))
        yield "identification"
        known = identity(subject)
        if any(isinstance(fact, float) and math.isnan(fact) for fact in known.facts.values()):
            results.append(_broken(TOLD, "not finite", known.sentence))
        results.append(_expected(seam, known, expect))
        if encoding is not None:  # its class says what it is
            known = replace(known, differences=())
        elif results[-1].verdict == "passed" and not known.bug:
            known = replace(known, differences=tuple(d for d in known.differences if d.fact not in (expect or ())))
        diagnosis = diagnosed(subject, results, known)
        python = "" if encoding is not None else replacement(subject, known)
    finally:
        torch.random.set_rng_state(state)
    seconds = time.perf_counter() - begin
    yield Report(name, seam, tuple(results), known, seconds, diagnosis=diagnosis, python=python)


def _broken(law: str, bug: str, detail: str) -> Result:
    return Result(law, "failed", detail, bug=BUGS[bug])


def law_names(encoding: PositionalEncoding | None = None, **options: Any) -> list[str]:
    """The names of the laws that `check` with these arguments would try, without running the implementation."""
    takes = "positions"
    if encoding is not None:
        from posenc.checking.encodings import as_subject

        seam: Seam = as_subject(encoding, 2, None)[0]
    else:
        seam, function = _one({name: options.get(name) for name in get_args(Seam)})
        _, takes = of_positions(function, seam)
    return [*[TAKEN] * (takes == "none"), *(law.name for law in _laws(seam, options.get("laws"))), EXPECTED]


def _one(callables: Mapping[str, Callable[..., Any] | None]) -> tuple[Seam, Callable[..., Any]]:
    passed = [(seam, function) for seam, function in callables.items() if function is not None]
    if len(passed) != 1:
        got = ", ".join(seam for seam, _ in passed) or "none"
        raise ValueError(f"rotate, embed, bias, attention, table: expected exactly one callable, got {got}")
    seam, function = passed[0]
    if not callable(function):
        raise TypeError(f"{seam}: expected a callable, got {checks.shown(function)}")
    if isinstance(function, type):
        made = f"{function.__name__}(…)"
        raise TypeError(
            f"{seam}: expected a function or an object that is called, got a class; make an object of it, {made}"
        )
    return seam, function  # type: ignore[return-value]


def _laws(seam: Seam, names: Sequence[str] | None) -> list[Law]:
    return sorted(chosen(seam, names), key=lambda law: law.name == AFTER_ALL_OTHERS)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _expected(seam: Seam, known: Identity, expect: Mapping[str, Any] | None) -> Result:
    """Whether the facts are those that are expected."""
    if not expect:
        return Result(EXPECTED, "not declared", "nothing is expected; expect={...} compares with what was identified")
    for fact, wanted in expect.items():
        got = known.facts.get(fact)
        if not _alike(got, wanted):
            detail = (
                f"{fact}: expected {wanted}, got {got if got is not None else 'nothing that is known'}; {known.sentence}"
            )
            return Result(EXPECTED, "failed", detail, bug=BUGS[_CLASS.get(f"{seam} {fact}", _CLASS.get(fact, "base"))])
    return Result(EXPECTED, "passed", ", ".join(expect))


def _alike(got: Any, wanted: Any) -> bool:
    if isinstance(got, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return len(got) == len(wanted) and all(_alike(a, b) for a, b in zip(got, wanted, strict=True))
    numbers = isinstance(got, (int, float)) and isinstance(wanted, (int, float)) and not isinstance(got, bool)
    return bool(abs(got - wanted) <= 1e-4 * abs(wanted)) if numbers else bool(got == wanted)
