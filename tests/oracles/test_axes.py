"""Which coordinate each pair reads: by hand, and against the rotary modules of the installed families, bit for bit."""

import math
from types import SimpleNamespace

import pytest
import torch
from transformers.models.dinov3_vit.configuration_dinov3_vit import DINOv3ViTConfig
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding
from transformers.models.ernie4_5_vl_moe.modeling_ernie4_5_vl_moe import Ernie4_5_VLMoeTextRotaryEmbedding
from transformers.models.inkling2.modeling_inkling2 import Inkling2VisionRotaryEmbedding
from transformers.models.kimi_k25.modeling_kimi_k25 import Kimi_K25VisionRotaryEmbedding
from transformers.models.llama4.modeling_llama4 import Llama4VisionRotaryEmbedding
from transformers.models.minimax_m3_vl.modeling_minimax_m3_vl import MiniMaxM3VLVisionRotaryEmbedding
from transformers.models.neomme.modeling_neomme import NeoMMERotaryEmbedding
from transformers.models.pixtral.modeling_pixtral import PixtralVisionRotaryEmbedding
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding, Qwen2VLVisionRotaryEmbedding
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding
from transformers.models.step3p7.modeling_step3p7 import Step3p7VisionRotaryEmbedding

from posenc import Positions, frequencies
from posenc.configs import float32
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies, rotary

SIX = Frequencies((10.0, 11.0, 12.0, 13.0, 14.0, 15.0))
NOTHING = torch.zeros(1)


def pairs(f):
    """(axis, frequency) of every pair."""
    assert len(f.axes) == len(f)
    return list(zip(f.axes, f.values, strict=True))


# By hand --------------------------------------------------------------------------------------------------------------


def test_the_drawing():
    """The table at the head of the module, pair by pair."""
    three = Frequencies((10.0, 11.0, 12.0))
    assert pairs(frequencies.axial(three)) == [(0, 10), (0, 11), (0, 12), (1, 10), (1, 11), (1, 12)]
    assert pairs(frequencies.axial(three, (1, 0))) == [(1, 10), (1, 11), (1, 12), (0, 10), (0, 11), (0, 12)]
    assert pairs(frequencies.axial(three, (2, 0, 1)))[::3] == [(2, 10), (0, 10), (1, 10)]
    assert pairs(frequencies.axial(three, alternating=True)) == [(0, 10), (1, 10), (0, 11), (1, 11), (0, 12), (1, 12)]
    assert pairs(frequencies.axial(three, (1, 0), alternating=True))[:3] == [(1, 10), (0, 10), (1, 11)]
    assert pairs(frequencies.strided(SIX)) == [(0, 10), (0, 12), (0, 14), (1, 11), (1, 13), (1, 15)]
    assert pairs(frequencies.strided(SIX, (1, 0))) == [(1, 10), (1, 12), (1, 14), (0, 11), (0, 13), (0, 15)]
    assert pairs(frequencies.strided(SIX, (0, 1, 2))) == [(0, 10), (0, 13), (1, 11), (1, 14), (2, 12), (2, 15)]
    assert pairs(frequencies.sections(SIX, [2, 1, 3])) == [(0, 10), (0, 11), (1, 12), (2, 13), (2, 14), (2, 15)]
    assert pairs(frequencies.cycling(SIX)) == [(0, 10), (1, 11), (0, 12), (1, 13), (0, 14), (1, 15)]
    assert pairs(frequencies.cycling(SIX, (1, 2), n=4)) == [(1, 10), (2, 11), (1, 12), (2, 13), (0, 14), (0, 15)]
    assert pairs(frequencies.cycling(SIX, (1, 2), n=1, rest=3))[:2] == [(1, 10), (3, 11)]
    assert pairs(frequencies.interleaved_sections(SIX, [3, 2, 1])) == [(0, 10), (1, 11), (2, 12), (0, 13), (1, 14), (0, 15)]
    assert pairs(frequencies.interleaved_sections(SIX, [4, 2])) == [(0, 10), (1, 11), (0, 12), (1, 13), (0, 14), (0, 15)]


