"""Performance targets, as data: a ratio to the floor, a speedup over a peer, or memory; and whether they are met.

The targets are for two-core x86 machines and, on the CPU, the "large" allocator setting; elsewhere they are a guide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bench.plan import PATTERNS, visible

LARGE = "large"
MiB = 2**20
FOLLOWS = 1.2  # what attention to a share of the pairs may cost beyond that share of the cost of all


@dataclass(frozen=True)
class Bar:
    """ratio: our time over the floor's, at most. speedup: the other's time over ours, at least. memory: bytes, at most."""

    benchmark: str
    case: str
    contender: str
    measure: Literal["ratio", "speedup", "memory"]
    limit: float
    dtype: str = "float32"
    against: str = ""  # the other of a speedup; "fastest peer": the fastest of the others
    device: str = "cpu"
    per_key: float = 0.0  # of memory: additional bytes for each head and key

    def text(self) -> str:
        what = {
            "ratio": f"at most {self.limit:.3g}× the floor",
            "speedup": f"at least {self.limit:g}× as fast as {self.against}",
            "memory": f"at most {self.limit / MiB:g} MiB and {self.per_key:g} B per head and key more than the floor",
        }
        return f"{self.benchmark}: {self.case}, {self.dtype}: {self.contender} {what[self.measure]}"


def _both(
    benchmark: str, case: str, contender: str, measure: Any, float32: float, bfloat16: float, **more: Any
) -> list[Bar]:
    return [
        Bar(benchmark, case, contender, measure, float32, "float32", **more),
        Bar(benchmark, case, contender, measure, bfloat16, "bfloat16", **more),
    ]


BARS: list[Bar] = [
    *_both("rope", "forward", "posenc, out=", "ratio", 1.3, 1.5),
    *_both("rope", "forward", "posenc, in place", "ratio", 0.95, 1.1),
    *_both("rope", "forward", "posenc", "ratio", 1.35, 1.6),
    *_both("rope", "forward + backward", "posenc", "speedup", 2, 2, against="transformers, compiled"),
    *_both("rope", "forward + backward", "posenc", "speedup", 4, 4, against="transformers"),
    *_both("rope", "decode", "posenc", "speedup", 3, 3, against="transformers"),
    *_both("rope", "decode", "posenc, positions at hand", "speedup", 5, 5, against="transformers"),
    *_both("rope", "decode", "posenc, positions at hand, prepared", "speedup", 4.5, 4.5, against="transformers"),
    Bar("rope", "decode", "posenc, positions at hand", "ratio", 3.3),
    Bar("table", "sinusoidal table", "posenc", "speedup", 5, against="fastest peer"),
    Bar("table", "sinusoidal table", "posenc", "ratio", 2),
    *(bar for method in ("ALiBi", "T5") for bar in _both("bias", method, "posenc", "ratio", 1.15, 1.15)),
    *(
        bar
        for method in ("ALiBi", "T5")
        for how in ("packed", "padded")
        for bar in _both("bias", f"{method}, {how}", "posenc", "ratio", 1.8, 1.8)
    ),
    *_both("bias", "ALiBi, forward + backward", "posenc", "ratio", 1.3, 1.2),
    *_both("bias", "T5, forward + backward", "posenc", "ratio", 1.15, 1.3),
    *_both("bias", "T5, forward + backward", "posenc", "speedup", 3, 3, against="unfused: a mask that wants gradients"),
    # The bias and its inputs: a few numbers for each head and key; a mask has one for each head, query and key.
    *(Bar("bias", method, "posenc", "memory", 16 * MiB, per_key=64) for method in ("ALiBi", "T5")),
    # What a pattern costs follows the pairs that may attend.
    *(
        Bar("visible", case.name, name, "ratio", FOLLOWS * pattern.share(case.length))
        for case in visible()
        for name, pattern in PATTERNS.items()
    ),
    *(
        Bar("call", "16 keys", name, "ratio", limit)
        for name, limit in (("NoPE", 1.5), ("RoPE", 2.2), ("ALiBi", 2.6), ("T5", 2.6), ("Shaw", 5))
    ),
    *(
        Bar("layer", f"decode, {size}", name, "ratio", 1.15)
        for size in ("8 heads of 64 after 512", "32 heads of 128 after 4k", "32 heads of 128 after 32k")
        for name in ("sinusoidal", "xpos", "shaw", "transformer_xl", "cope")
    ),
    *(
        Bar("layer", f"prefill, {size}", name, "ratio", limit)
        for size in ("8 heads of 64, 512 tokens", "8 heads of 64, 2048 tokens", "32 heads of 128, 128 tokens after 4k")
        for name, limit in (("transformer_xl", 1.1), ("cope", 2))
    ),
    Bar("layer", "prefill, 32 heads of 128, 128 tokens after 32k", "cope", "ratio", 2),
    # FLOATER has a path for every layer and solves them together, so that one layer alone would say too much.
    Bar("layer", "decode, 8 heads of 64 after 512, 6 layers", "floater", "ratio", 1.1),
    Bar("layer", "prefill, 8 heads of 64, 512 tokens, 6 layers", "floater", "ratio", 1.1),
    Bar("layer", "training, 8 heads of 64, 512 tokens, 6 layers", "floater", "ratio", 1.6),
    *(
        Bar("model", "decode, 8 layers after 512", name, "ratio", limit)
        for limit, names in (
            (1.05, ("rope", "alibi", "t5")),
            (1.15, ("sinusoidal", "xpos", "shaw", "transformer_xl", "cope")),
        )
        for name in names
    ),
    *(Bar("model", "training, 8 layers, 256 tokens", name, "ratio", 1.03) for name in ("rope", "alibi", "t5")),
    *(Bar("attached", name, "fast", "ratio", 1) for name in ("decode after 512", "prefill of 512")),
    Bar("attached", "compiled, prefill of 512", "fast", "ratio", 1.02),
    Bar("step", "training step", "rope", "ratio", 1.02),
    *(
        Bar("step", "training step", name, "ratio", limit)
        for name, limit in (("xpos", 1.03), ("shaw", 1.15), ("transformer_xl", 1.15), ("cope", 1.4), ("floater", 1.6))
    ),
    Bar("step", "training step", "alibi", "ratio", 1.08),
    Bar("step", "training step", "t5", "ratio", 1.08),
    Bar("step", "import", "import posenc", "ratio", 1.1),
    *_both("rope", "forward", "posenc, out=", "ratio", 1 / 0.9, 1 / 0.9, device="cuda"),
    *(
        bar
        for peer in ("flash-attn", "Liger", "Transformer Engine")
        for bar in _both("rope", "forward", "posenc", "speedup", 1, 1, device="cuda", against=peer)
    ),
    *(bar for method in ("ALiBi", "T5") for bar in _both("bias", method, "posenc", "ratio", 1.1, 1.1, device="cuda")),
]


def verdicts(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One result for each target and each setting in which it was measured."""
    return [verdict for bar in BARS for result in results for verdict in _verdict(bar, result)]


