"""Which comparisons each benchmark makes, as data. Needs no torch, so that `posenc bench` starts at once.

Legend: heads query heads, kv_heads key heads, length tokens, width channels of a head (of a table: of a row).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

BENCHMARKS = ("rope", "bias", "table", "step")
DTYPES = ("float32", "bfloat16")
ALLOCATORS: dict[str, dict[str, str]] = {
    # glibc reads these when a process starts. Under its defaults every new tensor over 32 MiB is paged in afresh.
    "large": {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)},
    "stock": {},
}
SWEPT_LENGTHS = (512, 2048, 8192, 32768)


@dataclass(frozen=True)
class Case:
    """One comparison on one set of inputs. `name` says what is done, `swept` what grows."""

    benchmark: str
    name: str
    dtype: str = "float32"
    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    length: int = 1
    width: int = 1
    swept: str = ""

    @property
    def title(self) -> str:
        grows = {"length": f", {self.length} tokens", "heads": f", {self.heads} heads", "batch": f", batch {self.batch}"}
        return f"{self.benchmark}: {self.name}, {self.dtype}{grows.get(self.swept, '')}"

    def at_length(self, length: int) -> Case:
        return replace(self, length=length)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def rope(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """Queries and keys as in a grouped-head model of 32 heads; decoding adds one token to each of 8 rows."""
    shape = (
        {"heads": 4, "kv_heads": 2, "length": 32, "width": 16}
        if tiny
        else {"heads": 32, "kv_heads": 8, "length": 2048, "width": 128}
    )
    one = Case("rope", "forward", **shape)  # type: ignore[arg-type]
    cases = [replace(one, name=name, dtype=dtype) for name in ("forward", "forward + backward") for dtype in DTYPES]
    decode = replace(one, name="decode", batch=8, kv_heads=one.kv_heads, length=1)
    cases += [replace(decode, dtype=dtype) for dtype in DTYPES]
    if sweep:
        lengths = (16, 32) if tiny else SWEPT_LENGTHS
        cases += [replace(one, length=length, swept="length") for length in lengths]
        cases += [replace(one, heads=one.heads * n, kv_heads=one.kv_heads * n, swept="heads") for n in (1, 2, 4)]
        cases += [replace(one, batch=n, swept="batch") for n in (1, 2, 8)]
    return cases


PLACED = ("", ", packed", ", padded")


def bias(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """Causal attention; packed rows hold several documents, padded ones begin with padding."""
    shape = (
        {"heads": 2, "kv_heads": 2, "length": 48, "width": 8}
        if tiny
        else {"heads": 16, "kv_heads": 16, "length": 2048, "width": 64}
    )
    one = Case("bias", "ALiBi", **shape)  # type: ignore[arg-type]
    cases = [
        replace(one, name=f"{method}{placed}", dtype=dtype)
        for placed in PLACED
        for method in ("ALiBi", "T5")
        for dtype in DTYPES
    ]
    cases += [
        replace(one, name=f"{method}, forward + backward", dtype=dtype) for method in ("ALiBi", "T5") for dtype in DTYPES
    ]
    cases += [replace(one, name=method) for method in ("Shaw", "Transformer-XL")]
    if sweep:
        lengths = (32, 64) if tiny else SWEPT_LENGTHS
        cases += [replace(one, length=length, swept="length") for length in lengths]
        cases += [replace(one, heads=one.heads * n, kv_heads=one.kv_heads * n, swept="heads") for n in (1, 2, 4)]
        cases += [replace(one, batch=n, swept="batch") for n in (1, 2, 4)]
    return cases


def table(tiny: bool = False, sweep: bool = False) -> list[Case]:
    one = (
        Case("table", "sinusoidal table", length=64, width=32)
        if tiny
        else Case("table", "sinusoidal table", length=8192, width=1024)
    )
    if not sweep:
        return [one]
    return [one, *(replace(one, length=length, swept="length") for length in ((16, 32) if tiny else SWEPT_LENGTHS))]


def step(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """The model of `posenc compare`, and what importing costs."""
    return [
        Case("step", "training step", batch=2 if tiny else 8, heads=4, kv_heads=4, length=16 if tiny else 64, width=16),
        Case("step", "import"),
    ]


def cases_of(benchmark: str, *, tiny: bool = False, sweep: bool = False) -> list[Case]:
    """Raises ValueError for a benchmark that there is not."""
    if benchmark not in BENCHMARKS:
        raise ValueError(f"benchmark: expected one of {', '.join(BENCHMARKS)}, got {benchmark!r}")
    return {"rope": rope, "bias": bias, "table": table, "step": step}[benchmark](tiny, sweep)


def memory_cases(benchmark: str, *, tiny: bool = False) -> list[Case]:
    """Where peak memory is taken: bias at growing lengths, the rest once."""
    if benchmark == "rope":
        return [rope(tiny)[0]]
    if benchmark == "bias":
        cases = {case.name: case for case in bias(tiny) if case.dtype == "float32"}
        return [
            cases[name].at_length(length)
            for name in ("ALiBi", "T5")
            for length in ((32, 64) if tiny else (2048, 8192, 32768))
        ]
    return [table(tiny)[0]] if benchmark == "table" else []
