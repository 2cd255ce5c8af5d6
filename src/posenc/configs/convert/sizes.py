"""The heads of a model from config.json (or Mistral's and Meta's params.json) and from the caller's arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posenc.configs import ConfigError, attached, source, spec_of
from posenc.configs.beside import HEADS as N_HEADS
from posenc.configs.convert.families import GATED, PARTIAL_BY_DEFAULT, UNFIT, family
from posenc.configs.convert.rows import Heads
from posenc.configs.remote import TEXT_PARTS

FILES = ("config.json", "params.json")

N_KV_HEADS = ("num_key_value_heads", "n_kv_heads", "num_kv_heads", "multi_query_group_num")
D_HEAD = ("head_dim", "kv_channels", "attention_head_dim")
D_MODEL = ("hidden_size", "n_embd", "d_model", "dim")
FRACTION = ("partial_rotary_factor", "rotary_pct", "rotary_percentage", "rotary_emb_fraction")


def read_sizes(folder: Path) -> dict[str, Any]:
    """The configuration beside the tensors, or its text part if that has the heads; {} if there is none.

    Raises ValueError for a file that is too large or not a JSON object.
    """
    path = next((folder / name for name in FILES if (folder / name).is_file()), None)
    if path is None:
        return {}
    config = source.load(path)
    if _first(config, N_HEADS) is None:
        for part in TEXT_PARTS:
            if isinstance(config.get(part), dict):
                return dict(config[part])
    return config


def _check_rotates(config: Mapping[str, Any], name: str) -> None:
    """Raises ValueError for a family in which nothing rotates, such as BLOOM, and says what it has instead."""
    try:
        spec = spec_of(dict(config))
    except ConfigError:
        return  # an unknown family, or sizes that the caller gives
    uses = [use for _, part in spec.walk() for layer in part.layers for use in layer.uses]
    if all(use.rotation is None for use in uses):
        has = " and ".join(dict.fromkeys(use.name for use in uses)) or "no positional encoding"
        raise ValueError(f"model_type {name}: it has {has}, so nothing rotates and there is no layout to convert")


def heads(config: Mapping[str, Any], overrides: Mapping[str, int | bool | None]) -> Heads:
    """The heads: the sizes in `overrides` (n_heads, n_kv_heads, d_head, rotary_dim, trailing), and the rest from `config`.

    Raises ValueError for sizes that are missing, contradict each other or do not describe one rotation per head.
    """
    name = family(dict(config))
    if attached.KEY in config:
        raise ValueError(
            f"{attached.KEY}: an encoding is attached in this folder, and has a layout of its own; convert the model as it "
            "is saved before posenc.transformers.attach, or after detach"
        )
    if name in UNFIT:
        raise ValueError(f"model_type {name}: cannot be converted, {UNFIT[name]}")
    if config.get("alibi") is True:
        raise ValueError("config.json: alibi is true, so nothing rotates and there is no layout to convert")
    _check_rotates(config, name)
    if config.get("rotary_value") is True:
        raise ValueError("config.json: rotary_value is true: values rotate too, which this conversion does not cover")
    known = {key: value for key, value in overrides.items() if value is not None}
    n_heads = known.get("n_heads") or _count(config, N_HEADS, "--n-heads")
    latent = _first(config, ("kv_lora_rank",))
    d_head = known.get("d_head") or _head_width(config, n_heads, latent is not None)
    rotary_dim = known.get("rotary_dim") or _rotary_dim(config, name, d_head)
    return Heads(
        n_heads=n_heads,
        d_head=d_head,
        n_kv_heads=known.get("n_kv_heads") or _key_heads(config, name, n_heads),
        rotary_dim=rotary_dim,
        trailing=bool(known.get("trailing", latent is not None)),
        latent=latent,
        gated=name in GATED,
    )


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((config[key] for key in keys if config.get(key) is not None), None)


def _count(config: Mapping[str, Any], keys: tuple[str, ...], option: str) -> int:
    value = _first(config, keys)
    if value is None:
        raise ValueError(f"{keys[0]}: not in {' or '.join(FILES)}; say {option}")
    if type(value) is not int or value < 1:
        raise ValueError(f"{keys[0]}: expected a whole number from 1, got {value!r}; say {option}")
    return value


def _head_width(config: Mapping[str, Any], n_heads: int, is_latent: bool) -> int:
    if is_latent:
        return _count(config, ("qk_nope_head_dim",), "--d-head") + _count(config, ("qk_rope_head_dim",), "--d-head")
    if _first(config, D_HEAD) is not None:
        return _count(config, D_HEAD, "--d-head")
    d_model = _count(config, D_MODEL, "--d-head")
    if d_model % n_heads:
        raise ValueError(
            f"hidden_size: {d_model} is not a multiple of {n_heads} heads and head_dim is missing; say --d-head"
        )
    return d_model // n_heads


def _key_heads(config: Mapping[str, Any], name: str, n_heads: int) -> int:
    if name == "falcon":
        if config.get("new_decoder_architecture"):
            return _count(config, ("num_kv_heads",), "--n-kv-heads") if config.get("num_kv_heads") else n_heads
        return 1 if config.get("multi_query", True) else n_heads
    return n_heads if _first(config, N_KV_HEADS) is None else _count(config, N_KV_HEADS, "--n-kv-heads")


def _rotary_dim(config: Mapping[str, Any], name: str, d_head: int) -> int:
    whole = _first(config, ("qk_rope_head_dim", "rotary_dim"))
    if whole is not None:
        return _count(config, ("qk_rope_head_dim", "rotary_dim"), "--rotary-dim")
    fractions = {_fraction(rope, config) for rope in _rope_parameters(config)}
    if len(fractions) > 1:
        raise ValueError(
            f"partial_rotary_factor: differs between layers ({sorted(map(str, fractions))}); layers that "
            "rotate different channels cannot be converted together"
        )
    fraction = fractions.pop()
    if fraction is None:
        if name in PARTIAL_BY_DEFAULT:
            raise ValueError(
                f"partial_rotary_factor: not in config.json, and {name} rotates a part of a head; say --rotary-dim"
            )
        return d_head
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction <= 1:
        raise ValueError(f"partial_rotary_factor: expected a number above 0 up to 1, got {fraction!r}; say --rotary-dim")
    return math.floor(d_head * fraction)


def _fraction(rope: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
    """The fraction of a head that rotates; 1 for proportional frequencies, which have pairs at rest instead."""
    if "proportional" in (rope.get("rope_type"), rope.get("type")):
        return 1
    return _first({**config, **{key: rope[key] for key in FRACTION if key in rope}}, FRACTION)


def _rope_parameters(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One for the model, or one for each type of layer."""
    for key in ("rope_parameters", "rope_scaling"):
        rope = config.get(key)
        if isinstance(rope, dict) and rope:
            return [part for part in rope.values() if isinstance(part, dict)] or [rope]
    return [{}]
