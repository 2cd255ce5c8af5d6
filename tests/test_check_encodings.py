"""posenc.check and the laws on encodings of one's own: all that one does is tried, no scaling is told without evidence."""

import numpy as np
import pytest
import torch

import posenc
from posenc.checking import laws
from posenc.checking.bugs import BUGS
from posenc.checking.identify import scalings
from posenc.checking.loading import load
from posenc.encoding import DistanceBias, PositionalEncoding
from posenc.encodings.alibi import ALiBi
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies

SHIFT = ["shift_invariance"]


class SeesItsFirstKey(ALiBi):
    """A window of five keys and the key at 0, which a shift moves: `at_distance` says nothing of it."""

    def bias(self, q, k, at_q, at_k):
        falling, query, key = super().bias(q, k, at_q, at_k), at_q.coords, at_k.coords

        def of_pair(b, h, i, j):
            seen = (query[b, i] - key[b, j] < 5) | (key[b, j] == 0)
            return falling(b, h, i, j).masked_fill(~seen, -torch.inf)

        return of_pair


class ReadsTheKey(RoPE):
    """A rotation, and a bias that depends on where the key is."""

    def bias(self, q, k, at_q, at_k):
        return lambda b, h, i, j: (3.0 * at_k.coords[b, j]).to(q.dtype).sin()


class TurnsAllSides(PositionalEncoding):
    """Turns values and outputs as it turns queries."""

    def __init__(self, dim):
        super().__init__(dim=dim)
        self.of = RoPE(dim)

    def rotate(self, x, at, side, out=None):
        return self.of.rotate(x, at, "query", out)


@pytest.mark.parametrize("wrong", [SeesItsFirstKey(4), ReadsTheKey(16), TurnsAllSides(16)], ids=lambda e: type(e).__name__)
def test_what_the_encoding_does_is_tested_whole(wrong):
    """Each declares shift invariance, which one of its seams has and the whole has not."""
    assert "shift_invariant" in wrong.traits
    report = posenc.check(wrong, laws=SHIFT)
    assert (report.seam, report["shift_invariance"].verdict) == ("attention", "failed")


@pytest.mark.parametrize(
    "right", [posenc.create("alibi", n_heads=4), RoPE(16), posenc.create("sinusoidal", d_model=32)], ids=str
)
def test_what_has_one_seam_is_still_tested_there(right):
    assert posenc.check(right, laws=["the_same_call_gives_the_same"]).seam == {ALiBi: "bias", RoPE: "rotate"}.get(
        type(right), "embed"
    )


def test_parts_say_their_sizes_and_embeddings_are_not_left_out():
    rope, alibi = RoPE(8), posenc.create("alibi", n_heads=4)
    assert posenc.check(posenc.Stack(rope, alibi), laws=SHIFT)["shift_invariance"].verdict == "passed"
    with pytest.raises(ValueError, match=r"got Stack, which has embed, rotate; .* posenc\.laws\.report"):
        posenc.check(posenc.Stack(posenc.create("sinusoidal", d_model=32), rope))


