"""What posenc.transformers does with one model type: for each column of the table "yes", or the reason why it refuses.

    judged("llama")["bias"]     "yes", or what pt.Unsupported said

A "yes" is proven on a tiny random model: see `COLUMNS`. A refusal must leave the model as it was. A wrong result raises
AssertionError: it is neither.
"""

from __future__ import annotations

import copy
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

import posenc
import posenc.transformers as pt
from posenc.configs.stacked import stacked
from posenc.configs.weights import with_weights
from posenc.transformers import rotation_forms
from posenc.transformers.decoder import decoder_of

from .tiny import model_of

IDS = torch.randint(3, 90, (2, 10), generator=torch.Generator().manual_seed(0))
TOLERANCE = 5e-4  # of the largest logit; what a lost mask, scale or position changes is above 1e-2


class Subject:
    """A model, what it computes by itself, and the query heads and channels of its attention layers."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.own = logits(model)
        self.known: dict[str, float] = {}

    def by_itself(self, law: str) -> float:
        """How far the model with its own encoding is from a law."""
        if law not in self.known:
            try:
                self.known[law] = LAWS[law](self.model)
            except Exception:  # a model of transformers that cannot do it at all
                self.known[law] = float("inf")
        return self.known[law]

    def exceptions(self) -> list[str]:
        """The laws that the model does not keep by itself, so that nothing attached can be asked to."""
        return [law for law in LAWS if self.by_itself(law) > TOLERANCE]


def judged(model_type: str, columns: Iterable[str] | None = None) -> dict[str, str]:
    """The row of a type: for each column "yes" or the reason; "itself" says which laws the model breaks by itself."""
    try:
        subject = Subject(model_of(model_type))
    except Exception as error:  # of transformers: the test of the table says for which types
        return dict.fromkeys(columns or COLUMNS, f"does not run: {' '.join(str(error).split()).split('. ')[0]}")
    row = {name: COLUMNS[name](subject) for name in (columns or COLUMNS)}
    return row | {"itself": ", ".join(subject.exceptions())} if "yes" in row.values() else row


# --- what a model computes ---------------------------------------------------------------------------------------------


@torch.no_grad()
def logits(model: Any, ids: Tensor = IDS, **inputs: Any) -> Tensor:
    return model(input_ids=ids, **{"use_cache": False, **inputs}).logits


def apart(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).abs().max() / expected.abs().max())


def cached(model: Any) -> float:
    """Seven tokens and then one at a time, over a cache, are one pass over ten."""
    return _over_a_cache(model, 7, 8, 9, 10)


def chunked(model: Any) -> float:
    """Two tokens, five and three over a cache are one pass over ten."""
    return _over_a_cache(model, 2, 7, 10)


@torch.no_grad()
def _over_a_cache(model: Any, first: int, *ends: int) -> float:
    step = model(input_ids=IDS[:, :first], use_cache=True)
    found = [step.logits]
    for begin, end in pairwise((first, *ends)):
        step = model(input_ids=IDS[:, begin:end], use_cache=True, **carried(model, step))
        found.append(step.logits)
    return apart(torch.cat(found, dim=1), logits(model))


def carried(model: Any, out: Any) -> dict[str, Any]:
    """What an output hands to the next call: its cache, or state, under the name that this version of transformers has."""
    names = inspect.signature(type(model).forward).parameters
    found = {name: value for name, value in out.items() if name in names}
    assert found, f"the output holds nothing that the model takes, only {list(out.keys())}"
    return found


def padded(model: Any) -> float:
    """A row with padding on its left is the row alone, with position_ids."""
    ids, mask = _padded()
    got = logits(model, ids, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0))
    return apart(got[:, 3:], logits(model, IDS[:1]))


def padded_uncounted(model: Any) -> float:
    """The same without position_ids."""
    ids, mask = _padded()
    return apart(logits(model, ids, attention_mask=mask)[:, 3:], logits(model, IDS[:1]))


def _padded() -> tuple[Tensor, Tensor]:
    return torch.cat([torch.zeros(1, 3, dtype=torch.long), IDS[:1]], dim=1), torch.tensor([[0] * 3 + [1] * 10])


def packed(model: Any) -> float:
    """Two texts in one row, told apart by position_ids, are the texts alone."""
    both = torch.cat([IDS[:1, :4], IDS[1:, :6]], dim=1)
    got = logits(model, both, position_ids=torch.tensor([[*range(4), *range(6)]]))
    return max(apart(got[:, :4], logits(model, IDS[:1, :4])), apart(got[:, 4:], logits(model, IDS[1:, :6])))


@torch.no_grad()
def generated(model: Any) -> float:
    """`generate` with a cache gives the tokens and the logits of `generate` without, for a batch padded on its left."""
    prompt = {"input_ids": IDS, "attention_mask": torch.tensor([[0] * 4 + [1] * 6, [1] * 10])}
    settings = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    settings |= {"return_dict_in_generate": True, "output_logits": True}
    with_cache, without = (model.generate(**prompt, **settings, use_cache=use) for use in (True, False))
    if not torch.equal(with_cache.sequences, without.sequences):
        return 1.0
    return apart(torch.stack(with_cache.logits), torch.stack(without.logits))


def repeated(model: Any) -> float:
    """A second call gives what the first gave."""
    first = logits(model)
    logits(model, IDS[:, :3])
    return apart(logits(model), first)


LAWS: dict[str, Callable[[Any], float]] = {
    "cached": cached,
    "chunked": chunked,
    "padded": padded,
    "padded_uncounted": padded_uncounted,
    "packed": packed,
    "generated": generated,
    "repeated": repeated,
}


# --- columns -----------------------------------------------------------------------------------------------------------


def refusal(error: Exception) -> str:
    return re.sub(r"^(model|encoding|method, options): ", "", str(error))


@contextmanager
def as_it_was(subject: Subject) -> Iterator[None]:
    """Whatever is refused or undone inside, the model has its own weights, hooks, configuration and logits afterwards."""
    model = subject.model
    config, keys = model.config.to_dict(), set(model.state_dict())
    hooks = [len(module._forward_pre_hooks) for module in model.modules()]
    attention = [_implementation(module) for module in model.modules()]
    yield
    assert model.config.to_dict() == config, "the configuration has changed"
    assert set(model.state_dict()) == keys, "the state_dict has other keys"
    assert [len(module._forward_pre_hooks) for module in model.modules()] == hooks, "hooks are left behind"
    assert [_implementation(module) for module in model.modules()] == attention, "another attention is configured"
    assert not any("forward" in vars(module) for module in model.modules()), "a forward has been replaced"
    assert torch.equal(logits(model), subject.own), "the logits have changed"


def _implementation(module: Any) -> Any:
    return getattr(getattr(module, "config", None), "_attn_implementation", None)


def fast(subject: Subject) -> str:
    """posenc's kernel runs wherever the model rotated, its own rotation nowhere; undone bit for bit."""
    model = subject.model
    with as_it_was(subject):
        try:
            pt.fast(model)
        except pt.Unsupported as error:
            return refusal(error)
        with (
            counted(own_rotations(model)) as own,
            counted([(rotation_forms, "rotate"), (rotation_forms, "rotate_both")]) as ours,
        ):
            distance = apart(logits(model), subject.own)
        assert ours, "posenc's rotation was not called"
        assert not own, f"the model's own {own[0]} was called"
        assert distance <= 1e-5, f"fast: logits are {distance:.2g} apart"
        pt.slow(model)
    return "yes"


