"""What differs between versions of transformers: which ones are tested, and what a call names its cache.

past_key_values    up to 5.23; from 5.24 to 5.39 it still works, and is renamed by transformers
cache              from 5.24
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

TESTED = (5, 16), (5, 24)  # the oldest and the newest minor version; pyproject.toml says the same
NAMES = ("cache", "past_key_values")  # of the argument of a decoder, the newest first
PLAIN = (type(None), bool, int, float, str, Tensor)  # use_cache, cache_position and the like hold no keys


def tested() -> str:
    """The tested range in words."""
    return " to ".join(".".join(map(str, version)) for version in TESTED)


def warn_untested() -> None:
    """Warns once where the installed transformers is of a minor version outside of the tested range."""
    _warn_untested(_installed())


def _installed() -> str:
    import transformers

    return str(transformers.__version__)


@functools.cache
def _warn_untested(version: str) -> None:
    minor = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if not TESTED[0] <= minor <= TESTED[1]:
        warnings.warn(
            f"posenc.transformers is tested with transformers {tested()}, this is {version}: what has changed there may "
            "make results wrong. posenc.transformers.check(model) tries the laws of position on a model",
            stacklevel=2,
        )


def is_cache(name: str, value: Any) -> bool:
    """Whether an argument or an output of this name holds the keys of earlier tokens: by its class, or by its name."""
    if hasattr(type(value), "get_seq_length"):
        return True
    return ("cache" in name or "past" in name) and not isinstance(value, PLAIN)


def of_self_attention(cache: Any) -> Any:
    """The cache of a decoder's own tokens: a part of the one of an encoder with a decoder, else the cache itself."""
    return getattr(cache, "self_attention_cache", cache)


def cache_of(decoder: Any, taken: Collection[str], arguments: Mapping[str, Any]) -> tuple[str, Any]:
    """The cache of a decoder's own tokens in a call, and its name there; ("", None) where there is none.

    taken  the names of the decoder's arguments
    given  what it is called with, by name
    Raises TypeError for a cache under a name that is not known, for one that does not count its tokens, and for two.
    """
    names = NAMES if NAMES[0] in taken or NAMES[1] not in taken else NAMES[1:]  # 5.23 would ignore a `cache`
    known = {name: arguments[name] for name in names if arguments.get(name) is not None}
    if not known:
        if other := next((name for name, value in arguments.items() if is_cache(name, value)), None):
            raise _unknown(decoder, other, arguments[other], names[0])
        return "", None
    name, cache = next(iter(known.items()))
    if any(other_cache is not cache for other_cache in known.values()):
        raise TypeError(f"{', '.join(known)}: expected one cache, got two; pass it as {name} alone")
    if not hasattr(type(cache), "get_seq_length"):
        raise _unknown(decoder, name, cache, "")
    return name, of_self_attention(cache)


def _unknown(decoder: Any, name: str, cache: Any, expected: str) -> TypeError:
    instead = f"pass a cache as {expected}" if expected else "pass a cache that counts its tokens, such as a DynamicCache"
    if "Paged" in type(cache).__name__:  # of generate_batch
        instead = (
            "continuous batching attends with implementations of its own, which leave out what is attached; call generate "
            "with rows padded on the left"
        )
    return TypeError(
        f"{name}: this {type(decoder).__name__} was given a {type(cache).__name__}, in which posenc cannot count the "
        f"earlier tokens, so that the positions of the new ones are not known; {instead}, or detach(model) first. "
        f"posenc.transformers is tested with transformers {tested()}, this is {_installed()}"
    )
