"""rotary-embedding-torch: positions in the dtype of the tokens, so that bfloat16 tokens at 256 and 257 turn alike."""

import torch
from rotary_embedding_torch import RotaryEmbedding

x = torch.ones(1, 1, 1, 64, dtype=torch.bfloat16)
turned = [RotaryEmbedding(dim=64).rotate_queries_or_keys(x, offset=n) for n in (256, 257)]
exact = [RotaryEmbedding(dim=64).rotate_queries_or_keys(x.float(), offset=n) for n in (256, 257)]
error = (turned[1].float() - exact[1]).abs().max()
print(
    f"bfloat16 rows 256 and 257 are equal: {torch.equal(*turned)}; float32 rows: {torch.equal(*exact)}; off by {error:.2f}"
)
assert torch.equal(*turned)
assert not torch.equal(*exact)