def own_rotations(model: Any) -> list[tuple[Any, str]]:
    """Where the families' functions are found, by the names that they have in transformers."""
    modules = {id(found): found for found in (sys.modules[type(one).__module__] for one in model.modules())}
    return [(found, name) for found in modules.values() for name in vars(found) if name.startswith("apply_rotary")]


@contextmanager
def counted(functions: Iterable[tuple[Any, str]]) -> Iterator[list[str]]:
    """The names of these functions, one for each call inside."""
    calls: list[str] = []
    kept = [(owner, name, getattr(owner, name)) for owner, name in functions]

    def counting(name: str, function: Any) -> Any:
        return lambda *given, **named: calls.append(name) or function(*given, **named)

    try:
        for owner, name, function in kept:
            setattr(owner, name, counting(name, function))
        yield calls
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def attached(subject: Subject, make: Callable[[int, int], Any]) -> str:
    """The laws hold with the encoding attached as far as they do without; logits change; detach restores every bit."""
    model = subject.model
    with as_it_was(subject):
        try:
            attach(model, make)
        except pt.Unsupported as error:
            if pt_attached(model):
                pt.detach(model)
            return refusal(error)
        assert apart(logits(model), subject.own) > 1e-3, "the logits have not changed"
        pt.detach(model)
        own = {law: subject.by_itself(law) for law in LAWS}
        attach(model, make)
        for law, measure in LAWS.items():
            if own[law] <= TOLERANCE:
                distance = measure(model)
                assert distance <= TOLERANCE, f"{law}: {distance:.2g} apart, by itself {own[law]:.2g}"
        pt.detach(model)
    return "yes"


