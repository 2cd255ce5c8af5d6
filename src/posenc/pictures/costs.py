"""What every entry of the catalogue costs relative to no encoding: time to prefill, decode and train, and memory.

    ratio of a round = the entry's CPU time / NoPE's in the same round;   kept: median and quartiles over the rounds

Attention layers of posenc with their projections, float32, one thread: one layer, or N_LAYERS one after the other of a
preset and of FLOATER, which has a path for each, with as many layers of NoPE beside them. Ways to number tokens are
measured with RoPE, which reads what they number.
Training is forward and backward. Memory is what a forward pass holds at most beyond what NoPE's holds.

    python -m posenc.pictures.costs             measures the entries that costs.json lacks
    python -m posenc.pictures.costs rope fire   measures these again
    python -m posenc.pictures.costs --all       measures all again
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import json
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from posenc import kernels
from posenc.attention.module import Attention
from posenc.catalogue import lookup
from posenc.catalogue.choose.costs import FILE
from posenc.catalogue.description import positions_of, written
from posenc.catalogue.entry import Entry
from posenc.combined import one_layer
from posenc.encoding import PositionalEncoding
from posenc.kernels import machine
from posenc.pictures.process import forget_peak, no_garbage_collection, resident, spread
from posenc.positions import Positions

D_MODEL, N_HEADS = 512, 8
N_LAYERS = 6  # of a preset or FLOATER
SHORT, LONG, TINY = 512, 2048, 64  # tokens
DECODED = 8  # tokens decoded in one turn, each after the same prompt of SHORT tokens
FEWEST, MOST, SECONDS = 5, 25, 0.2  # rounds of one comparison, and the CPU time after which no further round begins
SLOW, FEWEST_SLOW = 2.0, 2  # CPU seconds of one call, and the rounds that are enough then
SIDE = 7  # images are 2·SIDE patches high and a multiple of SIDE wide, so that they can be cut into windows
OF_AXES = {
    1: "rope",
    2: "axial_rope",
    3: "mrope",
    4: "vrope",
    8: "wire",
    12: "ape",
    14: "prope",
}  # what reads the coordinates that an entry numbers tokens with

Call = Callable[[], object]


class Layers:
    """The attention layers of an entry, random input for them, and a way to number its tokens."""

    def __init__(self, entry: Entry, length: int, n_layers: int = 1) -> None:
        torch.manual_seed(0)
        self.encoding = _encoding(entry, length)
        self.number = functools.partial(tokens, entry, length, self.encoding)
        shared = one_layer(self.encoding) and "n_layers" not in self.encoding.configuration
        each = [self.encoding] * n_layers if shared else [self.encoding.at_layer(n) for n in range(N_LAYERS)]
        self.layers = [Attention(D_MODEL, N_HEADS, encoding) for encoding in each]
        self.x = torch.randn(1, self.number().length, D_MODEL)

    def forward(self) -> list[torch.Tensor]:
        """The output of every layer for the same input; positions and tables are made anew."""
        at = self.encoding.prepare(self.number())
        return [layer(self.x, at) for layer in self.layers]


def prefill(model: Layers) -> Call:
    """Reads the prompt."""
    return torch.no_grad()(model.forward)


def decode(model: Layers) -> Call:
    """Reads the last token of the prompt after the others, several times."""
    at, last = model.number(), model.x.shape[1] - 1
    before = model.encoding.prepare(at.narrow(0, last))
    with torch.no_grad():
        caches = [layer.decode(model.x[:, :last], before)[1] for layer in model.layers]

    @torch.no_grad()
    def call() -> None:
        for _ in range(DECODED):
            here = model.encoding.prepare(at.narrow(last, last + 1))
            for layer, cache in zip(model.layers, caches, strict=True):
                layer.decode(model.x[:, last:], here, cache)

    return call


def training(model: Layers) -> Call:
    """Forward and backward of every layer."""

    def call() -> None:
        sum(out.square().mean() for out in model.forward()).backward()  # type: ignore[union-attr]

    return call


MEASURED: dict[str, tuple[Callable[[Layers], Call], int]] = {
    "prefill": (prefill, SHORT),
    "prefill_long": (prefill, LONG),
    "decode": (decode, SHORT),
    "training": (training, SHORT),
}


def cost_of(entry: Entry) -> dict[str, Any]:
    """The costs of one entry. What it cannot do has the reason, `why`, instead of numbers."""
    return {"memory": memory(entry)} | {name: compared(entry, *how) for name, how in MEASURED.items()}


def compared(entry: Entry, make: Callable[[Layers], Call], length: int) -> dict[str, Any]:
    """Median and quartiles of the ratios to NoPE with as many layers and tokens."""
    try:
        model = Layers(entry, length)
        ours = make(model)
        begun = time.process_time()
        ours()
        slow = time.process_time() - begun > SLOW
    except (ValueError, NotImplementedError) as error:
        return {"why": str(error).splitlines()[0]}
    plain = make(Layers(lookup.BY_NAME["nope"], model.x.shape[1], len(model.layers)))
    plain()
    calls, shuffle, ratios = {"ours": ours, "plain": plain}, random.Random(0), list[float]()
    order, begun = list(calls), time.process_time()
    with no_garbage_collection():
        while len(ratios) < (FEWEST_SLOW if slow else FEWEST) or (
            len(ratios) < MOST and time.process_time() - begun < SECONDS
        ):
            shuffle.shuffle(order)
            seconds = {}
            for name in order:
                start = time.process_time()
                calls[name]()
                seconds[name] = time.process_time() - start
            ratios.append(seconds["ours"] / seconds["plain"])
    ratio = spread(ratios)
    assert ratio is not None
    return asdict(ratio)


def memory(entry: Entry) -> dict[str, Any]:
    """Peak bytes of a forward pass of LONG tokens, and of half as many, beyond NoPE's. Each runs in its own process."""
    if not Path("/proc/self/clear_refs").exists():
        return {"why": "only Linux says how much memory a call held at most"}
    try:
        model = Layers(entry, TINY)
    except (ValueError, NotImplementedError) as error:
        return {"why": str(error).splitlines()[0]}
    layers = len(model.layers)
    beyond = {}
    for name, length in (("half", LONG // 2), ("bytes", LONG)):
        count = tokens(entry, length, _encoding(entry, length)).length
        beyond[name] = max(_peak(entry, length, 1) - _peak_of_none(count, layers), 0)
    return beyond


@functools.cache
def _peak_of_none(length: int, n_layers: int) -> int:
    return _peak(lookup.BY_NAME["nope"], length, n_layers)


def _peak(entry: Entry, length: int, n_layers: int) -> int:
    """The most resident memory of one forward pass beyond what was resident before it, in a process of its own."""
    ctypes.CDLL(None).malloc_trim(0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prefill(Layers(entry, TINY, n_layers))()  # loads what is loaded once
            call = prefill(Layers(entry, length, n_layers))
            before = resident("VmRSS")
            forget_peak()
            call()
            os.write(writing, str(max(resident("VmHWM") - before, 0)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        peak = pipe.read()
    os.waitpid(child, 0)
    if not peak:
        raise RuntimeError(f"{entry.name}: the process that measures memory failed")
    return int(peak)


def tokens(entry: Entry, length: int, encoding: PositionalEncoding) -> Positions:
    """About `length` tokens: numbered by an entry that numbers tokens, otherwise words in a row or patches of an image."""
    return numbered(entry, length) if entry.kind == "positions" else positions_of(entry, length, image(length), encoding)


def numbered(entry: Entry, length: int) -> Positions:
    """About `length` tokens by a way to number them."""
    height, width = image(length)
    known = {
        "batch": 1,
        "length": length,
        "lengths": [length // 2, length - length // 2],
        "height": height,
        "width": width,
        "text": SIDE,
    }
    known |= {name: written(python, length=length) for name, python in entry.arguments.items()}
    parameters = inspect.signature(entry.maker()).parameters.values()
    needed = {about.name for about in parameters if about.default is inspect.Parameter.empty}
    return lookup.positions_by(entry.name, **{name: known[name] for name in needed})


def image(length: int) -> tuple[int, int]:
    """Height and width of an image of about `length` patches."""
    return 2 * SIDE, max(length // (2 * SIDE) // SIDE, 1) * SIDE


def _encoding(entry: Entry, length: int) -> PositionalEncoding:
    if entry.kind == "positions":
        return lookup.create(OF_AXES[numbered(entry, length).coords[0, 0].numel()], d_model=D_MODEL, n_heads=N_HEADS)
    sizes = {"n_layers": N_LAYERS, "max_positions": length + 1}
    sizes |= {name: written(python, length=length) for name, python in entry.arguments.items()}
    if {"height", "width"} <= lookup.arguments_of(entry.name):
        sizes |= dict(zip(("height", "width"), image(length), strict=True))
    return lookup.create(entry.name, d_model=D_MODEL, n_heads=N_HEADS, **sizes)


def conditions(load: float) -> dict[str, Any]:
    """The conditions that decide the numbers, besides the code; the load is the highest while any entry was measured."""
    sizes = {
        "d_model": D_MODEL,
        "n_heads": N_HEADS,
        "layers_of_presets": N_LAYERS,
        "tokens": SHORT,
        "tokens_long": LONG,
        "decoded_after": SHORT,
        "dtype": "float32",
        "threads": 1,
        "rounds": [FEWEST, MOST],
    }
    return {"sizes": sizes, "machine": machine.facts(), "load": load}


def main(arguments: list[str]) -> int:
    torch.set_num_threads(1)
    if (why := kernels.why_not()) is not None:  # the published costs are those of an installation with its kernels
        print(f"costs: the C++ kernels do not run: {why}", file=sys.stderr)
        return 1
    published = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {"entries": {}}
    known = published["entries"]
    chosen = [
        entry
        for entry in lookup.ENTRIES
        if "--all" in arguments or entry.name in arguments or (not arguments and entry.name not in known)
    ]
    load = 0.0 if "--all" in arguments else published.get("conditions", {"load": 0.0})["load"]
    for number, entry in enumerate(chosen):
        print(f"{number + 1}/{len(chosen)} {entry.name}", file=sys.stderr, flush=True)
        known[entry.name] = cost_of(entry)
        load = max(load, os.getloadavg()[0])
        write({name: known[name] for name in lookup.BY_NAME if name in known}, load)
    return 0


def write(costs: dict[str, dict[str, Any]], load: float) -> None:
    """One line for each entry, in the catalogue's order; four digits."""
    lines = [f"{json.dumps(name)}: {json.dumps(_short(costs[name]), ensure_ascii=False)}" for name in costs]
    header = json.dumps(conditions(load), ensure_ascii=False)
    FILE.write_text('{"conditions": ' + header + ',\n"entries": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


def _short(figures: Any) -> Any:
    if isinstance(figures, dict):
        return {name: _short(value) for name, value in figures.items()}
    return float(f"{figures:.4g}") if isinstance(figures, float) else figures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
