"""Which comparisons each benchmark makes, as data. Needs no torch, so that `python -m bench` starts at once.

Legend: heads query heads, kv_heads key heads, length tokens, width channels of a head (of a table: of a row).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]  # of the repository: workers are started there
BENCHMARKS = ("rope", "bias", "visible", "call", "table", "layer", "model", "attached", "step")
DTYPES = ("float32", "bfloat16")
ALLOCATORS: dict[str, dict[str, str]] = {
    # glibc reads these when a process starts. Under its defaults every new tensor over 32 MiB is paged in afresh.
    "large": {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)},
    "stock": {},
}
SWEPT_LENGTHS = tuple(2**n for n in range(4, 16))


@dataclass(frozen=True)
class Case:
    """One comparison on one set of inputs. `name` says what is done, `swept` what grows.

    Of layers: `length` new tokens after `cached` ones, in so many `layers`.
    """

    benchmark: str
    name: str
    dtype: str = "float32"
    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    length: int = 1
    width: int = 1
    cached: int = 0
    layers: int = 1
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
    case = Case("rope", "forward", **shape)  # type: ignore[arg-type]
    cases = [replace(case, name=name, dtype=dtype) for name in ("forward", "forward + backward") for dtype in DTYPES]
    decode = replace(case, name="decode", batch=8, kv_heads=case.kv_heads, length=1)
    cases += [replace(decode, dtype=dtype) for dtype in DTYPES]
    if sweep:
        lengths = (16, 32) if tiny else SWEPT_LENGTHS
        cases += [replace(case, length=length, swept="length") for length in lengths]
        cases += [replace(case, heads=case.heads * n, kv_heads=case.kv_heads * n, swept="heads") for n in (1, 2, 4)]
        cases += [replace(case, batch=n, swept="batch") for n in (1, 2, 8)]
    return cases


PLACED = ("", ", packed", ", padded")


def bias(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """Causal attention; packed rows hold several documents, padded ones begin with padding."""
    shape = (
        {"heads": 2, "kv_heads": 2, "length": 48, "width": 8}
        if tiny
        else {"heads": 16, "kv_heads": 16, "length": 2048, "width": 64}
    )
    case = Case("bias", "ALiBi", **shape)  # type: ignore[arg-type]
    cases = [
        replace(case, name=f"{method}{placed}", dtype=dtype)
        for placed in PLACED
        for method in ("ALiBi", "T5")
        for dtype in DTYPES
    ]
    cases += [
        replace(case, name=f"{method}, forward + backward", dtype=dtype) for method in ("ALiBi", "T5") for dtype in DTYPES
    ]
    cases += [replace(case, name=method) for method in ("Shaw", "Transformer-XL")]
    if sweep:
        lengths = (32, 64) if tiny else SWEPT_LENGTHS
        cases += [replace(case, length=length, swept="length") for length in lengths]
        cases += [replace(case, heads=case.heads * n, kv_heads=case.kv_heads * n, swept="heads") for n in (1, 2, 4)]
        cases += [replace(case, batch=n, swept="batch") for n in (1, 2, 4)]
    return cases


@dataclass(frozen=True)
class Pattern:
    """Which earlier keys a query sees: at most `left` back, in its own document of `documents` equal ones."""

    left: int | None = None
    documents: int = 1

    def pairs(self, length: int) -> int:
        size = length // self.documents
        reach = size - 1 if self.left is None else min(self.left, size - 1)
        return self.documents * sum(min(before, reach) + 1 for before in range(size))

    def share(self, length: int) -> float:
        """Pairs that may attend, of those of plain causal attention."""
        return self.pairs(length) / Pattern().pairs(length)


PATTERNS = {
    "window of 256": Pattern(left=255),
    "window of 1024": Pattern(left=1023),
    "4 documents": Pattern(documents=4),
    "16 documents": Pattern(documents=16),
    "4 documents, window of 256": Pattern(left=255, documents=4),
}


def visible(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """Causal attention whose queries see some of the keys only. A soft cap has no fused kernel and gets fewer tokens."""
    case = Case("visible", "RoPE", heads=8, kv_heads=8, length=4096, width=64)
    if tiny:
        case = replace(case, heads=2, kv_heads=2, length=64, width=8)
    capped = replace(case, name="soft cap", length=case.length if tiny else 2048)
    long = replace(case, name="RoPE, 16k tokens", heads=4, kv_heads=4, width=128, length=128 if tiny else 16384)
    return [case, replace(case, name="ALiBi"), capped, long]


def call(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """Few keys, for which the kernel takes less time than the Python around it."""
    case = Case("call", "16 keys", heads=8, kv_heads=8, length=16, width=8 if tiny else 64)
    return [case, *([replace(case, length=length, swept="length") for length in (1, 4, 16, 64, 256)] if sweep else [])]


def layer(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """Attention layers at the lab's size, at d_model 512 and at 32 heads of 128 with 8 key heads.

    The last read no long prompt: attention alone would take minutes on one core. Their cached keys are drawn, and 128 new
    tokens meet them, as in a prefill by pieces.
    """
    lab = Case("layer", "", heads=4, kv_heads=4, width=16)
    middle = Case("layer", "", heads=8, kv_heads=8, width=64)
    real = Case("layer", "", heads=32, kv_heads=8, width=128)
    cases = [
        replace(lab, name="decode, 4 heads of 16 after 64", cached=64, length=1, layers=2),
        replace(middle, name="decode, 8 heads of 64 after 512", cached=512, length=1),
        replace(middle, name="decode, 8 heads of 64 after 512, 6 layers", cached=512, length=1, layers=6),
        replace(real, name="decode, 32 heads of 128 after 4k", cached=4096, length=1),
        replace(real, name="decode, 32 heads of 128 after 32k", cached=32768, length=1),
        replace(lab, name="prefill, 4 heads of 16, 64 tokens", length=64, layers=2),
        replace(middle, name="prefill, 8 heads of 64, 512 tokens", length=512),
        replace(middle, name="prefill, 8 heads of 64, 512 tokens, 6 layers", length=512, layers=6),
        replace(middle, name="prefill, 8 heads of 64, 2048 tokens", length=2048),
        replace(real, name="prefill, 32 heads of 128, 128 tokens after 4k", cached=4096, length=128),
        replace(real, name="prefill, 32 heads of 128, 128 tokens after 32k", cached=32768, length=128),
        replace(middle, name="training, 8 heads of 64, 512 tokens", length=512),
        replace(middle, name="training, 8 heads of 64, 512 tokens, 6 layers", length=512, layers=6),
        replace(real, name="training, 32 heads of 128, 256 tokens", length=256),
    ]
    if tiny:
        cases = [
            replace(lab, name=c.name, cached=min(c.cached, 20), length=min(c.length, 12), layers=min(c.layers, 2))
            for c in cases
        ]
    return cases


def table(tiny: bool = False, sweep: bool = False) -> list[Case]:
    case = (
        Case("table", "sinusoidal table", length=64, width=32)
        if tiny
        else Case("table", "sinusoidal table", length=8192, width=1024)
    )
    if not sweep:
        return [case]
    return [case, *(replace(case, length=length, swept="length") for length in ((16, 32) if tiny else SWEPT_LENGTHS))]


def model(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """A decoder of eight layers of 8 heads of 64."""
    case = Case("model", "", heads=8, kv_heads=8, width=8 if tiny else 64, layers=2 if tiny else 8)
    return [
        replace(case, name="decode, 8 layers after 512", cached=20 if tiny else 512),
        replace(case, name="training, 8 layers, 256 tokens", length=12 if tiny else 256),
    ]


def attached(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """SmolLM2-135M's sizes, but for the vocabulary; fewer layers where each is compiled."""
    case = Case("attached", "", heads=9, kv_heads=3, width=8 if tiny else 64, layers=2 if tiny else 30)
    return [
        replace(case, name="decode after 512", cached=20 if tiny else 512),
        replace(case, name="prefill of 512", length=24 if tiny else 512),
        replace(case, name="compiled, prefill of 512", length=24 if tiny else 512, layers=min(case.layers, 4)),
    ]


def step(tiny: bool = False, sweep: bool = False) -> list[Case]:
    """The model of `posenc compare`, and what importing costs."""
    return [
        Case("step", "training step", batch=2 if tiny else 8, heads=4, kv_heads=4, length=16 if tiny else 64, width=16),
        Case("step", "import"),
    ]


def cases_of(benchmark: str, *, tiny: bool = False, sweep: bool = False) -> list[Case]:
    """The cases of a benchmark. Raises ValueError for an unknown name."""
    if benchmark not in BENCHMARKS:
        raise ValueError(f"benchmark: expected one of {', '.join(BENCHMARKS)}, got {benchmark!r}")
    plans = (rope, bias, visible, call, table, layer, model, attached, step)
    return dict(zip(BENCHMARKS, plans, strict=True))[benchmark](tiny, sweep)


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
