"""T5's buckets in other families: along several coordinates, gated, by segments, toward global tokens."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from posenc import Positions, attend
from posenc.encodings.of_families.t5_gated import GatedT5
from posenc.encodings.of_families.t5_segments import SegmentedT5
from posenc.encodings.t5 import T5
from posenc.encodings.t5_axes import T5Axes

from .by_hand import add, attention, close, draw, products, sees
from .test_t5 import bucket

H, D = 4, 6
EVERY = torch.arange(-100_000, 100_001)


def theirs(family: str, name: str):
    module = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    return getattr(module, name)


def drawn(module: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


def matrix(encoding, q, k, at_q, at_k=None) -> torch.Tensor:
    """The bias alone."""
    at_k = at_q if at_k is None else at_k
    of_pair = encoding.bias(q, k, at_q.expand(q.shape[0]), at_k.expand(q.shape[0]))
    b, h, i, j = (
        torch.arange(n).view(*[-1 if axis == own else 1 for axis in range(4)])
        for own, n in enumerate((*q.shape[:3], k.shape[2]))
    )
    return of_pair(b, h, i, j).detach().expand(*q.shape[:3], k.shape[2])


def queries(length: int, batch: int = 1) -> torch.Tensor:
    return torch.from_numpy(draw(1, batch, H, length, D))


# Buckets: floating-point logarithms there, whole numbers here ----------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("sizes", [(32, 128), (32, 100), (64, 256), (128, 128), (256, 512), (320, 800), (512, 2048)])
def test_every_distance_to_100000_is_the_bucket_of_the_families_I3(sizes, bidirectional):
    bucket_of = T5(1, n_buckets=sizes[0], max_distance=sizes[1], bidirectional=bidirectional).bucket(EVERY)
    for family, name in (
        ("t5", "T5Attention"),
        ("mt5", "MT5Attention"),
        ("longt5", "LongT5LocalAttention"),
        ("pop2piano", "Pop2PianoAttention"),
        ("switch_transformers", "SwitchTransformersAttention"),
        ("udop", "UdopAttention"),
        ("pix2struct", "Pix2StructTextAttention"),
    ):
        their = theirs(family, name)._relative_position_bucket
        assert torch.equal(bucket_of, their(-EVERY, bidirectional, *sizes)), family
    assert torch.equal(bucket_of, theirs("layoutlmv2", "relative_position_bucket")(-EVERY, bidirectional, *sizes))
    assert torch.equal(
        bucket_of, theirs("layoutlmv3", "LayoutLMv3Encoder").relative_position_bucket(None, -EVERY, bidirectional, *sizes)
    )
    their = theirs("prophetnet", "compute_relative_buckets")(*sizes, -EVERY, bidirectional)
    assert torch.equal(bucket_of, their.long())
    if bidirectional:
        assert torch.equal(bucket_of, theirs("mpnet", "MPNetEncoder").relative_position_bucket(-EVERY, *sizes))
        their = theirs("cpmant", "CpmAntSegmentPositionEmbedding")._position_bucket(None, -EVERY.int(), *sizes)
        assert torch.equal(bucket_of, their.long())
        wavlm = type("Sizes", (), {"num_buckets": sizes[0], "max_distance": sizes[1]})
        assert torch.equal(bucket_of, theirs("wavlm", "WavLMAttention")._relative_positions_bucket(wavlm, -EVERY))


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize(
    ("family", "config", "name"),
    [("t5", "T5Config", "T5Attention"), ("umt5", "UMT5Config", "UMT5Attention"), ("mt5", "MT5Config", "MT5Attention")],
)
def test_whole_attention_of_t5_has_no_scale_L1(family, config, name, decoder):
    made = getattr(__import__("transformers"), config)(d_model=H * D, d_kv=D, num_heads=H, is_decoder=decoder)
    made._attn_implementation = "eager"
    their = drawn(theirs(family, name)(made, has_relative_attention_bias=True, layer_idx=0).double()).eval()
    encoding = T5(H, bidirectional=not decoder, scale=1.0).double()
    encoding.load_state_dict({"table": their.relative_attention_bias.weight.detach()})
    x = torch.from_numpy(draw(1, 2, 200, H * D)) / 10
    q, k, v = (getattr(their, p)(x).unflatten(-1, (H, D)).transpose(1, 2) for p in "qkv")
    out = attend(q, k, v, encoding, Positions.arange(2, 200), causal=decoder)
    hidden = torch.full((200, 200), torch.finfo(torch.float64).min, dtype=torch.float64).triu(1) if decoder else None
    got = their(x, mask=hidden) if family != "umt5" else their(x, attention_mask=hidden)
    close(their.o(out.transpose(1, 2).flatten(-2)), got[0], atol=2e-5)  # their softmax is in float32


def test_global_tokens_of_longt5_are_distances_between_blocks():
    config = __import__("transformers").LongT5Config(d_model=H * D, d_kv=D, num_heads=H, global_block_size=4)
    their = theirs("longt5", "LongT5TransientGlobalAttention")(config, has_relative_attention_bias=True).double()
    drawn(their)
    mask = torch.ones(1, 30, dtype=torch.long)
    block_ids, global_ids = theirs("longt5", "_make_global_fixed_block_ids")(mask, 4)
    expected = their.compute_side_bias(mask, global_ids)
    encoding = T5(H, bidirectional=True, scale=1.0).double()
    encoding.load_state_dict({"table": their.global_relative_attention_bias.weight.detach()})
    blocks = Positions.arange(1, global_ids.shape[1])
    got = matrix(encoding, queries(30), queries(blocks.length), Positions.at(block_ids.long()), blocks)
    close(got, expected.detach())


# Several coordinates ---------------------------------------------------------------------------------------------------

BOXES = torch.from_numpy(np.random.default_rng(5).integers(0, 1000, (2, 9, 4)))


def family_axes(family: str, config: str, **options) -> tuple[nn.Module, T5Axes]:
    made = getattr(__import__("transformers"), config)(
        hidden_size=H * D,
        num_attention_heads=H,
        num_hidden_layers=1,
        has_relative_attention_bias=True,
        has_spatial_attention_bias=True,
    )
    their = drawn(theirs(family, config.replace("Config", "Encoder"))(made).double())
    encoding = T5Axes(
        H,
        n_buckets=(made.rel_pos_bins, *[made.rel_2d_pos_bins] * 2),
        max_distance=(made.max_rel_pos, *[made.max_rel_2d_pos] * 2),
        **options,
    ).double()
    names = ("rel_pos_bias", "rel_pos_x_bias", "rel_pos_y_bias")
    encoding.load_state_dict({f"axis_tables.{n}": getattr(their, name).weight.T for n, name in enumerate(names)})
    return their, encoding


@pytest.mark.parametrize("version", [2, 3])
def test_layoutlm_adds_text_and_boxes(version):
    """Index in the text, left edge x0, lower edge y1; version 3 divides by √d_head as well."""
    their, encoding = family_axes(f"layoutlmv{version}", f"LayoutLMv{version}Config", bias_over_sqrt=version == 3)
    index = torch.arange(9).expand(2, -1) * 40
    if version == 2:
        expected = their._calculate_1d_position_embeddings(index) + their._calculate_2d_position_embeddings(BOXES)
    else:
        expected = (their._cal_1d_pos_emb(index) + their._cal_2d_pos_emb(BOXES)) / math.sqrt(D)
    at = Positions.at(torch.stack([index, BOXES[..., 0], BOXES[..., 3]], dim=-1))
    close(matrix(encoding, queries(9, 2), queries(9, 2), at), expected.detach())


@pytest.mark.parametrize("version", [2, 3])
def test_whole_attention_of_layoutlm(version):
    """In float32: version 2 fails in float64."""
    their, encoding = family_axes(f"layoutlmv{version}", f"LayoutLMv{version}Config", bias_over_sqrt=version == 3)
    their, encoding = their.float(), encoding.float()
    module = their.layer[0].attention.self.eval()
    index = torch.arange(9).expand(2, -1)
    x = torch.from_numpy(draw(4, 2, 9, H * D)).float() / 3
    if version == 2:
        one, two = their._calculate_1d_position_embeddings(index), their._calculate_2d_position_embeddings(BOXES)
        q, k, v = (part.unflatten(-1, (H, D)).transpose(1, 2) for part in module.compute_qkv(x))
    else:
        one, two = their._cal_1d_pos_emb(index), their._cal_2d_pos_emb(BOXES)
        q, k, v = (getattr(module, name)(x).unflatten(-1, (H, D)).transpose(1, 2) for name in ("query", "key", "value"))
    expected = module(x, attention_mask=torch.zeros(2, 1, 1, 9, dtype=torch.float32), rel_pos=one, rel_2d_pos=two)[0]
    at = Positions.at(torch.stack([index, BOXES[..., 0], BOXES[..., 3]], dim=-1))
    out = attend(q, k, v, encoding, at, causal=False).transpose(1, 2).flatten(-2)
    close(out, expected.detach(), atol=1e-5)


def test_udop_reads_the_middle_of_boxes_in_hundredths():
    config = __import__("transformers").UdopConfig(d_model=H * D, d_kv=D, num_heads=H)
    their = drawn(theirs("udop", "RelativePositionBiasAggregated")(theirs("udop", "create_relative_bias")(config)).double())
    boxes = BOXES.float() / 1000
    expected = their(torch.ones(2, 9, dtype=torch.long), boxes)
    encoding = T5Axes(H, n_buckets=(32,) * 3, max_distance=(128, 100, 100), scaling=(1, 100, 100), scale=1.0).double()
    encoding.load_state_dict({f"axis_tables.{n}": b.relative_attention_bias.weight for n, b in enumerate(their.biases)})
    x, y = boxes[..., [0, 2]].mean(-1), boxes[..., [1, 3]].mean(-1)
    at = Positions.at(torch.stack([torch.arange(9.0).expand(2, -1), x, y], dim=-1))
    close(matrix(encoding, queries(9, 2), queries(9, 2), at), expected.detach())
    assert encoding.softmax_scale(64) == 1.0


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_axes_by_loops(impl):
    encoding = drawn(T5Axes(4, n_buckets=(8, 12), max_distance=(20, 30), scaling=(1, 0.5), bias_over_sqrt=True).double())
    q, k, v = (draw(seed, 1, 4, 5, D) for seed in (1, 2, 3))
    coords = [[0, 7], [3, 90], [-4, 5], [60, 8], [2, 6]]
    tables = [table.detach().numpy() for table in encoding.axis_tables]

    def term(b, h, i, j):
        first, second = coords[i][0] - coords[j][0], math.trunc((coords[i][1] - coords[j][1]) * 0.5)
        return (tables[0][bucket(first, 8, 20, True), h] + tables[1][bucket(second, 12, 30, True), h]) / math.sqrt(D)

    at = Positions.at(torch.tensor([coords]))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False, impl=impl)
    close(got, attention(add(products(q, k), term), v, lambda b, i, j: True))


def test_axes_wrong_arguments():
    with pytest.raises(ValueError, match="expected one of each for every axis"):
        T5Axes(4, n_buckets=(32,), max_distance=(128, 256))
    with pytest.raises(ValueError, match="scaling: expected a positive number"):
        T5Axes(4, scaling=(1, 0, 1))
    with pytest.raises(ValueError, match="need max_distance"):
        T5Axes(4, n_buckets=(2, 2, 2))
    with pytest.raises(TypeError, match="needs integer positions"):
        matrix(T5Axes(4).double(), queries(2), queries(2), Positions.at(torch.rand(1, 2, 3)))
    with pytest.raises(ValueError, match=r"reads 3 coordinate\(s\)"):
        matrix(T5Axes(4).double(), queries(4), queries(4), Positions.grid(2, 2))


# Gates -----------------------------------------------------------------------------------------------------------------


def wavlm() -> tuple[nn.Module, GatedT5]:
    their = drawn(theirs("wavlm", "WavLMAttention")(H * D, H).double()).eval()
    encoding = GatedT5(H, D).double()
    encoding.load_state_dict(
        {
            "rule.table": their.rel_attn_embed.weight,
            "gate": their.gru_rel_pos_linear.weight,
            "gate_offset": their.gru_rel_pos_linear.bias,
            "constant": their.gru_rel_pos_const.flatten(),
        }
    )
    return their, encoding


def test_whole_attention_of_wavlm():
    their, encoding = wavlm()
    x = torch.from_numpy(draw(1, 2, 200, H * D)) / 3
    expected = their(x)[0]
    q, k, v = (getattr(their, f"{n}_proj")(x).unflatten(-1, (H, D)).transpose(1, 2) for n in "qkv")
    at = encoding.read_hidden(x, Positions.arange(1, 200))
    out = their.out_proj(attend(q, k, v, encoding, at, causal=False).transpose(1, 2).flatten(-2))
    close(out, expected.detach(), atol=1e-10)


@pytest.mark.parametrize("reads", ["hidden", "query"])
def test_gates_by_loops(reads):
    encoding = drawn(GatedT5(H, D, n_buckets=8, max_distance=20, reads=reads).double())
    w, offset, constant = (getattr(encoding, name).detach().numpy() for name in ("gate", "gate_offset", "constant"))
    table = encoding.rule.table.detach().numpy()
    x, q, k, v = draw(4, 1, 5, H * D), *(draw(seed, 1, H, 5, D) for seed in (1, 2, 3))

    def term(b, h, i, j):
        of = x[b, i, h * D : (h + 1) * D] if reads == "hidden" else q[b, h, i]
        eight = [sum(w[n, c] * of[c] for c in range(D)) + offset[n] for n in range(8)]
        alpha, beta = (1 / (1 + math.exp(-sum(eight[n : n + 4]))) for n in (0, 4))
        gate = alpha * (beta * constant[h] - 1) + 2
        return gate * table[bucket(i - j, 8, 20, True), h]

    at = Positions.arange(1, 5, 3)
    at = encoding.read_hidden(torch.from_numpy(x), at) if reads == "hidden" else at
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at)
    close(got, attention(add(products(q, k), term), v, sees([range(5)], [range(5)])))


def test_what_was_read_belongs_to_one_layer():
    first, second = (GatedT5(H, D) for _ in range(2))
    x, q = torch.randn(1, 3, H * D), torch.randn(1, H, 3, D)
    at = Positions.arange(1, 3)
    with pytest.raises(ValueError, match="carry nothing read by GatedT5"):
        attend(q, q, q, first, at)
    with pytest.raises(ValueError, match="carry nothing read by GatedT5"):
        attend(q, q, q, second, first.read_hidden(x, at))
    assert GatedT5(H, D, reads="query").read_hidden(x, at) is at
    with pytest.raises(ValueError, match="reads: expected one of 'hidden', 'query'"):
        GatedT5(H, D, reads="both")
    with pytest.raises(ValueError, match="built for d_model=24, got a tensor with 20"):
        first.read_hidden(x[..., :20], at)


def test_what_was_read_is_gathered_and_joined_with_the_tokens():
    """Decoding: each token read when it comes, keys' positions joined from chunks that carry different tables."""
    _, encoding = wavlm()
    x, q, k, v = torch.from_numpy(draw(4, 1, 6, H * D)), *(torch.from_numpy(draw(s, 1, H, 6, D)) for s in (1, 2, 3))
    whole = attend(q, k, v, encoding, encoding.read_hidden(x, Positions.arange(1, 6)))
    first = encoding.read_hidden(x[:, :5], Positions.arange(1, 5))
    last = encoding.read_hidden(x[:, 5:], Positions.decode([5]))
    got = attend(q[:, :, 5:], k, v, encoding, last, Positions.cat([first, last]))
    close(got, whole[:, :, 5:].detach())
    index = torch.tensor([4, 1])
    some = attend(
        q[:, :, index], k, v, encoding, encoding.read_hidden(x, Positions.arange(1, 6)).take(index), Positions.arange(1, 6)
    )
    close(some, whole[:, :, index].detach())


