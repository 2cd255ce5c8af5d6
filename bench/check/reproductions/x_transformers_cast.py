"""x-transformers: .to(bfloat16) rounds inv_freq, and .float() does not restore it."""

import torch
from x_transformers.x_transformers import RotaryEmbedding, ScaledSinusoidalEmbedding

positions = torch.tensor([3000])
rope, table = RotaryEmbedding(64), ScaledSinusoidalEmbedding(64)
before = rope(positions)[0].cos(), table(torch.zeros(1, 1, 64), pos=positions)
rope, table = rope.to(torch.bfloat16).float(), table.to(torch.bfloat16).float()
after = rope(positions)[0].cos(), table(torch.zeros(1, 1, 64), pos=positions)
errors = [float((a - b).detach().abs().max()) for a, b in zip(before, after, strict=True)]
print(f"at position 3000 the rotation's cos changes by {errors[0]:.3f}, the sinusoid by {errors[1]:.3f}")
assert errors[0] > 0.1
assert errors[1] > 0.01