def test_in_turns_is_two_pi():
    assert frequencies.in_turns(SIX).values == pytest.approx([2 * math.pi * w for w in SIX], rel=1e-15)
    assert frequencies.in_turns(rotary(8)).base is None


@pytest.mark.parametrize("name", ["axial", "strided", "cycling", "sections", "interleaved_sections"])
def test_a_map_says_what_it_did_and_keeps_the_rest(name):
    before = Frequencies((1.0,) * 6, 1.5, 2.5, arithmetic="float32", values_from="six ones")
    after = getattr(frequencies, name)(before, *([[2, 2, 2]] if "sections" in name else []))
    assert (after.cos_sin_scale, after.softmax_scale, after.arithmetic) == (1.5, 2.5, "float32")
    assert "six ones" in after.values_from
    assert name in after.values_from
    assert after.n_axes == (3 if "sections" in name else 2)
    with pytest.raises(ValueError, match="f: has axes already"):
        getattr(frequencies, name)(after, *([[2, 2, 2]] if "sections" in name else []))


def test_maps_that_do_not_fit_are_refused():
    for words, call in (
        ("order: expected different axes", lambda: frequencies.axial(SIX, ())),
        ("order: expected different axes", lambda: frequencies.axial(SIX, (0, 0))),
        ("order: expected different axes", lambda: frequencies.strided(SIX, (0, -1))),
        ("order: expected a sequence, each a whole number", lambda: frequencies.cycling(SIX, (0, 1.0))),
        ("order: 6 pairs cannot be dealt out to 4", lambda: frequencies.strided(SIX, (0, 1, 2, 3))),
        ("sizes: expected whole numbers from 1 that sum to 6", lambda: frequencies.sections(SIX, [2, 2, 1])),
        ("sizes: expected whole numbers from 1 that sum to 6", lambda: frequencies.sections(SIX, [6, 0])),
        ("sizes: expected whole numbers from 1 that sum to 6", lambda: frequencies.interleaved_sections(SIX, [2, 2, 3])),
        ("sizes: expected a sequence, each a whole number", lambda: frequencies.interleaved_sections(SIX, [2.0, 2, 2])),
        ("sizes: section 1 of 3 needs pair 7, there are 6", lambda: frequencies.interleaved_sections(SIX, [1, 3, 2])),
        ("n: expected up to 6 pairs", lambda: frequencies.cycling(SIX, n=7)),
        ("n: expected a whole number from 1", lambda: frequencies.cycling(SIX, n=0)),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="f: expected Frequencies, got DynamicNTK"):
        frequencies.axial(frequencies.dynamic(rotary(16), 2.0, 64))


