"""One head that turns among heads that do not."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, calls, config_of, frequencies, modeling, proof, spec_of


@proof("qwen2_5_omni_dit")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE in the first head only, neighbours paired, halves returned; blocks see few others")
    config = config_of(
        model_type, head_dim=16, num_hidden_layers=2, block_size=3, look_ahead_layers=[1], look_backward_layers=[0]
    )
    spec, module = spec_of(config), modeling(model_type)
    config._attn_implementation = "probe"
    attention, turning = module.DiTAttention(config).eval(), module.Qwen2_5OmniDiTRotaryEmbedding(config)
    ids = torch.tensor([[0, 1, 2, 3, 4, 5], [3, 255, 4096, 8191, 65537, 131071]])
    x = torch.randn(2, 6, 64, generator=torch.Generator().manual_seed(3))
    moved = calls(attention, x, position_embeddings=turning(x, ids), fixed=False)[0]
    with torch.no_grad():
        q, k, v = (layer(moved_x).unflatten(-1, (4, 16)).transpose(1, 2) for moved_x, layer in
                   ((x, attention.to_q), (x, attention.to_k), (x, attention.to_v)))  # fmt: skip
    encoding, at = spec.encoding(0, arithmetic="float32"), posenc.Positions.at(ids)
    for side, mine, theirs in (("query", q, moved.q), ("key", k, moved.k), ("value", v, moved.v)):
        result.close("queries, keys and values at positions to 131071", encoding.rotate(mine, at, side), theirs)
    frequencies(result, turning, spec)
    blocks = build(config, "Qwen2_5OmniToken2WavDiTModel").transformer_blocks
    assert len(blocks) == len(spec.layers)
    assert [(b.look_ahead_block, b.look_backward_block) for b in blocks] == [(0, 1), (1, 0)]
    return result
