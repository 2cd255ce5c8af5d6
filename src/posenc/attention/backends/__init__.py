"""The ways to compute attention. Each has

    attend(call)             the output, or (output, lse) where call.options.return_lse
    refuses(encoding)        why it can never serve this encoding, or None
    refuses_call(call)       why it cannot serve this call: positions, device, dtype; or None
    OPTIONS                  the names of the options that it serves

None imports another. `reference` is the definition; the others must agree with it. posenc.attention.plan chooses.
"""

from __future__ import annotations

import importlib
from types import ModuleType

NAMES = ("toeplitz", "relative", "regions", "blocks", "sdpa", "reference", "flex")
BACKENDS: dict[str, ModuleType] = {name: importlib.import_module(f"posenc.attention.backends.{name}") for name in NAMES}
AT_ONCE = tuple(name for name in NAMES if name != "flex")  # that one compiles for seconds at every new shape on the CPU
