"""Decomposed relative positions against MViTv2's equation by loops, and against the image encoders that use them."""

import importlib

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.bases.window_bias import windows
from posenc.encodings.decomposed import DecomposedBias

from .by_hand import add, attention, close, draw, products
from .test_deberta import drawn

H, D = 4, 6


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_both_terms_by_loops(impl):
    encoding = drawn(DecomposedBias(D, (2, 3)).double())
    rows, columns = (table.detach().numpy() for table in encoding.parameters())
    places = [(r, c) for r in (5, 6) for c in (7, 8, 9)]
    q, k, v = (draw(seed, 1, H, 6, D) for seed in (1, 2, 3))

    def term(b, h, i, j):
        first = rows[places[i][0] - places[j][0] + 1]
        second = columns[places[i][1] - places[j][1] + 2]
        return sum(q[b, h, i, c] * (first[c] + second[c]) for c in range(D))

    at = Positions.at(torch.tensor([places]))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False, impl=impl)
    close(got, attention(add(products(q, k), term), v, lambda b, i, j: True))


FAMILIES = {
    "sam": ("SamVisionAttention", "SamVisionConfig"),
    "sam_hq": ("SamHQVisionAttention", "SamHQVisionConfig"),
    "got_ocr2": ("GotOcr2VisionAttention", "GotOcr2VisionConfig"),
    "slanext": ("SLANeXtVisionAttention", "SLANeXtVisionConfig"),
    "pp_formulanet": ("PPFormulaNetVisionAttention", "PPFormulaNetVisionConfig"),
    "seggpt": ("SegGptAttention", "SegGptConfig"),
    "vitdet": ("VitDetAttention", "VitDetConfig"),
    "deepseek_ocr2": ("DeepseekOcr2SamVisionAttention", "DeepseekOcr2SamVisionConfig"),
    "unlimited_ocr": ("UnlimitedOcrSamVisionAttention", "UnlimitedOcrSamVisionConfig"),
}


@pytest.mark.parametrize("size", [(3, 4), (2, 7)])
@pytest.mark.parametrize("family", FAMILIES)
def test_whole_attention_of_the_families(family, size):
    """Tables made for 3 × 4 places, used there and, interpolated, at 2 × 7."""
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    name, config_name = FAMILIES[family]
    config = getattr(module, config_name)(
        hidden_size=H * D,
        num_attention_heads=H,
        use_rel_pos=True,
        use_relative_position_embeddings=True,
        qkv_bias=True,
        image_size=(12, 16) if family == "seggpt" else 16,
        patch_size=4,
        attention_dropout=0.0,
    )
    config._attn_implementation = "eager"
    make = getattr(module, name)
    if family == "seggpt":
        their = make(config)
    elif family == "vitdet":
        their = make(config, input_size=(3, 4))
    else:
        their = make(config, window_size=3)
        their.rel_pos_h, their.rel_pos_w = (torch.nn.Parameter(torch.zeros(n, D)) for n in (5, 7))
    their = drawn(their.double()).eval()
    encoding = DecomposedBias(D, (3, 4)).double()
    encoding.load_state_dict({"rows": their.rel_pos_h, "columns": their.rel_pos_w})
    if size != (3, 4):
        encoding = encoding.resized(size)
    x = torch.from_numpy(draw(5, 2, *size, H * D))
    expected = their(x)
    expected = (expected[0] if isinstance(expected, tuple) else expected).detach()
    q, k, v = their.qkv(x.flatten(1, 2)).unflatten(-1, (3, H, D)).permute(2, 0, 3, 1, 4)
    out = attend(q, k, v, encoding, Positions.grid(*size), causal=False).transpose(1, 2).flatten(-2)
    close(their.proj(out).unflatten(1, size), expected, atol=2e-6)  # most of them have a softmax in float32


def test_windows_and_the_door():
    encoding = drawn(DecomposedBias(D, (2, 2)).double())
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 8, D)) for seed in (1, 2, 3))
    whole = attend(q, k, v, encoding, windows(2, 4, (2, 2)), causal=False)
    left = torch.tensor([0, 1, 4, 5])
    alone = attend(*(x[:, :, left] for x in (q, k, v)), encoding, Positions.grid(2, 2), causal=False)
    close(whole[:, :, left], alone.detach())
    with pytest.raises(ValueError, match="further apart than a window"):
        attend(q, k, v, encoding, Positions.grid(2, 4), causal=False)
    with pytest.raises(ValueError, match="window: expected"):
        DecomposedBias(D, 3)
    with pytest.raises(ValueError, match="built for d_head=6, got a tensor with 4"):
        attend(*[torch.zeros(1, 1, 4, 4)] * 3, encoding, Positions.grid(2, 2), causal=False)
