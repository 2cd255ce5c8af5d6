"""The classes that a saved folder's modeling_posenc.py makes, by which AutoModel loads it.

They only load: the model is transformers' own, with the encoding attached, and its configuration is the base's.
"""

from __future__ import annotations

from typing import Any

from posenc.configs.attached import PREFIX
from posenc.transformers.loaded import load


def config_class(model_type: str) -> type:
    """The configuration class of a saved folder: the base's, under a model type of its own."""
    from transformers import CONFIG_MAPPING

    base = CONFIG_MAPPING[model_type]
    return type(f"Posenc{base.__name__}", (base,), {"model_type": PREFIX + model_type, "__module__": __name__})


def model_class(name: str, config: type) -> type:
    """A class whose `from_pretrained` returns a model of transformers' class `name` with what was attached to it."""
    import transformers

    base: Any = getattr(transformers, name)

    def from_pretrained(cls: type, folder: Any, *args: Any, config: Any = None, **options: Any) -> Any:
        options.pop("trust_remote_code", None)
        return load(base, folder, *args, overrides=config, trust_code=True, **options)

    def from_config(cls: type, config: Any, **options: Any) -> Any:
        raise ValueError(
            f"from_config: makes a new {name} without what is attached to this one; load the folder with from_pretrained, "
            "or attach an encoding to a new model with posenc.transformers.attach"
        )

    members = {
        "config_class": config,
        "from_pretrained": classmethod(from_pretrained),
        "_from_config": classmethod(from_config),
    }
    return type(name, (base,), members | {"__module__": __name__})
