"""Which pictures there are, which encodings each of them suits, and at what sizes it is drawn unless said otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from posenc.attention.own_finish import own_finish
from posenc.catalogue.lookup import BY_NAME, create, names
from posenc.encoding import DistanceBias, PositionalEncoding
from posenc.encodings.nope import NoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.encodings.transformer_xl import TransformerXL
from posenc.pictures.measures.layers import redrawn, seeded
from posenc.pictures.plots import order, scores, tables
from posenc.pictures.plots.picture import Picture

SEED = 0
MOST_ENTRIES = 2**24


@dataclass(frozen=True)
class Request:
    """Sizes asked for; None takes the view's own."""

    length: int | None = None
    d_model: int | None = None
    n_heads: int | None = None
    base: float | None = None
    lag: float = 3.0


@dataclass(frozen=True)
class Sizes:
    length: int
    d_model: int
    n_heads: int
    base: float
    lag: float

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads


@dataclass(frozen=True)
class View:
    """about     one line for the help
    suits        whether it makes sense for an encoding
    build        the picture
    length, d_model, n_heads   sizes unless said otherwise; rotating encodings get one head, so that d_head is d_model
    longest, widest   the largest length and d_model it is drawn for
    """

    about: str
    suits: Callable[[PositionalEncoding], bool]
    build: Callable[[PositionalEncoding, Sizes], Picture]
    length: int = 50
    d_model: int = 64
    n_heads: int = 4
    longest: int = 65536
    widest: int = 4096


def _width(encoding: PositionalEncoding, sizes: Sizes) -> int:
    return sizes.d_head if "rotate" in encoding.seams else sizes.d_model


def _has_table(encoding: PositionalEncoding) -> bool:
    return bool(encoding.seams & {"embed", "rotate"})


def _has_frequencies(encoding: PositionalEncoding) -> bool:
    return hasattr(encoding, "frequencies")


def _decay(encoding: PositionalEncoding, sizes: Sizes) -> Picture:
    if isinstance(encoding, Sinusoidal):
        return scores.sinusoidal_decay(length=sizes.length, d_model=sizes.d_model, base=sizes.base)
    return scores.decay(encoding, length=sizes.length, width=_width(encoding, sizes))


def _bias(encoding: PositionalEncoding, sizes: Sizes) -> Picture:
    return scores.bias(
        encoding, n_heads=sizes.n_heads, d_head=sizes.d_head, length=sizes.length, causal="causal_only" in encoding.traits
    )


def _terms(encoding: PositionalEncoding, sizes: Sizes) -> Picture:
    assert isinstance(encoding, TransformerXL)
    return scores.terms(encoding, length=sizes.length)


def _order(encoding: PositionalEncoding, sizes: Sizes) -> Picture:
    shown = {"nope": NoPE()} | ({} if isinstance(encoding, NoPE) else {_name(encoding): encoding})
    return order.order(shown, d_model=sizes.d_model, n_heads=sizes.n_heads, length=sizes.length)


def _changes_scores(encoding: PositionalEncoding, n_heads: int, d_head: int) -> bool:
    return "bias" in encoding.seams or own_finish(encoding, n_heads, d_head) == "context"


VIEWS: dict[str, View] = {
    "heatmap": View(
        "the table, position × channel",
        _has_table,
        lambda e, s: tables.heatmap(e, length=s.length, width=_width(e, s)),
        length=48,
    ),
    "bias": View(
        "what is added to the score, query × key, per head",
        lambda e: _changes_scores(e, 4, 16),
        _bias,
        length=32,
        longest=1024,
    ),
    "terms": View(
        "the four terms of Transformer-XL's score", lambda e: isinstance(e, TransformerXL), _terms, length=32, longest=1024
    ),
    "waves": View(
        "three channels against position",
        _has_table,
        lambda e, s: tables.waves(e, length=s.length, width=_width(e, s)),
        length=512,
        d_model=128,
    ),
    "clock": View(
        "pairs of channels as hands of clocks",
        lambda e: _has_frequencies(e) and _has_table(e),
        lambda e, s: tables.clock(e, length=s.length),
        length=101,
        d_model=128,
        longest=2**31,
    ),
    "wavelengths": View(
        "the wavelength of every pair, and which exceed --length",
        _has_frequencies,
        lambda e, s: tables.wavelength_ladder(e, length=s.length),
        length=4096,
        d_model=128,
        longest=2**31,
    ),
    "angles": View(
        "the angle of every pair, position × pair",
        lambda e: _has_frequencies(e) and "rotate" in e.seams,
        lambda e, s: tables.angles(e, length=s.length),
        length=48,
        d_model=64,
    ),
    "decay": View(
        "the score against distance",
        lambda e: _has_table(e) or isinstance(e, DistanceBias),
        _decay,
        length=256,
        d_model=128,
        longest=4096,
    ),
    "shift": View(
        "the matrix that moves every row by --lag",
        lambda e: isinstance(e, Sinusoidal),
        lambda e, s: tables.shift(lag=s.lag, d_model=s.d_model, base=s.base),
        d_model=16,
        widest=512,
    ),
    "distance": View(
        "the distance of two rows by their lag",
        lambda e: isinstance(e, Sinusoidal),
        lambda e, s: tables.distance(length=s.length, d_model=s.d_model, base=s.base),
        length=4096,
        d_model=8,
    ),
    "path": View(
        "the rows as a path in the plane",
        lambda e: "embed" in e.seams,
        lambda e, s: tables.path(e, length=s.length, width=s.d_model),
        length=512,
        longest=8192,
    ),
    "taylor": View(
        "how much of the position signal is relative",
        lambda e: isinstance(e, Sinusoidal),
        lambda e, s: order.taylor(base=s.base),
    ),
    "remainder": View(
        "what the Taylor split leaves over", lambda e: isinstance(e, Sinusoidal), lambda e, s: order.remainder(base=s.base)
    ),
    "order": View(
        "what happens when the words change places", lambda e: True, _order, length=6, d_model=32, longest=512, widest=512
    ),
}


