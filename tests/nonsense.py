"""Drives public callables with wrong arguments, one argument at a time, and says what came of it.

    report(callable) -> the findings: one for every wrong argument that was not refused as it should be

A wrong argument must be refused by a `raise` statement of posenc with a message that names the argument. An argument that
fits the annotation (a number in range, a tensor of the right dtype, rank and sizes) may give a result instead.

The annotations are the specification: `Fits` reads them, shapes such as Float[Tensor, "b h t d"] included. VALID holds one
right value for every argument name; a callable with an argument that VALID does not know fails the test.
"""

from __future__ import annotations

import builtins
import collections.abc
import contextlib
import dis
import enum
import functools
import importlib
import inspect
import itertools
import math
import os
import pathlib
import re
import signal
import tempfile
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch
import torch._dynamo  # an import that a time limit cuts short leaves broken modules behind
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

import posenc
import posenc.transformers as pt
from posenc import PerLayer, PositionalEncoding, Positions, Stack, frequencies
from posenc.attention.module import Attention, KeyValueCache
from posenc.catalogue.lookup import BY_NAME
from posenc.structure import Scores
from sampling import WITHOUT_STATES

HOME = os.path.dirname(posenc.__file__) + os.sep
ROOMS = (
    "posenc",
    "posenc.attention.rotated_keys",
    "posenc.attention.rotary_modules.nanotron",
    "posenc.attention.rotary_modules.torchtitan",
    "posenc.attention.rotary_modules.torchtune",
    "posenc.catalogue",
    "posenc.checking",
    "posenc.checking.adapters",
    "posenc.configs",
    "posenc.frequencies",
    "posenc.checking.laws",
    "posenc.frequencies.layouts",
    "posenc.learn.ledger",
    "posenc.learn.notes",
    "posenc.learn.walk",
    "posenc.pictures.measures",
    "posenc.pictures.plots",
    "posenc.transformers",
)
SECONDS = 20  # a refusal that takes longer is none

# The sizes of all valid arguments: b batch, t tokens, h query heads, g key heads, dh d_head, d d_model.
B, T, H, G, DH = 2, 6, 4, 2, 8
D = H * DH


# What there is to call ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Door:
    """A public callable: `name` says where it is found, `get` makes it (a method needs an object to be bound to)."""

    name: str
    get: Callable[[], Callable[..., Any]]
    of: type | None = None

    def parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.get()).parameters)


OBJECTS: dict[str, Callable[[], Any]] = {
    "Positions": lambda: Positions.arange(B, T),
    "Attention": lambda: Attention(D, H, posenc.create("rope", d_head=DH), n_kv_heads=G),
    "KeyValueCache": lambda: cache(),
    "PositionalEncoding": PositionalEncoding,
    "Stack": lambda: Stack(posenc.create("learned", d_model=D, max_positions=32), posenc.create("rope", d_head=DH)),
    "PerLayer": lambda: PerLayer([posenc.create("rope", d_head=DH), posenc.create("nope")]),
    "Frequencies": lambda: frequencies.rotary(8),
    "RotaryPositionalEmbeddings": lambda: posenc.modules.torchtune.RotaryPositionalEmbeddings(DH),
    "RotaryEmbedding": lambda: posenc.modules.nanotron.RotaryEmbedding(DH, 64),
    "DynamicNTK": lambda: frequencies.dynamic(frequencies.rotary(8), 2.0, 16),
    "LongRoPE": lambda: frequencies.longrope(frequencies.rotary(8), [1.0] * 4, [2.0] * 4, 16, factor=2.0),
    "PositionSpec": lambda: spec(),
    "Claim": lambda: importlib.import_module("posenc.learn.ledger").CLAIMS["denominators"],
    **{
        name: (lambda name=name: posenc.create(name, d_model=D, n_heads=H, d_head=DH, max_positions=64))
        for name in WITHOUT_STATES
    },
}


def doors() -> list[Door]:
    """Every public function, every constructor that is written out, every method of an object in OBJECTS."""
    found: dict[str, Door] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
        for name in names:
            thing = getattr(module, name)
            if not callable(thing) or not _from(thing, room):
                continue
            where = f"{room}.{name}"
            if not isinstance(thing, type):
                found[where] = Door(where, lambda thing=thing: thing)
            elif _constructed(thing):
                found[where] = Door(where, lambda thing=thing: thing, thing)
    for name in posenc.names():
        entry = BY_NAME[name]
        found[name] = Door(name, lambda entry=entry: entry.maker(), None if entry.builder else entry.load())
    for name in posenc.catalogue.position_names():
        found[name] = Door(name, lambda name=name: BY_NAME[name].maker())
    for where in ("posenc.positions_by", "posenc.catalogue.positions_by"):  # a name alone is not enough
        found[where] = Door(where, lambda: functools.partial(posenc.positions_by, batch=B, length=T))
    for name, make in OBJECTS.items():
        kind = type(make())
        for method in sorted(_methods(kind)):
            found[f"{name}.{method}"] = Door(
                f"{name}.{method}", lambda make=make, method=method: getattr(make(), method), kind
            )
    unique: dict[Any, Door] = {}
    for door in found.values():  # the same function is often exported twice
        unique.setdefault(_identity(door), door)
    return list(unique.values())


