"""An attached model is one graph over all lengths: compiled, exported, and in onnxruntime."""

import onnxruntime
import pytest
import torch
from torch._dynamo.utils import counters
from torch.export import Dim

import posenc
import posenc.transformers as pt
from posenc.transformers.decoder import decoder_of
from transformers_models import tiny

SIZES = {"d_model": 64, "d_head": 16, "n_heads": 4, "max_positions": 64}
OTHERS = {"rope": {"layout": "half"}}
PAIRS = [("llama", "rope"), ("gemma2", "alibi"), ("mistral", "yarn"), ("qwen3", "t5"), ("stablelm", "alibi")]


class Traced(torch.nn.Module):
    """Logits of two layers of a tiny model of a type, with an encoding attached."""

    def __init__(self, model_type, name):
        super().__init__()
        self.model = tiny.model_of(model_type)
        decoder = decoder_of(self.model)
        decoder.layers = decoder.layers[:2]
        pt.attach(self.model, posenc.laws.draw_parameters(posenc.create(name, **SIZES, **OTHERS.get(name, {})), seed=1))

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits


def inputs(length):
    """Three rows, the first with a padded token on its left; three, so that no length is taken for the number of rows."""
    mask = torch.ones(3, length, dtype=torch.long)
    mask[0, 0] = 0
    return torch.randint(3, 90, (3, length), generator=torch.Generator().manual_seed(length)), mask


def assert_same(actual, expected):
    torch.testing.assert_close(actual[:, 1:], expected[:, 1:], atol=1e-4 * float(expected.abs().max()), rtol=0)


def only(*model_types):
    """All pairs; those of other types belong to make acceptance."""
    return [pair if pair[0] in model_types else pytest.param(*pair, marks=pytest.mark.acceptance) for pair in PAIRS]


@torch.no_grad()
@pytest.mark.parametrize(("model_type", "name"), only("llama"))
def test_one_graph_over_lengths(model_type, name):
    model = Traced(model_type, name)
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    for length in (2, 5, 8, 17, 33, 64):
        assert_same(compiled(*inputs(length)), model(*inputs(length)))
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.acceptance
@torch.no_grad()
@pytest.mark.parametrize(("model_type", "name"), only("gemma2"))
def test_a_length_stays_open_in_an_exported_model_and_in_onnxruntime(model_type, name):
    model, tokens = Traced(model_type, name).eval(), Dim("tokens", min=2, max=64)
    program = torch.export.export(model, inputs(12), dynamic_shapes={"ids": {1: tokens}, "mask": {1: tokens}})
    onnx = torch.onnx.export(program, dynamo=True, verbose=False).model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    for length in (2, 7, 33):
        ids, mask = inputs(length)
        expected = model(ids, mask)
        assert_same(program.module()(ids, mask), expected)
        assert_same(torch.tensor(session.run(None, {"ids": ids.numpy(), "mask": mask.numpy()})[0]), expected)
