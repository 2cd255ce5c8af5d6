"""posenc's rotation kernel in the rotary layers of one model.

    attention module ── forward ──► apply_rotary_pos_emb(q, k, cos, sin)      the model's own
    attention module ── forward with that one name bound to posenc's rotation  after fast(model)

The forward of a module is a function that looks the name up in its module of transformers. `fast` gives each attention
module of the model a forward of its own: the same code with that name bound to another function. Other models, and
transformers itself, stay as they are.
Legend: b batch, h query heads, g key heads, t tokens, d channels of a head, n pairs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn

from posenc.kernels.rotation import rotate_both
from posenc.layouts import Layout
from posenc.transformers.decoder import Unsupported, decoder_of, input_device, layer_specs

RECORD = "_posenc_fast"
OWN = "apply_rotary_pos_emb"  # the name under which families of transformers rotate queries and keys
Rotate = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Form:
    """How a family rotates.

    layout   which channels make a pair
    returns  the layout of the rotated channels
    tables   how cos and sin hold each number twice: "half" is c0 c1 c0 c1, "interleaved" c0 c0 c1 c1; None: once, c0 c1
    """

    layout: Layout
    returns: Layout
    tables: Layout | None


def fast(model: nn.Module) -> nn.Module:
    """Rotates queries and keys with posenc's kernel in every rotary layer of the model; returns the model.

    It serves training and inference. On a CPU, float32 gives the bits of the model's own rotation; bfloat16 and float16
    are rounded once, not three times. Only this model changes: nothing is global. `slow` undoes it, and so does `detach`.

    The layout comes from the model's configuration. The model is run once on three tokens, and the rotation of every layer
    is compared with the model's own before anything changes. A deep copy is fast too. A pickled model is not: it has its
    own rotation when it is loaded.

    Raises Unsupported, naming the class, for a model that rotates in another way and for modules whose forward something
    else has replaced; ValueError for a model that is fast already.
    """
    if is_fast(model):
        raise ValueError(f"model: this {type(model).__name__} has posenc's rotation already")
    decoder = decoder_of(model)
    modules = [module for module in decoder.modules() if _calls_own(module)]
    if not modules:
        raise Unsupported(f"model: no attention module of {type(decoder).__name__} calls {OWN}")
    layouts = _layouts(model, modules)
    rotations = {
        module: rotation(_form(layouts.get(module), module, *seen)) for module, seen in _observed(model, modules).items()
    }
    for module, rotate in rotations.items():
        module.forward = _forward(module, rotate)
    object.__setattr__(model, RECORD, list(rotations))
    return model


def slow(model: nn.Module) -> nn.Module:
    """Gives the model its own rotation again; returns the model. Raises ValueError unless the model is fast."""
    if not is_fast(model):
        raise ValueError(f"model: this {type(model).__name__} has its own rotation; fast(model) changes it")
    for module in getattr(model, RECORD):
        del module.forward
    object.__delattr__(model, RECORD)
    return model


def is_fast(model: nn.Module) -> bool:
    """Whether `fast` has been applied to this model."""
    return any(_replaced(module) for module in getattr(model, RECORD, ()))


def rotation(form: Form) -> Rotate:
    """A function with the signature of the families' own, for q [b, h, t, d], k [b, g, t, d], cos and sin [b, t, 2n or n].

    With unsqueeze_dim=2, q and k are [b, t, h, d].
    """

    def rotated(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
        dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
        if form.tables is not None:
            once = slice(cos.shape[-1] // 2) if form.tables == "half" else slice(None, None, 2)
            cos, sin = cos[..., once], sin[..., once]
        cos, sin = cos.to(dtype), sin.to(dtype)
        if unsqueeze_dim == 1:
            return rotate_both(q, k, cos, sin, form.layout, form.returns)
        q, k = rotate_both(q.transpose(1, 2), k.transpose(1, 2), cos, sin, form.layout, form.returns)
        return q.transpose(1, 2), k.transpose(1, 2)

    return rotated


def _calls_own(module: nn.Module) -> bool:
    forward = type(module).forward
    return isinstance(forward, FunctionType) and OWN in forward.__code__.co_names and OWN in forward.__globals__


def _replaced(module: nn.Module) -> bool:
    """Whether the module has another forward than its class. A pickled module has not: pickle keeps the name alone."""
    forward = vars(module).get("forward")
    return forward is not None and getattr(forward, "__func__", None) is not type(module).forward


def _forward(module: nn.Module, rotate: Rotate) -> MethodType:
    """The module's forward with the name OWN bound to `rotate`.

    The copied globals have no __name__, so that torch.compile does not look them up in transformers' module.
    """
    own = type(module).forward
    names = {name: value for name, value in own.__globals__.items() if name != "__name__"} | {OWN: rotate}
    made = FunctionType(own.__code__, names, own.__name__, own.__defaults__, own.__closure__)
    made.__kwdefaults__ = own.__kwdefaults__
    return MethodType(made, module)


@torch.no_grad()
def _observed(model: Any, modules: list[nn.Module]) -> dict[nn.Module, tuple[Rotate, inspect.BoundArguments]]:
    """For each module, its family's rotation and the arguments of one call, from a run on three tokens.

    Raises Unsupported for a module whose forward is replaced already, for a rotation of another signature, and for rotary
    layers that are not among `modules`.
    """
    decoder = decoder_of(model)
    seen: dict[nn.Module, tuple[Rotate, inspect.BoundArguments]] = {}
    rotary: dict[int, str] = {}

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        index = getattr(module, "layer_idx", None)
        if isinstance(index, int) and kwargs.get("position_embeddings") is not None:
            rotary[index] = type(module).__name__

    def looking_on(module: nn.Module) -> Rotate:
        own = type(module).forward.__globals__[OWN]
        signature = inspect.signature(own)
        if tuple(signature.parameters) != ("q", "k", "cos", "sin", "unsqueeze_dim"):
            raise Unsupported(f"model: {OWN} of {type(module).__name__} is called as {OWN}{signature}, which is not served")

        def look_on(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            seen[module] = own, given
            return own(*args, **kwargs)  # type: ignore[no-any-return]

        return look_on

    for module in modules:
        if _replaced(module):
            raise Unsupported(f"model: the forward of a {type(module).__name__} has been replaced already")
    observers = {module: _forward(module, looking_on(module)) for module in modules}
    handles = [module.register_forward_pre_hook(note, with_kwargs=True) for module in decoder.modules()]
    was_training = model.training
    try:
        model.eval()
        for module, observer in observers.items():
            module.forward = observer
        decoder(input_ids=torch.ones(1, 3, dtype=torch.long, device=input_device(model)), use_cache=False)
    finally:
        for module in modules:
            vars(module).pop("forward", None)
        for handle in handles:
            handle.remove()
        model.train(was_training)
    served = {getattr(module, "layer_idx", None) for module in modules}  # some of them may leave their layer unrotated
    if other := {name for index, name in rotary.items() if index not in served}:
        raise Unsupported(f"model: {', '.join(sorted(other))} rotates without {OWN}, which is not served")
    if not seen:
        raise Unsupported(f"model: the layers of {type(decoder).__name__} do not call {OWN}")
    return seen


def _form(layouts: tuple[Layout, Layout] | None, module: nn.Module, own: Rotate, given: inspect.BoundArguments) -> Form:
    """The layouts of the configuration, compared with the module's own rotation on random queries and keys."""
    name = type(module).__name__
    if layouts is None:
        raise Unsupported(f"model: the configuration has no rotation in a layer in which {name} rotates")
    q, k, cos, sin, unsqueeze_dim = given.args
    if k is None:
        raise Unsupported(f"model: {name} rotates queries and keys in two calls, which is not served")
    if q.ndim != 4 or k.ndim != 4 or cos.ndim != 3 or cos.shape[-1] > q.shape[-1]:
        raise Unsupported(
            f"model: {name} rotates q {list(q.shape)} by cos {list(cos.shape)}; expected [b, h, t, d] and [b, t, 2n]"
        )
    form = Form(*layouts, _doubled(cos))
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(x.shape, generator=generator).to(x) for x in (q, k))
    expected, got = own(q, k, cos, sin, unsqueeze_dim), rotation(form)(q, k, cos, sin, unsqueeze_dim)
    for one, other in zip(expected, got, strict=True):
        rounding = 4 * torch.finfo(q.dtype).eps * float(one.abs().max())
        if one.dtype != other.dtype or not torch.allclose(one, other, rtol=0, atol=rounding):
            raise Unsupported(f"model: {name} does not rotate in layout {form.layout!r}, which its configuration says")
    return form