def _identity(door: Door) -> Any:
    thing = door.get()
    return getattr(thing, "__func__", thing)


def _from(thing: Any, room: str) -> bool:
    where = getattr(thing, "__module__", "")
    return where.startswith("posenc") if room == "posenc" else where.startswith(room)


def _constructed(kind: type) -> bool:
    """Whether the class has code of its own that reads what it is made of."""
    if issubclass(kind, (enum.Enum, BaseException)) or getattr(kind, "_is_protocol", False) or inspect.isabstract(kind):
        return False
    return any(
        "__post_init__" in vars(one) or (inspect.isfunction(made := vars(one).get("__init__")) and _ours(made))
        for one in kind.__mro__
    )


def _ours(function: Any) -> bool:
    return getattr(function, "__code__", None) is not None and function.__code__.co_filename.startswith(HOME)


def _methods(kind: type) -> set[str]:
    names = set()
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        public = not name.startswith("_") and inspect.isfunction(function) and _ours(inspect.unwrap(function))
        if public and len(inspect.signature(function).parameters) > (0 if isinstance(member, staticmethod) else 1):
            names.add(name)
    return names


# One right value for every argument -----------------------------------------------------------------------------------


def cache() -> KeyValueCache:
    return KeyValueCache(
        torch.randn(B, G, T, DH), torch.randn(B, G, T, DH), Positions.arange(B, T), posenc.create("rope", d_head=DH)
    )


def config() -> dict[str, Any]:
    return {
        "model_type": "llama",
        "hidden_size": D,
        "num_attention_heads": H,
        "num_hidden_layers": 2,
        "max_position_embeddings": 64,
        "rope_theta": 10000.0,
    }


def spec() -> Any:
    return posenc.read_config(config())


COUNT = itertools.count()


def llama(**scaling: Any) -> torch.nn.Module:
    """A Llama of two small layers."""
    sizes = {"hidden_size": D, "num_attention_heads": H, "num_key_value_heads": G, "num_hidden_layers": 2}
    rotary = {"rope_parameters": {"rope_theta": 10000.0, **scaling}} if scaling else {}
    made = LlamaConfig(vocab_size=16, intermediate_size=D, max_position_embeddings=64, **sizes, **rotary)
    return LlamaForCausalLM(made).eval()


@functools.cache
def saved_llama() -> str:
    folder = tempfile.mkdtemp()
    pt.attach(llama(), posenc.create("alibi", n_heads=H)).save_pretrained(folder)
    return folder


def registered() -> str:
    name = f"nonsense-{next(COUNT)}"
    pt.register_rope(name, frequencies.rotary(DH))
    return name


def numbers(*sizes: int) -> Callable[[], Tensor]:
    return lambda: torch.linspace(-1, 1, math.prod(sizes)).reshape(sizes)


def whole(*sizes: int) -> Callable[[], Tensor]:
    return lambda: torch.arange(math.prod(sizes)).reshape(sizes)


def scores() -> Scores:
    of_values = numbers(B, H, T, DH)()
    seen = torch.ones(B, 1, T, T, dtype=torch.bool).tril()
    return Scores(numbers(B, H, T, T)(), of_values, of_values, arange(), arange(), seen)


def arange() -> Positions:
    return Positions.arange(B, T)


def rope() -> PositionalEncoding:
    return posenc.create("rope", d_head=DH, layout="half")


