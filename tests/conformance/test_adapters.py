"""The adapters: from the usual shapes of libraries to the seams, on implementations written here."""

import math

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.t5.modeling_t5 import T5Attention

import posenc
from conformance.correct import CORRECT, Rope, sizes, slopes_of
from posenc.checking.adapters import Buckets, ByLengths, ByOffset, CosSin, HuggingFaceRotary, ScoreMod, Slopes
from posenc.checking.identify import FACTS

FEW = ["decode_equals_prefill", "rows_have_their_own_positions"]
FEW_OF_BIAS = ["decode_equals_prefill", "rows_have_their_own_positions"]
HALF = {"layout": "half", "base": 10000.0}
ALIBI = {"kind": "linear", "slopes": slopes_of(6)}


class Counting:
    """Rotates tokens counted from an offset."""

    def rotate_queries_or_keys(self, x, offset=0):
        return Rope()(x, (offset + torch.arange(x.shape[2]))[None].expand(len(x), -1))


def cos_sin(positions):
    angles = (positions[..., None] * Rope().frequencies(64)).repeat(1, 1, 2)
    return angles.cos(), angles.sin()


def by_lengths(i, j):
    slopes = torch.tensor(slopes_of(6))[:, None, None]
    return -slopes * (torch.arange(j - i, j)[:, None] - torch.arange(j)).abs()


def alibi_mod(score, b, h, q, k):
    return score - torch.tensor(slopes_of(6))[h] * (q - k).abs()


def rotary():
    return LlamaRotaryEmbedding(LlamaConfig(hidden_size=256, num_attention_heads=4))


@pytest.mark.parametrize(
    ("seam", "adapter", "expect", "ragged"),
    [
        ("rotate", HuggingFaceRotary(rotary(), apply_rotary_pos_emb), HALF, "passed"),
        ("rotate", HuggingFaceRotary(rotary()), HALF, "passed"),
        ("rotate", CosSin(apply_rotary_pos_emb, cos_sin), HALF, "passed"),
        ("rotate", ByOffset(Counting()), HALF, "not declared"),
        ("bias", Slopes(slopes_of, 6), ALIBI, "passed"),
        ("bias", ScoreMod(alibi_mod, 6), ALIBI, "passed"),
        ("bias", ByLengths(by_lengths), {}, "not declared"),
        ("bias", Buckets(T5Attention._relative_position_bucket), {"n_buckets": 32, "bidirectional": True}, "passed"),
    ],
)
def test_adapters(seam, adapter, expect, ragged):
    laws = FEW if seam == "rotate" else FEW_OF_BIAS
    report = posenc.check(**{seam: adapter}, expect=expect, laws=laws)
    assert report.passed, report
    assert [report[law].verdict for law in laws] == ["passed", ragged]


def test_wrong_slopes_do_not_hide_behind_an_adapter():
    wrong = Slopes(lambda n: [2 ** (-8 * (i + 1) / n) for i in range(n)], 6)
    report = posenc.check(bias=wrong, expect=ALIBI, laws=[])
    assert report["is_what_is_expected"].verdict == "failed"
    assert math.isclose(report.identity.facts["slopes"][0], 2 ** (-8 / 6), rel_tol=1e-3)


def test_an_expectation_that_no_seam_can_meet_is_refused():
    with pytest.raises(ValueError, match="expect: bias has no fact 'buckets'; it has n_heads, kind, slopes"):
        posenc.check(bias=Slopes(slopes_of, 6), expect={"buckets": 32})


@pytest.mark.parametrize("name", list(CORRECT))
def test_identities_have_no_other_facts_than_those_that_can_be_expected(name):
    seam, make, _ = CORRECT[name]
    report = posenc.check(**{seam: make()}, laws=[], name=name, **sizes(seam))
    assert report.identity.facts
    assert set(report.identity.facts) <= set(FACTS[seam])