def test_every_pair_of_a_query_turns_by_its_own_coordinate():
    """One axis moved: only the pairs that read it turn further, and by its step times their frequency."""
    encoding = RoPE(12, frequencies=frequencies.interleaved_sections(rotary(12, 50.0), [2, 2, 2]))
    x = torch.randn(1, 1, 1, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    here, there = (encoding.rotate(x, Positions.at(torch.tensor([[c]])), "query") for c in ([5, 8, 2], [5, 11, 2]))
    for pair in range(6):
        a, b = (torch.view_as_complex(side[0, 0, 0, 2 * pair : 2 * pair + 2].clone()) for side in (here, there))
        by = 3 * 50 ** (-pair / 6) if pair in (1, 4) else 0.0
        assert abs(complex(b / a) - complex(math.cos(by), math.sin(by))) < 1e-12


# Against the families ---------------------------------------------------------------------------------------------------


def text(axes, seed=0):
    """Random position ids, [axes, b, t], far apart."""
    return torch.randint(0, 100000, (axes, 2, 30), generator=torch.Generator().manual_seed(seed))


def patches(axes, seed=0):
    """Random coordinates of patches, [t, axes]."""
    return torch.randint(0, 300, (30, axes), generator=torch.Generator().manual_seed(seed))


def config(d_head, rope_type, base, **more):
    return SimpleNamespace(
        head_dim=d_head,
        max_position_embeddings=4096,
        hidden_size=d_head,
        num_attention_heads=1,
        rope_parameters={"rope_type": rope_type, "rope_theta": base, **more},
    )


def same(f, at, cos, sin, layout="half"):
    """Equal bits, in the pairs of that layout."""
    ours = RoPE(2 * len(f), layout=layout, frequencies=f).tables(at, torch.float32)
    for table, theirs in zip(ours, (cos, sin), strict=True):
        width = theirs.shape[-1]
        assert width == 2 * len(f)
        first, second = (theirs[..., ::2], theirs[..., 1::2]) if layout == "interleaved" else theirs.split(width // 2, -1)
        for member in (first, second):
            assert torch.equal(table.expand(member.shape) if member.ndim == 3 else table[0], member)


@pytest.mark.parametrize(("d_head", "sizes"), [(128, [16, 24, 24]), (64, [8, 12, 12]), (32, [1, 5, 10])])
def test_sections_are_qwen2_vls(d_head, sizes):
    ids = text(3)
    module = Qwen2VLRotaryEmbedding(config(d_head, "default", 1e6, mrope_section=sizes))
    same(frequencies.sections(float32.default(d_head, 1e6), sizes), Positions.mrope(ids), *module(NOTHING, ids))


@pytest.mark.parametrize(("d_head", "sizes"), [(128, [24, 20, 20]), (64, [11, 11, 10]), (32, [12, 2, 2])])
def test_interleaved_sections_are_qwen3_vls(d_head, sizes):
    ids = text(3)
    module = Qwen3VLTextRotaryEmbedding(config(d_head, "default", 5e6, mrope_section=sizes))
    same(frequencies.interleaved_sections(float32.default(d_head, 5e6), sizes), Positions.mrope(ids), *module(NOTHING, ids))


@pytest.mark.parametrize(("d_head", "sizes"), [(128, [22, 22, 20]), (32, [6, 6, 4])])
def test_cycling_is_ernie_4_5_vls(d_head, sizes):
    """Their frequencies are permuted beforehand and dealt back: in the end pair j has ω_j, and H, W alternate."""
    ids = text(3)
    module = Ernie4_5_VLMoeTextRotaryEmbedding(config(d_head, "default", 5e5, mrope_section=sizes))
    f = frequencies.cycling(float32.default(d_head, 5e5), (1, 2), n=sizes[0] + sizes[1])
    same(f, Positions.mrope(ids), *module(NOTHING, ids), layout="interleaved")


def test_cycling_is_neommes():
    ids = text(2)
    parameters = SimpleNamespace(
        head_dim=64,
        max_position_embeddings=4096,
        layer_types=["full_attention"],
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0}},
    )
    tables = NeoMMERotaryEmbedding(parameters)(NOTHING, ids, layer_type="full_attention")
    same(frequencies.cycling(float32.default(64, 1e4)), Positions.mrope(ids), *tables)