VALID: dict[str, Callable[[], Any]] = {
    # sizes and numbers
    **{name: (lambda: D) for name in ("d_model", "d", "dim", "end", "max_seq_len")},
    **{name: (lambda: B) for name in ("batch", "size", "layers_n")},
    "d_head": lambda: DH,
    "n_heads": lambda: H,
    "length": lambda: T,
    **dict.fromkeys(("height", "frames"), lambda: 2),
    "width": lambda: 3,
    "max_positions": lambda: 64,
    "rank": lambda: 1,
    "method": lambda: importlib.import_module("posenc.catalogue.methods").groups()["A"][1][0],
    "text": lambda: 2,
    "n": lambda: 1,
    "start": lambda: 1,
    "stop": lambda: 3,
    "by": lambda: 1,
    "k": lambda: 3.0,
    "position": lambda: 3.0,
    "time": lambda: 0.5,
    "repeats": lambda: 3,
    "base": lambda: 10000.0,
    "theta": lambda: 10000.0,
    "fraction": lambda: 0.5,
    "factor": lambda: 2.0,
    "alpha": lambda: 2.0,
    "trained_length": lambda: 16,
    "low_freq_factor": lambda: 1.0,
    "high_freq_factor": lambda: 4.0,
    "mscale_all_dim": lambda: 1.0,
    "right": lambda: 0.5,
    "printed": lambda: "0.5",
    "low": lambda: 0,
    "high": lambda: 100,
    # words
    "why": lambda: "a reason",
    "name": lambda: "rope",
    "word": lambda: "rotary",
    "note": lambda: "002",
    "side": lambda: "query",
    "layout": lambda: "half",
    "seam": lambda: "rotate",
    "source": lambda: "half",
    "target": lambda: "interleaved",
    "dtype": lambda: torch.float32,
    "device": lambda: "cpu",
    "causal": lambda: True,
    "part": lambda: "text_config",
    "path": lambda: pathlib.Path(tempfile.gettempdir()) / "posenc-nonsense.png",
    # tensors
    "q": numbers(B, H, T, DH),
    "k:tensor": numbers(B, G, T, DH),
    "v": numbers(B, G, T, DH),
    "keys": numbers(B, G, T, DH),
    "x:heads": numbers(B, H, T, DH),
    "x": numbers(B, T, D),
    "xq": numbers(B, T, H, DH),
    "xk": numbers(B, T, G, DH),
    "freqs_cis": lambda: torch.polar(torch.ones(16, DH // 2), numbers(16, DH // 2)()),
    "rope_cache": numbers(16, 2 * DH),
    "input_pos": whole(B, H),
    "scores": lambda: scores(),
    "logits": numbers(B, H, T, T),
    "probs": numbers(B, H, T, T),
    "may_attend": lambda: torch.ones(B, 1, T, T, dtype=torch.bool),
    **dict.fromkeys(("digits", "visual", "ends"), lambda: torch.ones(B, T, dtype=torch.bool)),
    "pairs": lambda: torch.zeros(B, T, T, dtype=torch.int64),
    "parents": lambda: torch.tensor([[-1, 0, 0, 1, 1, 2]] * B),
    "branches": lambda: torch.tensor([[1, 1, 2, 1, 2, 1]] * B),
    "adjacency": lambda: 1 - torch.eye(T).expand(B, T, T),
    "poses": lambda: torch.eye(4).expand(B, 3, 4, 4),
    "first": numbers(B, T, 2),
    "second": numbers(B, T, 2),
    "cos": numbers(B, 1, T, 4),
    "sin": numbers(B, 1, T, 4),
    "coords": whole(B, T),
    "order": whole(B, T),
    "document": lambda: torch.zeros(B, T, dtype=torch.long),
    "mask": lambda: torch.ones(B, T, dtype=torch.long),
    "segments": lambda: torch.zeros(B, T, dtype=torch.long),
    "position_ids": whole(3, B, T),
    "index": whole(3),
    "lags": numbers(5),
    "curve": numbers(5),
    "table": numbers(T, D),
    "words": numbers(T, D),
    "orders": lambda: torch.arange(T).flip(0)[None],
    "delta": whole(5),
    "p": lambda: torch.arange(B * T, dtype=torch.float64).reshape(B, T),
    "positions": lambda: torch.arange(3, dtype=torch.float64),
    # sequences
    "lengths": lambda: [3, 4],
    "renumber": lambda: False,
    "cu_seqlens": lambda: [0, 2, 5],
    "order:axes": lambda: (0, 1),
    "sizes": lambda: (2, 1, 1),
    "short_factor": lambda: [1.0] * 4,
    "long_factor": lambda: [2.0] * 4,
    "by:factors": lambda: [2.0] * 4,
    "values": lambda: (1.0, 0.5),
    # objects of posenc
    "f": lambda: frequencies.rotary(8),
    "spectra": lambda: [frequencies.rotary(8), frequencies.rotary(4)],
    "plain": lambda: frequencies.rotary(8),
    "short": lambda: frequencies.rotary(8),
    "long": lambda: frequencies.rotary(8),
    "at": arange,
    "at_q": arange,
    "at_k": arange,
    "parts": lambda: [Positions.arange(B, T), Positions.arange(B, T, T)],
    **dict.fromkeys(("encoding", "old", "new"), rope),
    "module": torch.nn.Identity,
    "takes_length": lambda: False,
    "layers": lambda: [rope(), rope()],
    "config": config,
    "checkpoint": dict,
    "spec": spec,
    "cache": cache,
    "pair": lambda: posenc.measures.SENTENCE_PAIRS[0],
    "setting": posenc.laws.Setting,
    "encodings": lambda: {"rope": rope(), "nope": posenc.create("nope")},
    "picture": lambda: importlib.import_module("posenc.pictures.plots.tables").heatmap(
        posenc.create("sinusoidal", d_model=128)
    ),
    "tensor": numbers(2),
    "folder": lambda: pathlib.Path(tempfile.gettempdir()),
    "function": lambda: lambda encoding, setting: None,
    "model": lambda: llama(),
    "layer": lambda: 0,
    "query": whole(3),
    "key": whole(3),
}


def valid(door: Door, name: str, hint: Any) -> Any:
    """A right value for the argument. Raises KeyError where none is known."""
    if (key := _special(door, name)) is not None:
        return SPECIAL[key]()
    shaped = any(isinstance(one, Shaped) for one in _alternatives(hint)) or Tensor in _alternatives(hint)
    if name == "k" and shaped:
        return VALID["k:tensor"]()
    if name == "x" and isinstance(hint, Shaped) and len(hint.axes) == 4:
        return VALID["x:heads"]()
    return VALID[name]()


def _special(door: Door, name: str) -> str | None:
    """The entry of SPECIAL for the longest end of the callable's name."""
    parts = door.name.split(".")
    ends = (".".join(parts[n:]) for n in range(len(parts)))
    return next((f"{end}:{name}" for end in ends if f"{end}:{name}" in SPECIAL), None)


SPECIAL: dict[str, Callable[[], Any]] = {
    "RotaryEmbedding.forward:position_ids": whole(B, H),
    **{
        f"rotary_modules.nanotron.apply_rotary_emb:{name}": numbers(B, T, heads, DH) for name, heads in (("q", H), ("k", G))
    },
    **{f"rotary_modules.nanotron.apply_rotary_emb:{name}": numbers(T, DH // 2) for name in ("cos", "sin")},
    **{
        f"rotary_modules.torchtitan.{name}:positions": whole(1, T)
        for name in ("apply_rotary_emb_complex", "apply_rotary_emb_cos_sin")
    },
    "positions_by:name": lambda: "randomized",
    "windows:height": lambda: 14,
    "windows:width": lambda: 14,
    "posenc.Stack:parts": lambda: [rope(), posenc.create("nope")],
    "Stack.rotate:x": numbers(B, H, T, DH),
    "transformers.attach:layers": lambda: [1],
    "posenc.replace_encoding:model": lambda: torch.nn.Sequential(Attention(D, H, rope())),
    "transformers.detach:model": lambda: pt.attach(llama(), rope()),
    "transformers.parameters:model": lambda: pt.attach(llama(), posenc.create("t5", n_heads=H)),
    "transformers.slow:model": lambda: pt.fast(llama()),
    "transformers.length:model": lambda: llama(rope_type="dynamic", factor=2.0),
    "transformers.evict:model": lambda: pt.attach(llama(), rope()),
    "transformers.evict:cache": lambda: llama()(torch.zeros(B, T, dtype=torch.long), use_cache=True).past_key_values,
    "transformers.evict:keep": lambda: [0, 3],
    "transformers.evict:attention_mask": lambda: torch.ones(B, T, dtype=torch.long),
    "transformers.crop:cache": lambda: llama()(torch.zeros(B, T, dtype=torch.long), use_cache=True).past_key_values,
    "transformers.crop:lengths": lambda: [3, 1],
    "transformers.crop:attention_mask": lambda: torch.ones(B, T, dtype=torch.long),
    "KeyValueCache.static:capacity": lambda: 8,
    "KeyValueCache.paged:size": lambda: 4,
    "KeyValueCache.paged:blocks": lambda: 8,
    "KeyValueCache.stored_in:dtype": lambda: torch.bfloat16,
    "KeyValueCache.reorder:rows": lambda: [1, 0],
    "KeyValueCache.evict:keep": lambda: torch.arange(T)[None] != 1,
    "KeyValueCache.ring:capacity": lambda: 4,
    "KeyValueCache.ring:sinks": lambda: 1,
    "transformers.extend:length": lambda: 256,
    "transformers.extend:method": lambda: "linear",
    "transformers.check:laws": lambda: ["decode_equals_prefill"],
    "transformers.check:seed": lambda: 1,
    "transformers.from_pretrained:folder": lambda: saved_llama(),
    "register_rope:name": lambda: f"nonsense-{next(COUNT)}",
    "register_rope:frequencies": lambda: frequencies.rotary(DH),
    "unregister_rope:name": lambda: registered(),
    "Buckets:function": lambda: lambda relative: relative.clamp(0, 7),
    "ByLengths:module": lambda: lambda i, j: torch.zeros(H, i, j),
    "ByOffset:module": lambda: rope(),
    "ByOffset:method": lambda: "rotate",
    "ByOffset:argument": lambda: "offset",
    "CosSin:apply": lambda: lambda q, k, cos, sin: (q, k),
    "CosSin:table": lambda: lambda positions: (positions, positions),
    "HuggingFaceRotary:module": lambda: torch.nn.Identity(),
    "HuggingFaceRotary:apply": lambda: lambda q, k, cos, sin: (q, k),
    "HuggingFaceRotary:width": lambda: DH,
    "ScoreMod:score_mod": lambda: lambda score, b, h, i, j: score,
    "Slopes:make": lambda: posenc.alibi_slopes,
    "adapters.offset_of:positions": lambda: torch.arange(T)[None],
    "posenc.check:rotate": lambda: lambda x, positions: x,
    "posenc.check:laws": lambda: ["heads_turn_alike"],
    "posenc.check:name": lambda: "mine",
    "posenc.check:width": lambda: DH,
    "posenc.check:n_kv_heads": lambda: G,
    "posenc.check:without": lambda: ["causal"],
    "posenc.check:expect": lambda: {"layout": "half"},
    "posenc.check:seed": lambda: 1,
    "check:laws": lambda: ["locality"],
    "report:laws": lambda: ["locality"],
    "create:d_head": lambda: DH,
    "riflex:length": lambda: 64,
    "separate:sizes": lambda: (4, 2, 2),
    "load_encodings:spec": spec,
    "longrope:factor": lambda: 2.0,
    "plots.order_sensitivity:n_heads": lambda: H,
    "plots.order_sensitivity:d_model": lambda: D,
    "order_sensitivity_of:words": lambda: torch.linspace(-1, 1, T * D, dtype=torch.float64).reshape(T, D),
    "deberta.projected:name": lambda: "key",
    "lm_infinite.regions:query": lambda: torch.arange(3)[None],
    "lm_infinite.regions:key": lambda: torch.arange(3)[None],
    "floater.at_layer:n": lambda: 0,
    "transformer_xl.relative:first": lambda: torch.tensor([-5]),
    "shaw.relative:first": lambda: torch.tensor([-5]),
    "posenc.pictures.plots.bias:encoding": lambda: posenc.create("alibi", n_heads=H),
    "layouts.check:layout": lambda: "half",
    "rotate_both:k": numbers(B, G, T, DH),
    "bias:k": numbers(B, H, T, DH),
    "terms:k": numbers(B, H, T, DH),
    "extend:k": numbers(B, G, T, DH),
    "rope_score_of:q": numbers(3, DH),
    "rope_score_of:k": numbers(3, DH),
    "attended:q": numbers(T, DH),
    "attended:k": numbers(T, DH),
    "attended:v": numbers(T, DH),
    "attention_weights:q": numbers(T, DH),
    "attention_weights:k": numbers(T, DH),
    "pixels:mask": lambda: torch.ones(B, 2, 3, dtype=torch.long),
    "axial:order": lambda: (0, 1),
    "strided:order": lambda: (0, 1),
    "cycling:order": lambda: (0, 1),
    "multiplied:by": lambda: [2.0] * 4,
    "Frequencies:values": lambda: (1.0, 0.5),
    "shard_index:length": lambda: 8,
    "posenc.pictures.plots.terms:encoding": lambda: posenc.create("transformer_xl", d_model=D, n_heads=H),
    "posenc.pictures.plots.angles:encoding": rope,
    "posenc.pictures.plots.heatmap:encoding": lambda: posenc.create("sinusoidal", d_model=128),
    "posenc.pictures.plots.path:encoding": lambda: posenc.create("sinusoidal", d_model=64),
    "posenc.pictures.plots.waves:encoding": lambda: posenc.create("sinusoidal", d_model=128),
    "unfinished_pairs:length": lambda: 64,
}


# What fits an annotation ----------------------------------------------------------------------------------------------


class Shaped:
    """jaxtyping's Float[Tensor, "b t d"] as data: which dtypes, which axes."""

    def __init__(self, kind: str, axes: tuple[str, ...] = ()) -> None:
        self.kind, self.axes = kind, axes

    def __getitem__(self, of: tuple[Any, str]) -> Shaped:
        return Shaped(self.kind, tuple(of[1].split()))

    def __call__(self) -> None:  # typing.Union takes callables only
        raise NotImplementedError

    def __or__(self, other: Any) -> Any:
        return typing.Union[self, other]  # noqa: UP007

    def __ror__(self, other: Any) -> Any:
        return typing.Union[other, self]  # noqa: UP007

    def holds(self, dtype: torch.dtype) -> bool:
        real = dtype.is_floating_point
        integer = not real and not dtype.is_complex and dtype != torch.bool
        return {"Float": real, "Int": integer, "Bool": dtype == torch.bool, "Num": real or integer}[self.kind]


class Names(dict[str, Any]):
    """The names that an annotation may use: the module's own, builtins, and jaxtyping's."""

    def __init__(self, module: dict[str, Any]) -> None:
        shaped = {kind: Shaped(kind) for kind in ("Float", "Int", "Num", "Bool")}
        known = {"PathLike": os.PathLike, "Sequence": collections.abc.Sequence, "TransformerXL": PositionalEncoding}
        super().__init__({**vars(builtins), **known, **module, **shaped})

    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by tools that look through frames
            raise KeyError(name)
        return Any  # imported for type checkers only: results, figures


def hints(door: Door) -> dict[str, Any]:
    function = door.get()
    function = getattr(function, "__func__", function)
    function = inspect.unwrap(function)
    where = importlib.import_module(function.__module__)
    if isinstance(function, type):
        made = next(one for one in function.__mro__ if "__init__" in vars(one))
        where = importlib.import_module(made.__module__)
    names = Names(vars(where))
    read = {}
    for name, parameter in door.parameters().items():
        said = parameter.annotation
        read[name] = eval(said, {}, names) if isinstance(said, str) else Any if said is parameter.empty else said
    return read


POSITIVE = {
    *("base", "factor", "alpha", "attention_factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow", "fraction"),
    *("low_freq_factor", "high_freq_factor", "bias_max", "scale_base", "gamma", "step", "rtol", "atol", "cos_sin_scale"),
    *("softmax_scale", "std", "eps"),
}
LEAST = {
    **dict.fromkeys(("batch", "length", "height", "width", "max_positions", "size", "d_model", "d_head", "n_heads"), 1),
    **dict.fromkeys(("n_kv_heads", "n_layers", "n_buckets", "n_positions", "trained_length", "d"), 1),
    **dict.fromkeys(("clocks", "layers", "rotary_dim", "axes"), 1),
    **dict.fromkeys(("rank", "prefix", "rest", "max_distance", "channel", "m", "layer", "right"), 0),
}
# Counts of which there may be none: an empty batch has positions too.
MAY_BE_NONE = {("Positions.arange", "batch"), ("Positions.arange", "length")}


def fits(hint: Any, value: Any, name: str) -> bool:
    """Whether the value is of the kind that the annotation says, and in the range that the name says."""
    if hint is Any or isinstance(hint, typing.TypeVar):
        return True
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(one, value, name) for one in arguments)
    if origin is typing.Literal:
        return isinstance(value, str) and value in arguments
    if isinstance(hint, Shaped):
        return plain(value) and hint.holds(value.dtype) and _rank_fits(hint.axes, value.ndim)
    if hint is Tensor:
        return plain(value)
    if hint in (None, type(None)):
        return value is None
    if hint is bool:
        return isinstance(value, bool)
    if hint is int:
        return type(value) is int and LEAST.get(name, -math.inf) <= value
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value) and not (name in POSITIVE and value <= 0)
    if origin is type:
        return isinstance(value, type)
    if origin is not None and issubclass(origin, collections.abc.Mapping):
        return isinstance(value, collections.abc.Mapping) and all(fits(arguments[1], one, name) for one in value.values())
    if origin is not None and issubclass(origin, collections.abc.Callable):
        return callable(value)
    if origin is not None and issubclass(origin, collections.abc.Iterable):
        inside = arguments[0] if arguments else Any
        value = value.tolist() if isinstance(value, numpy.ndarray) else value
        return isinstance(value, (list, tuple)) and all(fits(inside, one, name) for one in value)
    if origin is not None:
        return isinstance(value, origin)
    return isinstance(value, hint)


def plain(value: Any) -> bool:
    """A tensor with numbers in it that can be read."""
    return isinstance(value, Tensor) and value.layout is torch.strided and not value.is_nested


def _rank_fits(axes: tuple[str, ...], rank: int) -> bool:
    if any(axis.startswith("*") for axis in axes):
        return rank >= len(axes) - 1
    return rank == len(axes)


OF_POSITIONS = {"at": ("b", "t"), "at_q": ("b", "i"), "at_k": ("b", "j")}


def agree(hinted: dict[str, Any], given: dict[str, Any]) -> bool:
    """Whether tensors and positions belong together: on one device, and an axis has one size wherever it is named."""
    if len({_device(value) for value in given.values()} - {None}) > 1:
        return False
    sizes: dict[str, int] = {}
    for name, value in given.items():
        shaped = next((one for one in _alternatives(hinted.get(name)) if _sized(one, value)), None)
        if isinstance(value, Tensor) and shaped is not None and not any("*" in axis for axis in shaped.axes):
            for axis, size in zip(shaped.axes, value.shape, strict=True):
                if (axis.startswith("#") and size == 1) or "+" in axis:
                    continue
                axis = axis.removeprefix("#")
                expected = int(axis) if axis.isdigit() else sizes.setdefault(axis, size)
                if size != expected:
                    return False
    for name, value in given.items():
        if isinstance(value, Positions) and name in OF_POSITIONS:
            batch, tokens = OF_POSITIONS[name]
            if value.batch not in (1, sizes.get(batch, value.batch)) or value.length != sizes.get(tokens, value.length):
                return False
    return True


def _sized(hint: Any, value: Any) -> bool:
    return isinstance(hint, Shaped) and isinstance(value, Tensor) and _rank_fits(hint.axes, value.ndim)


def _device(value: Any) -> torch.device | None:
    return value.device if isinstance(value, Tensor) else value.coords.device if isinstance(value, Positions) else None


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


# Nonsense -------------------------------------------------------------------------------------------------------------

ANYWHERE: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "'1'": lambda: "1",
    "'nonsense'": lambda: "nonsense",
    "b'1'": lambda: b"1",
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "-1": lambda: -1,
    "2**63": lambda: 2**63,
    "2.5": lambda: 2.5,
    "1e300": lambda: 1e300,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "1j": lambda: 1j,
    "[]": list,
    "[1, 2]": lambda: [1, 2],
    "['a']": lambda: ["a"],
    "[None]": lambda: [None],
    "()": tuple,
    "{}": dict,
    "{'a': 1}": lambda: {"a": 1},
    "{1, 2}": lambda: {1, 2},
    "object()": object,
    "int": lambda: int,
    "len": lambda: len,
    "dtype": lambda: torch.int32,
    "0-d tensor": lambda: torch.tensor(3.0),
    "empty tensor": lambda: torch.zeros(0),
    "tensor [2]": lambda: torch.ones(2),
    "tensor [2, 6, 3, 1]": lambda: torch.ones(2, 6, 3, 1),
    "bool tensor": lambda: torch.ones(2, 6, dtype=torch.bool),
    "nan tensor": lambda: torch.full((2, 6), math.nan),
    "meta tensor": lambda: torch.ones(2, 6, device="meta"),
    "sparse tensor": lambda: torch.eye(6).to_sparse(),
    "nested tensor": lambda: torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)]),
    "Positions": lambda: Positions.arange(3, 5),
    "NoPE": PositionalEncoding,
    "Frequencies": lambda: frequencies.rotary(6),
}


