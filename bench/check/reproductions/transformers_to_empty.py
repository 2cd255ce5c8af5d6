"""transformers: no state dict restores inv_freq after to_empty. huggingface/transformers#45902"""

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

rope = LlamaRotaryEmbedding(LlamaConfig(hidden_size=256, num_attention_heads=4))
before, saved = rope.inv_freq.clone(), rope.state_dict()
rope = rope.to("meta").to_empty(device="cpu")
rope.inv_freq.fill_(7.7e4)  # what the allocator may hand out
rope.load_state_dict(saved)
print(f"the state dict holds {list(saved)}; inv_freq is {rope.inv_freq[:2].tolist()}, it was {before[:2].tolist()}")
assert not saved
assert not torch.equal(rope.inv_freq, before)
