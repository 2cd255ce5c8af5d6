"""The sizes with which an encoding can be tried: those that it is built for."""

from __future__ import annotations

import torch

from posenc.checking.laws.world import Setting
from posenc.encoding import PositionalEncoding
from posenc.encodings.bases.content_dependent import ReadsHidden
from posenc.positions import Positions
from posenc.support import checks

SIZES = ("d_model", "n_heads", "d_head")


def fitting(encoding: PositionalEncoding, setting: Setting | None) -> Setting:
    """The setting, after a check that the encoding can be tried in it; None: one with the encoding's heads and widths.

    Raises ValueError for several coordinates per token, of which laws have one, for sizes other than the encoding's, and
    for parts or widths that do not go together: laws are tried with d_model = n_heads·d_head.
    """
    if encoding.axes != 1:
        raise ValueError(
            f"encoding: {type(encoding).__name__} reads {encoding.axes} coordinates per token, and tokens of "
            "laws have one; wrap it in an encoding of one coordinate that says where each token lies"
        )
    sizes = sizes_said(encoding)
    if setting is None:
        return _setting(encoding, sizes)
    wrong = {name: sizes for name, sizes in sizes.items() if getattr(setting, name) not in sizes}
    if wrong:
        built = ", ".join(f"{name}={_shown(sizes)}" for name, sizes in wrong.items())
        got = ", ".join(f"{name}={getattr(setting, name)}" for name in wrong)
        raise ValueError(
            f"setting: {type(encoding).__name__} is built for {built}, got {got}; give these, or leave the setting out"
        )
    return setting


def sizes_said(encoding: PositionalEncoding) -> dict[str, set[int]]:
    """The sizes of SIZES that the encoding and its parts are built for."""
    sizes_of: dict[str, set[int]] = {}
    for part in encoding.modules():
        if not isinstance(part, PositionalEncoding):
            continue
        sizes = [(name, getattr(part, name, part.configuration.get(name))) for name in SIZES]
        if isinstance(part, ReadsHidden):
            sizes.append(("d_model" if part.reads == "hidden" else "d_head", part.configuration.get("d_in")))
        for name, size in sizes:
            if isinstance(size, int) and checks.is_whole(size):
                sizes_of.setdefault(name, set()).add(size)
    return sizes_of


def _setting(encoding: PositionalEncoding, sizes_of: dict[str, set[int]]) -> Setting:
    usual = Setting()
    for name, sizes in sizes_of.items():
        if len(sizes) > 1:
            raise ValueError(f"encoding: its parts are built for {name}={_shown(sizes)}, expected one size; give a setting")
    d_model, n_heads, d_head = (next(iter(sizes_of.get(name, {0}))) for name in SIZES)
    n_heads = n_heads or (d_model // d_head if d_model and d_head else usual.n_heads)
    d_head = d_head or (d_model // n_heads if d_model else usual.d_head)
    d_model = d_model or n_heads * d_head
    if not n_heads or not d_head or d_model != n_heads * d_head:
        built = ", ".join(f"{name}={_shown(sizes)}" for name, sizes in sizes_of.items())
        raise ValueError(f"encoding: built for {built}; laws are tried with d_model = n_heads·d_head")
    largest = encoding.largest_position(usual.dtype)
    return Setting(
        d_model=d_model,
        n_heads=n_heads,
        n_kv_heads=_key_heads(encoding, n_heads, d_head),
        max_positions=usual.max_positions if largest is None else min(usual.max_positions, largest + 1),
    )


def _key_heads(encoding: PositionalEncoding, n_heads: int, d_head: int) -> int:
    """Half as many as query heads; as many where the encoding cannot turn fewer keys, or heads cannot be halved."""
    if n_heads % 2:
        return n_heads
    at = Positions.arange(1, 1)
    try:
        encoding.rotate(torch.zeros(1, n_heads // 2, 1, d_head), at, "key")
    except ValueError as error:
        return n_heads if "head" in str(error) else n_heads // 2  # or else it lacks what `read_hidden` says
    return n_heads // 2


def _shown(sizes: set[int]) -> str:
    return " and ".join(map(str, sorted(sizes)))