@pytest.mark.parametrize("width", [8, 16])
def test_harmonic_frequencies_are_no_yarn_and_no_longrope(width):
    harmonic = RoPE(width, frequencies=Frequencies(tuple(1 / (1 + i) for i in range(width // 2))))
    known = posenc.check(harmonic, laws=["the_same_call_gives_the_same"]).identity
    assert "unknown frequencies" in known.sentence
    assert not known.facts.keys() & {"base", "scaling"}


def test_no_formula_is_found_in_random_frequencies():
    """And a known one is: the control."""
    draw = np.random.default_rng(0)
    for d in (8, 10, 12, 16, 32):
        for _ in range(6):
            falling = np.sort(np.append(draw.uniform(0.001, 1, d // 2 - 1), 1))[::-1]
            assert scalings.scaling(falling, d, d, 131_071, 1.0).facts == {}, falling
        plain = 10_000.0 ** (-np.arange(d // 2) / (d / 2))
        assert scalings.scaling(plain, d, d, 131_071, 1.0).facts == {"base": 10_000}


class RootOfTheDistance(DistanceBias):
    """Without `abs`: NaN for keys after the query, which causal attention hides."""

    def __init__(self, n_heads):
        super().__init__(n_heads=n_heads)

    def at_distance(self, delta):
        return -delta.double().sqrt().expand(self.configuration["n_heads"], -1)

    def heads(self, start, stop):
        return RootOfTheDistance(stop - start)


@pytest.mark.parametrize("law", laws.registry.BOTH_WAYS)
def test_keys_after_the_query_are_tried_too(law):
    """Unless a setting, or the trait `causal_only`, says that they are hidden. A NaN is named as one."""
    (result,) = laws.report(RootOfTheDistance(4), laws=[law])
    assert not result.held
    assert result.example["causal"] is False
    assert result.bug is BUGS["not finite"]
    assert "NaN" in result.detail
    with pytest.raises(laws.LawBroken, match=rf"^{law}: RootOfTheDistance.*, causal=False: .*NaN"):
        laws.check(RootOfTheDistance(4), laws=[law])
    causal = RootOfTheDistance(4)
    assert laws.report(causal, laws.Setting(), [law])[0].held
    causal.traits = causal.traits | {"causal_only"}
    assert laws.report(causal, laws=[law])[0].held


def test_the_remedies_of_slices_and_shifts_are_those_of_encodings():
    class WithoutSlices(ALiBi):
        heads = PositionalEncoding.heads

    (sliced,) = laws.report(WithoutSlices(4), laws=["head_slices"])
    assert "override heads(start, stop)" in str(sliced)
    (moved,) = laws.report(RoPE(8, sides=("query",)), laws=["shift_invariance"])
    assert moved.held
    for encoding, said in ((RoPE(8, sides=("query",)), "take shift_invariant out"), (RoPE(8), "add shift_invariant")):
        encoding.traits = encoding.traits ^ {"shift_invariant"}
        assert said in str(laws.report(encoding, laws=["shift_invariance"])[0])


def test_a_nan_is_told_once():
    report = posenc.check(RootOfTheDistance(4), laws=["no_number_is_nan", *SHIFT, "decode_equals_prefill"])
    assert len(report.failures) == 3
    text = str(report)
    assert text.count("some numbers are NaN") == 2  # in the diagnosis, and where the law says it
    assert text.endswith("✗ broken by NaN too: shift_invariance, decode_equals_prefill")


class OneRow(DistanceBias):
    def at_distance(self, delta):
        return -delta.abs().double()


class NoConstructor(OneRow):
    def __init__(self, n):
        self.n = n


Q = torch.zeros(2, 4, 6, 8)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: posenc.attend(Q, Q, Q, OneRow(), posenc.Positions.arange(2, 6)),
            r"^at_distance: expected .* \[h, n\], got",
        ),
        (lambda: posenc.attend(Q, Q, Q, NoConstructor(4), posenc.Positions.arange(2, 6)), r"super\(\)\.__init__\(…\)"),
        (lambda: laws.report(NoConstructor(4)), r"^NoConstructor: expected super\(\)\.__init__\(…\)"),
        (
            lambda: posenc.attend(Q[:, :, :1], Q, Q, RoPE(8), posenc.Positions.decode([5, 5])),
            r"^at_k: left out, so at_q is taken, of 1 tokens; give positions of all 6 keys",
        ),
    ],
    ids=["one axis", "no constructor", "no constructor, laws", "no at_k"],
)
def test_a_mistake_of_a_first_encoding_is_named(call, told):
    with pytest.raises((TypeError, ValueError), match=told):
        call()


def test_a_class_with_arguments_is_made_by_a_function(tmp_path):
    (tmp_path / "mine.py").write_text("from posenc.encodings.alibi import ALiBi\n")
    with pytest.raises(ValueError, match=r"def mine\(\): return ALiBi\(…\).*, then .*mine\.py:mine"):
        load(f"{tmp_path}/mine.py:ALiBi", None)
