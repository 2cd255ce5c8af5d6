"""Every other name under which a configuration class takes a key is read, and means what the class makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posenc.configs import ConfigError, read_config
from posenc.configs.keys import Keys, facts

OTHER_NAMES = {name: about["names"] | about.get("legacy", {}) for name, about in facts().items()}
SIZES = {"d_model": ("hidden_size", "n_embd", "d_model"), "n_heads": ("num_attention_heads", "n_head")}
ALIASED = sorted(name for name, others in OTHER_NAMES.items() if others)


def made(model_type: str, **given: Any) -> Any:
    try:
        return CONFIG_MAPPING[model_type](**given)
    except Exception:  # this class refuses that value, or needs other keys with it
        return None


def own(config: Any, key: str) -> Any:
    """The class's value, also where a class with settings for each layer refuses the name itself."""
    return vars(config).get(key)


def test_a_size_under_another_name_is_what_the_class_makes_of_it():
    compared = {(model_type, *one) for model_type in ALIASED if model_type in CONFIG_MAPPING for one in checked(model_type)}
    assert len(compared) >= 350
    assert len({model_type for model_type, *_ in compared}) >= 140


def checked(model_type: str) -> Iterator[tuple[str, str]]:
    """The (other name, key) pairs that were compared with the class, each alone in a file."""
    plain, fields = made(model_type), CONFIG_MAPPING[model_type].__dataclass_fields__
    for other, key in OTHER_NAMES[model_type].items():
        was = None if plain is None else own(plain, key)
        given = {other: 2 * was if type(was) is int and was > 0 else 48}
        theirs = made(model_type, **given)
        if other in fields or theirs is None or type(own(theirs, key)) is not int:
            continue
        assert Keys(given, model_type).whole(key) == own(theirs, key), (model_type, other, key)
        yield other, key
        try:
            before, after = (read_config({"model_type": model_type} | one) for one in ({}, given))
        except ConfigError:  # a size that does not fit the class's others
            continue
        for size, keys in SIZES.items():
            if getattr(before, size) == was is not None and key in keys:
                assert getattr(after, size) == own(theirs, key), (model_type, other, key, size)


def test_bloom_s_published_spelling_has_the_sizes_of_its_class():
    file = {"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "seq_length": 2048}
    spec, config = read_config(file), CONFIG_MAPPING["bloom"](**file)
    assert (spec.d_model, spec.n_heads, len(spec.layers)) == (config.hidden_size, config.n_head, config.n_layer)
    assert (spec.d_model, spec.d_head, spec.trained_length) == (1024, 64, 2048)
    assert "n_head" not in {remark.key for remark in spec.remarks}


@pytest.mark.parametrize("both", [{"n_embed": 48, "hidden_size": 64}, {"num_attention_heads": 4, "n_head": 8}])
def test_of_two_names_the_one_that_the_class_prefers_wins(both: dict[str, int]):
    config = CONFIG_MAPPING["bloom"](**both)
    for key in ("hidden_size", "n_head"):
        assert Keys(both, "bloom").whole(key) == getattr(config, key)
