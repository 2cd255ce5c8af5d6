"""Every law over the encodings that model families brought along; what reads several coordinates has its own.

Encodings that read hidden states are tried reading queries: the laws know nothing of `read_hidden`.
"""

import pytest
import torch

from posenc import PositionalEncoding, Positions, attend
from posenc.attention.backends import AT_ONCE
from posenc.checking import laws
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bases.continuous_window_bias import ContinuousWindowBias
from posenc.encodings.bases.distance_bank import DistanceBank
from posenc.encodings.bases.window_bias import WindowBias
from posenc.encodings.deberta import DeBERTa
from posenc.encodings.decomposed import DecomposedBias
from posenc.encodings.distance_table import DistanceTable
from posenc.encodings.of_families.falcon_alibi import FalconALiBi
from posenc.encodings.of_families.first_heads import FirstHeadsRoPE
from posenc.encodings.of_families.funnel import Funnel
from posenc.encodings.of_families.sinusoidal_keys import SinusoidalKeys
from posenc.encodings.of_families.t5_content import T5OfContent
from posenc.encodings.of_families.t5_gated import GatedT5
from posenc.encodings.of_families.t5_segments import SegmentedT5
from posenc.encodings.of_families.zipformer import ZipformerPositions
from posenc.encodings.shaw import Shaw
from posenc.encodings.t5_axes import T5Axes
from posenc.encodings.transformer_xl import TransformerXL
from posenc.encodings.xlnet import XLNet
from sampling import a_third, every_second, only, thinned
from test_laws import EVERY_DAY

H, D, M = 4, 8, 32
STEEP = (1.3, 2.7, 3.1, 0.7)  # rounded to 8 bits, so that a shift shows at positions as small as the laws'
MADE = {
    "alibi bias_max": lambda: ALiBi(H, bias_max=3),
    "falcon": lambda: FalconALiBi(H, slopes=STEEP),
    "falcon twice": lambda: FalconALiBi(H, slopes=STEEP, twice=True),
    "t5 axes": lambda: T5Axes(H, n_buckets=(8,), max_distance=(9,), bias_over_sqrt=True),
    "t5 gated": lambda: GatedT5(H, D, n_buckets=8, max_distance=9, reads="query"),
    "t5 content": lambda: T5OfContent(H, D, n_buckets=8, max_distance=9, reads="query"),
    "shaw two limits": lambda: Shaw(D, max_distance=3, right=1),
    "shaw zero outside": lambda: Shaw(D, max_distance=3, outside="zero"),
    "first heads": lambda: FirstHeadsRoPE(D, turning_heads=1),
    "sinusoidal keys": lambda: SinusoidalKeys(M, H, left=4, right=2, shift=1),
    "distance table": lambda: DistanceTable(H, max_distance=4, right=2),
    "deberta v1": lambda: DeBERTa(M, H, max_distance=5),
    "deberta v2": lambda: DeBERTa(M, H, max_distance=20, n_buckets=8, norm_eps=1e-7),
    "transformer_xl interleaved": lambda: TransformerXL(M, H, layout="interleaved"),
    "xlnet": lambda: XLNet(M, H, segments=False),
    "distance bank": lambda: DistanceBank(H, D, profiles=3, extent=6, reads="query"),
    "zipformer": lambda: ZipformerPositions(M, H, pos_dim=8, reads="query"),
    "distance bank floor": lambda: DistanceBank(H, D, profiles=3, extent=6, reads="query", floor=2, alpha=1.0, limit=1.0),
}
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
SLOW = ("gradients", "transforms", "checkpointed_equals_plain", "one_graph_over_lengths")
OF_EDGES = ("rows_that_see_no_key", "empty_calls", "width_of_values")  # each tries all backends


def build(name: str):
    return laws.draw_parameters(MADE[name](), seed=1)


def settings(encoding, **options):
    for causal in (True, False):
        if causal or "causal_only" not in encoding.traits:
            yield laws.Setting(causal=causal, **options)


@pytest.mark.parametrize(("name", "impl", "dtype"), thinned(10, every_second(MADE, AT_ONCE, DTYPES)), ids=str)
def test_laws(name, impl, dtype):
    encoding = build(name)
    left_out = (*SLOW, *OF_EDGES)
    if isinstance(encoding, FalconALiBi) and dtype in (torch.bfloat16, torch.float16):
        left_out = (*left_out, "shift_invariance")  # its absence shows in roundings, which these dtypes have themselves
    for setting in settings(encoding, dtype=dtype, impl=impl):
        if impl in laws.expressible(encoding):
            laws.check(encoding, setting, [law for law in laws.LAWS if law not in left_out])
        else:
            with pytest.raises(ValueError, match="use impl="):
                laws.check(encoding, setting, ["packed_equals_separate"])


@pytest.mark.parametrize("name", a_third(MADE))
def test_edges(name):
    encoding = build(name)
    for setting in settings(encoding):
        laws.check(encoding, setting, OF_EDGES)


