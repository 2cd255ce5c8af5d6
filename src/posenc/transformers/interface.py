"""Attention with posenc, registered with transformers under the name "posenc".

    decoder ── pre-hook: Call ──► layers ──► attention module ── pre-hook: LayerCall ──► cache ──► attention()

The second pre-hook switches the model's own rotation off and wraps the cache, which is then given rotated keys.

`AttentionInterface` and `AttentionMaskInterface` are global to the process: registering adds one name to each, and changes
no model that does not ask for that name.
Legend: b batch, h query heads, g key heads, t new tokens, n keys, d channels of a head.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.attention import attend, attend_rotated, rotate
from posenc.attention.backends.reference import probabilities
from posenc.attention.options import Options
from posenc.encoding import PositionalEncoding, scale_of
from posenc.support.identity import label
from posenc.transformers.bound_forward import ATTACHED, OWNER
from posenc.transformers.layer import Layer, LayerCall, RotatedKeys
from posenc.transformers.positions import Call, CrossCall, numbers_of_tokens
from posenc.transformers.versions import cache_of, of_self_attention

NAME = "posenc"
CALL = "posenc_call"  # the keyword argument that carries a Call from the decoder to attention


def register() -> None:
    """Adds "posenc" to transformers' tables of attention and mask functions."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


_NOPE = PositionalEncoding()
# What models tell their attention beside the arguments of `attention`: the call, the mask or the caller says it already.
# `deterministic` is about flash attention's gradients.
SAID_ELSEWHERE = frozenset({"position_ids", "sliding_window", "use_cache", "output_attentions", "deterministic"})


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    indices: Tensor | None = None,
    posenc_call: Call | LayerCall | CrossCall | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor | None]:
    """What transformers calls: q [b, h, t, d] over k, v [b, g, n, d] with the encoding of this module's layer. Beside the
    output, the weights [b, h, t, n] before dropout where the caller wants them, else None.

    The model's mask (padding, window, chunk, packed rows), scale, soft cap, sinks and dropout are kept. A layer to which
    nothing is attached gets plain attention over what its model has rotated.
    indices   [b, t, m], the keys that an indexer has selected with the model's own rotation (DeepSeek). That rotation is
              off where an encoding is attached: RuntimeError there once it leaves keys out
    """
    if posenc_call is None:
        raise _outside(module)
    call: Call | CrossCall
    if isinstance(posenc_call, LayerCall):
        call, encoding, keys_are_rotated = posenc_call.call, posenc_call.encoding, posenc_call.keys_are_rotated
        query, at_q, at_k = posenc_call.rotated(query, key.shape[2])
        if indices is not None and indices.shape[-1] < key.shape[2]:
            raise RuntimeError(
                f"posenc: the indexer of {type(module).__name__} selects {indices.shape[-1]} of {key.shape[2]} keys with "
                "the model's own rotation, which is switched off where an encoding is attached; attach to layers without "
                "an indexer, or read no more tokens than it selects"
            )
    else:
        call, encoding, keys_are_rotated = posenc_call, _NOPE, False
        at_q, at_k = call.positions(key.shape[2])
    mask = attention_mask
    if mask is not None and mask.shape[-1] != key.shape[2]:
        mask = mask[..., : key.shape[2]]
    if indices is not None:
        mask = _selected(indices, mask, key.shape[2])
    if position_bias is not None:
        mask = _added(position_bias, mask)
    causal = attends_causally(module, is_causal) and not isinstance(call, CrossCall)
    if attention_mask is not None or query.shape[2] == 1:  # the mask says it; a single new token comes after all keys
        causal = causal and "causal_only" in encoding.traits
    options = Options(mask, other_scale(scaling, encoding, query.shape[-1]), softcap=softcap, sinks=s_aux)
    out = (attend_rotated if keys_are_rotated else attend)(
        query,
        key,
        value,
        encoding,
        at_q,
        at_k,
        causal=causal,
        mask=mask,
        scale=options.scale,
        softcap=softcap,
        sinks=s_aux,
        dropout=dropout,
    )
    weights = None
    if call.weights:
        q, k = (query, key) if keys_are_rotated else rotate(query, key, encoding, at_q, at_k)
        at_q, at_k = (at.expand(query.shape[0]) for at in (at_q, at_k))
        weights = probabilities(q, k, encoding, at_q, at_k, causal, options).to(query.dtype)
    return out.transpose(1, 2).contiguous(), weights


UNDERSTOOD = frozenset(inspect.signature(attention).parameters) | SAID_ELSEWHERE


