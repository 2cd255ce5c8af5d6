"""The rotations that are none, against the families that have them, and by loops over channels."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers.models.gemma4 import modeling_gemma4
from transformers.models.hunyuan_vl import modeling_hunyuan_vl
from transformers.models.vjepa2.modeling_vjepa2 import VJEPA2RopeAttention

from posenc import Positions, frequencies
from posenc.checking import laws
from posenc.configs import float32, quirks
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies, axial, rotary

from .by_hand import close, draw, each

NOTHING = torch.zeros(1)


def config(d_head, rope_type, base, **more):
    return SimpleNamespace(
        head_dim=d_head,
        max_position_embeddings=4096,
        hidden_size=d_head,
        num_attention_heads=1,
        rope_parameters={"rope_type": rope_type, "rope_theta": base, **more},
    )


def coords(axes, seed=0, rows=2, high=1000):
    return torch.randint(0, high, (rows, 9, axes), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("layout", "parts"), [("half", 1), ("interleaved", 1), ("half", 2), ("half", 3), ("interleaved", 3)]
)
def test_every_channel_has_an_angle_of_its_own(layout, parts):
    f = Frequencies(tuple(0.1 * (c + 1) for c in range(12)), 1.5, axes=tuple(c % 3 for c in range(12)))
    encoding, at = quirks.ChannelRotation(14, f, layout=layout, parts=parts), coords(3)
    x, width = draw(1, 2, 2, 9, 14), 12 // parts
    expected = x.copy()
    for b, h, t, c in each(2, 2, 9, 12):
        part, place = divmod(c, width)
        if layout == "half":
            partner, sign = ((place + width // 2), -1) if place < width // 2 else (place - width // 2, 1)
        else:
            partner, sign = (place + 1, -1) if place % 2 == 0 else (place - 1, 1)
        angle = at[b, t, c % 3].item() * 0.1 * (c + 1)
        other = sign * x[b, h, t, part * width + partner]
        expected[b, h, t, c] = 1.5 * (x[b, h, t, c] * math.cos(angle) + other * math.sin(angle))
    here = Positions.at(at)
    for side in ("query", "key"):
        close(encoding.rotate(torch.from_numpy(x), here, side), expected, atol=1e-11)
        close(encoding.rotate(torch.from_numpy(x), encoding.prepare(here, torch.float64), side), expected, atol=1e-11)
    for side in ("value", "output"):
        assert torch.equal(encoding.rotate(torch.from_numpy(x), here, side), torch.from_numpy(x))


@pytest.mark.parametrize(("d_head", "sizes"), [(128, [16, 16, 16, 16]), (16, [1, 2, 3, 2])])
def test_xd_is_hunyuan_vls(d_head, sizes):
    ids = coords(4, high=100000).movedim(-1, 0)
    module = modeling_hunyuan_vl.HunYuanVLRotaryEmbedding(config(d_head, "default", 1e4, mrope_section=sizes))
    cos, sin = module(NOTHING, ids)
    encoding, here = quirks.xd(d_head, float32.default(d_head, 1e4), sizes), Positions.mrope(ids)
    ours = encoding.tables(here, torch.float32)
    assert torch.equal(ours[0], cos)
    assert torch.equal(ours[1], sin)
    q = torch.from_numpy(draw(2, 2, 3, 9, d_head)).float()
    theirs, _ = modeling_hunyuan_vl.apply_rotary_pos_emb(q, q, cos, sin)
    assert torch.equal(encoding.rotate(q, here, "query"), theirs)


def test_xd_rotates_text_and_nothing_else():
    """Equal axes: RoPE itself. Different axes: lengths change."""
    encoding, x = quirks.xd(16, rotary(16), [2, 2, 2, 2]), torch.from_numpy(draw(3, 1, 1, 9, 16))
    alike = Positions.at(torch.arange(9)[None, :, None].expand(1, 9, 4))
    close(encoding.rotate(x, alike, "query"), RoPE(16, layout="half").rotate(x, Positions.arange(1, 9), "query"))
    got = encoding.rotate(x, Positions.at(coords(4, rows=1)), "query")
    assert ((got.norm(dim=-1) / x.norm(dim=-1)) - 1).abs().max() > 0.05
    assert encoding.traits == {"local"}


def test_tiled_is_v_jepa_2s():
    shape = SimpleNamespace(
        crop_size=48, patch_size=16, frames_per_clip=8, tubelet_size=2, qkv_bias=True, attention_probs_dropout_prob=0.0
    )
    for d_head in (20, 24, 64):
        layer = VJEPA2RopeAttention(shape, hidden_size=2 * d_head, num_attention_heads=2)
        x = torch.from_numpy(draw(4, 1, 2, 36, d_head)).float()
        theirs = layer.apply_rotary_embeddings(x, layer.get_position_ids(x[:, 0]))
        places = torch.tensor([[(t, h, w) for t in range(4) for h in range(3) for w in range(3)]])
        encoding = quirks.tiled(d_head, axial(float32.default(2 * (d_head // 3 // 2), 10000.0), (0, 1, 2)))
        assert torch.equal(encoding.rotate(x, Positions.at(places), "query"), theirs)
        exact = quirks.tiled(d_head, axial(rotary(2 * (d_head // 3 // 2)), (0, 1, 2)))
        torch.testing.assert_close(exact.rotate(x, Positions.at(places), "query"), theirs, atol=1e-5, rtol=0)
        assert exact.traits == {"local"}


def test_tiled_is_no_rotation():
    """The linear map of one token has singular values far from one."""
    encoding = quirks.tiled(16, rotary(16))
    spread = []
    for p in range(1, 40):
        at = Positions.at(torch.full((1, 16), p))
        map_ = encoding.rotate(torch.eye(16, dtype=torch.float64)[None, None], at, "query")[0, 0].numpy()
        spread += list(np.linalg.svd(map_, compute_uv=False))
    assert min(spread) < 0.1
    assert max(spread) > 1.39


def test_in_each_part_is_gemma_4s_vision():
    for d_head in (16, 64):
        module = modeling_gemma4.Gemma4VisionRotaryEmbedding(config(d_head, "axial", 100.0))
        ids = coords(2, rows=2)
        cos, sin = module(NOTHING, ids)
        encoding, here = quirks.in_each_part(d_head, axial(float32.default(d_head // 2, 100.0))), Positions.at(ids)
        ours = encoding.tables(here, torch.float32)
        assert torch.equal(ours[0], cos)
        assert torch.equal(ours[1], sin)
        assert encoding.traits == {"local", "shift_invariant", "norm_preserving"}
        q = torch.from_numpy(draw(5, 2, 3, 9, d_head)).float()
        theirs = modeling_gemma4.apply_multidimensional_rope(q.transpose(1, 2), cos, sin, ids).transpose(1, 2)
        assert torch.equal(encoding.rotate(q, here, "query"), theirs)


QUICK = [law for law in laws.LAWS if law not in ("gradients", "transforms", "one_graph_over_lengths")]


@pytest.mark.acceptance
def test_the_laws_and_the_scale():
    """Heads of 12: tables as wide as the shortest sequence is long, 8, are two sizes in one for torch.compile."""
    yarn = frequencies.yarn(rotary(12), 4.0, 64)
    laws.check(quirks.in_each_part(12, yarn), laws.Setting(d_model=48, dtype=torch.float64))
    for made in (quirks.in_each_part(12, rotary(12)), quirks.tiled(12, rotary(12))):
        laws.check(made, laws.Setting(d_model=48, dtype=torch.float32), QUICK)
    scaled = frequencies.softmax_mscale(rotary(8), 40.0, 1.0)
    assert quirks.in_each_part(8, scaled).softmax_scale(8) == RoPE(8, frequencies=scaled).softmax_scale(8)


def test_channels_that_cannot_be_paired_are_refused():
    four = Frequencies((1.0,) * 4)
    for words, call in (
        ("frequencies: one for each of 4 channels, d_head=2", lambda: quirks.ChannelRotation(2, four)),
        ("parts: 4 channels cannot be split into 3", lambda: quirks.ChannelRotation(4, four, parts=3)),
        ("parts: 4 channels cannot be split into 4", lambda: quirks.ChannelRotation(4, four, parts=4)),
        ("parts: 4 channels cannot be split into 0", lambda: quirks.ChannelRotation(4, four, parts=0)),
        ("layout: expected one of", lambda: quirks.ChannelRotation(4, four, layout="halves")),
        ("sizes: expected whole numbers from 1 that sum to 4", lambda: quirks.xd(8, four, [1, 1, 1])),
        ("sizes: expected whole numbers from 1 that sum to 4", lambda: quirks.xd(8, four, [4, 0])),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    encoding = quirks.tiled(8, rotary(8))
    with pytest.raises(ValueError, match="built for d_head=8, got a tensor with 6"):
        encoding.rotate(torch.zeros(1, 1, 2, 6), Positions.at(torch.zeros(1, 2)), "query")
    with pytest.raises(ValueError, match="for tokens"):
        encoding.rotate(torch.zeros(1, 1, 2, 8), Positions.at(torch.zeros(1, 3)), "query")
    with pytest.raises(ValueError, match="side: expected one of"):
        encoding.rotate(torch.zeros(1, 1, 2, 8), Positions.at(torch.zeros(1, 2)), "keys")
