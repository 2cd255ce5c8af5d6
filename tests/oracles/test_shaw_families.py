"""Relative vectors and numbers by clipped distance in speech models, against their own modules and by loops."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from posenc import Positions, attend
from posenc.encodings.distance_table import DistanceTable
from posenc.encodings.shaw import Shaw

from .by_hand import add, attention, close, draw, products, sees
from .test_t5_families import drawn, matrix, theirs

H, D = 4, 6
LENGTHS = [1, 3, 9, 40]


def tokens(length: int) -> torch.Tensor:
    return torch.from_numpy(draw(4, 2, length, H * D))


def split(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (H, D)).transpose(1, 2)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    ("family", "name", "sizes"),
    [
        ("wav2vec2_bert", "Wav2Vec2Bert", {"num_attention_heads": H, "attention_dropout": 0.0}),
        (
            "seamless_m4t_v2",
            "SeamlessM4Tv2",
            {"speech_encoder_attention_heads": H, "position_embeddings_type": "relative_key"},
        ),
    ],
)
def test_relative_keys_look_further_back_than_ahead(family, name, sizes, length):
    config = getattr(__import__("transformers"), f"{name}Config")(
        hidden_size=H * D, left_max_position_embeddings=5, right_max_position_embeddings=2, **sizes
    )
    config._attn_implementation = "eager"
    kind = "SelfAttention" if family == "wav2vec2_bert" else "ConformerSelfAttention"
    their = drawn(theirs(family, name + kind)(config).double()).eval()
    encoding = Shaw(D, max_distance=5, right=2, values=False).double()
    encoding.load_state_dict({"keys": their.distance_embedding.weight})
    x = tokens(length)
    q, k, v = (split(getattr(their, f"linear_{name}")(x)) for name in "qkv")
    out = attend(q, k, v, encoding, Positions.arange(2, length), causal=False)
    close(their.linear_out(out.transpose(1, 2).flatten(-2)), their(x)[0].detach(), atol=1e-11)


@pytest.mark.parametrize("length", LENGTHS)
def test_vits_has_vectors_within_a_window_only(length):
    config = __import__("transformers").VitsConfig(
        hidden_size=H * D, num_attention_heads=H, window_size=4, attention_dropout=0.0
    )
    their = drawn(theirs("vits", "VitsAttention")(config).double()).eval()
    encoding = Shaw(D, max_distance=4, outside="zero").double()
    encoding.load_state_dict({"keys": their.emb_rel_k[0], "values": their.emb_rel_v[0]})
    x = tokens(length)
    q, k, v = (split(getattr(their, f"{name}_proj")(x)) for name in "qkv")
    out = attend(q, k, v, encoding, Positions.arange(2, length, 3), causal=False)
    close(their.out_proj(out.transpose(1, 2).flatten(-2)), their(x)[0].detach(), atol=1e-11)
    clipped = Shaw(D, max_distance=4).double()
    clipped.load_state_dict(encoding.state_dict())
    same = torch.allclose(attend(q, k, v, clipped, Positions.arange(2, length), causal=False), out)
    assert same == (length <= 5)


@pytest.mark.parametrize("length", LENGTHS)
def test_speecht5_numbers_rows_by_query_minus_key(length):
    config = __import__("transformers").SpeechT5Config(hidden_size=H * D, encoder_attention_heads=H)
    their = drawn(theirs("speecht5", "SpeechT5Attention")(H * D, H).double()).eval()
    table = drawn(theirs("speecht5", "SpeechT5RelativePositionalEncoding")(D, 5).double())
    encoding = Shaw(D, max_distance=4, right=5, values=False).double()
    encoding.load_state_dict({"keys": table.pe_k.weight.flip(0)})
    x = tokens(length)
    q, k, v = (split(getattr(their, f"{name}_proj")(x)) for name in "qkv")
    out = attend(q, k, v, encoding, Positions.arange(2, length), causal=False)
    expected = their(x, position_bias=table(x))[0]
    close(their.out_proj(out.transpose(1, 2).flatten(-2)), expected.detach(), atol=1e-11)
    assert config.encoder_max_relative_position == 160  # there: max_distance=159, right=160


def test_granite_speech_within_blocks():
    """Blocks of `context_size` are documents; rows are numbered by query minus key."""
    config = __import__("transformers").GraniteSpeechConfig().encoder_config
    config.hidden_dim, config.num_heads, config.dim_head, config.context_size, config.max_pos_emb = H * D, H, D, 5, 7
    module = theirs("granite_speech", "GraniteSpeechConformerAttention")
    their = drawn(module(config).double()).eval()
    encoding = Shaw(D, max_distance=7, values=False).double()
    encoding.load_state_dict({"keys": their.rel_pos_emb.weight.flip(0)})
    x = tokens(10)
    dists = (torch.arange(5)[:, None] - torch.arange(5)[None]).clamp(-5, 5) + 7
    expected = their(x, dists)
    normed = their.pre_norm(x)
    k, v = their.to_kv(normed).chunk(2, dim=-1)
    at = Positions.packed([0, 5, 10])
    out = attend(split(their.to_q(normed)), split(k), split(v), encoding, at, causal=False)
    close(their.to_out(out.transpose(1, 2).flatten(-2)), expected.detach(), atol=1e-11)


@pytest.mark.parametrize("length", [1, 3, 9, 40])
def test_phi4_audio(length):
    config = SimpleNamespace(bias_max_distance=6, bias_symmetric=False, num_attention_heads=H)
    their = drawn(theirs("phi4_multimodal", "Phi4MultimodalAudioRelativeAttentionBias")(config).double())
    encoding = DistanceTable(H, max_distance=6, right=5).double()
    encoding.load_state_dict({"table": their.bias_values.weight})
    got = matrix(encoding, *[torch.zeros(1, H, length, D).double()] * 2, Positions.arange(1, length, 4))
    close(got, their(torch.zeros(1, length)).detach())


@pytest.mark.parametrize("outside", ["clip", "zero"])
@pytest.mark.parametrize("values", [True, False])
def test_two_limits_by_loops(values, outside):
    """Positions anywhere; causal and not."""
    encoding = drawn(Shaw(D, max_distance=4, right=2, values=values, outside=outside).double())
    tables = [t.detach().numpy() for t in encoding.parameters()]
    q, k, v = draw(1, 1, H, 5, D), draw(2, 1, H, 6, D), draw(3, 1, H, 6, D)
    at_q, at_k = [[4, 0, 30, 7, 7]], [[3, 18, 5, 0, 9, 4]]

    def vector(table, i, j):
        delta = at_k[0][j] - at_q[0][i]
        if outside == "zero" and not -4 <= delta <= 2:
            return 0 * table[0]
        return table[min(max(delta, -4), 2) + 4]

    def term(b, h, i, j):
        return sum(q[b, h, i, c] * vector(tables[0], i, j)[c] for c in range(D)) / math.sqrt(D)

    addend = (lambda b, h, i, j: vector(tables[1], i, j)) if values else None
    got = attend(
        *map(torch.from_numpy, (q, k, v)),
        encoding,
        Positions.at(torch.tensor(at_q)),
        Positions.at(torch.tensor(at_k)),
        causal=False,
    )
    close(got, attention(add(products(q, k), term), v, lambda b, i, j: True, addend))


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_distance_table_by_loops(impl):
    encoding = drawn(DistanceTable(H, max_distance=3, right=1).double())
    table = encoding.table.detach().numpy()
    q, k, v = (draw(seed, 1, H, 6, D) for seed in (1, 2, 3))
    logits = add(products(q, k), lambda b, h, i, j: table[min(max(j - i, -3), 1) + 3, h])
    at = Positions.arange(1, 6)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False, impl=impl)
    close(got, attention(logits, v, sees([range(6)], [range(6)], causal=False)))
    part = attend(*(torch.from_numpy(x[:, 1:3]) for x in (q, k, v)), encoding.heads(1, 3), at, causal=False, impl=impl)
    close(part, got[:, 1:3].detach())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32], ids=str)
def test_distances_in_small_integers(dtype):
    """uint8 was a mask to torch, and an int8 could not hold the row."""
    table = DistanceTable(H, max_distance=128)
    for delta in (torch.arange(5), torch.tensor([0, 127, 100])):
        assert torch.equal(table.at_distance(delta.to(dtype)), table.at_distance(delta))


def test_wrong_arguments():
    for wrong in (-1, 1.5, True):
        for make in (lambda right: Shaw(D, right=right), lambda right: DistanceTable(H, right=right)):
            with pytest.raises(ValueError, match=f"right: expected a whole number from 0 or None, got {wrong}"):
                make(wrong)
    with pytest.raises(ValueError, match="outside: expected one of 'clip', 'zero'"):
        Shaw(D, outside="nothing")
    with pytest.raises(TypeError, match="DistanceTable: needs integer positions"):
        matrix(DistanceTable(H), *[torch.zeros(1, H, 2, D)] * 2, Positions.at(torch.rand(1, 2)))
    assert isinstance(DistanceTable(H, max_distance=0).table, nn.Parameter)
    assert Shaw(D, max_distance=0, right=0).keys.shape == (1, D)