VISION = [
    (Qwen2VLVisionRotaryEmbedding, "half", lambda d: frequencies.axial(float32.default(d // 2, 1e4))),
    (Step3p7VisionRotaryEmbedding, "half", lambda d: frequencies.axial(float32.default(d // 2, 1e4), (1, 0))),
    (Inkling2VisionRotaryEmbedding, "interleaved", lambda d: frequencies.axial(float32.default(d // 2, 1e4), (1, 0))),
    (
        Kimi_K25VisionRotaryEmbedding,
        "half",
        lambda d: frequencies.axial(float32.default(d // 2, 1e4), (1, 0), alternating=True),
    ),
    (PixtralVisionRotaryEmbedding, "half", lambda d: frequencies.strided(float32.default(d, 1e4))),
]


@pytest.mark.parametrize(("module", "layout", "make"), VISION, ids=lambda case: getattr(case, "__name__", ""))
@pytest.mark.parametrize("d_head", [16, 64, 80])
def test_two_axes_of_vision_towers(module, layout, make, d_head):
    ids = patches(2)
    same(make(d_head), Positions.at(ids[None]), *module(config(d_head, "axial", 1e4))(NOTHING, ids), layout=layout)


@pytest.mark.parametrize("d_head", [80, 64, 96])
def test_three_axes_of_minimax_m3(d_head):
    """2·(d//3//2) channels for each axis; the rest of the head passes through."""
    ids = patches(3)
    tables = MiniMaxM3VLVisionRotaryEmbedding(config(d_head, "axial", 1e4))(NOTHING, ids)
    same(frequencies.axial(float32.default(2 * (d_head // 3 // 2), 1e4), (0, 1, 2)), Positions.at(ids[None]), *tables)


def test_llama_4s_vision_counts_from_one_and_its_class_token_stands_at_zero():
    shape = SimpleNamespace(
        image_size=70, patch_size=14, hidden_size=64, num_attention_heads=2, rope_parameters={"rope_theta": 1e4}
    )
    turns = Llama4VisionRotaryEmbedding(shape)(NOTHING)[:, 0]
    coords = torch.cat([Positions.grid(5, 5).shift(1).coords, torch.zeros(1, 1, 2, dtype=torch.int64)], dim=1)
    f = frequencies.axial(float32.default(16, 1e4), (1, 0))
    cos, sin = RoPE(32, frequencies=f).tables(Positions.at(coords), torch.float32)
    assert torch.equal(cos[0], turns.real)
    assert torch.equal(sin[0], turns.imag)


def test_dinov3_turns_by_two_pi_over_the_image():
    """In fp64; see test_float32.py for the parity mode."""
    shape = DINOv3ViTConfig(hidden_size=128, num_attention_heads=2, image_size=80, patch_size=16)
    cos, sin = DINOv3ViTRopePositionEmbedding(shape).eval()(torch.zeros(1, 3, 48, 80))
    rows = [[(2 * i + 1) / n - 1 for i in range(n)] for n in (3, 5)]
    coords = torch.tensor([[(y, x) for y in rows[0] for x in rows[1]]], dtype=torch.float64)
    f = frequencies.axial(frequencies.in_turns(rotary(32, 100.0)))
    ours = RoPE(64, layout="half", frequencies=f).tables(Positions.at(coords), torch.float64)
    for table, theirs in zip(ours, (cos, sin), strict=True):
        torch.testing.assert_close(table[0], theirs[:, :32].double(), atol=2e-6, rtol=0)
    for t, c in ((0, 0), (7, 3), (14, 17)):
        axis, j = divmod(c, 16)
        angle = 2 * math.pi * coords[0, t, axis].item() * 100 ** (-4 * j / 64)
        assert ours[0][0, t, c].item() == pytest.approx(math.cos(angle), abs=1e-13)
        assert ours[1][0, t, c].item() == pytest.approx(math.sin(angle), abs=1e-13)


def test_a_single_axis_is_a_plain_sequence():
    """Axes that are all 0 read positions [b, t]."""
    x, here = torch.randn(2, 1, 5, 8, generator=torch.Generator().manual_seed(4)), Positions.arange(2, 5)
    one = RoPE(8, frequencies=frequencies.axial(rotary(8), (0,)))
    torch.testing.assert_close(one.rotate(x, here, "key"), RoPE(8).rotate(x, here, "key"))


@pytest.mark.parametrize("time", [1.0, 0.5, 0.0])
def test_scalings_by_axis_change_the_pairs_of_that_axis(time):
    """DyPE's NTK for the rows and columns of FLUX at twice the size: base·2^(2t²·56/54); the first axis stays as it is."""
    row = frequencies.dype(frequencies.rotary(56), 2.0, time, 64, method="ntk")
    found = frequencies.of_axes(frequencies.rotary(16), row, row)
    base = 10000 * 2 ** (2 * time**2 * 56 / 54)
    expected = [10000 ** (-2 * i / 16) for i in range(8)] + 2 * [base ** (-2 * i / 56) for i in range(28)]
    assert list(found) == pytest.approx(expected, rel=1e-13)
    assert found.axes == (0,) * 8 + (1,) * 28 + (2,) * 28


def test_spectra_that_do_not_go_together_are_refused():
    plain = frequencies.rotary(8)
    with pytest.raises(ValueError, match="spectra: expected the frequencies of at least one axis, got none"):
        frequencies.of_axes()
    with pytest.raises(ValueError, match="f: has axes already"):
        frequencies.of_axes(plain, frequencies.separate((4, 4)))
    with pytest.raises(ValueError, match="spectra: expected one cos_sin_scale"):
        frequencies.of_axes(plain, frequencies.yarn(plain, 4.0, 64))
