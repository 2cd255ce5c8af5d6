"""The laws over encodings that act on embeddings: one coordinate per token or none, then several."""

import copy
import pickle

import pytest
import torch

from posenc import PositionalEncoding, Positions
from posenc.checking import laws
from posenc.encodings.bases.fourier import FourierBands, RandomFourier, spread
from posenc.encodings.bases.learned_axes import LearnedAxes, with_sizes
from posenc.encodings.bases.learned_grid import LearnedGrid
from posenc.encodings.conditional import Conditional
from posenc.encodings.convolutional import Convolutional
from posenc.encodings.learned import Learned
from posenc.encodings.of_families.gated_tiles import GatedTiles, tile_positions
from posenc.encodings.of_families.xpath import XPath
from posenc.encodings.sinusoidal import ScaledSinusoidal, Sinusoidal
from sampling import a_third, every_second, one_in, only, thinned

LOCAL = {
    "fairseq": lambda: Sinusoidal(32, layout="sin_cos", denominator="d/2-1", offset=2, odd="zero", silent="padding"),
    "amplitude": lambda: Sinusoidal(32, layout="sin_cos", amplitude=1.5),
    "sam2 pointers": lambda: Sinusoidal(32, layout="sin_cos", repeats=2, scale=0.5),
    "one coordinate read twice": lambda: Sinusoidal(32, reads=(0, 0), base=(10.0, 10000.0)),
    "scaled": lambda: ScaledSinusoidal(32),
    "roberta": lambda: Learned(32, 128, row_offset=2, padding_row=1),
    "clamped": lambda: Learned(32, 200, clamp=True),
    "reformer": lambda: LearnedAxes(32, (8, 25), combine="concat", widths=(12, 20), folded=True),
}
NEIGHBOURS = {
    "wav2vec2": lambda: Convolutional(32, 4, groups=4),
    "data2vec": lambda: Convolutional(32, 3, groups=4, layers=3, normed=True, weight_norm=False),
}
WHOLE_ROWS = [
    "padded_equals_unpadded",
    "shift_invariance",
    "head_slices",
    "state_is_configuration",
    "casting_a_module_does_not_round_its_angles",
    "tables_survive_to_empty",
    "default_dtype_does_not_matter",
    "autocast_does_not_matter",
    "inference_mode_does_not_matter",
    "calls_at_once_do_not_matter",
    "forward_writes_nothing",
    "tables_know_their_owner",
    "one_graph_over_lengths",
    "backends_agree",
    "norm_preservation",
]
DTYPES = [torch.float64, torch.float32, torch.bfloat16]


def drawn(build) -> PositionalEncoding:
    return laws.draw_parameters(build(), seed=1)


@pytest.mark.parametrize(("name", "dtype"), thinned(2, every_second(LOCAL, DTYPES)), ids=str)
def test_every_law(name, dtype):
    left_out = ("gradients", "transforms", "checkpointed_equals_plain", "one_graph_over_lengths")
    every = [law for law in laws.LAWS if law not in left_out]
    laws.check(drawn(LOCAL[name]), laws.Setting(dtype=dtype), every)


@pytest.mark.parametrize("name", LOCAL)
def test_transforms_and_checkpointing(name):
    laws.check(drawn(LOCAL[name]), laws.Setting(), ["transforms", "checkpointed_equals_plain"])


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_transforms_and_checkpointing_over_neighbours(name):
    laws.check(drawn(NEIGHBOURS[name]), laws.Setting(causal=False), ["transforms", "checkpointed_equals_plain"])


@pytest.mark.parametrize("name", only(LOCAL, next(iter(LOCAL))))
def test_gradients_and_one_graph(name):
    laws.check(drawn(LOCAL[name]), laws.Setting(), ["gradients", "one_graph_over_lengths"])


@pytest.mark.parametrize(("name", "dtype"), thinned(2, every_second(NEIGHBOURS, DTYPES)), ids=str)
def test_laws_of_whole_rows(name, dtype):
    laws.check(drawn(NEIGHBOURS[name]), laws.Setting(dtype=dtype, causal=False), WHOLE_ROWS)


@pytest.mark.parametrize("name", one_in(2, NEIGHBOURS))
def test_gradients_over_neighbours(name):
    laws.check(drawn(NEIGHBOURS[name]), laws.Setting(causal=False), ["gradients"])


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_what_neighbours_cannot_do_is_refused(name):
    """Packed rows and chunks: not a wrong result but an error."""
    encoding = drawn(NEIGHBOURS[name])
    for law in ("packed_equals_separate", "decode_equals_prefill"):
        with pytest.raises(ValueError, match="a row must be one whole document"):
            laws.check(encoding, laws.Setting(), [law])


