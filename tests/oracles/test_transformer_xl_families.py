"""Transformer-XL's terms in XLNet and in Conformers, against their own modules and by loops."""

import importlib
import math

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.of_families.funnel import Funnel
from posenc.encodings.transformer_xl import TransformerXL
from posenc.encodings.xlnet import XLNet

from .by_hand import add, attention, close, draw, products, sees
from .test_deberta import drawn

H, D = 4, 6
M = H * D
FLOAT32 = 2e-6  # their sinusoids are float32's, of logits of size one


def split(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (H, D)).transpose(1, 2)


# XLNet -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("attention_type", ["bi", "uni"])
@pytest.mark.parametrize("memory", [0, 4])
def test_whole_attention_of_xlnet(memory, attention_type, segments):
    """Positions klen … -qlen; memory stands before the tokens."""
    module = importlib.import_module("transformers.models.xlnet.modeling_xlnet")
    config = module.XLNetConfig(vocab_size=8, d_model=M, n_head=H, d_inner=8, n_layer=1, attn_type=attention_type)
    their = drawn(module.XLNetModel(config).double(), 1).eval()
    layer, length = their.layer[0].rel_attn, 7
    weights = {"u": layer.r_w_bias, "v": layer.r_r_bias, "w_r": layer.r.permute(1, 2, 0)}
    if segments:
        weights |= {"s": layer.r_s_bias, "e": layer.seg_embed.transpose(0, 1)}
    encoding = XLNet(M, H, segments=segments).double()
    encoding.load_state_dict(weights)
    x = torch.from_numpy(draw(5, memory + length, 2, M))
    r = their.relative_positional_encoding(length, memory + length, 2).double()
    q, k, v = (torch.einsum("tbm,mhd->tbhd", part, w) for part, w in ((x[memory:], layer.q), (x, layer.k), (x, layer.v)))
    kinds = torch.tensor([[0] * (memory + 4) + [1] * 3, [0] * (memory + 2) + [1] * 4 + [5]])
    mixed = (kinds[:, memory:, None] != kinds[:, None]).long().permute(1, 2, 0)
    given = torch.nn.functional.one_hot(mixed, num_classes=2).double() if segments else None
    causal = attention_type == "uni"
    mask = torch.ones(length, memory + length).triu(1 + memory)[..., None, None].double() if causal else None
    expected = layer.rel_attn_core(q, k, v, torch.einsum("tbm,mhd->tbhd", r, layer.r), given, mask)
    index = torch.arange(memory + length).expand(2, -1)
    coords = torch.stack([index, kinds], dim=-1) if segments else index
    at = Positions.at(coords)
    q, k, v = (part.permute(1, 2, 0, 3) for part in (q, k, v))
    out = attend(q, k, v, encoding, at.take(torch.arange(memory, memory + length)), at, causal=causal)
    close(out.permute(2, 0, 1, 3), expected.detach(), atol=FLOAT32)


