"""Which channels make a pair: names of scalings have the layout of the models on the hub, and attach refuses another."""

from __future__ import annotations

import pytest
import torch

import posenc
import posenc.transformers as pt
from transformers_models.test_attach import IDS, logits, model_of, near

WIDTH = 16
SCALED = {  # name, its arguments -> the model's own configuration, by transformers' names
    "llama3": (
        {"factor": 4.0, "trained_length": 16, "base": 10000.0},
        {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 16},
    ),
    "yarn": (
        {"factor": 4.0, "trained_length": 16},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    ),
    "linear": ({"factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
    "adjusted_base": ({"base": 10000.0}, {"rope_type": "default"}),
}  # fmt: skip
OF_THE_HUB = (
    *(
        "adjusted_base",
        "clipped",
        "clex",
        "dual_chunk",
        "dynamic",
        "giraffe",
        "linear",
        "llama3",
        "lm_infinite",
        "longrope",
    ),
    *("ms_poe", "ntk", "ntk_by_parts", "rerope", "resonance", "self_extend", "yarn"),
)


@pytest.mark.parametrize("name", OF_THE_HUB)
def test_what_changes_a_trained_model_has_its_layout(name):
    assert posenc.create(name, d_head=WIDTH, n_heads=4).layout == "half"


@pytest.mark.parametrize("name", SCALED)
def test_a_scaling_by_its_name_alone_is_the_model_s_own(name):
    arguments, scaling = SCALED[name]
    model = model_of(rope_parameters={"rope_theta": 10000.0, **scaling})
    own = logits(model)
    pt.attach(model, posenc.create(name, d_head=WIDTH, **arguments))
    near(logits(model), own)


@pytest.mark.parametrize(
    "encoding", [posenc.create("rope", d_head=WIDTH), posenc.create("yarn", d_head=WIDTH, layout="interleaved")]
)
def test_another_layout_than_the_model_s_is_refused(encoding):
    model = model_of()
    own = logits(model)
    with pytest.raises(
        ValueError,
        match=r"RoPE has layout='interleaved', and layer 0 pairs channels as 'half'; create it with layout='half'",
    ):
        pt.attach(model, encoding)
    stacked = posenc.Stack(posenc.create("alibi", n_heads=4), encoding)
    with pytest.raises(ValueError, match="layer 2 pairs channels as 'half'"):
        pt.attach(model, stacked, layers=[2, 3])
    torch.testing.assert_close(logits(model), own, rtol=0, atol=0)


def test_a_configuration_that_says_its_layout_is_believed():
    """`posenc convert` writes it where it has permuted the projections."""
    model = model_of(rope_layout="interleaved")
    pt.attach(model, posenc.create("rope", d_head=WIDTH))
    pt.detach(model)
    with pytest.raises(ValueError, match="layer 0 pairs channels as 'interleaved'"):
        pt.attach(model, posenc.create("yarn", d_head=WIDTH))


@pytest.mark.parametrize("model_type", ["cohere", "glm"])
def test_models_that_interleave_take_the_paper_s(model_type):
    model = model_of(model_type)
    width = model.model.layers[0].self_attn.head_dim
    pt.attach(model, posenc.create("rope", d_head=width))
    pt.detach(model)
    with pytest.raises(ValueError, match="layout='half', and layer 0 pairs channels as 'interleaved'"):
        pt.attach(model, posenc.create("yarn", d_head=width))


def test_what_rotates_nothing_has_no_layout():
    model = model_of()
    pt.attach(model, posenc.create("alibi", n_heads=4))
    assert torch.isfinite(logits(model, IDS)).all()
