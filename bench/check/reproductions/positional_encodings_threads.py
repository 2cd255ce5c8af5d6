"""positional-encodings: returns its attribute `cached_penc`, which another thread's call has replaced by then."""

import torch
from positional_encodings.torch_encodings import PositionalEncoding1D


class Interrupted(PositionalEncoding1D):
    calls = 0

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "cached_penc" and value is not None and not Interrupted.calls:
            Interrupted.calls = 1
            self(torch.zeros(1, 45, 64))  # what another thread may do between the assignment and the return


shape = list(Interrupted(64)(torch.zeros(1, 5, 64)).shape)
print(f"5 tokens, interrupted by a call of 45, have the shape {shape}")
assert shape[1] == 45