def test_segments_by_loops():
    encoding = drawn(XLNet(M, H).double())
    p = {name: value.detach().numpy() for name, value in encoding.named_parameters()}
    places = [(4, 0), (5, 0), (7, 3), (1, 3), (2, 1)]
    q, k, v = (draw(seed, 1, H, 5, D) for seed in (1, 2, 3))

    def term(b, h, i, j):
        angles = [(places[i][0] - places[j][0]) * 10000 ** (-2 * n / M) for n in range(M // 2)]
        r = [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
        at = [sum(p["w_r"][h, c, n] * r[n] for n in range(M)) for c in range(D)]
        kind = p["e"][h, int(places[i][1] != places[j][1])]
        total = sum(p["u"][h, c] * k[b, h, j, c] + (q[b, h, i, c] + p["v"][h, c]) * at[c] for c in range(D))
        return (total + sum((q[b, h, i, c] + p["s"][h, c]) * kind[c] for c in range(D))) / math.sqrt(D)

    at = Positions.at(torch.tensor([places]))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at)
    close(got, attention(add(products(q, k), term), v, sees([range(5)], [range(5)])))
    close(attend(*map(torch.from_numpy, (q, k, v)), encoding, encoding.prepare(at, torch.float64)), got.detach())
    with pytest.raises(ValueError, match=r"reads 2 coordinate"):
        attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(1, 5))


# Funnel ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("kind", ["relative_shift", "factorized"])
@pytest.mark.parametrize("block", [0, 1])
def test_whole_attention_of_funnel(block, kind, separate):
    """Block 1 reads pooled queries: positions -1, 1, 3, … where the class token stands apart, 0, 2, 4, … elsewhere."""
    module = importlib.import_module("transformers.models.funnel.modeling_funnel")
    config = module.FunnelConfig(
        d_model=M,
        n_head=H,
        d_head=D,
        block_sizes=[1, 1],
        attention_type=kind,
        separate_cls=separate,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        truncate_seq=True,
        pool_q_only=True,
    )
    structure = module.FunnelAttentionStructure(config).eval()
    their = drawn(module.FunnelRelMultiheadAttention(config, block).double()).eval()
    kinds = torch.tensor([[2, 0, 0, 0, 1, 1, 1, 1], [2, 0, 1, 1, 1, 1, 1, 1]])
    x = torch.from_numpy(draw(5, 2, 8, M)) / 2
    inputs = structure.init_attention_inputs(x, torch.ones(2, 8), kinds)
    queries, places = x, torch.arange(8)
    if block:
        queries, inputs = structure.pre_attention_pooling(x, inputs)
        places = torch.tensor(structure.stride_pool_pos(list(range(8)), 1))
    expected = their.to(torch.float64)(queries, x, x, inputs, output_attentions=True)[1]
    encoding = Funnel(M, H, d_head=D, separate=separate).double()
    encoding.load_state_dict(
        {
            "u": their.r_w_bias,
            "v": their.r_r_bias,
            "w_r": their.r_kernel.permute(1, 2, 0),
            "s": their.r_s_bias,
            "e": their.seg_embed.transpose(0, 1).flip(1),
        }
    )
    q, k = (split(part) for part in (their.q_head(queries), their.k_head(x)))
    kept = torch.tensor([0, *range(1, 7, 2)]) if separate else torch.arange(0, 8, 2)
    segment = torch.where(kinds == 2, -1, kinds)
    at_k = Positions.at(torch.stack([torch.arange(8).expand(2, -1), segment], dim=-1))
    at_q = Positions.at(torch.stack([places.expand(2, -1), segment[:, kept] if block else segment], dim=-1))
    eye = torch.eye(8, dtype=torch.float64).expand(2, H, 8, 8)
    close(attend(q, k, eye, encoding, at_q, at_k, causal=False), expected.detach(), atol=FLOAT32)


# Conformers ------------------------------------------------------------------------------------------------------------


def conformer(w_r, u, v) -> TransformerXL:
    encoding = TransformerXL(M, H, layout="interleaved").double()
    encoding.load_state_dict({"w_r": w_r.view(H, D, M), "u": u, "v": v})
    return encoding


@pytest.mark.parametrize("length", [1, 2, 9])
@pytest.mark.parametrize(
    ("family", "name", "sizes"),
    [
        ("wav2vec2_conformer", "Wav2Vec2Conformer", {"num_attention_heads": H, "attention_dropout": 0.0}),
        ("wav2vec2_bert", "Wav2Vec2Bert", {"num_attention_heads": H, "attention_dropout": 0.0}),
        ("seamless_m4t", "SeamlessM4T", {"speech_encoder_attention_heads": H, "speech_encoder_dropout": 0.0}),
    ],
)
def test_relative_positions_of_wav2vec2_conformers(family, name, sizes, length):
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    config = getattr(module, f"{name}Config")(
        hidden_size=M, position_embeddings_type="relative", max_source_positions=32, **sizes
    )
    config._attn_implementation = "eager"
    inner = "Conformer" if family == "seamless_m4t" else ""
    their = drawn(getattr(module, f"{name}{inner}SelfAttention")(config).double()).eval()
    embedding = getattr(module, f"{name}{inner}RelPositionalEmbedding")(config)
    x = torch.from_numpy(draw(5, 2, length, M))
    expected = their(x, relative_position_embeddings=embedding(x).double())[0]
    encoding = conformer(their.linear_pos.weight, their.pos_bias_u, their.pos_bias_v)
    q, k, v = (split(getattr(their, f"linear_{n}")(x)) for n in "qkv")
    out = attend(q, k, v, encoding, Positions.arange(2, length, 3), causal=False).transpose(1, 2).flatten(-2)
    close(their.linear_out(out), expected.detach(), atol=FLOAT32)


@pytest.mark.parametrize("length", [1, 2, 9])
def test_fastspeech2_conformer(length):
    module = importlib.import_module("transformers.models.fastspeech2_conformer.modeling_fastspeech2_conformer")
    config = module.FastSpeech2ConformerConfig(hidden_size=M)
    options = {"num_attention_heads": H, "attention_dropout_rate": 0.0, "positional_dropout_rate": 0.0}
    their = drawn(module.FastSpeech2ConformerAttention(config, options).double()).eval()
    embedding = module.FastSpeech2ConformerRelPositionalEncoding(config, options)
    x = torch.from_numpy(draw(5, 2, length, M))
    expected = their(x, pos_emb=embedding(x)[1].double())[0]
    encoding = conformer(their.linear_pos.weight, their.pos_bias_u, their.pos_bias_v)
    q, k, v = (split(getattr(their, f"linear_{n}")(x)) for n in "qkv")
    out = attend(q, k, v, encoding, Positions.arange(2, length, 3), causal=False).transpose(1, 2).flatten(-2)
    close(their.linear_out(out), expected.detach(), atol=FLOAT32)


@pytest.mark.parametrize("length", [1, 2, 9])
@pytest.mark.parametrize(("family", "name"), [("parakeet", "Parakeet"), ("nemotron_asr_streaming", "NemotronAsrStreaming")])
def test_parakeet_and_nemotron(family, name, length):
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    config = getattr(module, f"{name}EncoderConfig")(hidden_size=M, num_attention_heads=H, num_key_value_heads=H)
    config._attn_implementation = "eager"
    their = drawn(getattr(module, f"{name}EncoderAttention")(config, 0).double()).eval()
    embedding = getattr(module, f"{name}EncoderRelPositionalEncoding")(config)
    x = torch.from_numpy(draw(5, 2, length, M))
    expected = their(x, embedding(x).double(), attention_mask=torch.ones(2, 1, length, length, dtype=torch.bool))[0]
    encoding = conformer(their.relative_k_proj.weight, their.bias_u, their.bias_v)
    q, k, v = (split(getattr(their, f"{n}_proj")(x)) for n in "qkv")
    out = attend(q, k, v, encoding, Positions.arange(2, length, 3), causal=False).transpose(1, 2).flatten(-2)
    close(their.o_proj(out), expected.detach(), atol=FLOAT32)


def test_interleaved_is_half_with_the_columns_of_w_r_in_another_order():
    half, other = drawn(TransformerXL(M, H).double()), TransformerXL(M, H, layout="interleaved").double()
    columns = torch.arange(M).view(2, -1).T.flatten()  # 0, M/2, 1, M/2 + 1, …
    other.load_state_dict(half.state_dict() | {"w_r": half.w_r.detach()[..., columns]})
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 5, D)) for seed in (1, 2, 3))
    at = Positions.arange(1, 5, 6)
    close(attend(q, k, v, other, at), attend(q, k, v, half, at).detach())
    with pytest.raises(ValueError, match="layout: expected one of 'half', 'interleaved'"):
        TransformerXL(M, H, layout="sin_cos")
