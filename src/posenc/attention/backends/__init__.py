"""The ways to compute attention. Each has

    suits(call)                    whether "auto" asks it for such a call
    refuses(encoding, structure)   why it can never serve this encoding, which has that structure; or None
    refuses_call(call)             why it cannot serve this call: positions, device, dtype; or None
    attend(call)                   the output, or (output, lse) where call.options.return_lse
    OPTIONS                        the names of the options that it serves
    BY_DOCUMENT                    whether it leaves out the pairs of different documents by itself

None imports another. `reference` is the definition; the others must agree with it. posenc.attention.plan asks them in the
order of NAMES, in which `reference` is the last.
"""

from __future__ import annotations

import importlib
from types import ModuleType

NAMES = ("toeplitz", "relative", "regions", "flex", "blocks", "sdpa", "reference")
BACKENDS: dict[str, ModuleType] = {name: importlib.import_module(f"posenc.attention.backends.{name}") for name in NAMES}
FUSED = BACKENDS["sdpa"]  # the fastest without a bias and a finish; it serves every such call without options
AT_ONCE = tuple(name for name in NAMES if name != "flex")  # that one compiles for seconds at every new shape on the CPU
