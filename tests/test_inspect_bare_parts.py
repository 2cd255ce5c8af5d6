"""A file without its sections: the whole model's class gives its parts another base than the part's class has alone."""

import pytest
from transformers import CONFIG_MAPPING

from posenc.configs import spec_of

BARE = {  # model type: the base of its text model, as its class in transformers sets it
    "got_ocr2": 1e6,
    "lighton_ocr": 1e6,
    "mistral3": 1e9,
    "moss_transcribe_diarize": 1e6,
    "pp_chart2table": 1e6,
    "voxtral": 1e8,
    "voxtral_realtime": 1e6,
}


@pytest.mark.parametrize("model_type", BARE)
def test_the_base_is_that_of_the_whole_model(model_type):
    """10000, that of Qwen2Config or LlamaConfig alone, was read."""
    if model_type in CONFIG_MAPPING:
        assert CONFIG_MAPPING[model_type]().text_config.rope_parameters["rope_theta"] == BARE[model_type]
    parts = [part for path, part in spec_of({"model_type": model_type}).walk() if path.endswith("text_config")]
    bases = {use.rotation.base for part in parts for layer in part.layers for use in layer.uses if use.rotation}
    assert bases == {BARE[model_type]}
