"""Class B: tables that construction, loading, initialisation or training spoil."""

from __future__ import annotations

import copy
import functools

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import posenc
from field_bugs.planting import ends_in
from field_bugs.worlds import FIXED, MAKES_NEIGHBOURS, attention, heads, outputs, same, tokens, world
from posenc import Positions
from posenc.encodings.bases.window_bias import WindowBias
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.kernels.rotation import few_tokens
from posenc.support.tensors import ExactParameters
from sampling import ENCODINGS, IN_A_ROW, OnTheDiagonal
from test_laws import OPTIONS, SIZES, build

GRIDS = ("swin", "beit", "levit", "decomposed", "t5", "t5_axes", "deberta", "deberta_v2")


def constructed(name: str) -> posenc.PositionalEncoding:
    return posenc.create(name, **{**SIZES, **OPTIONS.get(name, {})})


def result(name: str, encoding: posenc.PositionalEncoding) -> torch.Tensor:
    """What the encoding gives, through every seam."""
    of = world(name)
    flat = OPTIONS.get(name, {}).get("width") == 1
    in_a_row = encoding if encoding.axes == 1 else OnTheDiagonal(encoding, flat=flat)
    return of.output(in_a_row, of.x, of.plain())


def poisoned() -> None:
    """Leaves the CPU allocator's free blocks full of 7.7e7: what to_empty may hand out."""
    blocks = [torch.full((size,), 7.7e7) for size in (8, 64, 512, 4096, 32768) for _ in range(16)]
    del blocks


# B1, B2 -----------------------------------------------------------------------------------------------------------------


def loaded_after_meta(name: str) -> None:
    fresh = constructed(name)
    expected, saved = result(name, fresh), copy.deepcopy(fresh.state_dict())
    with torch.device("meta"):
        empty = constructed(name)
    poisoned()
    empty = empty.to_empty(device="cpu")
    empty.load_state_dict(saved)
    same(result(name, empty), expected, name)


def test_B1_made_on_meta_then_loaded_is_as_made_at_once():
    for name in ENCODINGS:
        if name not in (*MAKES_NEIGHBOURS, *GRIDS):
            loaded_after_meta(name)


def test_B1_a_model_on_meta_is_materialised_with_its_encoding():
    with torch.device("meta"):
        empty = attention("rope")
    model = attention("rope")
    empty = empty.to_empty(device="cpu")
    empty.load_state_dict(model.state_dict())
    same(empty(tokens(1, 6), Positions.arange(1, 6)), model(tokens(1, 6), Positions.arange(1, 6)))


def buffer_without_a_checkpoint(patch):
    made = RoPE.__init__

    @functools.wraps(made)
    def init(self, *given, **named):
        made(self, *given, **named)
        self.register_buffer("inv_freq", torch.tensor(self.frequencies.values), persistent=False)

    def tables(self, at, dtype):
        turn = at.coords[..., None] * self.inv_freq.to(dtype)
        return turn.cos(), turn.sin()

    patch.setattr(few_tokens, "serves", lambda frequencies: False)  # which makes its tables itself
    patch.setattr(RoPE, "__init__", init)
    patch.setattr(RoPE, "tables", tables)


def plant_B1_a_buffer_that_no_checkpoint_restores(patch):
    buffer_without_a_checkpoint(patch)


def test_B2_index_tables_need_no_initialisation():
    """Swin, BEiT, LeViT, T5, DeBERTa: indices are computed from positions; none is stored."""
    for name in GRIDS:
        loaded_after_meta(name)
        assert [one for one in constructed(name).buffers() if not one.is_floating_point()] == []


def test_B2_a_wrapper_that_skips_initialisation(monkeypatch):
    """Loaders switch torch.nn.init off; what is loaded afterwards is all that counts."""
    for name in GRIDS:
        fresh = constructed(name)
        expected, saved = result(name, fresh), fresh.state_dict()
        with monkeypatch.context() as patch:
            for function in ("normal_", "uniform_", "trunc_normal_", "xavier_uniform_", "zeros_", "ones_", "constant_"):
                patch.setattr(nn.init, function, lambda tensor, *given, **named: tensor)
            bare = constructed(name)
        bare.load_state_dict(saved)
        same(result(name, bare), expected, name)


def plant_B2_an_index_that_reset_parameters_fills(patch):
    made, biased = WindowBias.__init__, WindowBias.bias

    @functools.wraps(made)
    def init(self, *given, **named):
        made(self, *given, **named)
        self.register_buffer("index", torch.empty(1, dtype=torch.long), persistent=False)
        self.index.zero_()

    def bias(self, *given):
        of_pair = biased(self, *given)
        return lambda *pair: of_pair(*pair) + self.index[0]

    patch.setattr(WindowBias, "__init__", init)
    patch.setattr(WindowBias, "bias", bias)


# B3, B4 -----------------------------------------------------------------------------------------------------------------


@torch.no_grad()
def draws_all(module: nn.Module) -> None:
    for one in module.parameters(recurse=False):
        one.normal_()