def other_scale(scaling: float | None, encoding: PositionalEncoding, d_head: int) -> float | None:
    """The model's scale of q·k; None where it is the encoding's own, which attention without options has."""
    usual = scale_of(encoding, d_head)
    same = scaling is None or abs(scaling - usual) <= 1e-12 * abs(
        usual
    )  # math.isclose is in no graph, where this is symbolic
    return None if same else scaling


def attends_causally(module: nn.Module, told: bool | None) -> bool:
    """Whether a token sees no later ones: as the call says, or else the module; transformers takes a module for causal."""
    return bool(getattr(module, "is_causal", True) if told is None else told)


def _outside(module: nn.Module) -> RuntimeError:
    return RuntimeError(
        f"posenc: {type(module).__name__} was called outside of its decoder, so that positions are unknown; "
        "call the model, or posenc.transformers.detach(model) first"
    )


def _selected(indices: Tensor, mask: Tensor | None, keys: int) -> Tensor:
    """The mask, and hidden besides whatever is not among `indices` [b, t, m] of the keys."""
    chosen = torch.zeros(*indices.shape[:2], keys, dtype=torch.bool, device=indices.device)
    chosen = chosen.scatter(-1, indices.long(), True)[:, None]
    if mask is None:
        return chosen
    return mask & chosen if mask.dtype == torch.bool else mask.masked_fill(~chosen, float("-inf"))


def _added(bias: Tensor, mask: Tensor | None) -> Tensor:
    """A bias of the caller's, -inf where a bool mask hides the pair."""
    if mask is None:
        return bias
    return bias + mask if mask.dtype != torch.bool else bias.masked_fill(~mask, float("-inf"))


class GivePositions:
    """Pre-hook of a decoder or encoder: adds the Call to the keyword arguments that reach every layer.

    names      of the positional arguments
    first_row  what position_ids call position 0: the row of a table
    both_ways  whether tokens see later ones too; a gap in position_ids then begins no other document
    across     whether `cross` serves the modules that read encoder_hidden_states
    """

    def __init__(
        self, names: tuple[str, ...], first_row: int = 0, *, both_ways: bool = False, across: bool = False
    ) -> None:
        self.names, self.first_row, self.both_ways, self.across = names, first_row, both_ways, across

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = dict(zip(self.names, args, strict=False)) | kwargs
        tokens = arguments.get("inputs_embeds") if arguments.get("input_ids") is None else arguments["input_ids"]
        if tokens is None:
            return None
        if arguments.get("encoder_hidden_states") is not None and not self.across:
            raise TypeError(
                f"encoder_hidden_states: this {type(module).__name__} has an encoding attached, which is not told the "
                "positions of another sequence; call detach(model) before using cross-attention"
            )
        name, cache = cache_of(module, self.names, arguments)
        self.check(module, name, cache)
        past = 0 if cache is None else cache.get_seq_length()
        past = past.clone() if isinstance(past, Tensor) else past  # a static cache counts on in this very tensor
        mask, numbers = arguments.get("attention_mask"), numbers_of_tokens(arguments.get("position_ids"), past)
        numbers = None if numbers is None else numbers - self.first_row
        packed = mask is None and cache is None and not self.both_ways and not self.makes_a_cache(module, arguments)
        counts = mask if isinstance(mask, Tensor) and mask.ndim == 2 else None
        wanted = arguments.get("output_attentions")
        weights = bool(getattr(module.config, "output_attentions", False) if wanted is None else wanted)
        call = Call.of(tokens, past, counts, numbers, packed=packed, weights=weights)
        return args, kwargs | {CALL: call}

    @staticmethod
    def makes_a_cache(module: nn.Module, arguments: dict[str, Any]) -> bool:
        """Whether the decoder makes a cache of its own, which is handed to what makes its mask."""
        use_cache = arguments.get("use_cache")
        return bool(getattr(module.config, "use_cache", False) if use_cache is None else use_cache)

    def check(self, module: nn.Module, name: str, cache: Any) -> None:
        """Raises RuntimeError where another attention has been set since, TypeError for a quantised cache of states."""
        attention: str = module.config._attn_implementation  # type: ignore[union-attr,assignment]
        if not attention.startswith(NAME):
            raise RuntimeError(
                f"posenc: the attention of this {type(module).__name__} was set to {attention!r} after attach, "
                "which leaves out what is attached; call detach(model) first, and attach again"
            )
        kinds = (kind.__name__ for layer in getattr(cache, "layers", ()) for kind in type(layer).__mro__)
        if not any("QuantizedLayer" in kind for kind in kinds):
            return
        for n, layer in attached_layers(module):
            if layer.keeps_states:
                raise TypeError(
                    f"{name}: a {type(cache).__name__} rounds what is cached, and {label(layer.encoding)} in layer {n} "
                    "keeps what it has read of earlier tokens beside the keys, bit by bit; use a dynamic cache"
                )


