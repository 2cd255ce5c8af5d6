"""Blocks of the lab's model: SwiGLU with normalized queries and keys, and windows of the layers with an encoding."""

import math

import pytest
import torch

from posenc.encodings.rope import RoPE
from posenc.lab.experiment import Size, Training, Trial, task_of
from posenc.lab.experiment.arm import Arm
from posenc.lab.experiment.encoding_settings import check_settings
from posenc.lab.trial.model import Transformer
from posenc.lab.trial.rope_rescaling import changed
from posenc.positions import Positions

SMALL = Size(d_model=16, n_heads=2, n_layers=1, widening=3, block="swiglu")


def model_of(arm: Arm, size: Size) -> Transformer:
    model = Transformer(arm, size, vocabulary=11, causal=True, positions=16, seed=0).double()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    return model


def logits_of(model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    at = Positions.arange(1, tokens.shape[1])
    with torch.no_grad():
        logits: torch.Tensor = model(tokens, model.prepare(at))
    return logits


def rms(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + torch.finfo(x.dtype).eps).sqrt() * gain


def test_the_block_swiglu_is_its_formula() -> None:
    model, tokens = model_of(Arm.parse("nope"), SMALL), torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    w = {name: value.detach() for name, value in model.named_parameters()}
    x = w["embedding.weight"][tokens[0]]
    hidden = rms(x, w["layers.0.before_attention.gain"])
    heads = []
    for head in range(2):
        q, k, v = (hidden @ w["layers.0.qkv.weight"][part * 16 + head * 8 :][:8].T for part in range(3))
        q, k = rms(q, w["layers.0.query_norm.gain"]), rms(k, w["layers.0.key_norm.gain"])
        scores = (q @ k.T / math.sqrt(8)).masked_fill(torch.ones(8, 8, dtype=torch.bool).triu(1), -math.inf)
        heads.append(scores.softmax(-1) @ v)
    x = x + torch.cat(heads, -1) @ w["layers.0.out.weight"].T
    hidden = rms(x, w["layers.0.before_mlp.gain"])
    gate = hidden @ w["layers.0.gate.weight"].T
    x = x + (gate * torch.sigmoid(gate) * (hidden @ w["layers.0.up.weight"].T)) @ w["layers.0.down.weight"].T
    expected = rms(x, w["last_norm.gain"]) @ w["head.weight"].T
    torch.testing.assert_close(logits_of(model, tokens)[0], expected, rtol=1e-9, atol=1e-9)


def test_the_default_block_is_not_written_so_that_older_keys_stay() -> None:
    assert "block" not in Size().model_dump()
    assert Size(**SMALL.model_dump()) == SMALL


@pytest.mark.parametrize(("word", "sees"), [("rope", False), ("nope", True)])
def test_a_window_hides_what_lies_before_it_in_layers_with_an_encoding(word: str, sees: bool) -> None:
    model = model_of(Arm.parse(word, options=(("window", 4),)), SMALL)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    others = tokens.clone()
    others[0, 3] = 7  # four before the last token, which sees itself and three more
    last, other = logits_of(model, tokens)[0, -1], logits_of(model, others)[0, -1]
    assert torch.equal(last, other) is not sees
    others[0, 4] = 7
    assert not torch.equal(last, logits_of(model, others)[0, -1])


def test_the_layer_without_positions_of_rnope_swa_sees_everything() -> None:
    size = SMALL.model_copy(update={"n_layers": 4})
    model = model_of(Arm.parse("rnope_swa", options=(("window", 4),)), size)
    assert [layer.window for layer in model.layers] == [(3, 3), (3, 3), (3, 3), None]


def test_a_window_is_a_whole_number_of_keys() -> None:
    check_settings("rnope_swa", {"window": 4}, SMALL, True)
    with pytest.raises(ValueError, match=r"window: expected a whole number of keys, got 4\.5"):
        check_settings("rnope_swa", {"window": 4.5}, SMALL, True)


def test_ntk_by_parts_is_yarn_without_its_temperature() -> None:
    rope = RoPE(64)
    parts, yarn = (changed(rope, method, 4.0, 512).frequencies for method in ("ntk_by_parts", "yarn"))
    assert tuple(parts) == tuple(yarn) != tuple(rope.frequencies)
    assert parts.cos_sin_scale == 1.0
    assert yarn.cos_sin_scale == pytest.approx(1 + 0.1 * math.log(4))


def test_a_trial_names_its_block_in_its_key() -> None:
    task = task_of({"name": "copy", "length": 8, "lengths": [8]})
    one = Trial(task=task, encoding="rope", seed=0, size=SMALL, training=Training(steps=1))
    other = one.model_copy(update={"size": SMALL.model_copy(update={"block": "gelu"})})
    assert one.key("") != other.key("")
