"""Pictures of the encoding itself: heat map, waves, clock hands, wavelengths, the shift matrix, angles, paths.

Legend: t positions, d channels, n pairs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import frequencies
from posenc.encoding import PositionalEncoding
from posenc.frequencies import Frequencies, layouts
from posenc.pictures.exported_tables import turns_embeddings
from posenc.pictures.measures import distances, shift_matrix, uniqueness
from posenc.pictures.plots.picture import Clocks, Curves, Line, Mark, Matrices, Panel, Path, number
from posenc.positions import Positions
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Float


STRIPED = 0.1  # a smaller share of the squares than this varies along the positions


@checked
@torch.no_grad()
def table_of(encoding: PositionalEncoding, length: int, width: int) -> Float[Tensor, "t d"]:
    """What an encoding does at positions 0 … length-1, as a table in fp64.

    EMBED    what it adds to the embedding, or, where it turns embeddings, what it makes of one whose every pair is (1, 0)
    ROTATE   what it makes of a query whose every pair is (1, 0): cos and sin of the angle, with xPos's factor
    """
    at = Positions.arange(1, length)
    turning = turns_embeddings(encoding)
    if "embed" in encoding.seams and not turning:
        return encoding.embed(torch.zeros(1, length, width, dtype=torch.float64), at)[0]
    if encoding.seams & {"embed", "rotate"}:
        ones = torch.ones(1, length, width // 2, dtype=torch.float64)
        pairs = layouts.join(ones, torch.zeros_like(ones), getattr(encoding, "layout", "interleaved"))
        return encoding.embed(pairs, at)[0] if turning else encoding.rotate(pairs[None], at, "query")[0, 0]
    raise ValueError(
        f"encoding: {type(encoding).__name__} adds to the scores, not to the tokens; it has no table of positions"
    )


@checked
def heatmap(encoding: PositionalEncoding, *, length: int = 50, width: int = 128) -> Matrices:
    """Position × channel, -1 blue to +1 red. `width` is d_model, or d_head for an encoding that rotates.

    Where positions hardly change what a channel adds, only stripes would be seen: then each channel is shown without its
    mean.
    """
    table = table_of(encoding, length, width)
    moved = table - table.mean(dim=0)
    learned = bool(list(encoding.parameters()))
    striped = learned and length > 1 and bool(moved.square().mean() < STRIPED * table.square().mean())
    shown = ", minus its mean over positions" if striped else ""
    table = moved if striped else table
    limit = float(table.abs().max())
    limit = 1.0 if limit <= 1.0 and not learned else limit
    norm = table.norm(dim=1)
    return Matrices(
        f"{_name(encoding)}: {_acts(encoding)}{shown}, position × channel",
        (_READ[_kind(encoding)], f"Rows have length {_range(norm)}; entries run from {_range(table)}."),
        (Panel("", table),),
        "position",
        "channel",
        "value",
        limit or 1.0,
        paired=not width % 2,
    )


@checked
def waves(
    encoding: PositionalEncoding, *, length: int = 512, width: int = 128, columns: tuple[int, ...] | None = None
) -> Curves:
    """Chosen channels against position: by default the first that turns, and those a quarter and half of the way.

    Interleaved, channel c of those that turn belongs to pair ⌊c/2⌋.
    """
    omega = _omega(encoding)
    turned = width if omega is None else min(width, 2 * len(omega))
    first = width - turned if getattr(encoding, "trailing", False) else 0
    if columns is None:
        columns = tuple(sorted({first, first + turned // 4 // 2 * 2, first + turned // 2 // 2 * 2}))
    if not columns:
        raise ValueError("columns: expected at least one channel, got none")
    for column in columns:
        if not 0 <= column < width:
            raise ValueError(f"columns: expected channels 0 … {width - 1}, got {column}")
    table, x = table_of(encoding, length, width), torch.arange(length)
    names = [f"channel {column}" for column in columns]
    second = "It has no frequency of its own: each channel goes where the parameters take it."
    if omega is not None and getattr(encoding, "layout", None) == "interleaved":
        pairs = [(column - first) // 2 for column in columns]
        names = [
            f"{name}: pair {pair}, ω = {number(omega[pair])}" if 0 <= pair < len(omega) else f"{name}: not turned"
            for name, pair in zip(names, pairs, strict=True)
        ]
        if 0 <= (last := pairs[-1]) < len(omega) and omega[last]:
            second = (
                f"Channel {columns[-1]} is pair {last}, not frequency number {columns[-1]}: ω = {number(omega[last])}, "
                f"one turn in {number(2 * math.pi / omega[last])} positions."
            )
    return Curves(
        f"{_name(encoding)}: channels against position",
        ("One channel of the table, followed along the sequence.", second),
        tuple(Line(name, x, table[:, c]) for name, c in zip(names, columns, strict=True)),
        "position",
        "value",
        stacked=True,
    )


@checked
def clock(encoding: PositionalEncoding, *, length: int = 101, clocks: int = 8) -> Clocks:
    """Pairs as the hands of clocks, fast to slow: the hand of pair i turns by ω_i at each position.

    The positions are 0 and seven that grow evenly by factor up to length-1; the pairs are spread evenly over those that
    turn. Raises ValueError if no pair turns.
    """
    omega = _turning(encoding)
    turning = [pair for pair, frequency in enumerate(omega) if frequency]
    pairs = tuple(sorted({turning[round(n * (len(turning) - 1) / (clocks - 1))] for n in range(clocks)}))
    still = f"; {len(omega) - len(turning)} of them never turn" if len(turning) < len(omega) else ""
    positions = tuple(sorted({0, *(round((length - 1) ** (n / 6)) for n in range(7) if length > 1)}))
    chosen = torch.tensor([omega[pair] for pair in pairs], dtype=torch.float64)
    lengths = tuple(2 * math.pi / omega[pair] for pair in pairs)
    return Clocks(
        f"{_name(encoding)}: each pair of channels is the hand of a clock",
        (
            "The hand of a pair turns by its frequency ω at every position; its height is cos, its reach to the right sin.",
            f"{len(omega)} pairs, one turn in {number(lengths[0])} to {number(lengths[-1])} positions{still}.",
        ),
        positions,
        pairs,
        lengths,
        torch.tensor(positions, dtype=torch.float64)[:, None] * chosen,
    )


@checked
def wavelength_ladder(encoding: PositionalEncoding, *, length: int = 4096) -> Curves:
    """The wavelength of each pair in positions, and which pairs do not finish a turn within `length`.

    Pairs that never turn have none and are only counted. Raises ValueError if no pair turns.
    """
    omega = _turning(encoding)
    turning = torch.tensor(omega, dtype=torch.float64)
    pair, wave = turning.nonzero().flatten(), 2 * math.pi / turning[turning != 0]
    beyond = wave > length
    still = f"; {len(omega) - len(pair)} more never turn" if len(pair) < len(omega) else ""
    lines = tuple(
        line
        for line in (
            Line(f"turns at least once in {length} positions", pair[~beyond], wave[~beyond], points=True),
            Line("never finishes a turn there", pair[beyond], wave[beyond], points=True),
        )
        if len(line.x)
    )
    return Curves(
        f"{_name(encoding)}: wavelength of every pair of channels",
        (
            "Each pair is slower than the one before by the same factor.",
            f"From {number(float(wave[0]))} to {number(float(wave[-1]))} positions; {int(beyond.sum())} of {len(pair)} "
            f"pairs are longer than {length}, and beyond it show phases not seen before{still}.",
        ),
        lines,
        "pair",
        "wavelength in positions",
        log_y=True,
        rule=Mark(0, float(length), f"length {length}"),
    )


@checked
def shift(*, lag: float = 3, d_model: int = 16, base: float = 10000.0) -> Matrices:
    """M_k with PE(p+k) = M_k PE(p): Vaswani et al. 2017, section 3.5."""
    matrix = shift_matrix(lag, d_model, base)
    return Matrices(
        f"Sinusoidal shift matrix: PE(p + {lag:g}) = M · PE(p), whatever p",
        (
            "Every pair of channels is turned by its own angle kω; no entry depends on the position.",
            f"d_model = {d_model}, k = {lag:g}; the first block turns by {lag:g} rad, the last by "
            f"{number(lag * frequencies.rotary(d_model, base)[-1])} rad.",
        ),
        (Panel("", matrix),),
        "channel after",
        "channel before",
        "entry",
        1.0,
        paired=True,
    )


@checked
def angles(encoding: PositionalEncoding, *, length: int = 128) -> Matrices:
    """Position × pair: the angle by which queries and keys are turned, as a colour on a ring."""
    omega = _needed(encoding)
    turned = torch.arange(length).double()[:, None] * torch.tensor(omega, dtype=torch.float64)
    return Matrices(
        f"{_name(encoding)}: the angle of every pair, position × pair",
        (
            "White is no turn, red the first half of it, dark the half-way point, blue the way back.",
            f"Pair 0 turns 1 rad at each position, pair {len(omega) - 1} only {number(omega[-1])} rad.",
        ),
        (Panel("", turned.remainder(2 * math.pi)),),
        "position",
        "pair",
        "angle",
        2 * math.pi,
        cyclic=True,
    )


@checked
def path(encoding: PositionalEncoding, *, length: int = 512, width: int = 64) -> Path:
    """The rows of the table as a path, projected on its two principal axes."""
    if length < 2 or width < 2:
        raise ValueError(f"a path in the plane needs two positions and two channels, got {length} and {width}")
    table = table_of(encoding, length, width)
    centred = table - table.mean(dim=0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    share = float(s[:2].square().sum() / s.square().sum())
    step = (table[1:] - table[:-1]).norm(dim=1)
    return Path(
        f"{_name(encoding)}: the path of positions 0 … {length - 1}",
        (
            _WALK.get(type(encoding).__name__, "Each position is a point; the line joins neighbours."),
            f"The plane shows {share:.0%} of the variance; a step from one position to the next is {_range(step)} long.",
        ),
        u[:, :2] * s[:2],
        share,
    )


@checked
def distance(*, length: int = 4096, d_model: int = 8, base: float = 10000.0) -> Curves:
    """‖PE(p+k) - PE(p)‖ against the lag, with its smallest value marked."""
    lags = torch.arange(1, length)
    apart, closest = distances(lags, d_model, base), uniqueness(d_model, length, base)
    return Curves(
        f"Sinusoidal: distance of two rows by lag, d_model = {d_model}",
        (
            "The distance of two rows depends on their lag alone, so one curve holds every pair of rows.",
            f"The closest two of {length} rows are {number(closest.distance)} apart, at lag {closest.lag}: "
            "no two are equal.",
        ),
        (Line("‖PE(p+k) − PE(p)‖", lags, apart),),
        "lag k",
        "distance",
        log_x=True,
        log_y=d_model < 8,
        marks=(Mark(closest.lag, closest.distance, f"{number(closest.distance)} at lag {closest.lag}"),),
    )


_READ = {
    "sinusoid": "Each cell is sin or cos of position × frequency: left channels turn fast, right ones hardly move.",
    "rotation": "Each cell is cos or sin of the angle that turns a pair: left pairs turn fast, right ones hardly move.",
    "learned": "A table of numbers: neighbouring rows are alike only as far as training has made them so.",
    "path": "Neighbouring rows are alike: position is a path that flows on from row to row.",
}
_WALK = {
    "FLOATER": "Position as the path of a learned dynamical system: it goes on beyond any trained length.",
    "Learned": "Neighbouring rows of a learned table are neighbours only as far as training has made them so.",
    "Sinusoidal": "Every pair of channels walks a circle; together they wind and never close.",
}


def _kind(encoding: PositionalEncoding) -> str:
    if "rotate" in encoding.seams or turns_embeddings(encoding):
        return "rotation"
    if not list(encoding.parameters()):
        return "sinusoid"
    return "path" if hasattr(encoding, "path") else "learned"


def _acts(encoding: PositionalEncoding) -> str:
    if turns_embeddings(encoding):
        return "how it turns an embedding"
    return "what it adds" if "embed" in encoding.seams else "how it turns a query"


def _name(encoding: PositionalEncoding) -> str:
    return type(encoding).__name__


def _omega(encoding: PositionalEncoding) -> tuple[float, ...] | None:
    """The frequencies of the first axis, or None for an encoding that has none."""
    spectrum = getattr(encoding, "frequencies", None)
    if not isinstance(spectrum, Frequencies):
        return spectrum
    return tuple(value for value, axis in zip(spectrum, spectrum.axes or [0] * len(spectrum), strict=True) if axis == 0)


def _needed(encoding: PositionalEncoding) -> tuple[float, ...]:
    omega = _omega(encoding)
    if omega is None:
        raise ValueError(f"encoding: {type(encoding).__name__} has no frequencies to draw")
    return omega


def _turning(encoding: PositionalEncoding) -> tuple[float, ...]:
    """The frequencies, of which at least one is not 0."""
    omega = _needed(encoding)
    if not any(omega):
        raise ValueError(f"encoding: every frequency of {type(encoding).__name__} is 0, expected a pair that turns")
    return omega


def _range(values: Tensor) -> str:
    low, high = float(values.min()), float(values.max())
    return number(high) if high - low < 1e-9 * max(high, 1.0) else f"{number(low)} to {number(high)}"
