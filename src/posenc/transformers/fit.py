"""Whether an encoding fits a layer of a model, found out before anything is attached."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from posenc.attention import attend
from posenc.combined import PerLayer
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.transformers import interface
from posenc.transformers.decoder import Decoder, Unsupported
from posenc.transformers.layer import Layer


def check_layer(decoder: Decoder, n: int, encoding: PositionalEncoding, words: int | None) -> None:
    """Tries the encoding on a few tokens in the shapes of layer n.

    words  channels of the embeddings that it adds to; None: those of the layer

    Raises Unsupported for an encoding that needs more than a layer of transformers can hand over, ValueError for other
    numbers of heads or channels, TypeError for a PerLayer.
    """
    if isinstance(encoding, PerLayer):
        raise TypeError("encoding: a PerLayer within a PerLayer is not the encoding of one layer")
    name = type(encoding).__name__
    if "local" not in encoding.traits:
        raise Unsupported(
            f"encoding: {name} reads neighbouring tokens, which a cache of transformers does not hold; a class of your own "
            "that does not, declares it: `local` in its traits"
        )
    _check_sizes(n, encoding, decoder.attention[n])
    _try(decoder, n, encoding, words)


@torch.no_grad()
def can_take_the_place(decoder: Decoder, n: int, encoding: PositionalEncoding) -> bool:
    """Whether the encoding can rotate where the model's rotation does: it reads no hidden states and rotates no values."""
    if n not in decoder.inline or Layer(encoding).reads:
        return False
    v = torch.zeros(decoder.shapes[n][3], device=next(encoding.parameters(), torch.zeros(())).device)
    return encoding.rotate(v, Positions.arange(1, v.shape[2], device=v.device), "value") is v


def check_later(decoder: Decoder, n: int, encoding: PositionalEncoding) -> None:
    """Raises Unsupported if layer n normalises after its rotation and the encoding would rotate after that norm."""
    commutes = n not in decoder.weighted and (n not in decoder.normed or "norm_preserving" in encoding.traits)
    if "rotate" in encoding.seams and not commutes:
        raise Unsupported(
            f"encoding: layer {n} normalises queries and keys after it has rotated them, and {type(encoding).__name__} "
            "cannot take the place of that rotation, so that it would rotate in another order"
        )


def common_device(encoding: PositionalEncoding, modules: list[nn.Module], otherwise: torch.device) -> torch.device:
    """Where the encoding's parameters belong: the device on which these attention modules compute.

    otherwise  the device of modules without parameters: weights that torch has packed as int8 are none

    Raises Unsupported for an encoding with parameters and modules on several devices.
    """
    devices = list(dict.fromkeys(_device(module, otherwise) for module in modules))
    if len(devices) > 1 and next(encoding.parameters(), None) is not None:
        raise Unsupported(
            f"encoding: {type(encoding).__name__} has parameters, and its layers are on several devices, "
            f"{', '.join(map(str, devices))}; attach one encoding for each device, with layers="
        )
    return devices[0]


def _device(module: nn.Module, otherwise: torch.device) -> torch.device:
    """Where the module computes: accelerate's hooks say it for parameters that they keep elsewhere."""
    hooks = (getattr(module_inside, "_hf_hook", None) for module_inside in module.modules())
    devices = (getattr(hook, "execution_device", None) for hook in hooks)
    own_device = next((parameter.device for parameter in module.parameters()), otherwise)
    return torch.device(next((device for device in devices if device is not None), own_device))


def _check_sizes(n: int, encoding: PositionalEncoding, module: nn.Module) -> None:
    if encoding.query_copies != 1:
        raise Unsupported(
            f"encoding: {type(encoding).__name__} makes {encoding.query_copies} heads of each query head; the output "
            f"projection of layer {n} is too narrow for them"
        )
    heads = _heads(module)
    wanted = encoding.configuration.get("n_heads")
    if heads is not None and wanted is not None and wanted != heads:
        raise ValueError(f"encoding: {type(encoding).__name__} has n_heads={wanted}, layer {n} has {heads} query heads")
    width = encoding.configuration.get("d_head")
    head = getattr(module, "head_dim", None)
    if isinstance(head, int) and isinstance(width, int) and width != head:
        raise ValueError(f"encoding: {type(encoding).__name__} has d_head={width}, layer {n} has heads of {head} channels")


@torch.no_grad()
def _try(decoder: Decoder, n: int, encoding: PositionalEncoding, words: int | None) -> None:
    causal = n not in decoder.both_ways
    known: Any = next(encoding.parameters(), torch.zeros(()))
    hidden, q, k, v = (torch.zeros(shape, device=known.device) for shape in decoder.shapes[n])
    try:
        at = Positions.arange(1, hidden.shape[1], device=known.device)
        if "embed" in encoding.seams:
            encoding.embed(hidden if words is None else hidden.new_zeros(*hidden.shape[:2], words), at)
        read = encoding.read_hidden(hidden, at)
        attend(q, k, v, encoding, read, causal=causal)
    except (ValueError, TypeError) as error:
        raise ValueError(f"encoding: {type(encoding).__name__} does not fit layer {n}: {error}") from error
    told = decoder.options[n]
    if unknown := sorted(told.keys() - interface.UNDERSTOOD):
        raise Unsupported(
            f"model: the attention of layer {n} is told {', '.join(unknown)}, which posenc's attention does not know and "
            "would leave out"
        )
    options: dict[str, Any] = {
        "scale": interface.other_scale(told.get("scaling"), encoding, q.shape[-1]),
        "softcap": told.get("softcap"),
    }
    options["sinks"] = told["s_aux"].detach().to(q) if "s_aux" in told else None
    used = {name: value for name, value in options.items() if value is not None}
    try:
        attend(q, k, v, encoding, read, causal=causal, **used)
    except (ValueError, TypeError) as error:
        raise Unsupported(
            f"encoding: {type(encoding).__name__} cannot serve layer {n}, whose attention has {' and '.join(used)} of the "
            f"model's: {error}"
        ) from error
    if not torch.equal(read.coords, at.coords):
        raise Unsupported(
            f"encoding: {type(encoding).__name__} moves positions as hidden states say, which a cache of transformers "
            "does not keep"
        )


def _heads(module: nn.Module) -> int | None:
    config = getattr(module, "config", None)
    of_config = getattr(config, "num_attention_heads", None)
    of_module = getattr(module, "num_heads", None) or getattr(module, "num_attention_heads", None)
    return of_module if isinstance(of_module, int) else of_config if isinstance(of_config, int) else None
