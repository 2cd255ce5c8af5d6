"""Composite files whose text settings stand at the top, as their configuration classes still accept them."""

from __future__ import annotations

from posenc.dialects.keys import Keys, facts

NOT_TEXT = ("model_type", "vision_config", "audio_config", "text_config", "architectures", "transformers_version", "dtype")


def with_text(keys: Keys, model_type: str) -> Keys:
    """The same keys; where the file has no text_config, but keys of such a one at the top, these become it."""
    top = {name: value for name, value in keys.data.items() if name not in NOT_TEXT}
    known = facts()[model_type]["defaults"]
    if not keys.has("text_config") and any(name in known for name in top):
        keys.data["text_config"] = top | {"model_type": model_type}
        keys.read |= top
        keys.find("note", "text_config", f"not in the file: {keys.facts['class']} takes the settings at the top for it")
    return keys