def nonsense(right: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Wrong values for an argument: some that are wrong nearly everywhere, and the right one with a fault."""
    yield from ANYWHERE.items()
    if isinstance(right, Tensor):
        yield from _wrong_tensors(right)
    elif isinstance(right, Positions):
        yield from _wrong_positions(right)
    elif isinstance(right, KeyValueCache):
        yield "cache of another batch", lambda: KeyValueCache(right.k[:1], right.v[:1], Positions.arange(1, T))
        yield "cache without positions", lambda: KeyValueCache(right.k, right.v, Positions.arange(B, T - 1))
    elif isinstance(right, (list, tuple)) and right and not hasattr(right, "_fields"):
        kind = type(right)
        yield "one too few", lambda: kind(right[:-1])
        yield "one too many", lambda: kind([*right, right[-1]])
        for label, wrong in (("None", None), ("'a'", "a"), ("nan", math.nan), ("-1", -1), ("2.5", 2.5), ("2**63", 2**63)):
            yield f"{label} inside", lambda wrong=wrong: kind([*right[:-1], wrong])
        yield "nested", lambda: kind([right])
        yield "reversed", lambda: kind(right[::-1])
        if isinstance(right[0], Positions):
            yield "other batch inside", lambda: kind([*right, Positions.arange(B + 1, T)])
            yield "other axes inside", lambda: kind([*right, Positions.grid(2, 3, batch=B)])
            yield "other device inside", lambda: kind([*right, Positions.arange(B, T, device="meta")])


def _wrong_tensors(right: Tensor) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "one axis more", lambda: right[None]
    for axis in range(right.ndim):
        yield f"axis {axis} missing", lambda axis=axis: right.select(axis, 0)
        yield f"axis {axis} longer", lambda axis=axis: torch.cat([right, right.narrow(axis, 0, 1)], axis)
        yield f"axis {axis} empty", lambda axis=axis: right.narrow(axis, 0, 0)
        yield f"axis {axis} of 1", lambda axis=axis: right.narrow(axis, 0, 1)
    for dtype in (torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64):
        yield f"{dtype}", lambda dtype=dtype: right.to(dtype)
    yield "0-d", lambda: right.flatten()[0]
    yield "meta", lambda: right.to("meta")
    yield "sparse", lambda: right.to_sparse()
    yield (
        "nested",
        lambda: torch.nested.nested_tensor(list(right)) if right.ndim > 1 else torch.nested.nested_tensor([right]),
    )
    yield "list", right.tolist
    yield "numpy", right.numpy
    if right.is_floating_point():
        yield "huge", lambda: torch.full_like(right, 3e38)
    else:
        yield "far below", lambda: torch.full_like(right, -(10**9))
        yield "far above", lambda: torch.full_like(right, 10**9)


def _wrong_positions(right: Positions) -> Iterator[tuple[str, Callable[[], Any]]]:
    b, t = right.batch, right.length
    yield "other batch", lambda: Positions.arange(b + 1, t)
    yield "one token more", lambda: Positions.arange(b, t + 1)
    yield "one token less", lambda: Positions.arange(b, t - 1)
    yield "two axes", lambda: Positions.at(torch.zeros(b, t, 2))
    yield "reals", lambda: Positions.at(torch.linspace(0, 1, b * t).reshape(b, t))
    yield "negative", lambda: Positions.arange(b, t, -3)
    yield "far", lambda: Positions.arange(b, t, 10**9)
    yield "on meta", lambda: Positions.arange(b, t, device="meta")
    yield "coordinates", lambda: right.coords
    yield "somebody else's tables", lambda: posenc.create("rope", d_head=6).prepare(right)


# What came of it ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What is wrong: `silent` a result, `raw` somebody else's error, `unnamed` a message without the argument, `slow`."""

    door: str
    argument: str
    given: str
    fault: str
    detail: str

    def __str__(self) -> str:
        return f"{self.fault:8} {self.door}({self.argument}={self.given}): {self.detail}"


REFUSALS = (ValueError, TypeError, LookupError, FileNotFoundError, posenc.checking.NotExpressible)


def report(door: Door) -> list[Finding]:
    """Every wrong argument of the callable that is not refused as it should be. Raises KeyError for an argument unknown."""
    hinted = hints(door)
    parameters = {n: p for n, p in door.parameters().items() if p.kind is not inspect.Parameter.VAR_KEYWORD}
    required = {n for n, p in parameters.items() if p.default is p.empty or _special(door, n) is not None}
    with _within(60), contextlib.suppress(NotImplementedError):
        call(door, parameters, {name: valid(door, name, hinted[name]) for name in required})  # what is right, works
    findings = []
    for name, parameter in parameters.items():
        with contextlib.suppress(KeyError):
            known = valid(door, name, hinted[name])
            several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            for label, wrong in nonsense(known):
                given = {one: valid(door, one, hinted[one]) for one in required - {name}}
                value = wrong()
                given[name] = [value] if several else value
                if (found := tried(door, parameters, given, name, label, hinted)) is not None:
                    findings.append(found)
            continue
        for label, wrong in ANYWHERE.items():  # optional, and no right value is known
            given = {one: valid(door, one, hinted[one]) for one in required}
            given[name] = wrong()
            if (found := tried(door, parameters, given, name, label, hinted)) is not None:
                findings.append(found)
    return findings


def tried(
    door: Door,
    parameters: dict[str, inspect.Parameter],
    given: dict[str, Any],
    name: str,
    label: str,
    hinted: dict[str, Any],
) -> Finding | None:
    """The finding about one call, or None. `kind`: the argument fits its annotation; `right`: it fits the others too."""
    several = parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
    value = given[name][0] if several else given[name]
    none = (door.name, name) in MAY_BE_NONE and type(value) is int and value == 0
    kind = none or fits(hinted[name], value, name)
    right = kind and agree(hinted, given)

    def finding(fault: str, detail: str) -> Finding:
        return Finding(door.name, name, label, fault, detail)

    try:
        with _within(60 if right else SECONDS):
            result = call(door, parameters, given)
    except TimeoutError:
        return finding("slow", f"no answer in {SECONDS} s")
    except Exception as error:
        said = " ".join(str(error).split())[:160]
        shown = f"{type(error).__name__}: {said}"
        if right and isinstance(error, NotImplementedError) and raised_by_posenc(error):
            return None  # what an encoding cannot do at all says so
        if not isinstance(error, REFUSALS) or not raised_by_posenc(error):
            return finding("raw", shown)
        named = parameters if right else (name,)  # what is right may reveal a fault of another argument
        return None if any(names(str(error), one, parameters) for one in named) else finding("unnamed", shown)
    # NoPE returns what it is given, whatever the positions.
    unchanged = all(any(part is one for one in given.values()) for part in (result if type(result) is tuple else (result,)))
    return None if right or (kind and unchanged) else finding("silent", f"gave {type(result).__name__}")


def call(door: Door, parameters: dict[str, inspect.Parameter], given: dict[str, Any]) -> Any:
    inspect_kind = inspect.Parameter
    positional = [given[n] for n, p in parameters.items() if n in given and p.kind is inspect_kind.POSITIONAL_ONLY]
    several = next((given[n] for n, p in parameters.items() if n in given and p.kind is inspect_kind.VAR_POSITIONAL), [])
    named = {
        n: given[n]
        for n, p in parameters.items()
        if n in given and p.kind in (inspect_kind.POSITIONAL_OR_KEYWORD, inspect_kind.KEYWORD_ONLY)
    }
    result = door.get()(*positional, *several, **named)
    if isinstance(result, contextlib.AbstractContextManager):  # its arguments are read when it is entered
        with result:
            return None
    return list(result) if isinstance(result, Iterator) else result


def names(message: str, argument: str, parameters: Iterable[str]) -> bool:
    """Whether the message names the argument, or begins with another that does not go together with it."""
    if message.startswith(tuple(f"{other}{sign}" for other in parameters for sign in ":,=")):
        return True
    if argument in OF_POSITIONS and re.search(r"\b(positions?|coords|coordinate)\b", message):
        return True  # a helper of all seams does not know whether they are called at, at_q or at_k
    return re.search(rf"(?<![\w]){re.escape(argument)}(?![\w])", message) is not None


def raised_by_posenc(error: BaseException) -> bool:
    """Whether the innermost frame is posenc's and stands at a `raise` statement that makes the error."""
    innermost = error.__traceback__
    assert innermost is not None
    while innermost.tb_next is not None:
        innermost = innermost.tb_next
    code = innermost.tb_frame.f_code
    if not code.co_filename.startswith(HOME):
        return False
    at = next(one for one in dis.get_instructions(code) if one.offset == innermost.tb_lasti)
    return at.opname == "RAISE_VARARGS" and at.arg != 0


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
