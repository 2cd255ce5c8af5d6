"""Writes src/posenc/configs/defaults.json: what each configuration class of transformers assumes where a file is silent.

    python tests/families/make_defaults.py [--check]
    python tests/families/make_defaults.py --newer     with a later release: the types that defaults.json lacks, in
                                                       defaults_newer.json

One line per model type: the class, its folder, other names of its keys (`names`: its attribute_map; `legacy`: what its
constructor takes besides, and prefers), and the defaults of every key that has to do with position or size. Facts of the
installed package, read off its classes; --check fails where the file is not what they say.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

OUT = Path(__file__).parents[2] / "src" / "posenc" / "configs" / "defaults.json"
NEWER = OUT.with_name("defaults_newer.json")
POSITIONAL = re.compile(
    r"rope|rotary|position|alibi|theta|relative|rel_pos|pos_|_pos|temperature|attn_scale|floor|window|layer_type|patch"
    r"|image_size|bucket|distance|freq|context|ctx|max_.*len|sinus|interleav|qk_|cross_attention|axial|grid|temporal|hashes"
)
SIZES = re.compile(
    r"hidden_size|d_model|n_embd|embed_dim|emb_dim|dim$|head|d_kv|kv_channels|layers|n_layer|depth|is_decoder|stride|scal|causal"
    r"|bidirectional|norm_before|pad_token_id|padding_idx|embedding_size|kernel|model_type|use_cls|register|merge|num_channels"
    r"|block_types|d_rel|rel_l2|sample|second|expansion|stages|class_embed|abs_pos|add_bos|attn_|attention|per_layer_config|type_vocab|_extent|hybrid|num_frames|tubelet|cls_tokens|detection_tokens|encode_proj|feature_levels|num_queries|featmap|feature_size|encoder_width|eval_size|projection_indices|n_attn_blocks|gnn_layers|loop_|recurrent_loops"
)
NEVER = re.compile(
    r"dropout|drop_path|token_id$(?<!pad_token_id)|_loss|_act$|activation|init|vocab_size|^output_|classifier|_cost"
)


def facts(among: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    """Of every type, or of those."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    transformers.logging.set_verbosity_error()
    described = functools.cache(lambda model_type: _described(CONFIG_MAPPING[model_type]))
    found = {model_type: described(model_type) for model_type in sorted(CONFIG_MAPPING_NAMES if among is None else among)}
    for about in found.values():  # a part says only what its own class would not
        for part in about["parts"].values():
            known = part["model_type"] in CONFIG_MAPPING_NAMES
            inner = described(part["model_type"]) if known else {"defaults": {}, "base": None}
            own = inner["defaults"]
            for key in [key for key, value in part.items() if key != "model_type" and own.get(key) in (None, value)]:
                if not (key == "rope_parameters" and _other_base(part[key], inner["base"])):
                    del part[key]
    return found


def _other_base(rotary: Any, base: float | None) -> bool:
    """Whether a whole model gives its part another base than the part's class has alone."""
    return isinstance(rotary, dict) and rotary.get("rope_theta", base) != base


def _described(loaded: Any) -> dict[str, Any]:
    values = _values(loaded)
    names = {new: old for new, old in (getattr(loaded, "attribute_map", None) or {}).items() if _kept(new) or _kept(old)}
    legacy = _legacy(loaded, set(names))
    return {
        "class": loaded.__name__,
        "folder": loaded.__module__.split(".")[-2],
        "names": names,
        **({"legacy": legacy} if legacy else {}),
        "defaults": {key: value for key, value in sorted(values.items()) if _kept(key) and not _is_part(value)},
        "parts": {key: _part(values[key]) for key in _in_order(loaded, values) if _is_part(values[key])},
        **({"fixed": fixed} if (fixed := _fixed(loaded, values)) else {}),
        **({"rope": rope} if (rope := _rope(loaded, values)) else {}),
        "base": getattr(loaded, "default_theta", None),
    }


def _rope(loaded: Any, values: dict[str, Any]) -> dict[str, Any] | None:
    """The rotary settings that the class makes where a file has none, if they are more than a base; without the base where
    it is the file's rope_theta."""
    if values.get("rope_parameters") is not None:
        return None
    try:
        found, given = loaded().rope_parameters, loaded(rope_theta=777.0).rope_parameters
    except Exception:  # a class without rotary settings, or that cannot be made without arguments
        return None
    if not isinstance(found, dict) or (found.keys() <= {"rope_type", "rope_theta"} and found.get("rope_type") == "default"):
        return None
    free = isinstance(given, dict) and given.get("rope_theta") == 777.0
    return {key: value for key, value in found.items() if not (free and key == "rope_theta")}


