"""The rotary embeddings of a loaded model: the modules that hold its frequencies and hand out cos and sin."""

from __future__ import annotations

from typing import Any

from torch import nn

from posenc.transformers.decoder import Unsupported, decoder_of

FREQUENCIES = "inv_freq"  # a buffer; "full_attention_inv_freq" where layers of different kinds have their own


def rotary_modules(model: Any) -> list[nn.Module]:
    """The modules of the decoder that hold frequencies. Raises Unsupported where there is none."""
    decoder = decoder_of(model)
    modules = [
        module
        for module in decoder.modules()
        if hasattr(module, "config") and any(name.endswith(FREQUENCIES) for name, _ in module.named_buffers(recurse=False))
    ]
    if not modules:
        raise Unsupported(f"model: {type(decoder).__name__} has no rotary embedding with a buffer {FREQUENCIES!r}")
    return modules


def text_config(model: Any) -> Any:
    """The configuration that the decoder reads."""
    config: Any = decoder_of(model).config
    return config


def state(module: nn.Module) -> dict[str, Any]:
    """Everything that a rotary embedding holds beside its configuration: buffers and plain attributes."""
    plain = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    plain.pop("config", None)
    plain.pop("training", None)
    return plain | dict(module.named_buffers(recurse=False))


def set_state(module: nn.Module, wanted: dict[str, Any]) -> None:
    """Gives a rotary embedding what `state` returned, and takes away what is not in it."""
    for name in state(module).keys() - wanted.keys():
        delattr(module, name)
    for name, value in wanted.items():
        if name in module._buffers:
            module._buffers[name] = value
        else:
            setattr(module, name, value)
