"""Model types that are said to have no attention and no positions: their modules are looked through."""

from __future__ import annotations

import importlib.util
import inspect
import re

import pytest
import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.proofs_no_positions import CONVOLUTIONAL
from sampling import one_in

POSITIONS = re.compile(r"(^|[._])(pos|position|positions|positional|rel_pos|relative|inv_freq|rotary|rope)([._]|$)")


@pytest.mark.parametrize("model_type", one_in(3, sorted(CONVOLUTIONAL)))
def test_no_module_attends_and_no_weight_is_of_positions(model_type: str):
    config = CONFIG_MAPPING[model_type]
    folder = config.__module__.split(".")[-2]
    home = f"transformers.models.{folder}.modeling_"
    modeling = importlib.import_module(home + (model_type if importlib.util.find_spec(home + model_type) else folder))
    text = inspect.getsource(modeling)
    assert not re.search(
        r"softmax\(.*q|scaled_dot_product|ALL_ATTENTION_FUNCTIONS|position_embed|rotary", text, re.IGNORECASE
    )
    made = [c for c in vars(modeling).values() if inspect.isclass(c) and getattr(c, "config_class", None) is config]
    for model in made:
        if model.__name__.endswith("PreTrainedModel"):
            continue
        with torch.device("meta"):
            try:
                built = model(config())
            except (TypeError, ValueError, AttributeError, KeyError):  # heads that ask for more than a default
                continue
        names = [name for name, _ in [*built.named_parameters(), *built.named_buffers()]]
        assert not [name for name in names if POSITIONS.search(name)]
        assert not [n for n, module in built.named_modules() if re.search(r"[a-z]Attention$", type(module).__name__)]
