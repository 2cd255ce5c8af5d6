"""The ways to compute attention. Each has `attend(q, k, v, encoding, at_q, at_k, causal)` and `refuses(encoding)`.

They take rotated queries and keys with their shapes checked, and k and v with their own, maybe fewer, heads.
None imports another. `reference` is the definition; the others must agree with it.
"""

from __future__ import annotations

from types import ModuleType

from posenc.backends import reference, sdpa
from posenc.encoding import PositionalEncoding

BACKENDS: dict[str, ModuleType] = {"reference": reference, "sdpa": sdpa}


def choose(impl: str, encoding: PositionalEncoding) -> ModuleType:
    """The backend for `impl`. "auto" is sdpa where it can express the encoding, else reference; same result either way.

    Raises ValueError for an unknown name, and for a backend asked for by name that cannot express the encoding.
    """
    if impl == "auto":
        return reference if sdpa.refuses(encoding) else sdpa
    if impl not in BACKENDS:
        raise ValueError(f"impl: expected 'auto' or one of {', '.join(map(repr, BACKENDS))}, got {impl!r}")
    if reason := BACKENDS[impl].refuses(encoding):
        raise ValueError(f"impl={impl!r} cannot express {encoding.owner}: {reason}; use impl='reference' or 'auto'")
    return BACKENDS[impl]
