"""tools/surgery.py: a short training after another encoding has been attached, and what results/real keeps of it."""

import json
import math
from pathlib import Path

import pytest
import surgery
import torch

import posenc
import posenc.transformers as pt
from posenc.transformers.scores import Method
from transformers_models.test_attach import logits, model_of


@pytest.mark.parametrize("name", ["nope", "t5"])
def test_a_short_training_lowers_the_loss_and_keeps_the_encoding(name):
    model = pt.attach(model_of(), posenc.create(name, **({"n_heads": 4} if name == "t5" else {})))
    before = logits(model)
    tokens = torch.arange(3, 13).repeat(20)
    losses = surgery.train(model, tokens, steps=40, length=16, rate=1e-2)
    assert len(losses) == 40
    assert losses[-1] < 0.5 * losses[0]
    assert not model.training
    assert (logits(model) - before).abs().max() > 1e-3
    assert all(parameter.abs().max() > 0 for parameter in pt.parameters(model))


def test_what_is_kept_has_every_method_before_and_after():
    lines = [json.loads(line) for line in surgery.RESULTS.read_text("utf-8").splitlines()]
    found = {(one["method"], one["length"], one["steps"]) for one in lines}
    methods = {method for method, _, _ in found}
    assert methods <= {str(Method.parse(method)) for method in surgery.METHODS}
    assert {"plain", "nope", "alibi"} <= methods
    assert found == {(method, n, steps) for method in methods for n in surgery.LENGTHS for steps in (0, surgery.STEPS)}
    assert len({one["key"] for one in lines}) == 1


@pytest.mark.parametrize("page", ["recipes.md", "recipes.zh-CN.md"])
def test_the_page_has_these_numbers(page):
    lines = [json.loads(line) for line in surgery.RESULTS.read_text("utf-8").splitlines()]
    found = {(one["method"], one["length"], one["steps"]): math.exp(one["loss"]) for one in lines}
    text = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8").partition("python tools/surgery.py")[2]
    for method in dict.fromkeys(one["method"] for one in lines):
        row = [found[method, n, steps] for n in surgery.LENGTHS for steps in (0, surgery.STEPS)]
        cells = [f"{one:.1f}" if one < 100 else f"{one:.0f}" for one in row]
        assert f"| {' | '.join([method, *cells])} |" in text