def _doubled(table: Tensor) -> Layout | None:
    """How a table [b, t, 2n or n] holds each number twice; None: it does not."""
    if table.shape[-1] % 2:
        return None
    if torch.equal(*table.chunk(2, dim=-1)):
        return "half"
    return "interleaved" if torch.equal(table[..., ::2], table[..., 1::2]) else None


def _layouts(model: Any, modules: Iterable[nn.Module]) -> dict[nn.Module, tuple[Layout, Layout]]:
    """The layouts before and after the rotation of each of these layers, from the model's configuration."""
    from posenc.dialects import ConfigError, read_config

    try:
        spec = read_config(decoder_of(model).config.to_dict(), defaults=True)  # type: ignore[union-attr,operator]
    except ConfigError as error:
        raise Unsupported(f"model: what {type(model).__name__} does with position is not known: {error}") from error
    indices = {module: getattr(module, "layer_idx", 0) for module in modules}
    layers = layer_specs(spec, indices.values())
    found: dict[nn.Module, tuple[Layout, Layout]] = {}
    for module, index in indices.items():
        uses = layers[index].uses if index in layers else ()
        arguments = next((dict(use.arguments) for use in uses if use.rotation is not None), None)
        if arguments is not None:
            found[module] = arguments["layout"], arguments.get("returns") or arguments["layout"]
    return found
