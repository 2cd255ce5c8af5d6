"""rotary-embedding-torch: .to(bfloat16) rounds freqs, and .float() does not restore them."""

import torch
from rotary_embedding_torch import RotaryEmbedding

rope, positions = RotaryEmbedding(dim=64), torch.tensor([[3000.0]])
before = rope(positions).clone()
after = rope.to(torch.bfloat16).float()(positions)
error = (before.cos() - after.cos()).abs().max()
print(f"cos at position 3000 changes by {error:.3f}")
assert error > 0.1
