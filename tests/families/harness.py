"""How a family's own code is asked what it does with position, and compared with what posenc read off its configuration.

Every comparison runs code of the installed transformers on tiny sizes; the expected side never comes from posenc.

    model = build("llama", hidden_size=64, …)          the family's own model, random weights
    for call in calls(model, position_ids=ids): …      queries and keys as they reach attention, layer by layer
    rotary(model, spec, ids)                           posenc.rotate of the unrotated ones against the family's rotated ones
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

import posenc
from posenc.configs import PositionSpec, read_config

transformers.logging.set_verbosity_error()
FP32 = 2.0**-23  # one unit in the last place of a number between 1 and 2

# --- results -----------------------------------------------------------------------------------------------------------


@dataclass
class Proof:
    """What was compared for one model type.

    does       what the family does with position, in words for the table
    compared   what was put side by side: "q and k of 4 layers at positions to 131071", …
    roundings  the largest difference, in units of one fp32 rounding of the largest entry of the vector it is in
    exact      frequencies (or tables, or buckets) that were compared bit for bit, and were equal
    """

    model_type: str
    does: str
    compared: list[str] = field(default_factory=list)
    roundings: float = 0.0
    exact: list[str] = field(default_factory=list)

    def close(self, what: str, got: Tensor, expected: Tensor, most: float = 1.0) -> None:
        """`got` from posenc, `expected` from the family; at most `most` roundings of a vector apart."""
        assert got.shape == expected.shape, f"{self.model_type}: {what}: {list(got.shape)} against {list(expected.shape)}"
        assert torch.isfinite(expected).all(), f"{self.model_type}: {what}: the family's own values are not finite"
        largest = expected.abs().amax(-1, keepdim=True).double().clamp(min=1e-30)
        apart = float(((got.double() - expected.double()).abs() / (largest * FP32)).max())
        assert apart <= most, f"{self.model_type}: {what}: {apart:.3g} roundings apart, at most {most:g} allowed"
        self.roundings = max(self.roundings, apart)
        if what not in self.compared:
            self.compared.append(what)

    def equal(self, what: str, got: Any, expected: Any) -> None:
        """Bit for bit the same."""
        if isinstance(got, Tensor) or isinstance(expected, Tensor):
            got, expected = torch.as_tensor(got), torch.as_tensor(expected)
            same = got.shape == expected.shape and bool((got == expected).all())
        else:
            same = got == expected
        assert same, f"{self.model_type}: {what}: {got} against {expected}"
        if what not in self.exact:
            self.exact.append(what)


PROOFS: dict[str, Callable[[str], Proof]] = {}


def proof(*model_types: str) -> Callable[[Callable[[str], Proof]], Callable[[str], Proof]]:
    """Registers the comparison of the model types that the installed release has; it gets one and returns its Proof."""

    def register(compare: Callable[[str], Proof]) -> Callable[[str], Proof]:
        for model_type in (name for name in model_types if name in CONFIG_MAPPING_NAMES):
            assert model_type not in PROOFS, f"{model_type} is proven twice"
            PROOFS[model_type] = compare
        return compare

    return register


# --- the family's own model --------------------------------------------------------------------------------------------

# Sizes that most configuration classes know, made tiny. What a family does not have is left out.
TINY: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 32,
    "moe_intermediate_size": 16,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "shared_expert_intermediate_size": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "vocab_size_per_layer_input": 32,
    "n_embd": 64,
    "n_layer": 4,
    "n_head": 4,
    "n_group": 1,
    "topk_group": 1,
}


def config_of(model_type: str, **sizes: Any) -> Any:
    """The family's configuration with tiny sizes; `sizes` override or add, None drops one of the usual ones."""
    loaded = CONFIG_MAPPING[model_type]
    known = set(loaded.__dataclass_fields__) | set(getattr(loaded, "attribute_map", {}) or {})
    wanted = {name: value for name, value in TINY.items() if name in known} | sizes
    return loaded(**{name: deepcopy(value) for name, value in wanted.items() if value is not None})  # classes edit dicts


