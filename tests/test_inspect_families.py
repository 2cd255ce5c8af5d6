"""posenc inspect on the default configurations of well-known families: each kind tells what an engineer has to know."""

from __future__ import annotations

import json

import pytest
import typer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from typer.testing import CliRunner

from posenc.configs.commands import inspect as inspect_

LONGROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 40.0,
    "original_max_position_embeddings": 4096,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
EXTRA = {
    "phi3": {"max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "rope_parameters": LONGROPE},
    "deepseek_v3": {"max_position_embeddings": 163840, "rope_parameters": YARN},
}
TOLD = {
    "llama": ["every layer full attention, causal", "base 10,000", "half: channel i pairs with i + d/2"],
    "gemma3": [
        "text_config · gemma3_text",
        "sliding attention, causal, a window of 4,096 tokens",
        "base 1,000,000",
        "vision_config · siglip_vision_model",
        "LearnedGrid",
    ],
    "qwen2_vl": ["3 coordinates for each token; 16, 24, 24 pairs", "vision_config", "2 coordinates for each token"],
    "llama4": ["every layer but 3, 7, … 47 chunked attention", "FloorLogTemperature", "1 means that a layer uses RoPE"],
    "smollm3": ["every layer but 3, 7, … 35", "no positions"],
    "phi3": ["longrope", "two sets of frequencies: past 4096 tokens", "× 1.190238"],
    "deepseek_v3": ["the last 64 of 192 channels", "softmax scale × 1.873854", "cached keys are not"],
    "gpt2": ["max positions 1,024", "a table of 1024 positions", "full attention, causal from the embeddings only"],
    "roberta": ["rows are", "Positions.from_mask(input_ids != pad_token_id)"],
    "bloom": ["ALiBi", "defined for any length"],
    "t5": ["encoder", "decoder", "a learned number for each head and bucket of distance", "needs scale = 1"],
    "mamba": ["none: a state space model carries a state from token to token"],
    "jamba": ["no positions"],
    "whisper": ["encoder", "Sinusoidal", "decoder", "Learned"],
    "clip": ["text_config", "vision_config", "LearnedGrid"],
    "swin": ["WindowBias"],
}


@pytest.mark.parametrize("model_type", TOLD)
def test_the_page_tells_what_an_engineer_has_to_know(model_type, tmp_path):
    config = CONFIG_MAPPING[model_type](**EXTRA.get(model_type, {}))
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict(), default=str))
    app = typer.Typer()
    app.command()(inspect_.command)
    shown = CliRunner().invoke(app, [str(tmp_path), "--length", "300000"], env={"COLUMNS": "120", "NO_COLOR": "1"})
    text = " ".join(shown.stdout.split())
    assert shown.exit_code == 0, text
    for told in TOLD[model_type]:
        assert told in text, f"{told!r} is not on the page of {model_type}:\n{shown.stdout}"
