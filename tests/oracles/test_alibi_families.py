"""ALiBi in BLOOM, MPT and Falcon, against their own modules in transformers."""

import math

import numpy as np
import pytest
import torch
from transformers import BloomConfig, FalconConfig, MptConfig
from transformers.models.bloom.modeling_bloom import BloomModel
from transformers.models.falcon.modeling_falcon import FalconModel, build_alibi_tensor
from transformers.models.mpt.modeling_mpt import MptModel, build_mpt_alibi_tensor

from posenc import Positions, attend
from posenc.encodings.alibi import ALiBi, alibi_slopes
from posenc.encodings.of_families.falcon_alibi import FalconALiBi
from posenc.positions import may_attend

from .by_hand import add, attention, close, draw, products, sees

PADDED = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]])


@pytest.mark.parametrize("bias_max", [8, 4, 16, 5.5])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 8, 12, 40, 71, 112, 128])
def test_slopes_of_mpt_for_other_maxima(n, bias_max):
    theirs = -build_mpt_alibi_tensor(n, 2, alibi_bias_max=bias_max)[:, 0, 0]
    assert alibi_slopes(n, bias_max) == pytest.approx(theirs.tolist(), rel=1e-6)


@pytest.mark.parametrize("wrong", [0, -1, math.inf, math.nan, "8", True, None])
def test_a_maximum_that_is_no_positive_number_is_refused(wrong):
    with pytest.raises(ValueError, match="bias_max: expected a positive number"):
        alibi_slopes(4, wrong)


def test_bias_max_by_loops():
    q, k, v = (draw(seed, 1, 3, 5, 4) for seed in (1, 2, 3))
    slopes = [2.0**-2, 2.0**-4, 2.0**-1]  # three heads, 2^-4 the last of two: the first of four follows
    logits = add(products(q, k), lambda b, h, i, j: -slopes[h] * abs(i - j))
    got = attend(*map(torch.from_numpy, (q, k, v)), ALiBi(3, bias_max=4), Positions.arange(1, 5))
    close(got, attention(logits, v, sees([range(5)], [range(5)])))


