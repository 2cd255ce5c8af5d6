"""What every encoding must obey, for anyone's implementation.

    posenc.laws.check(my_encoding, posenc.laws.Setting(d_model=64, n_heads=4))      raises LawBroken at the first breach
    posenc.laws.report(my_encoding)                                                  says of every law whether it holds

Each law is a plain function of an encoding and a setting. A law compares an encoding with itself under another arrangement
of the same tokens, so it needs no formula. A wrong sign or constant is for an oracle to find.

Draw the parameters of a learned encoding first (`draw_parameters`): a table of zeros obeys nearly every law.

    rows            a token's row depends on the token alone
    arrangements    the same tokens in chunks, packed, padded, sharded, shifted, in another order, at other strides
    attention_module  posenc.Attention is what its parts are
    caches          what is rolled back, dropped, kept in a ring or reordered, row by row
    state           where configuration lives, and what a call may write
    compilation     torch.compile
    derivatives     gradients
    torch_func      forward mode, torch.func, second derivatives
    checkpointing   activation checkpointing and hooks on saved tensors
    backends        every backend computes the same
    no_visible_key  queries from which everything is hidden
    sizes           no rows, no tokens, values of another width than the heads
    options         masks, windows, chunks, scales and caps mean the same everywhere

Legend: b batch, t tokens, h query heads, g key heads, d d_model, dh d_head.
"""

from posenc.checking.errors import LawBroken, NotApplicable
from posenc.checking.laws import (  # noqa: F401 (each adds its laws to LAWS)
    arrangements,
    attention_module,
    backends,
    caches,
    checkpointing,
    compilation,
    derivatives,
    no_visible_key,
    options,
    rows,
    sizes,
    state,
    torch_func,
)
from posenc.checking.laws.registry import LAWS, Law, check, law, report
from posenc.checking.laws.world import Setting, World, draw_parameters, expressible

__all__ = ["LAWS", "Law", "LawBroken", "NotApplicable", "Setting", "World", "check", "draw_parameters", "expressible"]
__all__ += ["law", "report", *LAWS]


def __getattr__(name: str) -> Law:
    if name in LAWS:
        return LAWS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
