"""What an implementation is: layout, base, sign, scaling, slopes, buckets, and the known convention that has them.

rotation.py     from rotated unit vectors to pairs, frequencies and a formula
scalings.py     from frequencies to base and scaling
tables.py       from a table to a sinusoid's formula
biases.py       from a bias to slopes or buckets
attention.py    from weights of attention to its bias, and to the scale and the cap of its logits
conventions.py  named conventions
"""

from __future__ import annotations

from dataclasses import replace

import torch

from posenc.checking.identify import attention, biases, rotation, tables
from posenc.checking.result import Difference, Identity
from posenc.checking.say import say
from posenc.checking.subject import ByRows, Seam, Subject

_BY_SEAM = {
    "rotate": rotation.identity,
    "embed": tables.identity,
    "table": tables.identity,
    "bias": biases.identity,
    "attention": attention.identity,
}

_TABLES = ("layout", "base", "offset", "scale", "denominator", "amplitude", "arithmetic")
_BIASES = ("n_heads", "kind", "slopes", "sign", "bucket_starts", "n_buckets", "max_distance", "bidirectional", "hides")
_ROTATION = ("d_head", "rotary_dim", "layout", "trailing", "proportional", "pairs", "sign", "magnitude", "base", "scaling")
FACTS: dict[Seam, tuple[str, ...]] = {  # what `expect` may name: no identity of a seam has other facts
    "rotate": (*_ROTATION, "frequencies", "reversed", "arithmetic"),
    "embed": ("token_scale", *_TABLES),
    "table": _TABLES,
    "bias": (*_BIASES, "window", "future", "future_slope"),
    "attention": (*_BIASES, "window", "softmax_scale", "softcap", "sinks", "future_slope"),
}


def identity(subject: Subject) -> Identity:
    """Identifies the subject. Raises nothing: a subject that breaks the assumptions of its seam is "not identified"."""
    try:
        known = _BY_SEAM[subject.seam](subject.fresh())
        if known.bug == "hidden by place" and "shift_invariant" not in subject.traits:  # it is meant
            known = replace(known, differences=tuple(d for d in known.differences if d.fact != "hides"), bug=None)
        return replace(known, sentence=known.sentence + _of_results(subject))
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        unknown = Difference("identification", say("it could not be identified"))
        return Identity(sentence=f"not identified: {why}", differences=(unknown,))


def _of_results(subject: Subject) -> str:
    """What a call gives, where it is not what a call is given."""
    dtype = {float(torch.finfo(dtype).eps): f"; results in {str(dtype)[6:]}" for dtype in (torch.float16, torch.bfloat16)}
    return dtype.get(subject.rounding, "") + ("; called row by row" if isinstance(subject.function, ByRows) else "")