def build(config: Any, model_class: str | None = None, *, attention: str | None = "probe") -> torch.nn.Module:
    """The family's model in fp32 with random weights, in evaluation mode; `attention` "probe" records what reaches it."""
    torch.manual_seed(0)
    if model_class is None:
        loaded = transformers.AutoModel
        made = loaded.from_config(config, dtype=torch.float32, **({"attn_implementation": attention} if attention else {}))
    else:
        module = importlib.import_module(f"transformers.models.{folder_of(config)}.modeling_{folder_of(config)}")
        if attention:
            config._attn_implementation = attention
        made = getattr(module, model_class)(config)
    return made.eval().float()


def folder_of(config: Any) -> str:
    return type(config).__module__.split(".")[-2]


def modeling(model_type: str) -> Any:
    """The modeling module of a model type: transformers.models.<folder>.modeling_<folder>."""
    folder = CONFIG_MAPPING[model_type].__module__.split(".")[-2]
    return importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")


def spec_of(config: Any, **options: Any) -> PositionSpec:
    """What posenc reads off the family's configuration as it is saved."""
    return read_config(config.to_dict(), **options)


# --- what reaches attention --------------------------------------------------------------------------------------------


@dataclass
class Call:
    """One attention call of the family: queries and keys [b, h, t, d] as they are multiplied, and how."""

    module: torch.nn.Module
    layer: int | None
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    scaling: float | None
    options: dict[str, Any]


_CALLS: list[Call] = []


