"""Rotary modules with the names and the calls of other training libraries, turned by posenc: `posenc.modules`.

    torchtune    RotaryPositionalEmbeddings, Llama3ScaledRoPE                  module(x, input_pos=…)
    torchtitan   precompute_freqs_cis, apply_rotary_emb_complex                apply(xq, xk, freqs_cis, positions)
                 precompute_rope_cache, apply_rotary_emb_cos_sin               apply(xq, xk, rope_cache, positions)
    nanotron     RotaryEmbedding                                               module(x, position_ids)
                 apply_rotary_emb                                              apply(q, k, cos, sin)

They give what the originals give to the rounding of fp32, and stay exact at far positions, where those drift: angles in
fp64, tables rounded once, rotation in fp32 and one rounding to the dtype of x (all in fp64 for fp64, which the originals
narrow). The modules have no parameters, no buffers and no longest position; casts and `to_empty` cannot touch them.

All tensors are [b, t, h, d], tokens before heads, and are turned where they lie: what is returned has the strides of x.
Legend: b batch, t tokens, h query heads, g key heads, d channels of a head, n = d/2 pairs, s rows of a table.
"""

from posenc.attention.rotary_modules import nanotron as nanotron
from posenc.attention.rotary_modules import torchtitan as torchtitan
from posenc.attention.rotary_modules import torchtune as torchtune