def _verdict(bar: Bar, result: dict[str, Any]) -> list[dict[str, Any]]:
    case = result["case"]
    if (case["benchmark"], case["name"], case["dtype"], case["swept"]) != (bar.benchmark, bar.case, bar.dtype, ""):
        return []
    if result["device"] != bar.device or (bar.measure == "memory") != (result["kind"] == "memory"):
        return []
    if bar.device == "cpu" and result["allocator"] != LARGE and bar.measure != "memory":
        return []
    got = _measured(bar, result)
    if got is None:
        return []
    limit = bar.limit + bar.per_key * case["heads"] * case["length"]
    met = got >= limit if bar.measure == "speedup" else got <= limit
    return [
        {
            "bar": bar.text(),
            "benchmark": bar.benchmark,
            "measure": bar.measure,
            "threads": result["threads"],
            "allocator": result["allocator"],
            "length": case["length"],
            "measured": got,
            "limit": limit,
            "met": met,
        }
    ]


def _measured(bar: Bar, result: dict[str, Any]) -> float | None:
    rows = {row["name"]: row for row in result["rows"]}
    ours = rows.get(bar.contender)
    if ours is None or ours["status"] != "measured":
        return None
    if bar.measure == "memory":
        floor = result["floor"].get("peak_bytes")
        return None if floor is None else ours["peak_bytes"] - floor
    if bar.measure == "ratio":
        ratio: float = ours["ratio"]["median"]
        return ratio
    faster = {name: spread["median"] for name, spread in ours["speedup"].items()}
    return min(faster.values(), default=None) if bar.against == "fastest peer" else faster.get(bar.against)
