"""Class A: angles, tables and rotations that lose precision."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

import posenc
import posenc.encodings.rope
import posenc.encodings.sinusoidal
from field_bugs.reference import FAR, angles, default_dtype, frequencies, rotated, rounded_once, sinusoids
from field_bugs.worlds import FIXED, attention, heads, near, outputs, same, tokens
from posenc import Positions
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.frequencies import dynamic, longrope, rotary
from posenc.kernels.rotation import few_tokens
from posenc.kernels.sin_cos import sin_cos
from posenc.support.tensors import tables_at
from test_laws import build

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
AT_FAR = Positions.at(torch.tensor([FAR]))
OVERFLOWS = {"xpos", "hope"}  # they refuse positions so far away


def tables(encoding, at: Positions, dtype=torch.float32) -> list[torch.Tensor]:
    return [table[0] for table in tables_at(encoding, at, dtype)]


def of_formula(positions, width: int, base: float = 10000.0) -> np.ndarray:
    return angles(positions, frequencies(width, base))


# A1 ---------------------------------------------------------------------------------------------------------------------


def test_A1_rows_of_a_table_are_distinct_and_right_for_tokens_of_any_dtype():
    at = Positions.arange(1, 4096)
    for dtype in DTYPES:
        for autocast in (False, True):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                cos, sin = tables(RoPE(64), at, dtype)
                (table,) = tables(Sinusoidal(64), at, dtype)
            turn = of_formula(range(4096), 64)
            near(cos, np.cos(turn), f"cos, {dtype}", 1e-6)
            near(sin, np.sin(turn), f"sin, {dtype}", 1e-6)
            near(table, sinusoids(range(4096), 64), f"table, {dtype}", 1e-6)
            for rows in (torch.cat([cos, sin], dim=-1), table):
                assert len(torch.unique(rows, dim=0)) == 4096


def test_A1_neighbours_stay_distinct_in_embeddings_of_16_bits():
    """bfloat16 positions cannot tell 256 from 257."""
    for dtype in DTYPES[:2]:
        embedded = Sinusoidal(64).embed(torch.zeros(1, 2, 64, dtype=dtype), Positions.arange(1, 2, 256))
        assert not torch.equal(*embedded[0])


def positions_in_bfloat16(at, frequencies, dtype):
    return sin_cos(at.replaced(coords=at.coords.bfloat16().double()), frequencies, dtype)


def plant_A1_positions_in_bfloat16(patch):
    patch.setattr(posenc.encodings.rope, "sin_cos", positions_in_bfloat16)


# A2 ---------------------------------------------------------------------------------------------------------------------

CASTS = {
    "half": lambda one: one.half(),
    "bfloat16": lambda one: one.to(torch.bfloat16),
    "double": lambda one: one.double(),
    "bfloat16 and back": lambda one: one.to(torch.bfloat16).float(),
}


def test_A2_casting_a_module_changes_no_angle():
    for name in FIXED:
        encoding = build(name)
        at = AT_FAR if name not in OVERFLOWS else Positions.at(torch.tensor([[0, 1, 40, 511]]))
        expected = outputs(encoding, at)
        for how, cast in CASTS.items():
            same(outputs(cast(copy.deepcopy(encoding)), at), expected, f"{name} {how}")


def test_A2_a_sinusoid_inside_of_a_learned_encoding_survives_a_cast():
    """Transformer-XL's weights are rounded by right; with the weights restored, all is as before."""
    encoding = build("transformer_xl")
    saved = copy.deepcopy(encoding.state_dict())
    q, at = heads(1, 6), Positions.arange(1, 6, 4090)
    expected = posenc.attend(q, q, q, encoding, at)
    cast = copy.deepcopy(encoding).to(torch.bfloat16).float()
    cast.load_state_dict(saved)
    same(posenc.attend(q, q, q, cast, at), expected)


def frequencies_in_a_buffer(patch):
    """RoPE as most libraries have it: inv_freq is a buffer, and angles are computed from it."""
    made, of_axes = RoPE.__init__, RoPE.tables

    @functools.wraps(made)
    def init(self, *given, **named):
        made(self, *given, **named)
        self.register_buffer("inv_freq", torch.tensor(self.frequencies.values), persistent=False)

    def of_buffer(self, at, dtype):
        if self.axes > 1:
            return of_axes(self, at, dtype)
        turn = at.coords[..., None] * self.inv_freq.to(dtype)
        return turn.cos(), turn.sin()

    patch.setattr(RoPE, "__init__", init)
    patch.setattr(RoPE, "tables", of_buffer)