# Several coordinates: the laws' own tokens have one, so the same things are asked here of images, boxes, tiles and paths.


def patches(side: int) -> Positions:
    return Positions.grid(side, 4, prefix=1, sized=True)


def boxes(side: int) -> Positions:
    drawn = torch.randint(0, 9, (1, side * 4, 4), generator=torch.Generator().manual_seed(side))
    return Positions.at(with_sizes(drawn))


def paths(side: int) -> Positions:
    return Positions.at(torch.randint(0, 5, (1, side * 4, 6), generator=torch.Generator().manual_seed(side)))


SEVERAL = {
    "vit": (lambda: LearnedGrid(32, 3, 3, prefix=1), patches),
    "siglip2": (lambda: LearnedGrid(32, 3, 3, prefix=1, mode="bilinear", antialias=True), patches),
    "idefics2": (lambda: LearnedGrid(32, 3, 3, prefix=1, mode="bucket"), patches),
    "vit at its size": (lambda: LearnedGrid(32, 40, 4), lambda side: Positions.grid(side, 4, start=(0, 0))),
    "vit_mae": (lambda: Sinusoidal(32, axes=2, reads=(1, 0), layout="sin_cos"), lambda side: Positions.grid(side, 4)),
    "detr": (lambda: Sinusoidal(32, axes=2, base=20.0), lambda side: Positions.pixels(torch.ones(1, side, 4))),
    "layoutlm": (lambda: LearnedAxes(32, (9,) * 4, axes=6, shares=(0, 1, 0, 1, 2, 3)), boxes),
    "sam": (lambda: RandomFourier(32, reads=(1, 0)), lambda side: spread(side, 4, 0.0, 1.0, corners=False)),
    "perceiver": (lambda: FourierBands(5, (8, 4)), lambda side: spread(side, 4)),
    "mllama": (lambda: GatedTiles(32, 2, 40, 4), lambda side: tile_positions(torch.tensor([1]), side, 4)),
    "markuplm": (lambda: XPath(32, 3, n_tags=5, n_subscripts=5, unit=4), paths),
    "davit": (lambda: Conditional(32), lambda side: Positions.grid(side, 4)),
}


def tokens(encoding: PositionalEncoding, at: Positions, dtype=torch.float32) -> torch.Tensor:
    width = getattr(encoding, "d_model", 32)
    return torch.randn(2, at.length, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SEVERAL)
def test_rows_depend_on_themselves(name, dtype):
    build, places = SEVERAL[name]
    encoding, at = drawn(build), places(5)
    x, some = tokens(encoding, at, dtype), torch.tensor([7, 2, 9, 2])
    whole = encoding.embed(x, at)
    assert whole.dtype == dtype
    prepared = encoding.prepare(at, torch.float64 if dtype == torch.float64 else torch.float32)
    assert torch.equal(encoding.embed(x, prepared), whole)
    alone = encoding.embed(x[:, some], at.take(some))
    near = 4 * torch.finfo(dtype).eps * whole.abs().max().item()
    assert ((alone - whole[:, some]).abs().max().item() <= near) == ("local" in encoding.traits)


@pytest.mark.parametrize("name", SEVERAL)
def test_state_is_configuration(name):
    build, places = SEVERAL[name]
    encoding, at = drawn(build), places(3)
    x = tokens(encoding, at)
    expected = encoding.embed(x, at)
    assert not list(encoding.named_buffers())
    before = [(key, id(value)) for key, value in sorted(vars(encoding).items())]
    with torch.inference_mode():
        assert torch.equal(encoding.embed(x, at), expected)
    assert before == [(key, id(value)) for key, value in sorted(vars(encoding).items())]
    emptied = copy.deepcopy(encoding).half().to("meta").to_empty(device="cpu").float()
    emptied.load_state_dict(encoding.state_dict())
    for survivor in (copy.deepcopy(encoding), pickle.loads(pickle.dumps(encoding)), emptied):
        assert torch.equal(survivor.embed(x, at), expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(encoding.embed(x, at), expected)


@pytest.mark.parametrize("name", a_third(SEVERAL))
def test_one_graph_over_sizes(name):
    build, places = SEVERAL[name]
    encoding, graphs = drawn(build), []

    def counting(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(encoding.embed, backend=counting, fullgraph=True, dynamic=True)
    for side in (2, 3, 5, 10):
        at = places(side)
        x = tokens(encoding, at)
        expected = encoding.embed(x, at)
        assert (compiled(x, at) - expected).abs().max() <= 1e-5 * expected.abs().max()
    assert len(graphs) == 1
