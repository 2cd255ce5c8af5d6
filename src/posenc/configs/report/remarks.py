"""Findings and facts that follow from the encodings themselves, in both languages: caches, scales, layouts, precision."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from posenc.configs import PositionSpec, Remark, Rotation, Use
from posenc.configs.report.limit import limit
from posenc.configs.report.meaning import meaning
from posenc.configs.say import say
from posenc.frequencies import Frequencies
from posenc.support.languages import Words


def note(words: Words, key: str = "") -> Remark:
    return Remark("note", key, words)


def warning(words: Words, key: str = "") -> Remark:
    return Remark("warning", key, words)


def remarks(spec: PositionSpec) -> Iterator[Remark]:
    """Remarks that follow from the encodings themselves; those about the file's keys come with the spec."""
    for use in distinct_uses(spec):
        if use.rotation is not None and "d_head" in dict(use.arguments):  # embeddings that turn: no heads
            yield from _rotary(use, use.rotation, spec)
        if use.name in REMARKS:
            yield from REMARKS[use.name](use)
    attending = [n for n, layer in enumerate(spec.layers) if layer.attends]
    without = [n for n in attending if not spec.layers[n].uses]
    if without and any(spec.layers[n].uses for n in attending[1:]):
        yield note(
            say(
                "{n_without} of {attending} attention layers have no positions of their own: {without}",
                n_without=len(without),
                attending=len(attending),
                without=listed(without),
            )
        )


def facts(spec: PositionSpec) -> Iterator[Words]:
    """What holds for nearly every rotary model: which channels pair, and what low precision does to positions."""
    for use in distinct_uses(spec):
        if use.rotation is not None and "d_head" in dict(use.arguments):
            yield _layout_fact(dict(use.arguments))
            yield from _precision(use.rotation, spec)


def distinct_uses(spec: PositionSpec) -> list[Use]:
    """Every encoding of the spec's own layers once, in order of appearance."""
    return list(dict.fromkeys(use for layer in spec.layers for use in layer.uses))


def listed(numbers: list[int], most: int = 8) -> str:
    """Numbers in few words: runs as 0–5, steps as 3, 7, … 47."""
    if len(numbers) > 2:
        steps = {b - a for a, b in itertools.pairwise(numbers)}
        if steps == {1}:
            return f"{numbers[0]}–{numbers[-1]}"
        if len(steps) == 1:
            return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(named[:most]) + (f", … {numbers[-1]}" if len(named) > most else "")


def _rotary(use: Use, rotation: Rotation, spec: PositionSpec) -> Iterator[Remark]:
    frequencies, said_by = rotation.frequencies().at_length(1), dict(use.said_by)
    yield from _layout(dict(use.arguments), rotation, frequencies)
    if rotation.kind in SCALINGS:
        yield from SCALINGS[rotation.kind](rotation, frequencies, spec, said_by)


def _precision(rotation: Rotation, spec: PositionSpec) -> Iterator[Words]:
    length = limit(spec).usable
    if length is None:
        return
    figures = meaning(rotation.frequencies().at_length(length), length)
    yield say(
        "fp32 angles, as in most programs, have an error of {float32_error:.1e} in cos at position "
        "{length}; spec.encoding(exact='model') computes them as the model was trained, 'fp64' exactly",
        float32_error=figures.float32_error,
        length=length - 1,
    )
    if length > 257:
        yield say(
            "positions in bf16 collide from 257 on: {bfloat16_positions} of {length} stay distinct; keep "
            "positions and angles in fp32 or better",
            bfloat16_positions=figures.bfloat16_positions,
            length=length,
        )


def _layout_fact(options: dict[str, Any]) -> Words:
    layout = options.get("layout", "interleaved")
    pairs = "i, i + d/2" if layout == "half" else "2i, 2i + 1"
    return say(
        "layout {layout}: channels ({pairs}) form a pair. For programs with the other layout, the rows "
        "of the query and key projections must be permuted: posenc convert",
        layout=layout,
        pairs=pairs,
    )


def _layout(options: dict[str, Any], rotation: Rotation, frequencies: Frequencies) -> Iterator[Remark]:
    layout, d_head = options.get("layout", "interleaved"), options["d_head"]
    returns = options.get("returns", layout)
    if returns not in (None, layout):
        yield warning(
            say(
                "channels pair as {layout} and are returned as {returns}: scores are the same as in any program "
                "with these pairs, cached keys are not",
                layout=layout,
                returns=returns,
            )
        )
    if options.get("reverse"):
        yield warning(say("rotates by R(-p): weights of this family fail in programs that rotate by R(p)"))
    width = 2 * len(frequencies)
    if width < d_head:
        last = bool(options.get("trailing"))
        yield note(
            say(
                "the {end} {width} of {d_head} channels rotate; exponents are over {of}",
                end=say("last") if last else say("first"),
                width=width,
                d_head=d_head,
                of=rotation.width,
            )
        )


