"""What is refused where encodings and attention take it: heads that are not there, several layers, tokens of integers."""

import pytest
import torch

from cases import cases
from posenc import Attention, PerLayer, Positions, Stack, attend
from posenc.attention import attend_rotated
from posenc.catalogue import lookup
from posenc.encoding import PositionalEncoding
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bases.learned_rope import LeRoPE
from posenc.encodings.floater import FLOATER
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.encodings.t5 import T5
from posenc.encodings.transformer_xl import TransformerXL

SIZES = {"d_model": 32, "n_heads": 4, "d_head": 8, "n_layers": 1, "max_positions": 32}
ENCODINGS = {name: lookup.create(name, **SIZES) for name in lookup.names()}


class Slopes(PositionalEncoding):
    """A stranger's: it says nothing about wrong heads itself."""

    def __init__(self, n_heads: int) -> None:
        super().__init__(n_heads=n_heads)

    def heads(self, start: int, stop: int) -> "Slopes":
        return Slopes(stop - start)


def of_other_heads() -> list[str]:
    """Encodings of one layer that are built for a number of heads."""
    return [name for name, made in ENCODINGS.items() if made.configuration.get("n_heads")]


@cases("heads", [2, 8])
@cases("name", of_other_heads())
def test_queries_of_other_heads_than_it_was_built_for_are_refused(name, heads):
    """With fewer, the first heads' numbers would be taken; with more, there are none for the last."""
    q, axes = torch.zeros(1, heads, 3, 8), ENCODINGS[name].axes
    at = Positions.at(torch.zeros(1, 3, axes, dtype=torch.long) if axes > 1 else torch.arange(3)[None])
    for encoding in (ENCODINGS[name], Stack(NoPE(), ENCODINGS[name])):
        with pytest.raises(ValueError, match=f"built for n_heads=4, got a tensor with {heads} as q"):
            attend(q, q, q, encoding, at, causal=True)


WRONG_FOR_ALL = [(-1, 2), (2, 2), (3, 1), (0, 0), (0.0, 2), ("0", 2), (False, True), (0, None)]
OF_FOUR = [ALiBi(4), T5(4), TransformerXL(16, 4), Slopes(4), Stack(RoPE(4), T5(4)), PerLayer([NoPE(), ALiBi(4)])]


@cases("bounds", WRONG_FOR_ALL)
@cases("name", ENCODINGS)
def test_heads_that_are_no_slice_are_refused_by_every_encoding(name, bounds):
    with pytest.raises(ValueError, match="heads: expected whole numbers 0 <= start < stop"):
        ENCODINGS[name].heads(*bounds)


@cases("bounds", [(3, 6), (2, 9), (4, 5)])
@cases("encoding", OF_FOUR)
def test_heads_beyond_the_last_are_refused(encoding, bounds):
    """heads(3, 6) of four heads was three copies of head 3."""
    with pytest.raises(ValueError, match="0 <= start < stop <= n_heads=4, got start="):
        encoding.heads(*bounds)
    encoding.heads(3, 4)
    encoding.heads(0, 4)


def test_attention_refuses_the_encodings_of_several_layers():
    """A PerLayer acts at no seam: attention with it was attention without an encoding."""
    several, at = PerLayer([RoPE(4), NoPE()]), Positions.arange(1, 3)
    x = torch.randn(1, 2, 3, 4)
    for encoding in (several, Stack(several, ALiBi(2))):
        for call in (
            lambda e: attend(x, x, x, e, at),
            lambda e: attend_rotated(x, x, x, e, at, at),
            lambda e: Attention(8, 2, e),
        ):
            with pytest.raises(ValueError, match=r"encoding: expected the encoding of one layer, got .*at_layer\(n\)"):
                call(encoding)
        attend(x, x, x, encoding.at_layer(0), at)


@cases("name", [name for name in ENCODINGS if "embed" in ENCODINGS[name].seams])
def test_tokens_of_integers_are_refused(name):
    """The encoding was added and cut off again: integers came back as they were."""
    at = Positions.arange(1, 3)
    for dtype in (torch.int64, torch.bool, torch.complex64):
        with pytest.raises(TypeError, match="x: expected real numbers, got torch"):
            ENCODINGS[name].embed(torch.zeros(1, 3, 32).to(dtype), at)


@pytest.mark.parametrize("encoding", [RoPE(4), LeRoPE(4), Sinusoidal(8), FLOATER(8)], ids=lambda e: type(e).__name__)
def test_tables_prepared_in_inference_mode_serve_training(encoding):
    """Autograd cannot save an inference tensor for backward: torch said so, and not what to do."""
    at = Positions.arange(1, 3)
    with torch.inference_mode():
        prepared = encoding.prepare(at)
    layer = Attention(8, 2, encoding)
    x = torch.randn(1, 3, 8)
    gradients = []
    for positions in (prepared, encoding.prepare(at)):
        layer.zero_grad()
        layer(x, positions).square().sum().backward()
        gradients.append(layer.query.weight.grad.clone())
    assert torch.equal(*gradients)
