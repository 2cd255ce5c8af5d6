"""posenc.configs.families.neomme, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import IDS, Proof, build, calls, config_of, frequencies, proof, same_rotation, spec_of, tokens
from families.turning import LINEAR, YARN, hidden


@proof("neomme")
def neomme(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "RoPE, half pairs, pairs alternately by row and column, a quarter of the head in full "
        "layers; two alternating windows, bidirectional",
    )
    sizes: dict[str, Any] = {"num_hidden_layers": 7, "head_dim": 32, "sliding_window": 3, "num_key_value_heads": 2}
    config = config_of(model_type, **sizes)
    model, spec = build(config), spec_of(config)
    assert [layer.window for layer in spec.layers] == [7, 2049, 7, 2049, 7, None, None]
    rows, columns = IDS, IDS.flip(1)
    grid = torch.stack([rows, columns])
    text = {"input_ids": tokens(IDS.shape)}
    zero, moved = (calls(model, **text, position_ids=ids) for ids in (torch.zeros_like(grid), grid))
    for call in (*zero, *moved):
        call.options.pop("sliding_window", None)
    _values_apart(result, spec, zero, moved, grid)
    hidden(result, spec, calls(model, input_ids=tokens((2, 10))))
    for kind, number in (("sliding_attention", 0), ("full_attention", 5)):
        frequencies(result, model.rotary_emb, spec, number, f"{kind}_inv_freq")
    both = {"sliding_attention": YARN, "full_attention": LINEAR | {"partial_rotary_factor": 0.5}}
    other = config_of(model_type, rope_parameters=both, **sizes)
    for kind, number in (("sliding_attention", 0), ("full_attention", 5)):
        frequencies(result, type(model.rotary_emb)(other), spec_of(other), number, f"{kind}_inv_freq")
    return result


def _values_apart(result: Proof, spec: Any, zero: Any, moved: Any, grid: Any) -> None:
    """Some layers add embeddings of the tokens to their values, which no position moves."""
    for before, after in zip(zero, moved, strict=True):
        result.equal("values of every layer", after.v, before.v)
    same_rotation(result, spec, zero, moved, grid)