def pt_attached(model: Any) -> bool:
    return hasattr(model, "posenc_encodings")


def attach(model: Any, make: Callable[[int, int], Any]) -> None:
    """Attaches one encoding to all layers of one shape."""
    layers: dict[tuple[int, int], list[int]] = {}
    for n, shape in shapes(model).items():
        layers.setdefault(shape, []).append(n)
    if not layers:
        pt.attach(model, make(4, 16))
    for shape, chosen in layers.items():
        pt.attach(model, make(*shape), layers=chosen)


def shapes(model: Any) -> dict[int, tuple[int, int]]:
    """Query heads and channels of a head, of each layer that calls transformers' attention interface."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    found: dict[int, tuple[int, int]] = {}

    def look_on(module: Any, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        index = getattr(module, "layer_idx", None)
        if isinstance(index, int):
            found.setdefault(index, (query.shape[1], query.shape[-1]))
        return query.new_zeros(query.shape[0], query.shape[2], query.shape[1], value.shape[-1]), None

    AttentionInterface.register("look_on", look_on)
    AttentionMaskInterface.register("look_on", sdpa_mask)
    parts = {id(module.config): module.config for module in decoder_of(model).modules() if _implementation(module)}
    before = [(config, config._attn_implementation) for config in parts.values()]
    try:
        for config, _ in before:
            config._attn_implementation_internal = "look_on"
        logits(model)
    except Exception:  # of a model that does not run with another attention; attach says so
        found = {}
    finally:
        for config, name in before:
            config._attn_implementation_internal = name
    return found


def rotary(subject: Subject) -> str:
    """RoPE in the model's layout: the other is refused before anything is attached, with the layout to give."""

    def of(layout: str) -> str:
        return attached(subject, lambda heads, width: posenc.create("rope", d_head=width, base=50.0, layout=layout))

    try:
        answer = of("half")
    except ValueError as error:
        if not str(error).endswith("; create it with layout='interleaved'"):
            raise
        answer = of("interleaved")
    if answer == "yes":
        own_encoding(subject)
        no_position(subject)
    return answer


def own_encoding(subject: Subject) -> None:
    """What the configuration says of each layer, attached, is the model itself: mask, scale, window and sinks are kept."""
    model = _with_random_vectors(subject.model)
    spec = posenc.read_config(decoder_of(model).config.to_dict(), defaults=True)
    spec = next((part for part in spec.parts if part.part == "decoder"), spec)
    layers = sorted(shapes(model))
    if own_tables(spec):
        pt.attach(model, posenc.PerLayer([with_weights(spec, n, model.state_dict()) for n in layers]))
        layers = []
    for number, n in enumerate(layers):
        uses = spec.layers[number if len(spec.layers) == len(layers) else n].uses
        turned = [as_handed_over(use).build("float64") for use in uses if use.rotation]  # other uses are kept by attach
        pt.attach(model, stacked(turned), layers=[n])
    distance = apart(logits(model), logits(pt.detach(copy.deepcopy(model))))
    assert distance <= TOLERANCE, f"the model's own encoding attached is {distance:.2g} apart from the model"


@torch.no_grad()
def _with_random_vectors(model: Any) -> Any:
    """A copy with weights of norms far from 1, and biases, gates, scalars and sinks far from 0 and 1."""
    model, generator = copy.deepcopy(model), torch.Generator().manual_seed(2)
    kept = {id(one) for one in model.state_dict(keep_vars=True).values()}
    buffers = [one for one in model.buffers() if id(one) in kept and one.is_floating_point() and _is_neutral(one)]
    for one in [*(parameter for parameter in model.parameters() if parameter.ndim < 2), *buffers]:
        one.add_(torch.randn(one.shape, generator=generator), alpha=0.5)
    return model


def _is_neutral(values: Tensor) -> bool:
    return bool((values == 0).all()) or bool((values == 1).all())


