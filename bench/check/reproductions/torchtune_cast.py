"""torchtune: .to(bfloat16) rounds the table of cosines and sines, and .float() does not restore it."""

import torch
from torchtune.modules import RotaryPositionalEmbeddings

rope, x, positions = RotaryPositionalEmbeddings(64), torch.ones(1, 1, 1, 64), torch.tensor([[3000]])
before = rope(x, input_pos=positions)
after = rope.to(torch.bfloat16).float()(x, input_pos=positions)
error = (before - after).abs().max()
print(f"ones at position 3000 change by {error:.4f}; float32 would allow 0.0001")
assert error > 0.001
