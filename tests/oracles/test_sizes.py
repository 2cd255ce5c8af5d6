"""Sizes and numbers given to the classes themselves: wrong ones are refused by name, in one line."""

import math

import pytest

from cases import cases
from posenc import Attention
from posenc.encodings.alibi import ALiBi
from posenc.encodings.cope import CoPE
from posenc.encodings.floater import FLOATER
from posenc.encodings.learned import Learned
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.shaw import Shaw
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.encodings.t5 import T5
from posenc.encodings.transformer_xl import TransformerXL
from posenc.encodings.xpos import XPos

# What each class takes, and which of it counts something. max_distance, row_offset may be 0 where Shaw and Learned say so.
CLASSES = {
    Sinusoidal: ({"d_model": 8}, ["d_model", "axes"]),
    Learned: ({"d_model": 8, "max_positions": 4}, ["d_model", "max_positions", "row_offset"]),
    FLOATER: ({"d_model": 8}, ["d_model", "n_layers"]),
    Shaw: ({"d_head": 8}, ["d_head", "max_distance"]),
    TransformerXL: ({"d_model": 8, "n_heads": 2}, ["d_model", "n_heads", "d_head"]),
    T5: ({"n_heads": 2}, ["n_heads", "n_buckets", "max_distance"]),
    ALiBi: ({"n_heads": 2}, ["n_heads"]),
    CoPE: ({"d_head": 8}, ["d_head", "n_positions"]),
    RoPE: ({"d_head": 8}, ["d_head", "rotary_dim", "axes"]),
    XPos: ({"d_head": 8}, ["d_head"]),
    Attention: ({"d_model": 8, "n_heads": 2, "encoding": NoPE()}, ["d_model", "n_heads", "n_kv_heads", "d_head"]),
}
CASES = [(cls, size) for cls, (_, sizes) in CLASSES.items() for size in sizes]
MAY_BE_ZERO = {(Shaw, "max_distance"), (Learned, "row_offset")}


@cases("wrong", [0, -1, 2.0, True, "8"])
@cases("cls, size", CASES)
def test_a_size_that_is_no_count_is_refused_by_name(cls, size, wrong):
    if wrong == 0 and wrong is not False and (cls, size) in MAY_BE_ZERO:
        cls(**{**CLASSES[cls][0], size: 0})
        return
    with pytest.raises((TypeError, ValueError), match=rf"\b{size}\b") as error:
        cls(**{**CLASSES[cls][0], size: wrong})
    message = str(error.value)
    assert "\n" not in message
    assert "expected" in message or "need" in message


NUMBERS = [
    (Sinusoidal, "base"),
    (TransformerXL, "base"),
    (RoPE, "base"),
    (XPos, "base"),
    (XPos, "scale_base"),
    (XPos, "gamma"),
    (T5, "scale"),
    (FLOATER, "step"),
    (FLOATER, "rtol"),
    (FLOATER, "atol"),
]


@cases("wrong", [0, -1.0, math.nan, math.inf, True, "1"])
@cases("cls, number", NUMBERS)
def test_a_number_that_must_be_positive(cls, number, wrong):
    is_number = not isinstance(wrong, (bool, str)) and math.isfinite(wrong)
    kind = "positive" if number == "base" or is_number else "finite"
    with pytest.raises(ValueError, match=rf"\b{number}: expected a {kind} number"):
        cls(**{**CLASSES[cls][0], number: wrong})


@pytest.mark.parametrize("wrong", [math.nan, -math.inf, True, "1"], ids=repr)
def test_offset_and_slopes_must_be_finite(wrong):
    with pytest.raises(ValueError, match="offset: expected a finite number"):
        Sinusoidal(8, offset=wrong)
    if isinstance(wrong, float):
        with pytest.raises(ValueError, match=r"slopes: expected a sequence, each a finite number or None, got \(0\.5, "):
            ALiBi(2, slopes=(0.5, wrong))