def plant_A2_frequencies_in_a_buffer(patch):
    frequencies_in_a_buffer(patch)


# A3 ---------------------------------------------------------------------------------------------------------------------


def test_A3_after_a_cast_every_length_has_exact_frequencies():
    trained = 64
    by_length = {
        "dynamic": dynamic(rotary(16), 2.0, trained),
        "longrope": longrope(rotary(16), [1.0] * 8, [2.0] * 8, trained, factor=4.0),
    }
    for name, family in by_length.items():
        encoding = RoPE(16, frequencies=family).to(torch.bfloat16)
        for n in (trained - 1, trained, trained + 1, 2 * trained):
            cos, _ = tables(encoding.at_length(n).half(), Positions.arange(1, n))
            if name == "dynamic":
                base = 10000.0 * max(2.0 * max(n, trained) / trained - 1, 1) ** (16 / 14)
                expected = np.cos(of_formula(range(n), 16, base))
            else:
                scale = np.sqrt(1 + np.log(4.0) / np.log(trained))
                expected = scale * np.cos(of_formula(range(n), 16) / (2.0 if n > trained else 1.0))
            near(cos, expected, f"{name}, {n} tokens", 2e-7)


def plant_A3_longer_tables_come_from_the_cast_buffer(patch):
    frequencies_in_a_buffer(patch)


# A4 ---------------------------------------------------------------------------------------------------------------------


class ShortFactories(TorchFunctionMode):
    """What some engines do: every factory call without a dtype gives bfloat16 where it would give floats."""

    FACTORIES = (torch.tensor, torch.arange, torch.linspace, torch.zeros, torch.ones, torch.full, torch.empty, torch.eye)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if function in self.FACTORIES and not (kwargs or {}).get("dtype") and made.dtype == torch.float32:
            return made.bfloat16()
        return made


def test_A4_an_engine_that_casts_every_tensor_of_the_model_changes_no_angle():
    for name in FIXED:
        expected = outputs(build(name), Positions.arange(1, 3, 400))
        model = torch.nn.ModuleList([build(name)])
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.data = tensor.data.bfloat16()
        same(outputs(model[0], Positions.arange(1, 3, 400)), expected, name)


def test_A4_the_default_dtype_and_short_factories_change_no_angle():
    for name in FIXED:
        at = Positions.arange(1, 3, 400)
        expected, given = outputs(build(name), at), (tokens(1, 3), heads(1, 3))
        for surroundings in (default_dtype(torch.bfloat16), ShortFactories()):
            with surroundings:
                encoding = build(name)
                got = [
                    encoding.embed(given[0], at),
                    encoding.rotate(given[1], at, "query"),
                    encoding.rotate(given[1], at, "key"),
                ]
            same(got, expected, name)


def plant_A4_frequencies_of_the_default_dtype(patch):
    made = RoPE.tables

    def tables(self, at, dtype):
        if self.axes > 1:
            return made(self, at, dtype)
        turn = at.coords[..., None].to(dtype) * torch.tensor(list(self.frequencies)).to(dtype)
        return turn.cos(), turn.sin()

    patch.setattr(RoPE, "tables", tables)


def plant_A4_an_engine_finds_a_buffer(patch):
    frequencies_in_a_buffer(patch)


# A5 ---------------------------------------------------------------------------------------------------------------------


def test_A5_autocast_keeps_512_far_positions_apart():
    at = Positions.arange(1, 512, 65536)
    for encoding in (RoPE(64), Sinusoidal(64), build("xpos"), posenc.create("mrope", d_head=64)):
        positions = at
        if encoding.axes == 3:
            positions = Positions.mrope(at.coords.expand(3, 1, -1))
        elif type(encoding).__name__ == "XPos":
            positions = Positions.arange(1, 512, 512)
        expected = tables(encoding, positions)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            got = tables(encoding, positions)
        same(got, expected, type(encoding).__name__)
        assert len(torch.unique(torch.cat(got, dim=-1), dim=0)) == 512


def test_A5_autocast_changes_nothing_in_attention():
    model, x = attention("rope half").bfloat16(), tokens(1, 8, dtype=torch.bfloat16)
    expected = model(x, Positions.arange(1, 8, 65536))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        same(model(x, Positions.arange(1, 8, 65536)), expected)


