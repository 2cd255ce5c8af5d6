"""posenc: every positional encoding for Transformers behind one contract, proven by laws and oracles.

    encoding = posenc.create("rope", d_model=512, n_heads=8)
    at = encoding.prepare(posenc.Positions.arange(batch, length))
    out = posenc.attend(q, k, v, encoding, at)

Names are loaded when first used; importing posenc itself loads nothing else. No module may bear the name of a function
here: importing it would put it in the function's place.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from posenc import catalogue as catalogue
    from posenc import learn as learn
    from posenc.attention import attend as attend
    from posenc.attention import attend_rotated as attend_rotated
    from posenc.attention import backends as backends
    from posenc.attention import rotary_modules
    from posenc.attention.module import Attention as Attention
    from posenc.attention.module import KeyValueCache as KeyValueCache
    from posenc.attention.module import replace_encoding as replace_encoding
    from posenc.attention.rotated_keys import convert_keys as convert_keys
    from posenc.attention.rotated_keys import rerotate as rerotate
    from posenc.attention.rotated_keys import rescale_keys as rescale_keys
    from posenc.catalogue.lookup import create as create
    from posenc.catalogue.lookup import names as names
    from posenc.catalogue.lookup import positions_by as positions_by
    from posenc.checking import laws as laws
    from posenc.checking.checking import check as check
    from posenc.combined import PerLayer as PerLayer
    from posenc.combined import Stack as Stack
    from posenc.configs import ConfigError as ConfigError
    from posenc.configs import PositionSpec as PositionSpec
    from posenc.configs import read_config as read_config
    from posenc.configs.checkpoint import load_encodings as load_encodings
    from posenc.encoding import BiasFn as BiasFn
    from posenc.encoding import DistanceBias as DistanceBias
    from posenc.encoding import PositionalEncoding as PositionalEncoding
    from posenc.encodings.alibi import alibi_slopes as alibi_slopes
    from posenc.encodings.rope import rotation_matrix as rotation_matrix
    from posenc.encodings.sinusoidal import sinusoidal_table as sinusoidal_table
    from posenc.frequencies import layouts as layouts
    from posenc.frequencies import wavelengths as wavelengths
    from posenc.pictures import measures as measures
    from posenc.pictures import plots as plots
    from posenc.pictures.measures import shift_matrix as shift_matrix
    from posenc.positions import Positions as Positions
    from posenc.structure import Scores as Scores
    from posenc.support.sharding import shard_index as shard_index
    from posenc.transformers.model_positions import positions_from_transformers as positions_from_transformers

    modules = rotary_modules

_WHERE = {
    "attend": "attention",
    "attend_rotated": "attention",
    "rotate": "attention",
    "Attention": "attention.module",
    "KeyValueCache": "attention.module",
    "replace_encoding": "attention.module",
    "convert_keys": "attention.rotated_keys",
    "rerotate": "attention.rotated_keys",
    "rescale_keys": "attention.rotated_keys",
    "check": "checking.checking",
    "ConfigError": "configs",
    "PositionSpec": "configs",
    "read_config": "configs",
    "load_encodings": "configs.checkpoint",
    "create": "catalogue.lookup",
    "names": "catalogue.lookup",
    "positions_by": "catalogue.lookup",
    "BiasFn": "encoding",
    "DistanceBias": "encoding",
    "PositionalEncoding": "encoding",
    "Scores": "structure",
    "alibi_slopes": "encodings.alibi",
    "rotation_matrix": "encodings.rope",
    "sinusoidal_table": "encodings.sinusoidal",
    "wavelengths": "frequencies",
    "shift_matrix": "pictures.measures",
    "Positions": "positions",
    "shard_index": "support.sharding",
    "Stack": "combined",
    "PerLayer": "combined",
    "positions_from_transformers": "transformers.model_positions",
}
_MODULES = {
    "backends": "attention.backends",
    "catalogue": "catalogue",
    "encodings": "encodings",
    "frequencies": "frequencies",
    "laws": "checking.laws",
    "layouts": "frequencies.layouts",
    "learn": "learn",
    "measures": "pictures.measures",
    "modules": "attention.rotary_modules",
    "plots": "pictures.plots",
}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"posenc.{_MODULES[name]}")
    if name in _WHERE:
        value = getattr(importlib.import_module(f"posenc.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    if name.startswith("_"):
        raise AttributeError(f"module 'posenc' has no attribute {name!r}")
    if importlib.util.find_spec(f"posenc.{name}") is not None:
        return importlib.import_module(f"posenc.{name}")
    hint = importlib.import_module("posenc.catalogue.lookup").hint(name)
    shown = importlib.import_module("posenc.support.checks").shown(name)
    raise AttributeError(f"module 'posenc' has no attribute {shown}{hint}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