def _in_order(loaded: Any, values: dict[str, Any]) -> list[str]:
    """The keys as the class declares them."""
    return sorted(values, key=[*loaded.__dataclass_fields__, *values].index)


def _fixed(loaded: Any, values: dict[str, Any]) -> list[str]:
    """The parts whose class stays the same whatever model_type their section has."""
    return [key for key in _in_order(loaded, values) if _is_part(values[key]) and _is_fixed(loaded, key, values[key])]


def _is_fixed(loaded: Any, key: str, value: dict[str, Any]) -> bool:
    if (spec := getattr(loaded, "sub_configs_defaults", {}).get(key)) is not None:
        return key != "backbone_config" and issubclass(spec.config_class, PreTrainedConfig)
    other = "gpt2" if value["model_type"] != "gpt2" else "llama"
    try:  # older classes decide in their own code
        return type(getattr(loaded(**{key: {"model_type": other}}), key)) is CONFIG_MAPPING[value["model_type"]]
    except Exception:  # of what the other model's configuration has not
        return False


def _legacy(loaded: Any, known: set[str]) -> dict[str, str]:
    """Keys that the class's constructor accepts for one of its attributes: found in its code, then tried."""
    found = {}
    for key in sorted(_accepted(loaded) - known - set(loaded.__dataclass_fields__)):
        for value in (48, 0.375, 2):
            try:
                plain, given = loaded(), loaded(**{key: value})
            except Exception:  # not a number, or a class that cannot be made without arguments
                continue
            now = {name: held for name, held in vars(given).items() if type(held) is type(value) and held == value}
            changed = [name for name in now if vars(plain).get(name) != value and name[0] != "_" and _kept(name)]
            if len(changed) == 1:
                found[key] = changed[0]
                break
    return found


def _accepted(loaded: Any) -> set[str]:
    """Names that __init__ and __post_init__ of the class and of its bases take out of **kwargs."""
    found: set[str] = set()
    own = [base for base in loaded.__mro__ if base.__module__.startswith("transformers.models.")]
    for function in [vars(base)[name] for base in own for name in ("__init__", "__post_init__") if name in vars(base)]:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, SyntaxError):  # made by dataclasses: no source
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("kwargs.pop", "kwargs.get") and node.args:
                found |= {str(part.value) for part in node.args[:1] if isinstance(part, ast.Constant)}
            if isinstance(node, ast.Compare) and any(ast.unparse(one) == "kwargs" for one in node.comparators):
                found |= {str(node.left.value)} if isinstance(node.left, ast.Constant) else set()
    return found


def _values(loaded: Any) -> dict[str, Any]:
    """What the class says by itself: a field's own default, not what is derived from others; None where it derives."""
    try:
        values = loaded().to_dict()
    except Exception:  # a few cannot be made without arguments
        values = {}
    for name, field in loaded.__dataclass_fields__.items():
        if name in values and _is_part(values[name]):
            continue
        if field.default is not dataclasses.MISSING:
            values[name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            values[name] = field.default_factory()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if _small(value)}


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.get("model_type"))


def _part(value: dict[str, Any]) -> dict[str, Any]:
    return {
        key: inner for key, inner in sorted(value.items()) if key == "model_type" or (_kept(key) and not _is_part(inner))
    }


def _kept(key: str) -> bool:
    return key != "model_type" and bool(POSITIONAL.search(key) or SIZES.search(key)) and not NEVER.search(key)


def _small(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, list, tuple, dict))


def newer() -> dict[str, dict[str, Any]]:
    """The types of the installed release that defaults.json lacks."""
    known = json.loads(OUT.read_text())
    return {name: about for name, about in facts().items() if name not in known}


def written(found: dict[str, dict[str, Any]]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(about, ensure_ascii=False, default=str)}" for name, about in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    out, found = (NEWER, newer()) if "--newer" in sys.argv else (OUT, facts())
    if "--check" in sys.argv:
        sys.exit(out.read_text() != written(found) and f"{out.name} is not what the installed transformers says")
    out.write_text(written(found))