def plant_A5_angles_by_matmul(patch):
    def tables(self, at, dtype):
        omega = torch.tensor([self.frequencies.values], dtype=dtype)
        turn = (at.coords[..., None].to(dtype) @ omega).to(dtype)
        return turn.cos(), turn.sin()

    patch.setattr(RoPE, "tables", tables)


# A6 ---------------------------------------------------------------------------------------------------------------------


def test_A6_tokens_of_16_bits_are_rounded_once():
    positions = range(100_000, 100_064)
    at, omega = Positions.arange(1, 64, 100_000), frequencies(64, 5e5)
    for dtype in DTYPES[:2]:
        x = heads(1, 64, 64, dtype=dtype)
        for layout in ("interleaved", "half"):
            got = RoPE(64, base=5e5, layout=layout).rotate(x, at, "query")
            rounded_once(got, rotated(x, positions, omega, layout), f"{dtype} {layout}")
        part = RoPE(64, base=5e5, rotary_dim=32).rotate(x, at, "key")
        rounded_once(part, rotated(x, positions, frequencies(32, 5e5)), f"{dtype} partial")
        wide = tokens(1, 64, 64, dtype=dtype)
        embedded = Sinusoidal(64).embed(wide, at)
        rounded_once(embedded, wide.double().numpy() + sinusoids(positions, 64), f"{dtype} sinusoidal")


def in_the_dtype_of_the_tokens(x, cos, sin, layout, *rest, start=0, back=False, out=None):
    cos, sin = cos.to(x.dtype)[:, None], sin.to(x.dtype)[:, None]
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1).flatten(-2)


def plant_A6_rotation_in_16_bits(patch):
    patch.setattr(few_tokens, "FEW", 0)  # which computes its own tables
    patch.setattr(posenc.encodings.rope, "rotate", in_the_dtype_of_the_tokens)


# A8 ---------------------------------------------------------------------------------------------------------------------


def test_A8_angles_are_right_at_a_million():
    """fp32 angles are off by 6e-3 at 131 071; the table is the fp64 one, rounded once."""
    positions = [40, 2_000, 16_000, 131_071, 1_000_000]
    at = Positions.at(torch.tensor([positions]))
    turn = of_formula(positions, 128, 5e5)
    cos, sin = tables(RoPE(128, base=5e5), at)
    near(cos, np.cos(turn), "cos", 6.1e-8)
    near(sin, np.sin(turn), "sin", 6.1e-8)
    near(tables(Sinusoidal(128), at)[0], sinusoids(positions, 128), "sinusoidal", 6.1e-8)
    for consecutive in (Positions.arange(1, 64, 1_000_000), Positions.arange(1, 64, 131_071)):
        turn = of_formula(consecutive.coords[0].numpy(), 128, 5e5)
        near(tables(RoPE(128, base=5e5), consecutive)[0], np.cos(turn), "in a row", 6.1e-8)


def test_A8_other_libraries_fp32_angles_are_asked_for_by_name():
    """Parity with an fp32 library is a mode of its own; it is not what one gets unasked."""
    spec = posenc.read_config(
        {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 2, "num_hidden_layers": 1, "rope_theta": 5e5}
    )
    at = Positions.at(torch.tensor([[131_071]]))
    exact, model = (tables(spec.encoding(0, exact=exact), at)[0] for exact in ("fp64", "model"))
    expected = np.cos(of_formula([131_071], 128, 5e5))
    near(exact, expected, "fp64", 6.1e-8)
    assert float((model.double() - torch.from_numpy(expected)).abs().max()) > 1e-4


@pytest.mark.cuda
def test_A8_on_cuda():
    positions = [40, 2_000, 16_000, 131_071, 1_000_000]
    at = Positions.at(torch.tensor([positions], device="cuda"))
    cos, sin = tables(RoPE(128, base=5e5), at)
    turn = of_formula(positions, 128, 5e5)
    near(cos.cpu(), np.cos(turn), "cos", 6.1e-8)
    near(sin.cpu(), np.sin(turn), "sin", 6.1e-8)
    x = heads(1, 5, 128)
    turned = RoPE(128, base=5e5).rotate(x.cuda(), at, "query").cpu()
    near(turned, rotated(x, positions, frequencies(128, 5e5)), "turned", 1e-6)


def plant_A8_fp32_angles(patch):
    def tables(self, at, dtype):
        turn = at.coords[..., None].float() * torch.tensor(self.frequencies.values, dtype=torch.float32)
        return turn.cos().to(dtype), turn.sin().to(dtype)

    patch.setattr(RoPE, "tables", tables)
