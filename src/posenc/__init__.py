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
    from posenc import conformance as conformance
    from posenc import laws as laws
    from posenc import learn as learn
    from posenc import measures as measures
    from posenc import plots as plots
    from posenc.attention import attend as attend
    from posenc.attention import attend_rotated as attend_rotated
    from posenc.attention_module import Attention as Attention
    from posenc.attention_module import KeyValueCache as KeyValueCache
    from posenc.caches import convert_keys as convert_keys
    from posenc.caches import rerotate as rerotate
    from posenc.catalogue import create as create
    from posenc.catalogue import names as names
    from posenc.catalogue import positions_by as positions_by
    from posenc.conformance import check as check
    from posenc.dialects import ConfigError as ConfigError
    from posenc.dialects import PositionSpec as PositionSpec
    from posenc.dialects import read_config as read_config
    from posenc.dialects.checkpoint import load_encodings as load_encodings
    from posenc.encoding import BiasFn as BiasFn
    from posenc.encoding import DistanceBias as DistanceBias
    from posenc.encoding import PositionalEncoding as PositionalEncoding
    from posenc.encoding import Site as Site
    from posenc.encodings.alibi import alibi_slopes as alibi_slopes
    from posenc.encodings.rope import rotation_matrix as rotation_matrix
    from posenc.encodings.sinusoidal import sinusoidal_table as sinusoidal_table
    from posenc.frequencies import wavelengths as wavelengths
    from posenc.measures import shift_matrix as shift_matrix
    from posenc.model_positions import positions_from_transformers as positions_from_transformers
    from posenc.per_layer import PerLayer as PerLayer
    from posenc.positions import Positions as Positions
    from posenc.positions import shard_index as shard_index
    from posenc.stack import Stack as Stack

_WHERE = {
    "attend": "attention",
    "attend_rotated": "attention",
    "Attention": "attention_module",
    "KeyValueCache": "attention_module",
    "check": "conformance",
    "ConfigError": "dialects",
    "PositionSpec": "dialects",
    "read_config": "dialects",
    "load_encodings": "dialects.checkpoint",
    "create": "catalogue",
    "names": "catalogue",
    "positions_by": "catalogue",
    "BiasFn": "encoding",
    "DistanceBias": "encoding",
    "PositionalEncoding": "encoding",
    "Site": "encoding",
    "alibi_slopes": "encodings.alibi",
    "rotation_matrix": "encodings.rope",
    "sinusoidal_table": "encodings.sinusoidal",
    "wavelengths": "frequencies",
    "shift_matrix": "measures",
    "Positions": "positions",
    "positions_from_transformers": "model_positions",
    "shard_index": "positions",
    "Stack": "stack",
    "PerLayer": "per_layer",
    "convert_keys": "caches",
    "rerotate": "caches",
}
_MODULES = (
    "catalogue",
    "conformance",
    "conversion",
    "dialects",
    "encodings",
    "frequencies",
    "laws",
    "layouts",
    "learn",
    "measures",
    "plots",
)

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"posenc.{name}")
    if name in _WHERE:
        value = getattr(importlib.import_module(f"posenc.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'posenc' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """What a name may mean; nothing for a module, for which `from posenc import checks` asks before it imports."""
    if name.startswith("_") or importlib.util.find_spec(f"posenc.{name}") is not None:
        return ""
    from posenc.catalogue import hint

    return hint(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
