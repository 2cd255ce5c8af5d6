"""The laws on a device: every encoding with every backend that can express it, in fp32 and bf16.

python -m bench.gpu.correctness --device cuda --seconds 240
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from posenc.attention.backends import BACKENDS
from posenc.catalogue import lookup
from posenc.checking import laws
from posenc.checking.laws import Setting
from posenc.encoding import PositionalEncoding

DTYPES = (torch.float32, torch.bfloat16)
COMPILING = frozenset({"one_graph_over_lengths"})  # takes seconds: tried with the best-known encodings, as "auto" has them
CATALOGUED = tuple(entry.name for entry in lookup.ENTRIES if entry.kind not in ("preset", "positions") and entry.axes == 1)


@dataclass
class Tally:
    """How many encodings were tried and how many laws were broken, counted while the rows are made."""

    tried: int = 0
    broken: int = 0


def lines(device: str, seconds: float, names: Sequence[str] = CATALOGUED, tally: Tally | None = None) -> Iterator[str]:
    """A row for each encoding, in the catalogue's order, as far as the time goes; then what was not reached.

    Counts into `tally`, where one is given.
    """
    tally = Tally() if tally is None else tally
    begun = time.monotonic()
    yield "| encoding | backend | dtype | laws that hold | not applicable | broken |"
    yield "|---|---|---|---|---|---|"
    for name in names:
        if time.monotonic() - begun > seconds:
            yield f"\nNot reached in {seconds:.0f} s: {', '.join(names[tally.tried :])}."
            break
        for setting in settings(name, device):
            encoding = _made(name, setting)
            compiled = setting.impl == "auto" and name in lookup.FOUNDATION
            dtype = str(setting.dtype).removeprefix("torch.")
            try:
                results = laws.report(encoding, setting, [law for law in laws.LAWS if compiled or law not in COMPILING])
            except ValueError as error:  # a backend that serves the CPU alone
                yield f"| {name} | {setting.impl} | {dtype} | 0 | all: {str(error).splitlines()[0]} | – |"
                continue
            wrong = [f"{result.law}: {result.detail}" for result in results if result.verdict == "failed"]
            verdicts = [result.verdict for result in results]
            held, passed_over = verdicts.count("passed"), verdicts.count("not applicable")
            tally.broken += len(wrong)
            yield f"| {name} | {setting.impl} | {dtype} | {held} | {passed_over} | {'; '.join(wrong) or '–'} |"
        tally.tried += 1
    yield f"\n{tally.tried} of {len(names)} encodings, {tally.broken} laws broken."


def settings(name: str, device: str) -> Iterator[Setting]:
    """Whatever "auto" takes, then every backend that can express it, in both dtypes."""
    plain = _made(name, Setting(device=device))
    for dtype in DTYPES:
        yield Setting(device=device, dtype=dtype)
    for impl, backend in BACKENDS.items():
        on_device = impl != "flex" or device == "cuda"
        if on_device and (impl == "reference" or backend.refuses(plain, plain.structure()) is None):
            for dtype in DTYPES:
                wide = {"d_model": 64, "n_heads": 4, "n_kv_heads": 2} if impl == "flex" else {}
                yield Setting(device=device, dtype=dtype, impl=impl, causal=True, **wide)


def _made(name: str, setting: Setting) -> PositionalEncoding:
    encoding = lookup.create(
        name, d_model=setting.d_model, n_heads=setting.n_heads, n_layers=2, max_positions=setting.max_positions
    )
    return laws.draw_parameters(encoding).to(setting.device)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="correctness")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    tally = Tally()
    for line in lines(options.device, options.seconds, options.names or CATALOGUED, tally):
        print(line, flush=True)
    return int(tally.broken > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
