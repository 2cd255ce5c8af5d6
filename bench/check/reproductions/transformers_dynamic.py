"""transformers: with dynamic NTK a token's rotation depends on the longest row. huggingface/transformers#25104"""

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

scaling = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
config = LlamaConfig(hidden_size=256, num_attention_heads=4, max_position_embeddings=2048, rope_parameters=scaling)
rope, x = LlamaRotaryEmbedding(config), torch.zeros(1, 1, 64)
alone = rope(x, torch.tensor([[5]]))[0]
beside = rope(x, torch.tensor([[5], [9000]]))[0][:1]
error = (alone - beside).abs().max()
print(f"cos at position 5 changes by {error:.3f} beside a row at position 9000")
assert error > 0.1
