"""The ways to compute attention. Each has

    attend(q, k, v, encoding, at_q, at_k, causal, options)
        rotated q and k, shapes checked; k and v may have fewer heads. Returns the output, or (output, lse) where
        options.return_lse
    refuses(encoding)                                why it can never serve this encoding, or None
    refuses_call(q, encoding, at_q, at_k, causal)    why it cannot serve this call: positions, device, dtype; or None
    OPTIONS                                          the names of the options that it serves
    leaves(encoding, at_q)                           where it is defined: whether "auto" leaves so few tokens to the next
    SERVES_DOCUMENTS                                 where it is True: documents of a row are computed apart from each other

None imports another. `reference` is the definition; the others must agree with it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from torch import Tensor

from posenc.attention.options import PLAIN, Options
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.structure import Regions

# In the order in which "auto" tries them, but for `regions`: see `candidates`.
NAMES = ("toeplitz", "relative", "regions", "blocks", "sdpa", "reference", "flex")
_OTHERS = [name for name in NAMES if name not in ("flex", "regions")]
_WITH_REGIONS = ["regions", *_OTHERS]
_ON_CUDA_WITH_BIAS = ["flex", *_OTHERS]
BACKENDS: dict[str, ModuleType] = {name: importlib.import_module(f"posenc.attention.backends.{name}") for name in NAMES}


def candidates(device: str, encoding: PositionalEncoding) -> list[str]:
    """What "auto" tries on that kind of device, in this order: the first that can serve the call is taken.

    `flex` is left out on the CPU, where it compiles for seconds at every new shape. On CUDA it is the first for an encoding
    with a bias; without one torch's own kernel is the fastest there is. `regions` is tried for an encoding that
    declares them.
    """
    if device == "cpu" and type(encoding.structure()) is Regions:
        return _WITH_REGIONS
    return _ON_CUDA_WITH_BIAS if device == "cuda" and "bias" in encoding.seams else _OTHERS


def choose(
    impl: str,
    q: Tensor,
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    causal: bool,
    options: Options = PLAIN,
) -> ModuleType:
    """The backend for `impl`. "auto" is the first of `candidates` that can serve the call; the result is the same.

    Raises ValueError for an unknown name, and for a backend asked for by name that cannot serve the call.
    """
    if impl == "auto":
        for name in candidates(q.device.type, encoding):  # `reference`, the last, serves every call
            backend = BACKENDS[name]
            if reason(backend, q, encoding, at_q, at_k, causal, options):
                continue
            if not (leaves := vars(backend).get("leaves")) or not leaves(encoding, at_q):
                break
        return backend
    if impl not in BACKENDS:
        raise ValueError(f"impl: expected 'auto' or one of {', '.join(map(repr, BACKENDS))}, got {impl!r}")
    if why := reason(BACKENDS[impl], q, encoding, at_q, at_k, causal, options):
        raise ValueError(f"impl={impl!r} cannot express {encoding.identity}: {why}; use impl='reference' or 'auto'")
    return BACKENDS[impl]


def reason(
    backend: ModuleType,
    q: Tensor,
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    causal: bool,
    options: Options = PLAIN,
) -> str | None:
    """Why the backend cannot serve the call, or None."""
    if options is not PLAIN and (missing := [name for name in options.asked() if name not in backend.OPTIONS]):
        return f"it does not serve {', '.join(missing)}"
    why: str | None = backend.refuses(encoding) or backend.refuses_call(q, encoding, at_q, at_k, causal)
    return why
