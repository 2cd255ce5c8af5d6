"""Class E: which channels make a pair, and what a rotation is given."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

import posenc
import posenc.encodings.rope
from field_bugs.reference import frequencies, rotated
from field_bugs.worlds import ROTARY, heads, near, same
from posenc import Positions
from posenc.encodings.rope import RoPE
from posenc.frequencies import layouts
from posenc.kernels import rotation
from posenc.kernels.rotation import few_tokens
from posenc.support.tensors import tables_at
from test_laws import build

# E1 ---------------------------------------------------------------------------------------------------------------------


def test_E1_the_layouts_are_one_rotation_of_permuted_channels():
    x, at = heads(1, 6, 16), Positions.arange(1, 6, 30)
    for rotary_dim, trailing in itertools.product((16, 8), (False, True)):
        options = {"rotary_dim": rotary_dim, "trailing": trailing}
        half, interleaved = (RoPE(16, layout=layout, **options) for layout in ("half", "interleaved"))
        move = layouts.head_permutation(16, "half", "interleaved", **options)
        near(interleaved.rotate(x[..., move], at, "query"), half.rotate(x, at, "query")[..., move], f"{options}", 0.0)
        assert not torch.equal(interleaved.rotate(x, at, "query"), half.rotate(x, at, "query"))


def test_E1_there_and_back_is_the_identity():
    for rotary_dim, trailing in itertools.product((16, 8), (False, True)):
        there, back = (
            layouts.head_permutation(16, source, target, rotary_dim=rotary_dim, trailing=trailing)
            for source, target in (("half", "interleaved"), ("interleaved", "half"))
        )
        assert there[back].tolist() == list(range(16))


def test_E1_weights_and_bias_rows_of_grouped_heads_are_converted_alike():
    """Scores of a grouped layer with a bias are the same after conversion; without, they are not."""
    from posenc.configs.convert.rows import row_permutation

    d, n_heads, n_kv_heads = 16, 4, 2
    draw = torch.Generator().manual_seed(3)
    at, x = Positions.arange(1, 6, 30), torch.randn(1, 6, 32, generator=draw, dtype=torch.float64)
    weights = {n: torch.randn(n * d, 33, generator=draw, dtype=torch.float64) for n in (n_heads, n_kv_heads)}

    def scores(layout: str, of: dict[int, torch.Tensor]) -> torch.Tensor:
        rope, turned = RoPE(d, layout=layout), []
        for n, side in ((n_heads, "query"), (n_kv_heads, "key")):
            projected = x @ of[n][:, :32].T + of[n][:, 32]
            turned.append(rope.rotate(projected.unflatten(-1, (n, d)).transpose(1, 2), at, side))
        return turned[0] @ turned[1].repeat_interleave(2, dim=1).transpose(-1, -2)

    converted = {
        n: weight[row_permutation(n * d, range(0, n * d, d), d, "half", "interleaved")] for n, weight in weights.items()
    }
    near(scores("interleaved", converted), scores("half", weights), "converted", 1e-12)
    assert float((scores("interleaved", weights) - scores("half", weights)).abs().max()) > 0.1


def test_E1_the_layout_of_a_model_is_that_of_its_family():
    """Llama pairs halves, GPT-J and Cohere neighbours; no file says so."""
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1, "rope_theta": 1e4}
    for family, layout in (("llama", "half"), ("cohere", "interleaved"), ("qwen2", "half"), ("gpt_neox", "half")):
        assert posenc.read_config({"model_type": family, **sizes}).encoding(0).layout == layout
    gptj = {"model_type": "gptj", "n_embd": 64, "n_head": 4, "n_layer": 1, "rotary_dim": 8}
    assert posenc.read_config(gptj).encoding(0).layout == "interleaved"


def plant_E1_the_permutation_is_left_out(patch):
    patch.setattr(layouts, "permutation", lambda d, source, target: torch.arange(d))


def plant_E1_every_rotation_pairs_halves(patch):
    patch.setattr(few_tokens, "FEW", 0)  # which computes its own tables
    made = posenc.encodings.rope.rotate

    def halves(x, cos, sin, layout, returns=None, **named):
        return made(x, cos, sin, "half", "half", **named)

    patch.setattr(posenc.encodings.rope, "rotate", halves)


# E3 ---------------------------------------------------------------------------------------------------------------------


def test_E3_position_0_does_not_turn_and_lengths_are_kept():
    x = heads(1, 5)
    for name in ROTARY:
        encoding = build(name)
        at_zero = Positions.at(torch.zeros(1, 5, dtype=torch.long))
        if getattr(encoding, "returns", None) == getattr(encoding, "layout", None):
            near(encoding.rotate(x, at_zero, "query"), x, f"{name} at 0", 1e-6)
        if "norm_preserving" in encoding.traits:
            turned = encoding.rotate(x, Positions.arange(1, 5, 700), "query")
            near(turned.norm(dim=-1), x.norm(dim=-1), f"{name}: lengths", 1e-5)


def test_E3_every_way_to_rotate_gives_the_formula():
    """The kernel, plain torch under torch.func, a graph, in place: all against fp64."""
    x, positions = heads(1, 5, 16), range(700, 705)
    at, encoding = Positions.arange(1, 5, 700), RoPE(16)
    expected = rotated(x, positions, frequencies(16))
    near(encoding.rotate(x, at, "query"), expected, "eager")
    near(encoding._rotate_both(x, x, at, at)[0], expected, "both")
    near(torch.func.vmap(lambda one: encoding.rotate(one[None], at, "query")[0])(x), expected, "vmap")
    near(torch.compile(lambda x: encoding.rotate(x, at, "query"), backend="eager", fullgraph=True)(x), expected, "graph")
    inside = x.clone()
    near(encoding.rotate(inside, at, "query", out=inside), expected, "in place")
    exported = torch.export.export(Rotating(encoding), (x, torch.tensor([list(positions)])))
    near(exported.module()(x, torch.tensor([list(positions)])), expected, "exported")


class Rotating(torch.nn.Module):
    def __init__(self, encoding):
        super().__init__()
        self.encoding = encoding

    def forward(self, x, coords):
        return self.encoding.rotate(x, Positions.at(coords), "query")


def plant_E3_the_cosine_of_a_cosine(patch):
    made = RoPE.tables

    def tables(self, at, dtype):
        cos, sin = made(self, at, dtype)
        return cos.cos(), sin.sin()

    patch.setattr(RoPE, "tables", tables)


def plant_E3_plain_torch_turns_the_other_way(patch):
    made = rotation.in_torch
    wrong = lambda x, cos, sin, *options: made(x, cos, -sin, *options)  # noqa: E731
    patch.setattr(rotation, "exported", wrong)


# E4 ---------------------------------------------------------------------------------------------------------------------


def test_E4_gradients_of_every_layout_width_and_side():
    cases = itertools.product(("half", "interleaved"), (None, "half"), (8, 4), (False, True), ("query", "key"))
    at = Positions.arange(1, 3, 30)
    for layout, returns, rotary_dim, trailing, side in cases:
        encoding = RoPE(8, layout=layout, returns=returns, rotary_dim=rotary_dim, trailing=trailing)
        x = heads(1, 3, 8, 2, torch.float64).requires_grad_()
        what = f"{layout} {returns} {rotary_dim} {trailing} {side}"
        try:
            torch.autograd.gradcheck(functools.partial(encoding.rotate, at=at, side=side), (x,))
        except GradcheckError as error:
            raise AssertionError(f"{what}: {error}") from error


def test_E4_gradients_of_queries_and_keys_cut_from_one_tensor():
    """A fused projection: [b, t, 3, h, d], its queries and keys as views."""
    at = Positions.arange(1, 3, 30)
    for layout in ("half", "interleaved"):
        encoding = RoPE(8, layout=layout)
        packed = torch.randn(
            1, 3, 3, 2, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64
        ).requires_grad_()

        def attended(packed, encoding=encoding):
            q, k, v = packed.unbind(2)
            return posenc.attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), encoding, at)

        try:
            torch.autograd.gradcheck(attended, (packed,))
        except GradcheckError as error:
            raise AssertionError(f"{layout}: {error}") from error


def test_E4_what_is_turned_in_place_refuses_gradients():
    x = heads(1, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="out: has no gradient"):
        RoPE(8).rotate(x * 1, Positions.arange(1, 3), "query", out=torch.empty(1, 4, 3, 8))


def plant_E4_backward_takes_the_other_layout(patch):
    made = rotation.turned

    def backward(ctx, gradient):
        cos, sin = ctx.saved_tensors[1:]
        start, *_, back = ctx.options
        return None, made(gradient, cos, sin, start, True, True, not back), None, None, None, None, None, None

    patch.setattr(rotation._Differentiable, "backward", staticmethod(backward))


def test_E3_tables_are_cosines_and_sines():
    cos, sin = tables_at(RoPE(8), Positions.arange(1, 3), torch.float64)
    turn = np.outer(range(3), frequencies(8))
    near(cos[0], np.cos(turn), "cos", 1e-15)
    near(sin[0], np.sin(turn), "sin", 1e-15)
    same(cos[:, 0], torch.ones_like(cos[:, 0]))
