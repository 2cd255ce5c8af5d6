"""x-transformers: no state dict holds ALiBi's slopes and the sinusoid's frequencies: garbage after to_empty."""

from x_transformers.x_transformers import AlibiPositionalBias, ScaledSinusoidalEmbedding

for module, name in ((AlibiPositionalBias(6), "slopes"), (ScaledSinusoidalEmbedding(64), "inv_freq")):
    before, saved = getattr(module, name).clone(), module.state_dict()
    made = module.to("meta").to_empty(device="cpu")
    getattr(made, name).fill_(7.7e4)  # what the allocator may hand out
    made.load_state_dict({key: before.new_ones(1) for key in saved})
    print(f"{type(made).__name__}: the state dict holds {list(saved)}, not {name}")
    assert name not in saved
    assert not getattr(made, name).equal(before)