def _proportional(rotation: Rotation, f: Frequencies, spec: PositionSpec, said_by: dict[str, str]) -> Iterator[Remark]:
    turning, pairs = sum(1 for value in f if value), len(f)
    yield warning(
        say(
            "proportional is not partial: {turning} of {pairs} pairs rotate, paired (i, i + {pairs}), with "
            "exponents over all {channels} channels",
            turning=turning,
            pairs=pairs,
            channels=2 * pairs,
        ),
        _in_file(said_by, "rotary_dim"),
    )


def _in_file(said_by: dict[str, str], argument: str) -> str:
    """The key of the file that gives an argument; "" for a default or a constant."""
    key = said_by.get(argument, "")
    return "" if key.startswith(("default of", "constant of")) else key


def _yarn(rotation: Rotation, f: Frequencies, spec: PositionSpec, said_by: dict[str, str]) -> Iterator[Remark]:
    scale, parameters = f.cos_sin_scale, dict(rotation.parameters)
    yield note(
        say(
            "yarn: cos and sin are multiplied by {scale:.6g}, so logits by {squared:.6g}; the softmax scale "
            "by {softmax_scale:.6g}. A program needs both",
            scale=scale,
            squared=scale**2,
            softmax_scale=f.softmax_scale,
        )
    )
    if spec.trained_length is None or "factor" not in parameters:
        return
    implied = spec.trained_length / parameters["trained_length"]
    if implied not in (1.0, parameters["factor"]):
        yield note(  # AFM-4.5B and Yarn-Mistral are such files: transformers computes with the factor
            say(
                "factor {factor:g} is used; max_position_embeddings / original_max_position_embeddings is {implied:g}",
                factor=parameters["factor"],
                implied=implied,
            ),
            _in_file(said_by, "factor"),
        )


def _longrope(rotation: Rotation, f: Frequencies, spec: PositionSpec, said_by: dict[str, str]) -> Iterator[Remark]:
    length = dict(rotation.parameters)["trained_length"]
    yield warning(
        say(
            "two sets of frequencies: past {length} tokens the other one applies to all positions, so keys "
            "cached before are wrong. Choose once per request: at_length(n)",
            length=length,
        )
    )


def _dynamic(rotation: Rotation, f: Frequencies, spec: PositionSpec, said_by: dict[str, str]) -> Iterator[Remark]:
    length = dict(rotation.parameters)["trained_length"]
    yield warning(
        say(
            "frequencies change with every length past {length}, but cached keys keep the old ones. Choose "
            "once per request: at_length(n)",
            length=length,
        )
    )


def _linear(rotation: Rotation, f: Frequencies, spec: PositionSpec, said_by: dict[str, str]) -> Iterator[Remark]:
    read = limit(spec)
    if read.or_only is not None:
        yield note(
            say(
                "linear scaling: {length} is the length before it, so that {longer} are usable (Vicuna 16K), or the length "
                "after it, so that {length} are (LLaMA-2-7B-32K, deepseek-coder): the file does not say; the model's card "
                "decides",
                length=read.or_only,
                longer=read.usable,
            ),
            said_by.get("factor", ""),
        )


def _learned(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    rows, offset = arguments.get("max_positions"), arguments.get("row_offset", 0)
    if isinstance(rows, int):
        yield warning(say("a table of {rows} positions: a longer input is an error", rows=rows))
    if offset:
        yield note(say("position p reads row p + {offset}: the table has {offset} more rows than positions", offset=offset))


def _alibi(use: Use) -> Iterator[Remark]:
    yield note(say("defined for any length; distances must be exact: bf16 keeps only 641 of the first 2048 distinct"))


def _t5(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    far = arguments.get("max_distance", 128)
    yield note(
        say(
            "defined for any length; from {far} positions on, all distances share the last bucket, so "
            "distant tokens have no order",
            far=far,
        )
    )
    if arguments.get("scale") == 1.0:
        yield note(say("logits are not divided by √d_head; a fused kernel needs scale = 1"))


def _floor_log(use: Use) -> Iterator[Remark]:
    arguments = dict(use.arguments)
    offset, length = arguments.get("offset", 1), arguments.get("trained_length", 8192)
    other = say("Ministral 3 and Mistral 4 count p") if offset else say("Llama 4 counts p + 1")
    yield note(
        say(
            "queries are scaled in steps, at ⌊(p + {offset})/{length}⌋; {other}: every step is one position apart",
            offset=offset,
            length=length,
            other=other,
        )
    )


SCALINGS = {"proportional": _proportional, "yarn": _yarn, "longrope": _longrope, "dynamic": _dynamic, "linear": _linear}
REMARKS = {"Learned": _learned, "ALiBi": _alibi, "T5": _t5, "FloorLogTemperature": _floor_log}
