"""Sinusoidal tables [8192, 1024] in float32, side by side: error against float64 first, then time as a ratio to a fill.

    python bench/tables.py [--json]        the peers are those installed; make bench installs them

Every contender builds the whole table from sizes alone. Rounds are interleaved, so that a slow spell of the machine meets
all of them; a ratio is the median of the round-by-round ratios. No speed is shown for our table if its error is too large.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import posenc

LENGTH, WIDTH, BASE = 8192, 1024, 10000.0
STARTS = (0, 131_071 - LENGTH, 1_000_000 - LENGTH)
ALLOWED = 3.1e-8  # half a unit in the last place of float32 just below 1 is 2.98e-8

Build = Callable[[int], torch.Tensor]


def exact(start: int) -> np.ndarray:
    """float64 from the formula, one sine at a time: no code of ours and no recurrence."""
    frequencies = np.array([BASE ** (-2 * i / WIDTH) for i in range(WIDTH // 2)])
    angle = np.arange(start, start + LENGTH, dtype=np.float64)[:, None] * frequencies
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(LENGTH, WIDTH)


def textbook_torch(start: int) -> torch.Tensor:
    """The tutorial form: exponential of a logarithm, all in float32."""
    table = torch.zeros(LENGTH, WIDTH)
    position = torch.arange(start, start + LENGTH).unsqueeze(1).float()
    frequency = torch.exp(torch.arange(0, WIDTH, 2).float() * (-math.log(BASE) / WIDTH))
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


def textbook_numpy(start: int) -> torch.Tensor:
    """The other tutorial form: a power in float64, cast at the end."""
    position = np.arange(start, start + LENGTH)[:, None]
    denominator = np.power(BASE, 2 * np.arange(WIDTH // 2) / WIDTH)
    table = np.zeros((LENGTH, WIDTH))
    table[:, 0::2] = np.sin(position / denominator)
    table[:, 1::2] = np.cos(position / denominator)
    return torch.from_numpy(table).float()


def ours(start: int) -> torch.Tensor:
    return posenc.sinusoidal_table(LENGTH, WIDTH, base=BASE, start=start)


def peers() -> dict[str, tuple[Build, Callable[[torch.Tensor], torch.Tensor]]]:
    """Installed packages that build such a table from position 0, and how to bring their channels into our order."""
    found: dict[str, tuple[Build, Callable[[torch.Tensor], torch.Tensor]]] = {}
    try:
        from positional_encodings.torch_encodings import PositionalEncoding1D

        blank = torch.zeros(1, LENGTH, WIDTH)
        found["positional-encodings"] = (lambda start: PositionalEncoding1D(WIDTH)(blank)[0], lambda table: table)
    except ModuleNotFoundError:
        print("positional-encodings is not installed: not compared", file=sys.stderr)
    try:
        from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
        from transformers.models.speecht5.modeling_speecht5 import SpeechT5ScaledPositionalEncoding

        def marian(start: int) -> torch.Tensor:
            embedding = MarianSinusoidalPositionalEmbedding(LENGTH, WIDTH)
            made = embedding.create_weight()
            return embedding.weight.detach() if made is None else made

        def sin_then_cos(table: torch.Tensor) -> torch.Tensor:
            return torch.stack(table.chunk(2, dim=-1), dim=-1).flatten(-2)

        found["transformers, Marian"] = (marian, sin_then_cos)

        def speech_t5(start: int) -> torch.Tensor:
            return SpeechT5ScaledPositionalEncoding(0.0, WIDTH, LENGTH).pe[0]

        found["transformers, SpeechT5"] = (speech_t5, lambda table: table)
    except ModuleNotFoundError:
        print("transformers is not installed: not compared", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    identity = lambda table: table  # noqa: E731
    contenders = {"posenc": (ours, identity), "textbook, torch": (textbook_torch, identity),
                  "textbook, numpy": (textbook_numpy, identity), **peers()}  # fmt: skip
    own_code = ("posenc", "textbook, torch", "textbook, numpy")
    truth = {start: exact(start) for start in STARTS}
    errors = {
        name: {start: float(np.abs(order(build(start)).double().numpy() - truth[start]).max())
               for start in STARTS if start == 0 or name in own_code}
        for name, (build, order) in contenders.items()
    }  # fmt: skip
    if (worst := max(errors["posenc"].values())) > ALLOWED:
        print(f"posenc: error {worst:.3g} is over {ALLOWED:.3g}; no speed is shown", file=sys.stderr)
        return 1

    floor = torch.empty(LENGTH, WIDTH)
    times: dict[str, list[float]] = {name: [] for name in ("fill", *contenders)}
    for round_number in range(options.rounds + 1):
        for name in times:
            begin = time.perf_counter()
            if name == "fill":
                floor.fill_(1.0)
            else:
                contenders[name][0](0)
            if round_number:  # the first round warms up
                times[name].append(time.perf_counter() - begin)
    ratios = {name: [t / f for t, f in zip(taken, times["fill"], strict=True)] for name, taken in times.items()}
    against = {name: [t / o for t, o in zip(taken, times["posenc"], strict=True)] for name, taken in times.items()}
    rows = [
        {
            "table": name,
            "median_ms": 1e3 * statistics.median(times[name]),
            "ratio_to_fill": statistics.median(ratios[name]),
            "quartiles": statistics.quantiles(ratios[name], n=4)[::2],
            "times_ours": statistics.median(against[name]),
            "errors": {f"to {start + LENGTH - 1}": error for start, error in errors.get(name, {}).items()},
        }
        for name in times
    ]
    if options.json:
        print(json.dumps({"torch": torch.__version__, "threads": options.threads, "rows": rows}, indent=2))
        return 0
    print(f"[{LENGTH}, {WIDTH}] float32, torch {torch.__version__}, {options.threads} thread(s), {options.rounds} rounds")
    print(f"{'':24}{'ms':>8}{'to fill':>9}{'quartiles':>15}{'to ours':>9}   error by last position")
    for row in rows:
        low, high = row["quartiles"]
        shown = "  ".join(f"{error:.1e} ({last})" for last, error in row["errors"].items())
        print(f"{row['table']:24}{row['median_ms']:8.1f}{row['ratio_to_fill']:9.1f}{f'{low:.1f} to {high:.1f}':>15}"
              f"{row['times_ours']:9.2f}   {shown}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