def test_B3_weight_initialisation_of_a_model_leaves_fixed_tables_alone():
    at = Positions.arange(1, 5, 30)
    for name in FIXED:
        model = nn.ModuleDict({"encoding": build(name), "words": nn.Embedding(7, 32), "out": nn.Linear(32, 7)})
        expected = outputs(model["encoding"], at)
        model.apply(draws_all)
        same(outputs(model["encoding"], at), expected, name)


def test_B4_fixed_tables_are_not_trained():
    at = Positions.arange(1, 5, 30)
    for name in FIXED:
        encoding = build(name)
        assert list(encoding.parameters()) == [], name
        expected = outputs(encoding, at)
        head = nn.Linear(32, 1)
        optimizer = torch.optim.AdamW([*encoding.parameters(), *head.parameters()], lr=0.5, weight_decay=0.5)
        head(encoding.embed(tokens(1, 5), at)).sum().backward()
        optimizer.step()
        same(outputs(encoding, at), expected, name)


def sinusoid_in_an_embedding(patch, trainable: bool):
    made = Sinusoidal.__init__

    @functools.wraps(made)
    def init(self, *given, **named):
        made(self, *given, **named)
        self.stored = nn.Embedding(64, self.d_model)
        with torch.no_grad():
            table = Sinusoidal.tables_of_before(self, Positions.arange(1, 64), torch.float32)[0][0]
            self.stored.weight.copy_(table)
        self.stored.weight.requires_grad_(trainable)

    patch.setattr(Sinusoidal, "tables_of_before", Sinusoidal.tables, raising=False)
    patch.setattr(Sinusoidal, "__init__", init)
    patch.setattr(Sinusoidal, "tables", lambda self, at, dtype: (self.stored(at.coords),))


def plant_B3_a_sinusoid_in_an_embedding(patch):
    sinusoid_in_an_embedding(patch, trainable=False)


def plant_B4_a_trainable_sinusoid(patch):
    sinusoid_in_an_embedding(patch, trainable=True)


# B5 ---------------------------------------------------------------------------------------------------------------------

STORED = ("inv_freq", "cos_cached", "sin_cached", "cos_sin_cache", "freqs", "position_ids", "pe", "relative_position_index")


def test_B5_fixed_encodings_store_nothing_and_load_old_checkpoints_strictly():
    """Tables that other programs stored are passed over: they neither stop a strict load nor change a number."""
    at = Positions.arange(1, 4, 9)
    for name in FIXED:
        encoding = build(name)
        assert encoding.state_dict() == {}
        expected = outputs(encoding, at)
        for legacy in STORED:
            encoding.load_state_dict({legacy: torch.full((4,), 7.7)}, strict=True)
        same(outputs(encoding, at), expected, name)
    model = attention("rope")
    old = {**model.state_dict(), "encoding.inv_freq": torch.zeros(4), "encoding.cos_cached": torch.zeros(9, 4)}
    model.load_state_dict(old, strict=True)


def test_B5_keys_that_nobody_stored_are_still_refused():
    with pytest.raises(RuntimeError, match="Unexpected key"):
        build("rope").load_state_dict({"inv_frequency": torch.zeros(4)})
    learned = build("learned")
    with pytest.raises(RuntimeError, match="Missing key"):
        learned.load_state_dict({"inv_freq": torch.zeros(4)})


def test_B5_frequencies_of_a_checkpoint_are_taken_when_they_are_given():
    """ESM's checkpoints hold rounded frequencies, and parity needs them: they are an argument, not a buffer."""
    stored = torch.tensor([1.0, 0.1, 0.01, 0.001], dtype=torch.float16)
    given = posenc.frequencies.Frequencies(tuple(stored.double().tolist()))
    x, at = heads(1, 3), Positions.arange(1, 3, 500)
    assert not torch.equal(RoPE(8, frequencies=given).rotate(x, at, "query"), RoPE(8).rotate(x, at, "query"))


@ends_in(RuntimeError)
def plant_B5_stored_tables_are_unexpected(patch):
    patch.delattr(ExactParameters, "_load_from_state_dict")


# B7 ---------------------------------------------------------------------------------------------------------------------


class NoComplexNumber(TorchDispatchMode):
    """Every operator's results are real."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            assert not (isinstance(one, torch.Tensor) and one.is_complex()), f"{function} makes complex numbers"
        return made


def test_B7_no_complex_number_is_stored_or_computed():
    for name in [*IN_A_ROW[:12], "rope half", "xpos half", "rope_mixed", "cayley_string", "com_rope", "selective_rope"]:
        encoding = build(name)
        of = world(name, batch=1, length=4)
        with NoComplexNumber():
            of.output(encoding, of.x, of.plain())
        for tensor in (*encoding.parameters(), *encoding.buffers(), *vars(encoding).values()):
            assert not (isinstance(tensor, torch.Tensor) and tensor.is_complex())


def plant_B7_rotation_by_complex_numbers(patch):
    def rotate(x, cos, sin, layout, *rest, **named):
        turn = torch.complex(cos, sin)[:, None]
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)

    patch.setattr(posenc.encodings.rope, "rotate", rotate)
    patch.setattr(RoPE, "structure", posenc.PositionalEncoding.structure)