@dataclass(frozen=True)
class Carried:
    """cos and sin together with the Call, on their way through a layer that hands on no other keyword arguments."""

    position_embeddings: Any
    call: Call

    def to(self, device: torch.device | str, **options: Any) -> Carried:
        """The same on another device: accelerate moves the arguments of a layer with this."""
        tables = tuple(table.to(device, **options) for table in self.position_embeddings)
        return Carried(tables, self.call.to(device, **options))


def carry(pairs: Iterable[tuple[nn.Module, nn.Module]]) -> list[Any]:
    """Hooks that bring the Call from each layer to its attention module, beside cos and sin; their handles."""
    pairs = list(pairs)
    layers = {id(layer): layer for layer, _ in pairs}.values()
    return [
        *(layer.register_forward_pre_hook(_pack_call, with_kwargs=True) for layer in layers),
        *(module.register_forward_pre_hook(_unpack_call, with_kwargs=True) for _, module in pairs),
    ]


def _pack_call(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tables, call = kwargs.get("position_embeddings"), kwargs.get(CALL)
    return None if tables is None or call is None else (args, kwargs | {"position_embeddings": Carried(tables, call)})


def _unpack_call(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    held = kwargs.get("position_embeddings")
    if not isinstance(held, Carried):
        return None
    return args, kwargs | {"position_embeddings": held.position_embeddings, CALL: held.call}


def cross(modules: Iterable[nn.Module]) -> list[Any]:
    """Hooks by which these modules take keys for those of another sequence, in calls that hand them one; their handles."""
    return [module.register_forward_pre_hook(_cross, with_kwargs=True) for module in modules]


def _cross(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = kwargs.get(CALL)
    reads_another = any(kwargs.get(name) is not None for name in ("key_value_states", "encoder_hidden_states"))
    return (args, kwargs | {CALL: call.across()}) if reads_another and isinstance(call, Call) else None


class EnterLayer:
    """Pre-hook of an attention module.

    The model's rotation becomes the encoding's where `attach` has bound it, for which the call takes the place of cos and
    sin. Elsewhere it becomes one by the angle 0, and the cache is given rotated keys.
    """

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = kwargs.get(CALL)
        if call is None:
            raise _outside(module)
        entered = LayerCall(self.layer, call)
        changed = kwargs | {CALL: entered}
        if getattr(module.forward, OWNER, None) == ATTACHED:
            changed["position_embeddings"] = entered, entered
            return args, changed
        if (table := kwargs.get("position_embeddings")) is not None:
            _, changed["position_embeddings"] = call.once(
                id(table), lambda: (table, unrotated(table))
            )  # keeps `table` alive
        if self.layer.reads:
            entered.read(args[0] if args else kwargs["hidden_states"])
        if self.layer.caches_rotated:
            for name, value in kwargs.items():
                if hasattr(type(value), "get_seq_length"):  # of its class: a tensor takes 1 µs to say that it has none
                    changed[name] = RotatedKeys(of_self_attention(value), entered, name)
        return args, changed


def attached_layers(decoder: nn.Module) -> Iterator[tuple[int, Layer]]:
    """The index of every attention module with an encoding, and what it holds."""
    for module in decoder.modules():
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, EnterLayer):
                yield module.layer_idx, hook.layer  # type: ignore[misc]


def unrotated(table: Any) -> Any:
    """cos and sin of angle 0, in the form in which the model hands them over: a pair, complex numbers, a dict of these."""
    if isinstance(table, dict):
        return {name: unrotated(value) for name, value in table.items()}
    if isinstance(table, Tensor):
        if table.is_complex():
            return torch.ones_like(table)
        raise TypeError(
            f"position_embeddings: expected (cos, sin) or complex numbers, got {table.dtype} {list(table.shape)}"
        )
    cos, sin = table
    return torch.ones_like(cos), torch.zeros_like(sin)


class Embed:
    """Pre-hook of the first layer: adds an absolute encoding to the hidden states."""

    def __init__(self, encoding: PositionalEncoding) -> None:
        self.encoding = encoding

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call: Call | None = kwargs.get(CALL)
        if call is None:
            raise _outside(module)
        if args:
            return (self.encoding.embed(args[0], call.new), *args[1:]), kwargs
        return args, kwargs | {"hidden_states": self.encoding.embed(kwargs["hidden_states"], call.new)}
