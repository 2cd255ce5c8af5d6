"""The encodings on which a mutant meets the laws: those that its file serves, at small sizes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

# One graph over lengths takes longer than all other laws together, so it is left out.
SLOW = {
    "gradients": 2,
    "checkpointed_equals_plain": 1,
    "transforms": 1,
    "one_graph_over_lengths": 1,
}  # on how many encodings
TESTS = Path(__file__).resolve().parents[1]
SIZES = {"d_model": 32, "n_heads": 4, "n_kv_heads": 2, "n_layers": 2, "max_positions": 128}
# Several vectors of the processor wide and long: the kernels have loops that small heads do not enter.
WIDE = {"d_model": 256, "n_heads": 4, "n_kv_heads": 2, "length": 40}
OF_KERNELS = (
    "listed_equals_counted",
    "norm_preservation",
    "decode_equals_prefill",
    "storage_order_does_not_matter",
    "backends_agree",
    "gradients_agree",
)
# A few that reach every seam and backend, for files that serve all encodings.
EVERY_SEAM = ("values", "alibi", "stack", "transformer_xl", "cope", "xpos", "t5", "rope", "fox", "lm_infinite")


def built() -> dict[str, Callable[[], Any]]:
    """Name to maker, for every encoding that the laws can try: one coordinate, and all that these are tried with."""
    import posenc
    from posenc.encodings.bases import temperature
    from posenc.encodings.of_families.sinusoidal_keys import SinusoidalKeys
    from posenc.frequencies import longrope, rotary, yarn

    def create(name: str, **options: Any) -> Callable[[], Any]:
        return lambda: posenc.create(name, **SIZES, **options)

    sys.path.insert(0, str(TESTS))
    import test_laws
    import test_laws_embeddings
    import test_laws_families
    from sampling import IN_A_ROW

    made = {name: functools.partial(test_laws.build, name) for name in IN_A_ROW if name not in test_laws.LEFT_OUT}
    made |= {
        "stack": lambda: posenc.Stack(*(posenc.create(part, **SIZES) for part in ("learned", "rope", "alibi", "shaw"))),
        "values": create("rope", sides=("query", "key", "value", "output")),
        "half": create("rope", layout="half"),
        "trailing": create("rope", rotary_dim=4, trailing=True),
        "yarn": create("rope", frequencies=yarn(rotary(8), factor=4.0, trained_length=64)),
        "longrope": create("rope", frequencies=longrope(rotary(8), [1.0] * 4, [2.0] * 4, 64, factor=4.0), length=65),
        "t5 both ways": create("t5", bidirectional=True, n_buckets=8, max_distance=9),
        "shaw keys": create("shaw", values=False, max_distance=3),
        "keys": lambda: SinusoidalKeys(32, 4, left=4, right=2, shift=1),
        "temperature": lambda: temperature.LearnedTemperature(4),
    }
    return made | dict(test_laws_families.MADE) | dict(test_laws_embeddings.LOCAL)


def served(file: str) -> list[Any]:
    """The encodings whose code is in `file`, parameters drawn; those of EVERY_SEAM for files that serve all."""
    from posenc.checking import laws

    makers = built()
    if not file.startswith(("encodings/", "frequencies/")):
        return [laws.draw_parameters(makers[name](), seed=1) for name in EVERY_SEAM]
    if file.startswith("frequencies/"):
        return [laws.draw_parameters(makers[name](), seed=1) for name in ("rope", "yarn", "longrope", "half")]
    module = "posenc." + file.removesuffix(".py").replace("/", ".")
    found = []
    for make in makers.values():
        encoding = make()
        classes = {one.__module__ for part in encoding.modules() for one in type(part).__mro__}
        if module in classes and not isinstance(encoding, type(makers["stack"]())):
            found.append(laws.draw_parameters(encoding, seed=1))
    return found[:6]


def wide() -> Iterator[tuple[Any, Any]]:
    """Encodings with a kernel of their own, each with the settings of WIDE."""
    import torch

    import posenc
    from posenc.checking import laws

    for name, options in (("rope", {}), ("rope", {"layout": "half"}), ("alibi", {}), ("t5", {}), ("transformer_xl", {})):
        encoding = laws.draw_parameters(posenc.create(name, d_model=256, n_heads=4, **options), seed=1)
        for dtype in (torch.float32, torch.bfloat16):
            yield encoding, laws.Setting(**WIDE, dtype=dtype)


def settings() -> Iterator[Any]:
    """The quick settings first: both directions, float64, every backend by name."""
    import torch

    from posenc.checking import laws

    yield laws.Setting()
    yield laws.Setting(causal=False)
    yield laws.Setting(dtype=torch.float64)
    yield laws.Setting(dtype=torch.bfloat16)
    for impl in ("sdpa", "toeplitz", "relative"):
        yield laws.Setting(impl=impl)


def broken(file: str) -> str | None:
    """The first law that is broken by the encodings of `file`, as "law: detail"; None where all hold."""
    return _broken(served(file), [] if file.startswith(("encodings/", "frequencies/")) else wide())


def _broken(encodings: list[Any], wide_ones: Iterable[tuple[Any, Any]] = ()) -> str | None:
    from posenc.checking import laws

    if said := _broken_quickly(encodings):
        return said
    for encoding, setting in wide_ones:
        if said := _first(laws.report(encoding, setting, OF_KERNELS)):
            return said
    for law, most in SLOW.items():
        for encoding in encodings[:most]:
            if said := _first(laws.report(encoding, laws.Setting(), [law])):
                return said
    return None


def _broken_quickly(encodings: list[Any]) -> str | None:
    """By all laws but those that compile or take finite differences."""
    from posenc.checking import laws

    quick = [law for law in laws.LAWS if law not in SLOW and law != "one_graph_over_lengths"]
    for setting in settings():
        for encoding in encodings:
            if not setting.causal and "causal_only" in encoding.traits:
                continue
            if setting.impl != "auto" and setting.impl not in laws.expressible(encoding):
                continue
            if said := _first(laws.report(encoding, setting, quick)):
                return said
    return None


def reached() -> dict[str, set[int]]:
    """The lines of every file of posenc that the laws run on the encodings of EVERY_SEAM."""
    import posenc

    source = str(Path(posenc.__file__).parent) + "/"
    lines: dict[str, set[int]] = {}

    def inside(frame: Any, event: str, _: Any) -> Any:
        lines[frame.f_code.co_filename.removeprefix(source)].add(frame.f_lineno)
        return inside

    def calls(frame: Any, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(source):
            return None
        lines.setdefault(file.removeprefix(source), set())
        return inside(frame, event, _)

    encodings = served("")
    sys.settrace(calls)
    try:
        _broken_quickly(encodings)
    finally:
        sys.settrace(None)
    return lines


def _first(results: list[Any]) -> str | None:
    return next((f"{one.law}: {one.detail.splitlines()[0]}" for one in results if not one.held), None)
