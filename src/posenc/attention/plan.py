"""Who computes a call: the backend, and the pieces that it is cut into first.

attended(call)     cut by documents or windows where that leaves work out (windows.py); every piece by its backend
backend_of(call)   the first of `candidates` that can serve it; what the encoding is made of says which are asked
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from posenc.attention.backends import BACKENDS
from posenc.attention.call import Call
from posenc.attention.options import PLAIN
from posenc.attention.windows import cut, joined, without_vain_window
from posenc.encoding import PositionalEncoding
from posenc.structure import Blocks, Distances, Regions, Vectors
from posenc.support.identity import label

# What "auto" tries for an encoding of this structure, in this order; `reference`, the last, serves every call.
SERVES: dict[Any, tuple[str, ...]] = {
    Distances: ("toeplitz", "sdpa", "reference"),
    Vectors: ("relative", "sdpa", "reference"),
    Regions: ("regions", "sdpa", "reference"),
    Blocks: ("blocks", "sdpa", "reference"),
}
OTHERS = ("sdpa", "reference")
BY_STRUCTURE = {"bias", "finish"}  # the seams of the encodings that one of these structures describes


def candidates(device: str, encoding: PositionalEncoding) -> tuple[str, ...]:
    """What "auto" tries on that kind of device, in this order: the first that can serve the call is taken.

    `flex` is left out on the CPU, where it compiles for seconds at every new shape. On CUDA it is the first for an encoding
    with a bias; without one torch's own kernel is the fastest there is.
    """
    if not encoding.seams & BY_STRUCTURE:
        return OTHERS
    names = SERVES.get(type(encoding.structure()), OTHERS)
    return ("flex", *names) if device == "cuda" and "bias" in encoding.seams else names


def backend_of(call: Call, impl: str = "auto") -> ModuleType:
    """The backend for `impl`. "auto" is the first of `candidates` that can serve the call; the result is the same.

    Raises ValueError for an unknown name, and for a backend asked for by name that cannot serve the call.
    """
    if impl == "auto":
        if call.options is PLAIN and not call.encoding.seams & BY_STRUCTURE:
            return BACKENDS["sdpa"]  # the first of OTHERS serves every such call
        for name in candidates(call.q.device.type, call.encoding):
            backend = BACKENDS[name]
            if not reason(backend, call) and not (name == "blocks" and _few(call)):
                break
        return backend
    if impl not in BACKENDS:
        raise ValueError(f"impl: expected 'auto' or one of {', '.join(map(repr, BACKENDS))}, got {impl!r}")
    if why := reason(BACKENDS[impl], call):
        raise ValueError(f"impl={impl!r} cannot express {label(call.encoding)}: {why}; use impl='reference' or 'auto'")
    return BACKENDS[impl]


def _few(call: Call) -> bool:
    """Whether there are so few tokens that blocks of logits do not pay."""
    structure = call.encoding.structure()
    return isinstance(structure, Blocks) and call.at_q.length <= structure.beyond


def reason(backend: ModuleType, call: Call) -> str | None:
    """Why the backend cannot serve the call, or None."""
    if call.options is not PLAIN and (missing := [name for name in call.options.used() if name not in backend.OPTIONS]):
        return f"it does not serve {', '.join(missing)}"
    why: str | None = backend.refuses(call.encoding) or backend.refuses_call(call)
    return why


def attended(call: Call, impl: str = "auto") -> Any:
    """The output, or (output, lse) where the options ask for it. A backend asked for by name gets the whole call."""
    if impl != "auto" or (call.options is PLAIN and call.at_q.consecutive_in != "document"):
        return backend_of(call, impl).attend(call)
    call = without_vain_window(call)
    backend = backend_of(call)
    if (rows := cut(call, documents=backend is not BACKENDS["toeplitz"])) is None:
        return backend.attend(call)
    each = [joined([(piece.by or attended)(piece.call) for piece in row], call.options) for row in rows]
    return joined(each, call.options, axis=0)