def as_handed_over(use: Any) -> Any:
    """A rotation in the layout in which its family hands queries and keys to attention, which may not be its weights'.

    Coordinates of images are left out: for text all of them are the token's number.
    """
    given = dict(use.arguments)
    name, rotation = next((name, value) for name, value in given.items() if value is use.rotation)
    given[name] = replace(rotation, maps=tuple(one for one in rotation.maps if one[0] == "softmax_mscale"))
    if given.get("returns"):
        given |= {"layout": given["returns"], "returns": None}
    return replace(use, arguments=tuple(given.items()))


def own_tables(spec: Any) -> list[str]:
    """The ends of the names of a model's tables of positions."""
    return [weight.key for layer in spec.layers for use in layer.uses if not use.rotation for weight in use.weights]


def no_position(subject: Subject) -> None:
    """With NoPE attached, the model is what it computes itself when every token is at position 0, its tables 0."""
    model = subject.model
    at_zero = {"position_ids": torch.zeros_like(IDS), "attention_mask": torch.ones_like(IDS)}
    plain = _unscaled(model)
    spec = posenc.read_config(decoder_of(model).config.to_dict(), defaults=True)
    spec = next((part for part in spec.parts if part.part == "decoder"), spec)
    if ends := tuple(own_tables(spec)):
        at_zero = {}
        for name, one in plain.state_dict().items():
            if name.endswith(ends):
                one.zero_()
    expected = logits(plain, **at_zero)
    pt.attach(model, posenc.create("nope"))
    distance = apart(logits(model), expected)
    pt.detach(model)
    assert distance <= TOLERANCE, f"NoPE attached is {distance:.2g} apart from the model at position 0"


def _unscaled(model: Any) -> Any:
    """A copy whose cos and sin have no factor of YaRN or LongRoPE: they are 1 and 0 at position 0."""
    model = copy.deepcopy(model)
    for module in model.modules():
        for name in [name for name in vars(module) if name.endswith("attention_scaling")]:
            setattr(module, name, 1.0)
    return model


def bias(subject: Subject) -> str:
    return attached(subject, lambda heads, width: posenc.create("alibi", n_heads=heads))


def contextual(subject: Subject) -> str:
    def cope(heads: int, width: int) -> Any:
        made = posenc.create("cope", n_heads=heads, d_head=width, max_positions=16)
        return posenc.laws.draw_parameters(made, std=0.3)

    return attached(subject, cope)


def extend(subject: Subject) -> str:
    """YaRN to four times the length: the model is one that transformers builds from the new configuration."""
    model = copy.deepcopy(subject.model)
    ids = torch.randint(3, 90, (1, 90), generator=torch.Generator().manual_seed(1))
    config = model.config.to_dict()
    length = 4 * max(getattr(decoder_of(model).config, "max_position_embeddings", None) or 0, 64)
    with as_it_was(subject):
        try:
            pt.extend(model, length)
        except ValueError as error:
            assert torch.equal(logits(model), subject.own), "the logits have changed"
            assert model.config.to_dict() == config, "the configuration has changed"
            return refusal(error)
        own = logits(subject.model, ids)
        fresh = type(model)(copy.deepcopy(model.config)).eval()
        fresh.load_state_dict(model.state_dict())
        got = logits(model, ids)
        assert apart(got, logits(fresh, ids)) <= 1e-6, "a model built from the new configuration computes something else"
        assert apart(got, own) > 1e-4, "the logits have not changed"
        assert decoder_of(model).config.max_position_embeddings == length, "the configuration has the old length"
        assert "yarn" in str(decoder_of(model).config.rope_parameters), "the configuration has the old frequencies"
    return "yes"


SAME = {  # the laws of posenc.transformers.model_laws that measure what is measured here
    "left_padded_equals_alone": "padded",
    "decode_equals_prefill": "cached",
    "chunked_equals_whole": "chunked",
    "packed_equals_separate": "packed",
}


def check(subject: Subject) -> str:
    """`check` runs, leaves the model as it was, and finds what is measured here: laws that hold and laws that do not."""
    with as_it_was(subject):
        try:
            report = pt.check(subject.model)
        except pt.Unsupported as error:
            return refusal(error)
        for result in report.results:
            distance = subject.by_itself(SAME[result.law]) if result.law in SAME else math.nan
            assert not (result.verdict == "passed" and distance > 1e-2), f"{result.law} passed, {distance:.2g} apart"
            assert not (result.verdict == "failed" and distance < 1e-5), f"{result.law} failed, {distance:.2g} apart"
    return "yes"


COLUMNS: dict[str, Callable[[Subject], str]] = {
    one.__name__: one for one in (fast, rotary, bias, contextual, extend, check)
}
