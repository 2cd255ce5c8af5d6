"""x-transformers: AlibiPositionalBias returns its attribute `bias`, which another thread's call has replaced by then."""

from x_transformers.x_transformers import AlibiPositionalBias

alibi = AlibiPositionalBias(6)
register, calls = alibi.register_buffer, []


def interrupted(*given, **named):
    register(*given, **named)
    if not calls:
        calls.append(1)
        alibi(48, 48)  # what another thread may do between registering and returning


alibi.register_buffer = interrupted
shape = list(alibi(5, 5).shape)
print(f"alibi(5, 5), interrupted by alibi(48, 48), has the shape {shape}")
assert shape[-2:] == [48, 48]