def views_of(method: str) -> list[str]:
    """The views that suit an encoding, the first being the one to start with."""
    encoding = create(method, d_model=64, n_heads=4)
    return [name for name, view in VIEWS.items() if view.suits(encoding)]


def drawable() -> list[str]:
    """The encodings that have pictures: those of words in a row that act in one layer and read no hidden states."""
    return [name for name in names() if BY_NAME[name].in_a_row]


def methods_of(view: str) -> list[str]:
    """The encodings that a view suits."""
    return [method for method in drawable() if VIEWS[view].suits(create(method, d_model=64, n_heads=4))]


def picture_of(method: str, view_name: str, request: Request) -> tuple[Picture, Sizes]:
    """The picture and the sizes it was drawn for; other heads without another d_model keep the width of a head.

    What an encoding adds to the tokens is shown as it starts. Tables of scores start at or near zero, so their parameters
    are drawn anew. Raises ValueError and TypeError for sizes and options that do not fit.
    """
    view = VIEWS[view_name]
    rotates = "rotate" in BY_NAME[method].load().seams and view_name != "order"
    own_heads = 1 if rotates else view.n_heads
    n_heads = own_heads if request.n_heads is None else request.n_heads
    own_width = min(view.d_model // own_heads * n_heads, view.widest // n_heads * n_heads)
    sizes = Sizes(
        length=view.length if request.length is None else request.length,
        d_model=own_width if request.d_model is None else request.d_model,
        n_heads=n_heads,
        base=10000.0 if request.base is None else request.base,
        lag=request.lag,
    )
    for name, got, most in (("length", sizes.length, view.longest), ("d_model", sizes.d_model, view.widest)):
        if got > most:
            raise ValueError(f"{name}: {view_name} is drawn up to {most}, got {got}")
    entries = sizes.length * max(sizes.d_model, sizes.n_heads * sizes.length if view.longest <= 1024 else 0)
    if view.longest <= 65536 and entries > MOST_ENTRIES:
        raise ValueError(f"length, d_model, n_heads: a picture of {entries} entries is too large, up to {MOST_ENTRIES}")
    base: dict[str, Any] = {} if request.base is None else {"base": request.base}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        encoding = create(method, **_needs(method, sizes), **base)
    start = " Untrained: its parameters are as they start."
    if _changes_scores(encoding, sizes.n_heads, sizes.d_model // sizes.n_heads):
        encoding, start = redrawn(encoding, seeded(SEED)), " Untrained: its parameters are drawn from N(0, 0.5²)."
    picture = view.build(encoding, sizes)
    if view_name in ("order", "wavelengths") or not list(encoding.parameters()):
        return picture, sizes
    return replace(picture, idea=(picture.idea[0], picture.idea[1] + start)), sizes


def _needs(method: str, sizes: Sizes) -> dict[str, Any]:
    """The sizes that an encoding takes, so that heads need not divide the width of one that has none."""
    parameters = inspect.signature(BY_NAME[method].maker()).parameters
    sizes_given = {"d_model": sizes.d_model, "n_layers": 2, "max_positions": max(2048, 2 * min(sizes.length, 65536))}
    return sizes_given | ({"n_heads": sizes.n_heads} if {"n_heads", "d_head"} & set(parameters) else {})


def _name(encoding: PositionalEncoding) -> str:
    return next(
        (name for name, entry in BY_NAME.items() if entry.class_name == type(encoding).__name__ and not entry.builder),
        type(encoding).__name__,
    )