def layer_probabilities(model, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The attention probabilities of a one-layer model, and its input to the attention."""
    caught = {}

    def catch(module, arguments, keywords):
        caught["x"] = keywords["hidden_states"] if "hidden_states" in keywords else arguments[0]

    attention_module = next(m for name, m in model.named_modules() if name.endswith(("self_attention", "attn")))
    attention_module.register_forward_pre_hook(catch, with_kwargs=True)
    with torch.no_grad():
        out = model(torch.arange(1, 8).expand(3, -1), attention_mask=mask, output_attentions=True, use_cache=False)
    return out.attentions[0], caught["x"]


def probabilities(q, k, encoding, at) -> torch.Tensor:
    """Ours: attention over an identity gives the probabilities themselves."""
    n = q.shape[2]
    eye = torch.eye(n, dtype=q.dtype)[None, None].expand(q.shape[0], q.shape[1], n, n)
    return attend(q, k, eye, encoding, at, impl="reference")


def same_where_real(mine, theirs, at, atol):
    seen = may_attend(at, at, causal=True).any(-1)[..., None].expand_as(mine)
    assert (mine[seen] - theirs[seen]).abs().max() < atol


@pytest.mark.parametrize("heads", [4, 6])
def test_bloom_adds_the_key_position_H5(heads):
    torch.manual_seed(0)
    config = BloomConfig(vocab_size=20, hidden_size=heads * 4, n_layer=1, n_head=heads, attn_implementation="eager")
    model = BloomModel(config).double().eval()
    theirs, x = layer_probabilities(model, PADDED)
    fused = model.h[0].self_attention.query_key_value(x).unflatten(-1, (heads, 3, 4))
    q, k = (fused[..., n, :].transpose(1, 2) for n in (0, 1))
    at = Positions.from_mask(PADDED)
    same_where_real(probabilities(q, k, ALiBi(heads), at), theirs, at, 1e-6)  # their softmax is in fp32


@pytest.mark.parametrize("said", [{}, {"alibi_bias_max": 3}, {"alibi": False}], ids=str)
def test_mpt_counts_from_the_last_key_whatever_its_configuration_says_H5(said):
    """MptModel never reads alibi and alibi_bias_max: every MPT has ALiBi with a maximum of 8."""
    torch.manual_seed(0)
    config = MptConfig(
        vocab_size=20, d_model=24, n_layers=1, n_heads=6, attn_config=said, attn_implementation="eager", max_seq_len=32
    )
    model = MptModel(config).double().eval()
    theirs, x = layer_probabilities(model, PADDED)
    q, k, _ = (part.unflatten(-1, (6, 4)).transpose(1, 2) for part in model.blocks[0].attn.Wqkv(x).chunk(3, dim=2))
    at = Positions.from_mask(PADDED)
    same_where_real(probabilities(q, k, ALiBi(6, bias_max=8), at), theirs, at, 1e-6)


@pytest.mark.parametrize("heads", [1, 3, 4, 8, 12, 71, 128])
def test_falcon_rounds_slopes_positions_and_products(heads):
    """Every bit of their bias, to position 3000, divided by √d as their sdpa path does."""
    mask = torch.ones(1, 3000, dtype=torch.long)
    theirs = build_alibi_tensor(mask, heads, torch.float32)[:, 0] / math.sqrt(16)
    at = Positions.arange(1, 3000)
    q = torch.zeros(1, heads, 3000, 16)
    of_pair = FalconALiBi(heads).bias(q, q, at, at)
    mine = of_pair(torch.tensor(0), torch.arange(heads)[:, None], torch.tensor(0), torch.arange(3000)[None])
    assert torch.equal(mine, theirs)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_falcon_attention_both_paths(implementation):
    """Their eager path counts the bias twice: once in the logits, once in the mask made for sdpa."""
    torch.manual_seed(0)
    config = FalconConfig(
        vocab_size=20,
        hidden_size=48,
        num_hidden_layers=1,
        num_attention_heads=3,
        alibi=True,
        multi_query=False,
        new_decoder_architecture=False,
        parallel_attn=False,
        attn_implementation=implementation,
        hidden_dropout=0.0,
    )
    model = FalconModel(config).eval()
    with torch.no_grad():
        model.h[0].self_attention.dense.weight.copy_(torch.eye(48))
    caught = {}
    module = model.h[0].self_attention
    module.register_forward_pre_hook(lambda m, a: caught.update(x=a[0]))
    module.register_forward_hook(lambda m, a, out: caught.update(out=out[0]))
    with torch.no_grad():
        model(torch.arange(1, 8).expand(3, -1), attention_mask=PADDED, use_cache=False)
        fused = module.query_key_value(caught["x"]).unflatten(-1, (3, 3, 16))
    q, k, v = (fused[..., n, :].transpose(1, 2) for n in range(3))
    at = Positions.from_mask(PADDED)
    mine = attend(q, k, v, FalconALiBi(3, twice=implementation == "eager"), at).transpose(1, 2).flatten(-2)
    real = PADDED.bool()
    assert (mine[real] - caught["out"][real]).abs().max() < 2e-6
    for wrong in (ALiBi(3), FalconALiBi(3, twice=implementation == "sdpa")):  # the √d is really there, and the other path
        other = attend(q, k, v, wrong, at).transpose(1, 2).flatten(-2)
        assert (other[real] - caught["out"][real]).abs().max() > 1e-3


def test_falcon_by_loops():
    """From the formula, rounding to 8 bits by hand."""

    def bf16(x: float) -> float:
        if x == 0:
            return 0.0
        step = 2.0 ** (math.floor(math.log2(abs(x))) - 7)
        return round(x / step) * step  # round half to even

    q, k, v = (draw(seed, 1, 3, 5, 4) for seed in (1, 2, 3))
    slopes, start = [2.0**-4, 2.0**-8, 2.0**-2], 997
    logits = add(products(q, k), lambda b, h, i, j: bf16(bf16(slopes[h]) * bf16(start + j)) / 2)
    got = attend(*map(torch.from_numpy, (q, k, v)), FalconALiBi(3), Positions.arange(1, 5, start))
    close(got, attention(logits, v, sees([range(5)], [range(5)])))
    exact = add(products(q, k), lambda b, h, i, j: slopes[h] * (start + j) / 2)
    assert np.abs(got.numpy() - attention(exact, v, sees([range(5)], [range(5)]))).max() > 1e-3


def test_falcon_wrong_arguments():
    with pytest.raises(ValueError, match="slopes: expected a finite number for each of 3 heads"):
        FalconALiBi(3, slopes=(1.0,))
    with pytest.raises(TypeError, match="needs integer positions"):
        attend(*[torch.zeros(1, 3, 2, 4)] * 3, FalconALiBi(3), Positions.at(torch.tensor([[0.5, 1.0]])))
    with pytest.raises(ValueError, match="causal attention only"):
        attend(*[torch.zeros(1, 3, 2, 4)] * 3, FalconALiBi(3), Positions.arange(1, 2), causal=False)
    assert FalconALiBi(4).heads(1, 3).slopes == alibi_slopes(4)[1:3]
