"""Remarks that hold for any model with an encoding: precision, layouts, lengths, caches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from posenc.dialects import PositionSpec, Remark, Rotation, Use
from posenc.frequencies import Frequencies
from posenc.inspection.meaning import meaning

FLOAT32_TRAP = 1e-3  # |cos error| from which fp32 angles are worth a warning: a quarter of what bf16 rounds away


def note(text: str, key: str = "") -> Remark:
    return Remark("note", key, text)


def warning(text: str, key: str = "") -> Remark:
    return Remark("warning", key, text)


def remarks(spec: PositionSpec) -> Iterator[Remark]:
    """Remarks that follow from the encodings themselves; those about the file's keys come with the spec."""
    for use in distinct_uses(spec):
        if use.rotation is not None and "d_head" in dict(use.arguments):  # embeddings that turn: no heads
            yield from _rotary(use, use.rotation, spec)
        if use.name in REMARKS:
            yield from REMARKS[use.name](use)
    without = [n for n, layer in enumerate(spec.layers) if not layer.uses and layer.attends]
    if without and any(layer.uses for layer in spec.layers[1:]):
        yield note(
            f"{len(without)} of {len(spec.layers)} attention layers have no positions of their own: {listed(without)}"
        )


def distinct_uses(spec: PositionSpec) -> list[Use]:
    """Every encoding of the spec's own layers once, in order of appearance."""
    return list(dict.fromkeys(use for layer in spec.layers for use in layer.uses))


def listed(numbers: list[int], most: int = 8) -> str:
    """Numbers in few words: runs as 0–5, steps as "every 4th"."""
    if len(numbers) > 2:
        steps = {b - a for a, b in itertools.pairwise(numbers)}
        if steps == {1}:
            return f"{numbers[0]}–{numbers[-1]}"
        if len(steps) == 1:
            return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]} (every {_ordinal(steps.pop())})"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(named[:most]) + (f", … {numbers[-1]}" if len(named) > most else "")


def _ordinal(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def _rotary(use: Use, rotation: Rotation, spec: PositionSpec) -> Iterator[Remark]:
    options = dict(use.arguments)
    made = rotation.frequencies().at_length(1)
    yield from _precision(made, spec.trained_length)
    yield from _layout(options, rotation, made)
    if rotation.kind in SCALINGS:
        yield from SCALINGS[rotation.kind](dict(rotation.parameters), made, spec)


def _precision(made: Frequencies, length: int | None) -> Iterator[Remark]:
    if length is None:
        return
    figures = meaning(made, length)
    if figures.float32_error > FLOAT32_TRAP:
        yield warning(
            f"fp32 angles, as in most programs, have an error of {figures.float32_error:.1e} in cos "
            f"at position {length - 1}; programs differ by as much"
        )
    if length > 257:
        yield note(
            f"positions in bf16 collide from 257 on: {figures.bfloat16_positions} of {length} stay "
            "distinct; keep positions and angles in fp32 or better"
        )


def _layout(options: dict[str, Any], rotation: Rotation, made: Frequencies) -> Iterator[Remark]:
    layout, d_head = options.get("layout", "interleaved"), options["d_head"]
    pairs = "channel i pairs with i + d/2" if layout == "half" else "channel 2i pairs with 2i + 1"
    yield note(
        f"layout {layout}: {pairs}. For programs with the other layout, the rows of the query and "
        "key projections must be permuted: posenc convert"
    )
    if options.get("returns", layout) not in (None, layout):
        yield warning(
            f"channels pair as {layout} and are returned as {options['returns']}: scores are the same "
            "as in any program with these pairs, cached keys are not"
        )
    if options.get("reverse"):
        yield warning("rotates by R(-p): weights of this family fail in programs that rotate by R(p)")
    width = 2 * len(made)
    if width < d_head:
        which = "last" if options.get("trailing") else "first"
        yield note(f"the {which} {width} of {d_head} channels rotate; exponents are over {rotation.width}")


def _proportional(parameters: dict[str, Any], made: Frequencies, spec: PositionSpec) -> Iterator[Remark]:
    turning, pairs = sum(1 for value in made if value), len(made)
    yield warning(
        f"proportional is not partial: {turning} of {pairs} pairs rotate, paired (i, i + {pairs}), "
        f"with exponents over all {2 * pairs} channels",
        "partial_rotary_factor",
    )


def _yarn(parameters: dict[str, Any], made: Frequencies, spec: PositionSpec) -> Iterator[Remark]:
    scale = made.cos_sin_scale
    yield note(
        f"yarn: cos and sin are multiplied by {scale:.6g}, so logits by {scale**2:.6g}; the softmax "
        f"scale by {made.softmax_scale:.6g}. A program needs both"
    )
    if spec.trained_length is None or "factor" not in parameters:
        return
    implied = spec.trained_length / parameters["original_length"]
    if implied not in (1.0, parameters["factor"]):
        yield warning(
            f"factor is {parameters['factor']:g}, but max_position_embeddings / "
            f"original_max_position_embeddings is {implied:g}",
            "factor",
        )


def _longrope(parameters: dict[str, Any], made: Frequencies, spec: PositionSpec) -> Iterator[Remark]:
    yield warning(
        f"two sets of frequencies: past {parameters['original_length']} tokens the other one applies "
        "to all positions, so keys cached before are wrong. Choose once per request: at_length(n)"
    )


def _dynamic(parameters: dict[str, Any], made: Frequencies, spec: PositionSpec) -> Iterator[Remark]:
    yield warning(
        f"frequencies change with every length past {parameters['trained_length']}, but cached "
        "keys keep the old ones. Choose once per request: at_length(n)"
    )


def _learned(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    rows, offset = arguments.get("max_positions"), arguments.get("row_offset", 0)
    if isinstance(rows, int):
        yield warning(f"a table of {rows} positions: a longer input is an error")
    if offset:
        yield note(f"position p reads row p + {offset}: the table has {offset} more rows than positions")


def _alibi(use: Use) -> Iterator[Remark]:
    yield note("defined for any length; distances must be exact: bf16 keeps only 641 of the first 2048 distinct")


def _t5(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    yield note(
        f"defined for any length; from {arguments.get('max_distance', 128)} positions on, all distances "
        "share the last bucket, so distant tokens have no order"
    )
    if arguments.get("scale") == 1.0:
        yield note("logits are not divided by √d_head; a fused kernel needs scale = 1")


def _floor_log(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    offset, length = arguments.get("offset", 1), arguments.get("length", 8192)
    other = "Ministral 3 and Mistral 4 count p" if offset else "Llama 4 counts p + 1"
    yield note(f"queries are scaled in steps, at ⌊(p + {offset})/{length}⌋; {other}: every step is one position apart")


SCALINGS = {"proportional": _proportional, "yarn": _yarn, "longrope": _longrope, "dynamic": _dynamic}
REMARKS = {"Learned": _learned, "ALiBi": _alibi, "T5": _t5, "FloorLogTemperature": _floor_log}
