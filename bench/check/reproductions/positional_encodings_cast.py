"""positional-encodings: .to(bfloat16) rounds inv_freq, and .float() does not restore it."""

import torch
from positional_encodings.torch_encodings import PositionalEncoding1D

x = torch.zeros(1, 3001, 64)
before = PositionalEncoding1D(64)(x)[0, 3000]
after = PositionalEncoding1D(64).to(torch.bfloat16).float()(x)[0, 3000]
error = (before - after).abs().max()
print(f"row 3000 changes by {error:.3f}")
assert error > 0.1
