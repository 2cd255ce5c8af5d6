"""Checks whether a user's own encoding may be compared: it must obey the laws it declares, and the lab must train it.

    my_encoding.py:MyEncoding ─► built at the experiment's sizes, parameters drawn ─► posenc.laws ─► a step of training

With a broken law the comparison would measure something else, such as decoding that differs from training, or an influence
of other rows in the batch. Two laws use small sizes: finite differences take a forward pass per number, and the compiler
cannot distinguish a size from an equal length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch.nn import functional as F

from posenc.checking import laws
from posenc.checking.laws import NotApplicable, Setting, World
from posenc.checking.result import Result
from posenc.encoding import PositionalEncoding
from posenc.lab import user_file
from posenc.lab.experiment import Size, user_encoding
from posenc.lab.experiment.arm import Arm
from posenc.lab.tasks.task import Task
from posenc.lab.trial.model import Transformer
from posenc.positions import Positions

ON_A_SMALL_ONE = ("gradients", "one_graph_over_lengths")
SLICES = "head_slices"
UNSLICED = "it has no heads(start, stop), which only tensor parallelism needs; the lab trains whole models"
SHORT = 32  # tokens of the training step


def examine(word: str, source: str, size: Size, tasks: tuple[Task, ...]) -> Iterator[Result]:
    """The result of every law, then of a step of training on every task.

    The laws are tried in both directions where a task is bidirectional and the encoding is not causal only.

    Raises ValueError where the class cannot be loaded or built, or attention with it raises: its own words, in one line.
    """
    arm = Arm.parse(word, source)
    encoding = build(arm, setting_of(size))
    _attends(encoding, setting_of(size), word)
    others = [name for name in laws.LAWS if name not in ON_A_SMALL_ONE]
    yield from _laws(encoding, setting_of(size), others)
    yield from _laws(build(arm, Setting()), Setting(), ON_A_SMALL_ONE)
    causal_only = "causal_only" in encoding.traits
    if any(not task.causal for task in tasks) and not causal_only:
        both_ways = setting_of(size, causal=False)
        for result in _laws(encoding, both_ways, others):
            yield replace(result, law=f"{result.law}, bidirectional")
    for task in tasks:
        if task.causal or not causal_only:
            yield _trains(arm, size, task)


def setting_of(size: Size, causal: bool = True) -> Setting:
    """The sizes of the experiment, with at least two heads, because a law divides them in two."""
    heads = max(2, size.n_heads)
    width = size.d_model // size.n_heads * heads
    return Setting(d_model=width, n_heads=heads, n_kv_heads=heads // 2 if heads % 2 == 0 else 1, causal=causal)


def build(arm: Arm, setting: Setting) -> PositionalEncoding:
    """An encoding for the laws. An error in the user's file becomes one line."""
    assert arm.source is not None
    sizes = {"d_model": setting.d_model, "n_heads": setting.n_heads, "n_layers": 2, "max_positions": setting.max_positions}
    try:
        return user_encoding.create(arm.encoding, arm.source, sizes)
    except Exception as error:
        raise ValueError(user_file.in_one_line(arm.encoding, error)) from error


def _attends(encoding: PositionalEncoding, setting: Setting, word: str) -> None:
    """One call of attention, because an error there would be repeated by nearly every law."""
    world = World(setting)
    try:
        world.output(encoding, world.x, world.plain())
    except NotApplicable:
        return
    except Exception as error:
        sizes = f"n_heads={setting.n_heads}, d_model={setting.d_model}"
        message = f"{word}: attention with it fails at {sizes}: {type(error).__name__}: {error}"
        raise ValueError(message.splitlines()[0]) from error


def _laws(encoding: PositionalEncoding, setting: Setting, names: Sequence[str]) -> Iterator[Result]:
    drawn = laws.draw_parameters(encoding)
    for name in names:
        for result in laws.report(drawn, setting, [name]):
            yield (
                result
                if result.held or name != SLICES or _has_heads(encoding)
                else Result(name, "not applicable", UNSLICED)
            )


def _has_heads(encoding: PositionalEncoding) -> bool:
    """Whether the class says what a slice of its heads is."""
    return type(encoding).heads is not PositionalEncoding.heads


def _trains(arm: Arm, size: Size, task: Task) -> Result:
    """Checks that a forward and a backward pass in the lab's model give finite numbers."""
    name, length = f"trains on {task.name}", min(SHORT, task.tokens(task.length))
    try:
        model = Transformer(
            arm, size, vocabulary=task.vocabulary, causal=task.causal, positions=task.tokens(task.length), seed=0
        )
        tokens = torch.randint(task.vocabulary, (2, length), generator=torch.Generator().manual_seed(0))
        logits = model(tokens, model.prepare(Positions.arange(1, length)))
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
        loss.backward()
        wrong = [which for which, p in model.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
        if not loss.isfinite() or wrong:
            return Result(name, "failed", f"not finite: {', '.join(['the loss'] * (not loss.isfinite()) + wrong[:3])}")
    except Exception as error:
        return Result(name, "failed", f"{type(error).__name__}: {error}")
    return Result(name, "passed")
