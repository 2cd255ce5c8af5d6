"""Rotation against copying the same bytes on the device: layouts, parts of the channels, dtypes, prefill and decode.

    goal    90 % of the bandwidth of the copy: at most 1.11 × its time

    python -m bench.gpu.rotation --device cuda

`python -m bench rope --device cuda` compares with other libraries.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from bench.timing import take_turns
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.positions import Positions

WIDTH, GOAL = 128, 1 / 0.9


class Shape(NamedTuple):
    """What is rotated, [batch, heads, tokens, WIDTH]; a call is repeated where one is too short to time."""

    name: str
    batch: int
    heads: int
    tokens: int
    repeat: int = 1


SHAPES = (Shape("prefill", 1, 32, 16384), Shape("decode", 128, 32, 1, 20))
TINY = (Shape("prefill", 1, 2, 32), Shape("decode", 2, 2, 1, 2))
LAYOUTS: tuple[Layout, ...] = ("half", "interleaved")


def lines(device: str, shapes: Sequence[Shape] = SHAPES, seconds: float = 0.3) -> Iterator[str]:
    settle = torch.cuda.synchronize if device == "cuda" else int
    yield f"| | dtype | layout | channels that turn | time / copy (goal {GOAL:.2f}) | GB/s | |"
    yield "|---|---|---|---|---|---|---|"
    for shape, dtype, layout, turning in itertools.product(
        shapes, (torch.bfloat16, torch.float32), LAYOUTS, (WIDTH, WIDTH // 2)
    ):
        encoding = RoPE(WIDTH, layout=layout, rotary_dim=turning)
        at = encoding.prepare(Positions.arange(shape.batch, shape.tokens, device=device))
        x = torch.randn(shape.batch, shape.heads, shape.tokens, WIDTH, device=device, dtype=dtype)
        out = torch.empty_like(x)
        calls: dict[str, Callable[[], object]] = {
            "copy": functools.partial(out.copy_, x),
            "ours": functools.partial(encoding.rotate, x, at, "query", out=out),
        }
        for call in calls.values():
            call()  # compiles
        rounds = take_turns(calls, "copy", seconds, settle=settle, repeat=shape.repeat)
        ratio, taken = rounds.ratio("ours", "copy"), rounds.times("ours")
        assert ratio is not None
        assert taken is not None
        rate = 2 * x.numel() * x.element_size() / taken.median / 1e9
        cells = [shape.name, str(dtype).removeprefix("torch."), layout, f"{turning} of {WIDTH}", f"{ratio.median:.3f}"]
        yield f"| {' | '.join(cells)} | {rate:.0f} | {'met' if ratio.median <= GOAL else '**missed**'} |"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="rotation")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args(arguments)
    for line in lines(options.device, TINY if options.tiny else SHAPES):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