@pytest.mark.parametrize("name", a_third(MADE))
def test_transforms_and_checkpointing(name):
    laws.check(build(name), laws.Setting(), ["transforms", "checkpointed_equals_plain"])


@pytest.mark.parametrize("name", MADE)
def test_the_laws_that_oracles_do_not_repeat(name):
    laws.check(build(name), laws.Setting(dtype=torch.float64), EVERY_DAY)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", only(MADE, "shaw two limits", "distance bank"))
def test_one_graph(name):
    """In the backend that attention takes by itself."""
    laws.check(build(name), laws.Setting(impl="auto"), ["one_graph_over_lengths"])


@pytest.mark.acceptance
@pytest.mark.parametrize("impl", AT_ONCE)
@pytest.mark.parametrize("name", MADE)
def test_one_graph_in_every_backend(name, impl):
    encoding = build(name)
    if impl in laws.expressible(encoding):
        laws.check(encoding, laws.Setting(impl=impl), ["one_graph_over_lengths"])


# Several coordinates: the same laws, by hand ----------------------------------------------------------------------------

PLACES = Positions.grid(3, 4)
SEVERAL = {
    "window": lambda: WindowBias(H, (3, 4)),
    "window class token": lambda: WindowBias(H, (3, 4), class_token=True),
    "window symmetric": lambda: WindowBias(H, (3, 4), symmetric=True),
    "window continuous": lambda: ContinuousWindowBias(H, (3, 4), hidden=5),
    "decomposed": lambda: DecomposedBias(D, (3, 4)),
    "t5 two axes": lambda: T5Axes(H, n_buckets=(8, 8), max_distance=(9, 5)),
    "segments": lambda: SegmentedT5(H, n_segments=4, n_buckets=8, max_distance=9),
    "xlnet segments": lambda: XLNet(M, H),
    "funnel": lambda: Funnel(M, H),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_coordinates(name, dtype):
    """The order of tokens, other rows of the batch, other heads, other backends and a shift do not matter."""
    encoding = laws.draw_parameters(SEVERAL[name](), seed=1)
    q, k, v = (torch.randn(2, H, 12, D, generator=torch.Generator().manual_seed(n)).to(dtype) for n in range(3))
    roundings = 4 if dtype in (torch.bfloat16, torch.float16) else 64

    def same(got, expected):
        assert (got - expected).abs().max() <= roundings * torch.finfo(dtype).eps * max(1.0, expected.abs().max())

    whole = attend(q, k, v, encoding, PLACES, causal=False, impl="reference")
    for impl in laws.expressible(encoding):
        same(attend(q, k, v, encoding, PLACES, causal=False, impl=impl), whole)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(9))
    mixed = attend(q[:, :, order], k[:, :, order], v[:, :, order], encoding, PLACES.take(order), causal=False)
    same(mixed, whole[:, :, order])
    same(attend(q[1:], k[1:], v[1:], encoding, PLACES, causal=False), whole[1:])
    if not isinstance(encoding, DecomposedBias):
        part = attend(q[:, 1:3], k[:, 1:3], v[:, 1:3], encoding.heads(1, 3), PLACES, causal=False)
        same(part, whole[:, 1:3])
    if "shift_invariant" in encoding.traits:
        same(attend(q, k, v, encoding, PLACES.shift(5), causal=False), whole)
    plain = attend(q, k, v, PositionalEncoding(), PLACES, causal=False)
    assert (plain - whole).abs().max() > 0.1  # it does something


@pytest.mark.parametrize("name", SEVERAL)
def test_gradients_with_several_coordinates(name):
    encoding = laws.draw_parameters(SEVERAL[name](), seed=1).double()
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, H, 4, D, dtype=torch.float64, requires_grad=True) for _ in range(3))
    at = Positions.grid(2, 2)
    inputs = (q, k, v, *encoding.parameters())
    call = lambda q, k, v, *_: attend(q, k, v, encoding, at, causal=False)  # noqa: E731
    assert torch.autograd.gradcheck(call, inputs, atol=1e-8, fast_mode=True)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", only(SEVERAL, "window"))
def test_one_graph_with_several_coordinates(name):
    encoding = laws.draw_parameters(SEVERAL[name](), seed=1)
    torch._dynamo.reset()
    run = torch.compile(
        lambda q, at: attend(q, q, q, encoding, at, causal=False), backend="eager", fullgraph=True, dynamic=True
    )
    for height in (2, 3):
        q, at = torch.randn(1, H, 4 * height, D), Positions.grid(height, 4)
        assert (run(q, at) - attend(q, q, q, encoding, at, causal=False)).abs().max() < 1e-5


@pytest.mark.parametrize("name", MADE)
def test_values_that_do_not_turn_are_given_back_as_they_are(name):
    """`rotate` returns x itself where nothing turns: `rerotate` and `pt.evict` move what is another tensor."""
    v = torch.randn(2, H, 5, D, dtype=torch.float64)
    given = build(name).rotate(v, Positions.arange(2, 5, start=3), "value")
    assert (given is v) == torch.equal(given, v)
