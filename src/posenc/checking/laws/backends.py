"""Every backend that can express the encoding computes the same; every other one says so."""

from __future__ import annotations

import copy

import torch

from posenc.attention.backends import AT_ONCE
from posenc.checking.laws.compare import difference, tolerance
from posenc.checking.laws.errors import LawBroken, NotApplicable
from posenc.checking.laws.registry import law
from posenc.checking.laws.world import Setting, World, expressible
from posenc.encoding import PositionalEncoding
from posenc.support.identity import label


@law
def backends_agree(encoding: PositionalEncoding, setting: Setting) -> None:
    """Each is within twice the error that the reference has against float64 at this dtype, plus one rounding of the output.

    In float64 itself nothing is more exact, so there the order of summation is what may differ. A backend that cannot
    express the encoding raises and says which can; "auto" is one that can.
    """
    world = World(setting)
    plain = world.plain()
    q, k, v, at = world.heads(encoding, world.x, plain)
    wide = copy.deepcopy(encoding).double()
    at_wide = wide.read_hidden(encoding.embed(world.x, plain).double(), plain)
    exact = world.attend(wide, q.double(), k.double(), v.double(), at_wide, impl="reference")
    reference = world.attend(encoding, q, k, v, at, impl="reference").double()
    allowed = 2 * difference(reference, exact) + torch.finfo(setting.dtype).eps * float(exact.detach().abs().max())
    if setting.dtype == torch.float64:
        allowed = tolerance(setting.dtype, exact)
    able = expressible(encoding, setting.device)
    for impl in (*dict.fromkeys((*AT_ONCE, *able)), "auto"):
        about = f"backends_agree: {label(encoding)} on {impl} in {setting.dtype}"
        try:
            out = world.attend(encoding, q, k, v, at, impl=impl)
        except NotApplicable:
            continue
        except ValueError as error:
            if impl in able or impl == "auto":
                raise
            if "use impl=" not in str(error):
                raise LawBroken(f"{about}: refuses without saying what to use") from error
            continue
        if impl not in able and impl != "auto":
            raise LawBroken(f"{about}: declares that it cannot express the encoding, and did not raise")
        if not (apart := difference(out.double(), exact)) <= allowed:
            raise LawBroken(f"{about}: error {apart:.3g}, allowed {allowed:.3g}")
