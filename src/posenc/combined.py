"""Several encodings: at once, Stack(Learned(...), T5(...)), or one for each layer, PerLayer([...])."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from posenc.encoding import SEAMS, BiasFn, PositionalEncoding, Seam, Side, Trait, usual_scale
from posenc.frequencies.layouts import Planes
from posenc.positions import Positions
from posenc.structure import Blocks, Distances, Regions, Scores, Structure, distance_terms, rotation_of
from posenc.support.checked import checked_on_failure
from posenc.support.identity import label


class Stack(PositionalEncoding):
    """Every part acts at its own seams, in the order given; biases are summed. One part may have a finish of its own.

    Raises ValueError for no parts, for several with a finish, and where the parts ask for different softmax scales.
    """

    @checked_on_failure
    def __init__(self, *parts: PositionalEncoding) -> None:
        if not parts:
            raise ValueError("parts: expected at least one encoding, got none; no encoding at all is NoPE()")
        for part in parts:
            if not isinstance(part, PositionalEncoding):
                raise TypeError(f"parts: expected encodings, got {type(part).__name__}")
        finishing = [type(part).__name__ for part in parts if "finish" in part.seams]
        if len(finishing) > 1:
            raise ValueError(f"parts: expected at most one with a finish of its own, got {' and '.join(finishing)}")
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.traits = _surviving(parts)
        self.axes = max([1, *(part.axes for part in parts if part.seams)])

    @property
    def identity(self) -> str:
        return f"Stack({', '.join(part.identity for part in self)})"

    @property
    def query_copies(self) -> int:  # type: ignore[override]
        return math.prod([part.query_copies for part in self])  # a list: a graph takes no generator

    def __repr__(self) -> str:
        return f"Stack:\n{drawn([self])}"

    def __iter__(self) -> Iterator[PositionalEncoding]:
        return iter(self.parts)  # type: ignore[arg-type]

    @property
    def seams(self) -> frozenset[Seam]:  # type: ignore[override]
        return frozenset().union(*[part.seams for part in self])

    @property
    def reads_vectors(self) -> bool:
        return any(part.reads_vectors for part in self)

    def prepare(self, at: Positions, dtype: torch.dtype = torch.float32) -> Positions:
        return _prepared(self, at, dtype)

    def read_hidden(self, x: Tensor, at: Positions, past: Positions | None = None) -> Positions:
        for part in self:
            at = part.read_hidden(x, at, past)
        return at

    def embed(self, x: Tensor, at: Positions) -> Tensor:
        for part in self:
            x = part.embed(x, at)
        return x

    def rotate(self, x: Tensor, at: Positions, side: Side, out: Tensor | None = None) -> Tensor:
        for part in self:
            x = part.rotate(x, at, side, out)
        return x

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn | None:
        biases = [part.bias(q, k, at_q, at_k) for part in self]
        terms = [term for term in biases if term is not None]
        if not terms:
            return None
        return lambda b, h, i, j: functools.reduce(operator.add, (term(b, h, i, j) for term in terms))

    def structure(self) -> Structure | None:
        """The blocks of the one part that replaces q·k, with the biases of the others; or the distances of all parts."""
        structures = [part.structure() for part in self]
        replacing = [n for n, structure in enumerate(structures) if isinstance(structure, (Regions, Blocks))]
        if replacing:
            first = structures[replacing[0]]
            if len(replacing) > 1 or not isinstance(first, Blocks) or first.logits is None:
                return Blocks(None)
            others = [part for n, part in enumerate(self) if n != replacing[0]]
            return Blocks(functools.partial(_blocks, first.logits, others), first.beyond)
        terms = [distance_terms(part, structure) for part, structure in zip(self, structures, strict=True)]
        if None in terms or not any(terms):
            return None
        biased = [structure for structure in structures if isinstance(structure, Distances)]
        few = biased[0].few if len(biased) == 1 else None  # several are summed in fp64
        return Distances(tuple(term for distances in biased for term in distances.terms), few)

    @property
    def finish(self) -> Callable[[Scores], Tensor]:
        """The method of the part that has one of its own."""
        for part in self:
            if "finish" in part.seams:
                return part.finish
        return functools.partial(PositionalEncoding.finish, self)

    def softmax_scale(self, d_head: int) -> float:
        """That of the parts that ask for one. A part that leaves this method as it is asks for none."""
        scales = set(_scales(self, d_head))
        if len(scales) > 1:
            raise ValueError(
                f"Stack: the parts ask for different softmax scales, {sorted(scales)}; give them one, or the call a `scale`"
            )
        return scales.pop() if scales else usual_scale(d_head)

    def at_layer(self, n: int) -> PositionalEncoding:
        return Stack(*(part.at_layer(n) for part in self))

    def at_length(self, n: int) -> PositionalEncoding:
        return Stack(*(part.at_length(n) for part in self))

    def largest_position(self, dtype: torch.dtype = torch.float32) -> int | None:
        """The smallest of the parts' largest positions."""
        return min((limit for part in self if (limit := part.largest_position(dtype)) is not None), default=None)

    def heads(self, start: int, stop: int) -> PositionalEncoding:
        return Stack(*(part.heads(start, stop) for part in self))


