"""Paths in a tree against loops and MarkupLM's own module. Li et al. 2021, section 3.1."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.of_families.xpath import XPath

from .by_hand import close, draw

PATHS = torch.tensor([[[0, 3, 4, 1, 0, 2], [4, 4, 4, 5, 5, 5]], [[2, 0, 4, 1, 1, 3], [1, 2, 3, 0, 4, 5]]])


def filled() -> XPath:
    encoding = XPath(4, 3, n_tags=5, n_subscripts=6, unit=2).double()
    with torch.no_grad():
        for n, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(n, *parameter.shape)))
    return encoding


def test_paths_by_loops():
    encoding, x = filled(), draw(9, 2, 2, 4)
    p = {name: value.detach().numpy() for name, value in encoding.named_parameters()}
    expected = np.zeros_like(x)
    for b, t in np.ndindex(2, 2):
        path = PATHS[b, t].tolist()
        steps = [p["tags"][n, path[n]] + p["subscripts"][n, path[3 + n]] for n in range(3)]
        hidden = np.maximum(p["inner.weight"] @ np.concatenate(steps) + p["inner.bias"], 0)
        expected[b, t] = x[b, t] + p["outer.weight"] @ hidden + p["outer.bias"]
    close(encoding.embed(torch.from_numpy(x), Positions.at(PATHS)), expected)


def test_markuplm():
    markuplm = importlib.import_module("transformers.models.markuplm.modeling_markuplm")
    config = SimpleNamespace(
        max_depth=3,
        xpath_unit_hidden_size=2,
        hidden_size=4,
        hidden_dropout_prob=0.0,
        max_xpath_tag_unit_embeddings=5,
        max_xpath_subs_unit_embeddings=6,
    )
    module = markuplm.XPathEmbeddings(config).double().eval()
    encoding, state = filled(), module.state_dict()
    encoding.load_state_dict(
        {
            "tags": torch.stack([state[f"xpath_tag_sub_embeddings.{n}.weight"] for n in range(3)]),
            "subscripts": torch.stack([state[f"xpath_subs_sub_embeddings.{n}.weight"] for n in range(3)]),
            **{f"inner.{name}": state[f"xpath_unitseq2_inner.{name}"] for name in ("weight", "bias")},
            **{f"outer.{name}": state[f"inner2emb.{name}"] for name in ("weight", "bias")},
        }
    )
    got = encoding.embed(torch.zeros(2, 2, 4, dtype=torch.float64), Positions.at(PATHS))
    close(got, module(PATHS[..., :3], PATHS[..., 3:]).detach())


def test_outside_is_refused():
    with pytest.raises(ValueError, match="XPath: tag 5 is outside 0 … 4"):
        filled().embed(torch.zeros(2, 2, 4), Positions.at(PATHS + 1))
    with pytest.raises(ValueError, match="XPath: subscript 6 is outside 0 … 5"):
        filled().embed(torch.zeros(2, 2, 4), Positions.at(PATHS + torch.tensor([0, 0, 0, 1, 1, 1])))
    with pytest.raises(ValueError, match="depth: expected a whole number from 1"):
        XPath(4, 0)


def test_one_rounding_under_autocast():
    encoding, x = filled().bfloat16(), torch.from_numpy(draw(9, 2, 2, 4)).bfloat16()
    exact = filled()
    exact.load_state_dict(encoding.state_dict())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = encoding.embed(x, Positions.at(PATHS))
    wanted = exact.embed(x.double(), Positions.at(PATHS))
    close(got.double(), wanted, 0.5 * torch.finfo(torch.bfloat16).eps * wanted.abs().max().item() + 1e-4)
