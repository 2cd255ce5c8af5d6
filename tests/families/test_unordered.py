"""Model types that are said to attend without positions: as many attention modules as layers, no weight of positions."""

from __future__ import annotations

import inspect
import re

import pytest
import torch

from families.harness import config_of, modeling, spec_of
from families.proofs_no_positions import UNORDERED
from families.test_without import POSITIONS

ATTENDS = re.compile(r"SelfAttention$|AdditiveAttention$|Attention$")


@pytest.mark.parametrize("model_type", sorted(UNORDERED))
def test_attention_adds_no_positions(model_type: str):
    config, module = (
        config_of(model_type, hidden_size=None, num_hidden_layers=None, num_attention_heads=None, intermediate_size=None),
        modeling(model_type),
    )
    text = inspect.getsource(module)
    assert not re.search(r"position_embed|position_bias|position_ids|rotary|sinus|rel_pos", text, re.IGNORECASE)
    models = [
        c
        for c in vars(module).values()
        if inspect.isclass(c)
        and getattr(c, "config_class", None) is type(config)
        and not c.__name__.endswith("PreTrainedModel")
    ]
    assert models
    counts = []
    for model in models:
        with torch.device("meta"):
            built = model(config)
        names = [name for name, _ in [*built.named_parameters(), *built.named_buffers()]]
        assert not [name for name in names if POSITIONS.search(name)]
        own = [m for m in built.modules() if type(m).__module__ == module.__name__ and ATTENDS.search(type(m).__name__)]
        innermost = [m for m in own if not any(n is not m and ATTENDS.search(type(n).__name__) for n in m.modules())]
        counts.append(len(innermost))
    assert max(counts) == len(spec_of(config).layers)
