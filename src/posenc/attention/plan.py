"""Who computes a call: the backend, and the pieces that it is cut into first.

output_of(call)    cut by documents or windows where that leaves work out (windows.py); every piece by its backend
backend_of(call)   the first backend that suits the call and can serve it
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from posenc.attention.backends import BACKENDS, FUSED
from posenc.attention.call import Call
from posenc.attention.options import PLAIN
from posenc.attention.windows import cut, joined, without_vain_window
from posenc.support.identity import label

OF_LOGITS = {"bias", "finish"}  # the seams that change logits


def backend_of(call: Call, impl: str = "auto") -> ModuleType:
    """The backend for `impl`. "auto" is the first that suits the call and can serve it; the result is the same.

    Raises ValueError for an unknown name, and for a backend asked for by name that cannot serve the call.
    """
    if impl == "auto":
        if call.options is PLAIN and not call.encoding.seams & OF_LOGITS:
            return FUSED
        for backend in BACKENDS.values():  # the last one serves every call
            if backend.suits(call) and not reason(backend, call):
                break
        return backend
    if impl not in BACKENDS:
        raise ValueError(f"impl: expected 'auto' or one of {', '.join(map(repr, BACKENDS))}, got {impl!r}")
    if why := reason(BACKENDS[impl], call):
        raise ValueError(f"impl={impl!r} cannot express {label(call.encoding)}: {why}; use impl='reference' or 'auto'")
    return BACKENDS[impl]


def reason(backend: ModuleType, call: Call) -> str | None:
    """Why the backend cannot serve the call, or None."""
    if call.options is not PLAIN and (missing := [name for name in call.options.used() if name not in backend.OPTIONS]):
        return f"it does not serve {', '.join(missing)}"
    why: str | None = backend.refuses(call.encoding, call.structure) or backend.refuses_call(call)
    return why


def output_of(call: Call, impl: str = "auto") -> Any:
    """The output, or (output, lse) where the options ask for it. A backend asked for by name gets the whole call."""
    if impl != "auto" or (call.options is PLAIN and call.at_q.consecutive_in != "document"):
        return backend_of(call, impl).attend(call)
    call = without_vain_window(call)
    backend = backend_of(call)
    if (rows := cut(call, documents=not backend.BY_DOCUMENT)) is None:
        return backend.attend(call)
    each = [joined([(piece.by or output_of)(piece.call) for piece in row], call.options) for row in rows]
    return joined(each, call.options, axis=0)
