"""One length per request, for frequencies that depend on it: dynamic NTK and LongRoPE.

transformers chooses these frequencies anew in every forward pass, from the largest position so far. Keys that are cached
already keep the old rotation, so that prefill followed by decoding differs from one pass, and a long request changes the
next one (huggingface/transformers#25104). One set of frequencies for the whole request has neither problem.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from posenc.frequencies import ByLength
from posenc.support import checks
from posenc.transformers.decoder import Unsupported
from posenc.transformers.rotary import FREQUENCIES, rotary_modules, set_state, state, text_config

FAR = 2**40  # tokens: beyond every trained length


@contextmanager
def length(model: nn.Module, n: int) -> Iterator[nn.Module]:
    """Inside, the model has the frequencies of a request of n tokens, and keeps them.

        with length(model, prompt + new):
            model.generate(ids, max_new_tokens=new)

    n counts the prompt and all tokens to be generated. The frequencies are those of `at_length(n)` in transformers' own
    arithmetic. The model is as it was afterwards, also after an exception. One model serves one length at a time.

    Raises ValueError for n below 1 and for a model whose frequencies do not depend on length, Unsupported for a model
    without a rotary embedding, and for one that scales cos and sin by the length in a way of its own.
    """
    checks.whole(n=n)
    modules = rotary_modules(model)
    kinds = _kinds(text_config(model))
    fixed = [(module, _fixed(model, module, kinds, n)) for module in modules]
    before = [state(module) | {"config": module.config} for module in modules]
    if not any(changes for _, changes in fixed):
        listed = ", ".join(dict.fromkeys(kinds.values()))
        raise ValueError(f"model: the frequencies of this {type(model).__name__} do not depend on length: {listed}")
    try:
        for (module, changes), state_before in zip(fixed, before, strict=True):
            set_state(module, state_before | changes)
        yield model
    finally:
        for module, state_before in zip(modules, before, strict=True):
            set_state(module, state_before)


def _kinds(config: Any) -> dict[str | None, str]:
    """The rope_type that the configuration gives to each kind of layer; to all layers under None."""
    settings = config.rope_parameters or {}
    nested = {label: inner["rope_type"] for label, inner in settings.items() if isinstance(inner, dict)}
    return nested or {None: settings.get("rope_type", "default")}


def _fixed(model: nn.Module, module: Any, kinds: dict[str | None, str], n: int) -> dict[str, Any]:
    """The buffers and attributes of a rotary embedding that stays at the frequencies of n tokens; empty if it does already.

    Without "dynamic" or "longrope" in rope_type, transformers leaves the frequencies alone.
    """
    changes: dict[str, Any] = {}
    still = dict(kinds)
    for label, kind in kinds.items():
        prefix = "" if label is None else f"{label}_"
        if ("dynamic" in kind or kind == "longrope") and hasattr(module, prefix + FREQUENCIES):
            buffer, frequencies = getattr(module, prefix + FREQUENCIES), _frequencies(model, label)
            wanted = frequencies.at_length(n)
            changes[prefix + FREQUENCIES] = torch.tensor(wanted.values, dtype=torch.float32, device=buffer.device)
            still[label] = "default"
            if frequencies.at_length(1).cos_sin_scale != frequencies.at_length(FAR).cos_sin_scale:
                changes["config"] = _one_scale(module, wanted.cos_sin_scale)
    if changes:
        changes["rope_type"] = still.get(None, still)
    return changes


def _one_scale(module: Any, scale: float) -> Any:
    """Its configuration with one number on cos and sin for all lengths: Phi-3.5-MoE reads two of them in every pass."""
    if not {"short_mscale", "long_mscale"} <= (module.config.rope_parameters or {}).keys():
        raise Unsupported(
            f"model: a {type(module).__name__} scales cos and sin by the length of the request, in a way that posenc does "
            "not know"
        )
    config = copy.deepcopy(module.config)
    config.rope_parameters |= {"short_mscale": scale, "long_mscale": scale}
    return config


def _frequencies(model: nn.Module, label: str | None) -> ByLength:
    """Of the layers of one kind."""
    from posenc.configs import spec_of

    spec = spec_of(text_config(model).to_dict(), defaults=True)
    rotation = next(
        use.rotation
        for layer in spec.layers
        if label is None or layer.kind == label
        for use in layer.uses
        if use.rotation is not None
    )
    return rotation.frequencies("float32")
