"""What an implementation is: layout, base, sign, scaling, slopes, buckets, and the known convention that has them.

rotation.py     from rotated unit vectors to pairs, frequencies and a formula
scalings.py     from frequencies to base and scaling
tables.py       from a table to a sinusoid's formula
biases.py       from a bias to slopes or buckets
conventions.py  named conventions
"""

from __future__ import annotations

from posenc.checking.identify import biases, rotation, tables
from posenc.checking.result import Difference, Identity
from posenc.checking.say import say
from posenc.checking.subject import Seam, Subject

_BY_SEAM = {
    "rotate": rotation.identity,
    "embed": tables.identity,
    "table": tables.identity,
    "bias": biases.identity,
    "attention": biases.identity_of_attention,
}

_TABLES = ("layout", "base", "offset", "scale", "denominator", "amplitude", "arithmetic")
_BIASES = ("n_heads", "kind", "slopes", "sign", "bucket_starts", "n_buckets", "max_distance", "bidirectional", "hides")
_ROTATION = ("d_head", "rotary_dim", "layout", "trailing", "proportional", "pairs", "sign", "magnitude", "base", "scaling")
FACTS: dict[Seam, tuple[str, ...]] = {  # what `expect` may name: no identity of a seam has other facts
    "rotate": (*_ROTATION, "frequencies", "reversed", "arithmetic"),
    "embed": ("token_scale", *_TABLES),
    "table": _TABLES,
    "bias": (*_BIASES, "future", "future_slope"),
    "attention": (*_BIASES, "softmax_scale", "future_slope"),
}


def identity(subject: Subject) -> Identity:
    """Identifies the subject. Raises nothing: a subject that breaks the assumptions of its seam is "not identified"."""
    try:
        return _BY_SEAM[subject.seam](subject.fresh())
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        unknown = Difference("identification", say("it could not be identified"))
        return Identity(sentence=f"not identified: {why}", differences=(unknown,))
