"""transformers: .to(bfloat16) rounds inv_freq, and .float() does not restore it. huggingface/transformers#25681"""

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

rope = LlamaRotaryEmbedding(LlamaConfig(hidden_size=256, num_attention_heads=4))
x, positions = torch.zeros(1, 1, 64), torch.tensor([[3000]])
before = rope(x, positions)[0]
after = rope.to(torch.bfloat16).float()(x, positions)[0]
error = (before - after).abs().max()
print(f"cos at position 3000 changes by {error:.3f}")
assert error > 0.1