class PerLayer(PositionalEncoding):
    """The encodings of a model's layers, first layer first; a layer takes its own with `at_layer(n)`.

        encoding = PerLayer([local, local, local, NoPE()] * 8)
        at = encoding.prepare(positions)                    # every layer's tables, each computed once
        out = attend(q, k, v, encoding.at_layer(3), at)

    It acts at no seam itself, and attention refuses it. The same encoding may stand for several layers.
    Raises TypeError for what is no encoding, ValueError for no layers, for a layer that there is not, and for what would be
    added to embeddings in a later layer but not in the first one.
    """

    @checked_on_failure
    def __init__(self, layers: Iterable[PositionalEncoding]) -> None:
        layers = list(layers)
        if not layers:
            raise ValueError("layers: expected the encoding of at least one layer, got none")
        for layer in layers:
            if not isinstance(layer, PositionalEncoding):
                raise TypeError(f"layers: expected encodings such as posenc.create('rope', …), got {type(layer).__name__}")
        for n, layer in enumerate(layers):
            if lost := added(layer).keys() - (added(layer.at_layer(n)) | added(layers[0])).keys():
                raise ValueError(
                    f"layers: layer {n} has {added(layer)[min(lost)]}, which is added to the embeddings in the first layer "
                    "only; give it to that layer, in a Stack with what it has"
                )
        super().__init__()
        self.layers = nn.ModuleList(layers)

    @property
    def identity(self) -> str:
        return f"PerLayer({len(self)} layers: {', '.join(dict.fromkeys(layer.identity for layer in self))})"

    def __repr__(self) -> str:
        layers = [self.at_layer(n) for n in range(len(self))]
        return f"PerLayer of {len(self)} layers, the first on the left, ■ where an encoding acts:\n{drawn(layers)}"

    def __iter__(self) -> Iterator[PositionalEncoding]:
        return iter(self.layers)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.layers)

    def prepare(self, at: Positions, dtype: torch.dtype = torch.float32) -> Positions:
        return _prepared({layer.identity: layer for layer in self}.values(), at, dtype)

    def at_layer(self, n: int) -> PositionalEncoding:
        if not 0 <= n < len(self.layers):
            raise ValueError(f"n: expected a layer from 0 to {len(self) - 1}, this PerLayer has {len(self)}, got {n}")
        layer: PositionalEncoding = self.layers[n]  # type: ignore[assignment]
        return layer.at_layer(n)

    def at_length(self, n: int) -> PerLayer:
        return PerLayer(layer.at_length(n) for layer in self)

    def heads(self, start: int, stop: int) -> PerLayer:
        return PerLayer(layer.heads(start, stop) for layer in self)


def _prepared(parts: Iterable[PositionalEncoding], at: Positions, dtype: torch.dtype) -> Positions:
    """Positions with the tables of all parts. One that needs none, since it computes within, has to be asked again once
    others have put theirs there: positions with tables have those of all that read them."""
    parts = list(parts)
    for part in parts:
        at = part.prepare(at, dtype)
    for part in parts if at.tables else ():
        if part.identity not in at.tables:
            at = part.prepare(at, dtype)
    return at


def drawn(layers: Sequence[PositionalEncoding]) -> str:
    """A row for each encoding: the layers in which it acts, its seams, what it is made of."""
    rows: dict[str, tuple[PositionalEncoding, set[int]]] = {}
    for n, layer in enumerate(layers):
        for part in flat_parts([layer]):
            rows.setdefault(part.identity, (part, set()))[1].add(n)
    told = [
        (
            "".join("■" if n in acts else "·" for n in range(len(layers))),
            ", ".join(seam for seam in SEAMS if seam in part.seams) or "–",
            f"{type(part).__name__}({part.extra_repr()})",
        )
        for part, acts in rows.values()
    ]
    width = max(len(seams) for _, seams, _ in told)
    return "\n".join(f"  {marks}  {seams:<{width}}  {made_of}" for marks, seams, made_of in told)


def check_heads(encoding: PositionalEncoding, heads: int, stack: Stack | None = None) -> None:
    """Raises ValueError for queries of another number of heads than the encoding, or a part of it, was built for, and for
    the encodings of several layers.

    stack   the whole of which the encoding is a part; it may be built for the copies that other parts make of the heads
    """
    if isinstance(encoding, Stack):
        for part in encoding:
            check_heads(part, heads, stack or encoding)
        return
    if isinstance(encoding, PerLayer):
        check_one_layer(stack or encoding)
    built = encoding.configuration.get("n_heads", heads)
    if built != heads and (stack is None or built != heads * stack.query_copies):
        raise ValueError(
            f"{type(encoding).__name__}: built for n_heads={built}, got a tensor with {heads} as q: make it with "
            f"n_heads={heads}, or give every slice of the heads its own with encoding.heads(start, stop)"
        )


def one_layer(encoding: PositionalEncoding) -> bool:
    """Whether this is the encoding of a single layer; one of several layers has them by `at_layer(n)`."""
    return all(map(one_layer, encoding)) if isinstance(encoding, Stack) else not isinstance(encoding, PerLayer)