# Segments --------------------------------------------------------------------------------------------------------------

SEGMENTS = torch.tensor([[0, 0, 0, 2, 2, 2, 2, 1, 1], [3, 3, 3, 3, 3, 3, 0, 0, 0]])


def test_segments_of_cpmant():
    config = __import__("transformers").CpmAntConfig(num_attention_heads=H, segment_types=4)
    their = drawn(theirs("cpmant", "CpmAntSegmentPositionEmbedding")(config).double())
    index = torch.arange(9).expand(2, -1)
    expected = their(index, index, SEGMENTS, SEGMENTS)
    encoding = SegmentedT5(H, n_segments=4).double()
    encoding.load_state_dict({"table": their.relative_attention_bias})
    at = Positions.at(torch.stack([index, SEGMENTS], dim=-1))
    close(matrix(encoding, queries(9, 2), queries(9, 2), at), expected.detach())


def test_segments_by_loops():
    encoding = drawn(SegmentedT5(H, n_segments=4, n_buckets=8, max_distance=20).double())
    table = encoding.table.detach().numpy()
    q, k, v = (draw(seed, 2, H, 9, D) for seed in (1, 2, 3))

    def term(b, h, i, j):
        mine, theirs = int(SEGMENTS[b, i]), int(SEGMENTS[b, j])
        return table[bucket(5 * (i - j), 8, 20, True) if mine == theirs else 8 + 4 * mine + theirs, h]

    at = Positions.at(torch.stack([torch.arange(0, 45, 5).expand(2, -1), SEGMENTS], dim=-1))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at)
    close(got, attention(add(products(q, k), term), v, sees([range(9)] * 2, [range(9)] * 2)))
    with pytest.raises(ValueError, match="segment 4 is outside 0 … 3"):
        matrix(encoding, queries(9, 2), queries(9, 2), Positions.at(torch.stack([SEGMENTS, SEGMENTS + 1], dim=-1)))
    with pytest.raises(ValueError, match="n_segments: expected a whole number from 1"):
        SegmentedT5(H, n_segments=0)
