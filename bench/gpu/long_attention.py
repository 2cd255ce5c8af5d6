"""Attention with a bias or a window against the same without one, at growing lengths: time forward, with backward, memory.

    floor   torch's fused causal attention without a bias, bf16 [1, 16, n, 64]
    goals   1.10 × the floor forward, 1.15 × with backward; memory of O(heads · keys). A window is compared with its share
            of the pairs, and may take 1.2 × that

    python -m bench.gpu.long_attention --device cuda --lengths 4096 16384 65536

Legend: n tokens.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.timing import take_turns
from posenc import attend
from posenc.catalogue import lookup
from posenc.positions import Positions

HEADS, WIDTH = 16, 64
LENGTHS = (4096, 16384, 65536)
WINDOW = 1024
FORWARD, BACKWARD, WINDOWED = 1.10, 1.15, 1.2
METHODS = ("alibi", "t5", "kerple", "fire", "fox", f"window {WINDOW}", f"rope, window {WINDOW}")
SLOWEST = 30.0  # seconds of one call after which a method is not tried at a longer length


class Measured(NamedTuple):
    """Ratios to the floor, None where it could not run and why; bytes at most beyond the inputs, None off CUDA."""

    forward: float | None
    backward: float | None
    peak: int | None
    seconds: float
    why: str = ""


def lines(
    device: str, lengths: Sequence[int] = LENGTHS, seconds: float = 1.0, methods: Sequence[str] = METHODS
) -> Iterator[str]:
    yield "| tokens | method | forward | goal | forward + backward | goal | peak beyond the inputs |"
    yield "|---|---|---|---|---|---|---|"
    given_up: dict[str, str] = {}
    for n in lengths:
        for name in methods:
            if name in given_up:
                yield f"| {n} | {name} | not tried: {given_up[name]} | | | | |"
                continue
            measurement = measured(name, n, device, seconds)
            if measurement.why or measurement.seconds > SLOWEST:
                given_up[name] = measurement.why or f"a call took {measurement.seconds:.0f} s at {n} tokens"
            goals = [limit * share(name, n) for limit in limits(name)]
            cells = [
                cell
                for ratio, goal in zip((measurement.forward, measurement.backward), goals, strict=True)
                for cell in (_number(ratio), f"{goal:.3g}" + (", met" if ratio is not None and ratio <= goal else ""))
            ]
            peak = "–" if measurement.peak is None else f"{measurement.peak / 2**20:.1f} MiB"
            yield f"| {n} | {name} | {' | '.join(cells)} | {peak} |" + (f" {measurement.why}" if measurement.why else "")


def limits(name: str) -> tuple[float, float]:
    return (WINDOWED, WINDOWED) if "window" in name else (FORWARD, BACKWARD)


def share(name: str, n: int) -> float:
    """The share of the causal pairs that may attend."""
    if "window" not in name or n <= WINDOW:
        return 1.0
    return (n * WINDOW - WINDOW * (WINDOW - 1) / 2) / (n * (n + 1) / 2)


def measured(name: str, n: int, device: str, seconds: float) -> Measured:
    """One method at one length. What cannot run, for want of memory say, has the reason."""
    gc.collect()
    try:
        calls = _calls(name, n, device)
        settle = torch.cuda.synchronize if device == "cuda" else _nothing
        ratios, slowest, peak = [], 0.0, None
        for kind, (floor, ours) in calls.items():
            peak = _peak(ours, device) if kind == "forward" else peak
            rounds = take_turns({"floor": floor, "ours": ours}, "floor", seconds, settle=settle, fewest=3)
            ratio, times = rounds.ratio("ours", "floor"), rounds.times("ours")
            assert ratio is not None
            assert times is not None
            ratios.append(ratio.median)
            slowest = max(slowest, times.median)
        return Measured(ratios[0], ratios[1], peak, slowest)
    except (RuntimeError, ValueError, NotImplementedError) as error:  # torch.OutOfMemoryError is a RuntimeError
        return Measured(None, None, None, 0.0, f"{type(error).__name__}: {str(error).splitlines()[0][:160]}")


def _calls(name: str, n: int, device: str) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    torch.manual_seed(0)
    d_model = HEADS * WIDTH
    method = name.partition(",")[0] if "," in name else "nope" if "window" in name else name
    encoding = lookup.create(method, d_model=d_model, n_heads=HEADS).to(device)
    q, k, v, upstream = (torch.randn(1, HEADS, n, WIDTH, device=device, dtype=torch.bfloat16) for _ in range(4))
    at = encoding.prepare(
        encoding.read_hidden(torch.randn(1, n, d_model, device=device), Positions.arange(1, n, device=device))
    )
    window: dict[str, Any] = {"window": (WINDOW - 1, 0)} if "window" in name else {}

    def ours() -> Tensor:
        out: Tensor = attend(q, k, v, encoding, at, **window)
        return out

    def floor() -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def with_backward(call: Callable[[], Tensor]) -> Callable[[], None]:
        def both() -> None:
            with torch.enable_grad():
                for x in (q, k, v):
                    x.requires_grad_()
                torch.autograd.grad(call(), (q, k, v), upstream, retain_graph=True)

        return both

    plain = torch.no_grad()
    return {"forward": (plain(floor), plain(ours)), "backward": (with_backward(floor), with_backward(ours))}


def _peak(call: Callable[[], Any], device: str) -> int | None:
    """Memory of a call beyond what was held before it, after a call that compiles."""
    call()
    if device != "cuda":
        return None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _number(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3f}"


def _nothing() -> None:
    pass


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="long_attention")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args(arguments)
    for line in lines(options.device, options.lengths, options.seconds):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