def check_one_layer(encoding: PositionalEncoding) -> None:
    """Raises ValueError for the encodings of several layers, where attention needs the one of its layer."""
    if not one_layer(encoding):
        raise ValueError(
            f"encoding: expected the encoding of one layer, got {type(encoding).__name__} of several; "
            "give encoding.at_layer(n) of layer n"
        )


def added(encoding: PositionalEncoding) -> dict[str, str]:
    """The parts that add to embeddings: their labels by identity."""
    return {part.identity: label(part) for part in flat_parts([encoding]) if "embed" in part.seams}


def _surviving(parts: tuple[PositionalEncoding, ...]) -> frozenset[Trait]:
    """The traits that all parts have, as far as they have them together too. One causal part makes the stack causal."""
    each = [part.traits for part in parts]
    lost: set[Trait] = set() if _relative_together(parts) else {"shift_invariant"}
    return (frozenset.intersection(*each) - lost - {"causal_only"}) | (frozenset.union(*each) & {"causal_only"})


def _relative_together(parts: tuple[PositionalEncoding, ...]) -> bool:
    """Whether parts that depend on distances alone, each by itself, do so together.

    Embeddings, biases and weights do. Rotations A and then B do if B changes what A turned in the same planes or in others:

        (B(i) A(i) q)·(B(j) A(j) k) = (B(i-j) A(i-j) q)·k   if A and B commute

    A bias that reads a query as a vector sees its position in it, if another part turned it. So does what is added to an
    output that another part turns back.
    """
    parts = tuple(flat_parts(parts))
    rotations = [rotation_of(part) for part in parts]
    for n, later in enumerate(rotations):
        if not all(_commute(earlier.turned, later.mixed) for earlier in rotations[:n]):
            return False
    for n, part in enumerate(parts):
        others = [other.sides for other in (*rotations[:n], *rotations[n + 1 :]) if other.turned != ()]
        if part.reads_vectors and any(sides & {"query", "key"} for sides in others):
            return False
        if "finish" in part.seams and any("output" in sides for sides in others):
            return False
    return True


def _commute(turned: tuple[Planes, ...] | None, mixed: tuple[Planes, ...] | None) -> bool:
    if turned is None or mixed is None:
        return turned == () or mixed == ()
    return all(first.commute(second) for first in turned for second in mixed)


def _scales(part: PositionalEncoding, d_head: int) -> list[float]:
    """The softmax scales that parts ask for. Plain loops: a graph takes neither a generator nor `:=` in a comprehension."""
    if isinstance(part, Stack):
        asked: list[float] = []
        for inner in part.parts:
            asked += _scales(inner, d_head)  # type: ignore[arg-type]
        return asked
    scale = None if type(part).softmax_scale is PositionalEncoding.softmax_scale else part.softmax_scale(d_head)
    return [] if scale is None else [scale]


def flat_parts(parts: Iterable[PositionalEncoding]) -> Iterator[PositionalEncoding]:
    """The parts, with the parts of a Stack in its place."""
    for part in parts:
        if isinstance(part, Stack):
            yield from flat_parts(part)
        else:
            yield part


def _blocks(
    logits: Callable[..., Iterator[Tensor]], others: list[PositionalEncoding], q: Tensor, k: Tensor, at: Positions
) -> Iterator[Tensor]:
    """The blocks of logits of one part, plus the biases of the others."""
    biases = [part.bias(q, k, at, at) for part in others]
    return _with_terms(logits(q, k, at), [term for term in biases if term is not None])


def _with_terms(blocks: Iterator[Tensor], terms: list[BiasFn]) -> Iterator[Tensor]:
    """Logits of one block of queries after the other, and the terms of their pairs."""
    for logits in blocks:
        b, h, n, keys = (torch.arange(size, device=logits.device) for size in logits.shape)
        i = n + (logits.shape[3] - logits.shape[2])  # the last query of a block stands at its last key
        grid = [b.view(-1, 1, 1, 1), h.view(1, -1, 1, 1), i.view(1, 1, -1, 1), keys.view(1, 1, 1, -1)]
        yield functools.reduce(operator.add, (term(*grid) for term in terms), logits)


def rotary_layouts(encoding: PositionalEncoding) -> tuple[str, ...]:
    """The layouts of the rotations in the encoding, each once. A layout says which channels make a pair."""
    layouts = (part.configuration.get("layout") for part in flat_parts([encoding]) if "rotate" in part.seams)
    return tuple(dict.fromkeys(layout for layout in layouts if isinstance(layout, str)))


def check_layout(encoding: PositionalEncoding, trained: tuple[str, ...], where: str) -> None:
    """Raises ValueError if the encoding pairs other channels than the weights of `where` were trained with.

    The other layout moves every score, and nothing else shows it.
    """
    layouts = rotary_layouts(encoding)
    if layouts and len(trained) == 1 and layouts[0] != trained[0]:
        raise ValueError(
            f"encoding: {type(encoding).__name__} has layout={layouts[0]!r}, and {where} pairs channels as "
            f"{trained[0]!r}; create it with layout={trained[0]!r}"
        )