def _probe(module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, **options: Any) -> Any:
    scaling = options.pop("scaling", None)
    _CALLS.append(
        Call(
            module,
            getattr(module, "layer_idx", None),
            query.detach().clone(),
            key.detach().clone(),
            value.detach().clone(),
            attention_mask,
            scaling,
            options,
        )
    )
    out = value if value.shape[2] == query.shape[2] else value[:, :, :1].expand(-1, -1, query.shape[2], -1)
    if out.shape[1] != query.shape[1]:
        out = out.repeat_interleave(query.shape[1] // out.shape[1], dim=1)
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register("probe", _probe)
AttentionMaskInterface.register("probe", eager_mask)


def calls(model: torch.nn.Module, *arguments: Any, fixed: bool = True, **inputs: Any) -> list[Call]:
    """Every attention call of one forward pass, in order. `fixed` gives each attention module the same hidden states in
    every pass, so that what differs between two passes is position alone."""
    _CALLS.clear()
    with torch.no_grad(), _fixed_inputs(model) if fixed else contextlib.nullcontext():
        model(*arguments, **inputs)
    found = list(_CALLS)
    _CALLS.clear()
    return found


@contextlib.contextmanager
def _fixed_inputs(model: torch.nn.Module) -> Iterator[None]:
    """Attention modules, known by having q_proj or the like and being asked with hidden states, see fixed random ones."""
    hooks = []

    def replace(module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        name = "hidden_states" if "hidden_states" in keywords else None
        x = keywords[name] if name else arguments[0] if arguments else None
        if not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim < 2:
            return None
        generator = torch.Generator().manual_seed(7)
        y = torch.randn(x.shape, generator=generator).to(x)
        return (arguments, keywords | {name: y}) if name else ((y, *arguments[1:]), keywords)

    for name, module in model.named_modules():
        if is_attention(name, module):
            hooks.append(module.register_forward_pre_hook(replace, with_kwargs=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


PROJECTIONS = (
    "q_proj",
    "query",
    "qkv",
    "query_key_value",
    "qkv_proj",
    "c_attn",
    "Wqkv",
    "q_a_proj",
    "q_b_proj",
    "to_q",
    "wq",
)


def is_attention(name: str, module: torch.nn.Module) -> bool:
    return any(hasattr(module, projection) for projection in PROJECTIONS) and "attn" in name.lower() + type(
        module
    ).__name__.lower().replace("attention", "attn")


# --- comparisons -------------------------------------------------------------------------------------------------------

# Two rows that share nothing: counted from 0, and far out with gaps; the last one is where fp32 angles are worst.
IDS = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [3, 17, 255, 256, 4095, 8191, 65537, 131071]])


def tokens(shape: Any, vocabulary: int = 32) -> Tensor:
    return torch.randint(3, vocabulary, tuple(shape), generator=torch.Generator().manual_seed(1))


def at_of(ids: Tensor, axes_last: bool = True) -> posenc.Positions:
    """Positions of a family's position ids: [b, t], or [axes, b, t] as multimodal models give them."""
    return posenc.Positions.at(ids if ids.ndim == 2 else ids.movedim(0, -1))


def unrotated(x: Tensor, encoding: Any, zero: posenc.Positions, side: Any) -> Tensor:
    """What the family would have had before its rotation at position 0, where a rotation is the identity up to a fixed
    scale of each channel and, where it returns another layout, a permutation."""
    heads, d = x.shape[1], x.shape[-1]
    one = posenc.Positions.at(torch.zeros(1, d, *zero.coords.shape[2:], dtype=zero.coords.dtype))
    each = torch.eye(d, dtype=torch.float64).expand(1, heads, d, d)  # row c of a head: what its channel c becomes
    return (x.double() @ torch.linalg.inv(encoding.rotate(each, one, side)[0])).float()


def rotary(
    proof: Proof,
    config: Any,
    spec: PositionSpec,
    model: torch.nn.Module | None = None,
    *,
    ids: Tensor = IDS,
    inputs: dict[str, Any] | None = None,
    most: float = 1.0,
    d_qk: Callable[[Tensor], Tensor] | None = None,
) -> list[Call]:
    """Every layer's queries and keys, rotated by the family at `ids`, against posenc's rotation of the unrotated ones.

    The unrotated ones come from the same model at position 0. Also compared: which layers there are, the window of each,
    and, where the encoding has a scale of its own, the softmax scale.
    """
    model = build(config) if model is None else model
    inputs = {"input_ids": tokens(ids.shape[-2:])} if inputs is None else inputs
    at_zero, moved = (calls(model, **inputs, position_ids=p) for p in (torch.zeros_like(ids), ids))
    assert moved, f"{proof.model_type}: no attention call reached the probe"
    spec = attending(spec, moved)
    assert len(moved) == len(spec.layers), (
        f"{proof.model_type}: {len(moved)} attention layers, posenc has {len(spec.layers)}"
    )
    same_rotation(proof, spec, at_zero, moved, ids, most)
    return moved


def attending(spec: PositionSpec, found: list[Call]) -> PositionSpec:
    """The spec with its attention layers only, which must have the numbers that the family's own modules have."""
    numbers = [number for number, layer in enumerate(spec.layers) if layer.attends]
    known = [call.layer for call in found if call.layer is not None and call.layer >= 0]
    if len(numbers) < len(spec.layers) and known:  # shared attention has the number -1
        assert known == numbers, f"attention in layers {known}, posenc says {numbers}"
    return dataclasses.replace(spec, layers=tuple(spec.layers[number] for number in numbers))


def same_rotation(
    proof: Proof,
    spec: PositionSpec,
    at_zero: list[Call],
    moved: list[Call],
    ids: Tensor,
    most: float = 1.0,
    *,
    softmax: bool = False,
) -> None:
    """Attention calls of two passes, at position 0 and at `ids`, against the layers of a spec, one for one.

    `softmax` compares what the products are multiplied with as well.
    """
    at, zero = at_of(ids), at_of(torch.zeros_like(ids))
    for number, (before, after) in enumerate(zip(at_zero, moved, strict=True)):
        layer = number if after.layer is None else after.layer
        whole = spec.encoding(number, exact="model")  # what depends on length does so in both passes
        short, encoding = whole.at_length(1), whole.at_length(int(ids.max()) + 1)
        for side, x0, x in (("query", before.q, after.q), ("key", before.k, after.k), ("value", before.v, after.v)):
            expected = x
            got = encoding.rotate(unrotated(x0, short, zero, side), at, side)
            where = f"layer {layer}: {side}"
            try:
                proof.close(
                    f"queries, keys and values of every layer at positions to {int(ids.max())}", got, expected, most
                )
            except AssertionError as error:
                raise AssertionError(f"{where}: {error}") from None
        if "sliding_window" in after.options and spec.layers[number].causal:
            window = spec.layers[number].window
            assert after.options["sliding_window"] == window, (
                f"{proof.model_type}: layer {layer}: window {after.options['sliding_window']}, posenc {window}"
            )
        if softmax:
            mine, theirs = encoding.softmax_scale(after.q.shape[-1]), after.scaling
            assert theirs is not None, f"{proof.model_type}: layer {layer}: no softmax scale reached the probe"
            assert math.isclose(mine, theirs, rel_tol=1e-12), f"{proof.model_type}: layer {layer}: scale {theirs}, {mine}"
            if "softmax scale" not in proof.exact:
                proof.exact.append("softmax scale")


def frequencies(proof: Proof, module: torch.nn.Module, spec: PositionSpec, layer: int = 0, name: str = "inv_freq") -> None:
    """The family's own fp32 frequencies against posenc's in parity, bit for bit; and posenc's fp64 ones within rounding."""
    buffer = getattr(module, name)
    parity, exact = (_rotations(spec.encoding(layer, exact=e))[0].frequencies for e in ("model", "fp64"))
    own = list(parity.values)
    proof.equal(f"{len(buffer)} frequencies", torch.tensor(own, dtype=torch.float32), buffer.float())
    for mine, theirs in zip(exact.values, buffer.double().tolist(), strict=True):
        assert math.isclose(mine, theirs, rel_tol=3e-6, abs_tol=1e-12), f"{proof.model_type}: {mine} in fp64, {theirs}"


def _rotations(encoding: Any) -> list[Any]:
    parts = list(encoding) if isinstance(encoding, posenc.Stack) else [encoding]
    return [part for part in parts if hasattr(part, "frequencies")]


def made_of(model_type: str, does: str, parts: dict[str, str], config: Any = None, model_class: str | None = None) -> Proof:
    """A model put together from others: its class, built without storage, holds models of just the families that posenc
    names for its parts, and each of these families is proven by itself.

    parts  part of the spec -> end of the path (or of the class) of the module that is that part
    """
    result = Proof(model_type, does)
    config = CONFIG_MAPPING[model_type]() if config is None else config
    spec = spec_of(config, defaults=True)
    with torch.device("meta"):
        model = build(config, model_class, attention=None)
    for part, ending in parts.items():
        module, family = module_named(model, ending), spec[part].family
        built = type(module).__module__.split(".")[-2]
        result.equal(f"{part} is {family}", folder_of(module.config), CONFIG_MAPPING[family].__module__.split(".")[-2])
        assert built in (folder_of(module.config), folder_of(config)), f"{model_type}: {part} is built by {built}"
    missing = {part.part for part in spec.parts} - set(parts)
    assert not missing, f"{model_type}: parts {missing} are not looked at"
    return result


def module_named(model: torch.nn.Module, ending: str) -> torch.nn.Module:
    """The first module whose path or class ends so."""
    for name, module in model.named_modules():
        if name.endswith(ending) or type(module).__name__.endswith(ending):
            return module
    raise AssertionError(f"no module ends in {ending}: {[n for n, _ in model.named_modules()][:40]}")


def source_of(thing: Any) -> str:
    """The family's own source, for facts that only its text can tell."""
    return inspect.getsource(thing)


def replace(config: Any, **values: Any) -> Any:
    """A copy of a configuration with other values."""
    return type(config)(**{**config.to_dict(), **values})


__all__ = [name for name in dir() if not name.startswith("_") and name not in ("dataclasses",)]
