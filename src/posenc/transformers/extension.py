"""A longer context for a loaded model: new rotary frequencies, in the model and in its configuration."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from posenc.configs.report.extension import pretrained_length, rotation_to_change, windows_suffice
from posenc.configs.report.extension_methods import METHODS, SETTINGS
from posenc.configs.report.limit import scaling
from posenc.configs.report.spellings import spellings
from posenc.support import checks
from posenc.transformers.bound_forward import ATTACHED, owner_of, rotations
from posenc.transformers.decoder import Unsupported, decoder_of
from posenc.transformers.rotary import FREQUENCIES, rotary_modules, set_state, state, text_config


def extend(model: nn.Module, length: int, method: str = "yarn", **options: Any) -> nn.Module:
    """Changes the model's rotary frequencies so that it reads `length` positions; returns the model.

        extend(model, 131072)
        extend(model, 131072, "yarn", factor=16.0, beta_fast=64.0)
        extend(model, 131072, "longrope", short_factor=[…], long_factor=[…])

    method    "yarn", "linear", "ntk", "llama3" or "longrope", as in posenc.frequencies
    options   numbers of the method by their names in `rope_parameters`; `factor` is length / trained length if left out.
              "longrope" needs short_factor and long_factor, one number for each pair

    A model that was trained with YaRN keeps its constants (beta_fast, mscale, …) unless `options` says otherwise; its
    attention_factor, which was for its own factor, goes.

    The configuration gets new `rope_parameters` and `max_position_embeddings`, so that `save_pretrained` writes them and
    plain transformers loads the same model. Frequencies are computed by transformers and compared with posenc's. Where
    layers of different kinds have their own frequencies, those of full attention change.

    Raises ValueError for a length that is not longer, an unknown method or option, a model that is scaled by a method which
    does not record the trained length, and one whose rotary layers all have an encoding attached; Unsupported for a model
    that does not rotate, whose windows keep every distance within those of training, or whose code does not read such
    settings. The model is then as it was.
    """
    from posenc.configs import ConfigError, spec_of

    checks.whole(length=length)
    checks.one_of(METHODS, method=method)
    modules = rotary_modules(model)
    config = text_config(model)
    name = type(model).__name__
    rotary = [module for module in model.modules() if rotations(module)]
    if rotary and all(owner_of(module) == ATTACHED for module in rotary):
        raise ValueError(
            f"model: every rotary layer of this {name} has an encoding of posenc's attached, so that none reads the "
            "model's frequencies; detach(model) first"
        )
    before = config.to_dict()
    try:
        spec = spec_of(before, defaults=True)
        rotation = rotation_to_change(spec)
    except ValueError as error:
        raise Unsupported(
            f"model: the frequencies of this {name} cannot be changed: {str(error).removeprefix('--extend-to: ')}"
        ) from error
    trained = pretrained_length(spec, rotation)
    if trained is None or spec.trained_length is None:
        raise ValueError(f"model: the configuration of this {name} does not give max_position_embeddings")
    if length <= spec.trained_length:
        raise ValueError(f"length: expected more than the {spec.trained_length} positions of this {name}, got {length}")
    if useless := windows_suffice(spec, scaling(spec)[1] or trained):
        raise Unsupported(f"model: {useless}")
    if rotation.kind == "proportional":
        raise Unsupported(f"model: this {name} has rope_type 'proportional', which transformers combines with no scaling")
    if rotation.kind not in ("rotary", "partial") and "trained_length" not in dict(rotation.parameters):
        raise ValueError(f"model: this {name} is scaled by {rotation.kind!r}, which does not record the trained length")

    factor = options.pop("factor", length / trained)
    checks.positive(factor=factor)
    settings, _ = SETTINGS[method](rotation, trained, float(factor))
    _check_options(method, options)
    changes = next(spellings(before, spec, settings | options, length, trained, rotation.base)) | _head_dim(config)
    changed = copy.deepcopy(config)
    _set(changed, changes)
    try:
        new = rotation_to_change(spec_of(changed.to_dict(), defaults=True))
        expected = new.frequencies("float32").at_length(1).values
    except ConfigError as error:
        raise ValueError(f"method, options: this {name} cannot be extended by {method!r} so: {error}") from error
    if new == rotation:
        raise Unsupported(f"model: no layer of this {name} would change; all have windows")
    fresh = [_fresh(module, changed) for module in modules]
    wanted_now = torch.tensor(expected)
    if not any(torch.equal(wanted_now, held) for s in fresh for key, held in s.items() if key.endswith(FREQUENCIES)):
        raise Unsupported(f"model: the code of {name} does not compute the frequencies that {method!r} asks for")

    scales = _softmax_scales(decoder_of(model), config, changed)
    _set(config, changes)
    for attention, scale in scales:
        setattr(attention, "scaling", scale)  # noqa: B010
    for module, wanted in zip(modules, fresh, strict=True):
        device = next(module.buffers(recurse=False)).device
        set_state(module, {key: v.to(device) if isinstance(v, torch.Tensor) else v for key, v in wanted.items()})
    return model


def _check_options(method: str, options: dict[str, Any]) -> None:
    from posenc.configs.rotary import NEEDED, TYPES

    taken = [] if method == "ntk" else list(TYPES[method][1])
    allowed = [key for key in taken if key != "original_max_position_embeddings"]
    if unknown := sorted(options.keys() - set(allowed)):
        raise ValueError(f"options: {method!r} takes {', '.join(allowed) or 'factor'}, got {', '.join(unknown)}")
    if method == "longrope" and (missing := [key for key in NEEDED[method] if key not in options]):
        raise ValueError(f"options: 'longrope' needs {', '.join(missing)}, one number for each pair")


def _head_dim(config: Any) -> dict[str, int]:
    """The width of a head where the configuration leaves it at None: transformers' scaling methods read the number."""
    if getattr(config, "head_dim", 0) is not None:
        return {}
    return {"head_dim": config.hidden_size // config.num_attention_heads}


def _set(config: Any, changes: dict[str, Any]) -> None:
    for key, value in copy.deepcopy(changes).items():
        setattr(config, key, value)


def _fresh(module: nn.Module, config: Any) -> dict[str, Any]:
    """What a rotary embedding of this class holds when it is built from `config`."""
    try:
        with torch.device("cpu"):
            return state(type(module)(config))
    except TypeError as error:
        raise Unsupported(f"model: transformers cannot build a {type(module).__name__} for this: {error}") from error


def _softmax_scales(decoder: nn.Module, config: Any, changed: Any) -> list[tuple[nn.Module, float]]:
    """The attention modules whose scale of q·k was computed from mscale_all_dim, and what it becomes (DeepSeek).

    They compute it when they are built, so the decoder is built on the meta device, with both configurations.
    """
    if not any("mscale_all_dim" in (settings.rope_parameters or {}) for settings in (config, changed)):
        return []
    try:
        with torch.device("meta"):
            was, now = (dict(type(decoder)(copy.deepcopy(settings)).named_modules()) for settings in (config, changed))
    except Exception as error:
        raise Unsupported(
            f"model: its softmax may be scaled by mscale_all_dim, and a {type(decoder).__name__} cannot be built to see "
            f"the new scale: {error}"
        ) from error
    scales = []
    for path, module in decoder.named_modules():
        before, after = (getattr(modules.get(path), "scaling", None) for modules in (was, now))
        if before == after or not isinstance(after, float):
            continue
        if getattr(module, "scaling", None) != before:
            raise Unsupported(
                f"model: {path}.scaling is {module.scaling}, and {type(module).__name__} sets {before}: it was changed by "
                "hand, so that the scale for the new length is not known"
            )
        scales.append((module, after))
    return scales
