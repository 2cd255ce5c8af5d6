"""Positions of digits, sums, visual tokens and videos, by hand from the papers' formulas, in Fractions where they are real.

Each formula is also broken on purpose, and must then differ.
"""

import itertools
import math
from fractions import Fraction

import pytest
import torch

import posenc
from posenc import Positions


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(at: Positions) -> list:
    return at.coords.tolist()


# Abacus ---------------------------------------------------------------------------------------------------------------


def counted(text: str, first: int = 1) -> list[int]:
    """McLeish et al. 2024, section 3: each digit's place in its number; other characters at 0."""
    places: list[int] = []
    for n, character in enumerate(text):
        begins = n == 0 or not text[n - 1].isdigit()
        places.append(0 if not character.isdigit() else first if begins else places[-1] + 1)
    return places


TEXTS = ["123+45=861", "+7+89=6900", "0000000000", "a=b+c=d+ef"]


def test_digits_are_counted_in_each_number():
    digits = torch.tensor([[character.isdigit() for character in text] for text in TEXTS])
    got = posenc.positions_by("abacus", digits=digits)
    assert rows(got) == [counted(text) for text in TEXTS]
    assert rows(got) != [counted(text, first=0) for text in TEXTS]
    assert got.order[0].tolist() == list(range(10))


def test_one_shift_for_the_whole_batch():
    digits = torch.tensor([[character.isdigit() for character in text] for text in TEXTS])
    seen = set()
    for seed in range(40):
        got = rows(posenc.positions_by("abacus", digits=digits, max_shift=3, generator=generator(seed)))
        shift = got[2][0] - 1
        assert got == [counted(text, 1 + shift) for text in TEXTS]
        seen.add(shift)
    assert seen == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="max_shift: expected a whole number from 0, got -1"):
        posenc.positions_by("abacus", digits=digits, max_shift=-1)
    with pytest.raises(ValueError, match=r"digits: expected a tensor \[b, t\] of booleans"):
        posenc.positions_by("abacus", digits=digits.long())


# Position coupling ----------------------------------------------------------------------------------------------------


def coupled(operands: list[str], answer: str, start: int = 1, first: int = 1) -> list[int]:
    """Cho et al. 2024, section 3: a digit's exponent of ten, plus one, from the start; signs at the start.

    Digits are written as their exponents: "210" is a three-digit number, "012" the same reversed.
    """
    token = {"+": start, "=": start, "$": 0}
    return [token[c] if c in token else start + first + int(c) for c in "$" + "+".join(operands) + "=" + answer]


@pytest.mark.parametrize(
    ("options", "operands", "answer"),
    [
        ({}, ["210", "210"], "0123"),
        ({"reversed_operands": True, "reversed_answer": False}, ["012", "012"], "3210"),
        ({"answer": 2}, ["10", "0", "3210"], "01"),
    ],
    ids=str,
)
def test_digits_of_one_significance_share_a_position(options, operands, answer):
    lengths = [len(operand) for operand in operands]
    got = posenc.positions_by("position_coupling", lengths=lengths, **options)
    assert rows(got) == [coupled(operands, answer)]
    assert rows(got) != [coupled(operands, answer, first=0)]
    assert rows(got) != [coupled(operands, answer[::-1])]


def test_every_row_has_a_start_of_its_own():
    got = rows(posenc.positions_by("position_coupling", lengths=[3, 3], max_start=6, generator=generator(), batch=600))
    starts = [row[4] for row in got]
    assert got == [coupled(["210", "210"], "0123", start) for start in starts]
    assert set(starts) == {1, 2, 3, 4, 5, 6}
    assert max(abs(starts.count(start) / 600 - 1 / 6) for start in range(1, 7)) < 0.05
    assert [0, 9, 8, 7, 6, 9, 8, 7, 6, 7, 8, 9, 10] in got  # 653 + 049 = 2070 from 6


def test_operands_without_digits():
    with pytest.raises(ValueError, match="lengths: expected the digits of at least one operand"):
        posenc.positions_by("position_coupling", lengths=[])
    with pytest.raises(ValueError, match="lengths: expected a whole number from 1, got 0"):
        posenc.positions_by("position_coupling", lengths=[3, 0])


# V2PE -----------------------------------------------------------------------------------------------------------------


def varied(visual: str, delta: Fraction, rounded: bool = False, word: Fraction = Fraction(1)) -> list[float]:
    """Ge et al. 2024, section 3.2; `rounded`: the authors' code rounds up where an image ends. Letters: v is visual."""
    places = [Fraction(0)]
    for before, this in itertools.pairwise(visual):
        last = places[-1]
        if rounded and before == "v" and this == "w":
            last = Fraction(math.ceil(last))
        places.append(last + (delta if this == "v" else word))
    return [float(place) for place in places]


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("delta", [Fraction(1, 16), Fraction(1, 3), Fraction(1)], ids=str)
def test_visual_tokens_advance_by_a_fraction(delta, rounded):
    texts = ["wwvvvvvwwvvww", "wvwvvvwvvvvvv", "wwwwwwwwwwwww"]
    visual = torch.tensor([[letter == "v" for letter in text] for text in texts])
    got = posenc.positions_by("v2pe", visual=visual, delta=float(delta), rounded=rounded).coords
    expected = torch.tensor([varied(text, delta, rounded) for text in texts], dtype=torch.float64)
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=0)
    for broken in (varied(texts[0], delta, not rounded), varied(texts[0], delta, rounded, word=Fraction(2))):
        if broken != varied(texts[0], delta, rounded):
            assert (got[0] - torch.tensor(broken)).abs().max() > 0.01
    assert varied(texts[0], delta, rounded, word=Fraction(2)) != varied(texts[0], delta, rounded)


def test_a_row_may_begin_with_an_image():
    visual = torch.tensor([[True, True, True, False]])
    assert rows(posenc.positions_by("v2pe", visual=visual, delta=0.25)) == [[0.0, 0.25, 0.5, 1.5]]
    for wrong in (0.0, -1.0, 1.5):
        with pytest.raises(ValueError, match="delta: expected a"):
            posenc.positions_by("v2pe", visual=visual, delta=wrong)


# VideoRoPE ------------------------------------------------------------------------------------------------------------


def diagonal(text, height, width, frames, after, spacing, form, sign=-1):
    """Wei et al. 2025, eq. 7, and get_t_scale_rope_index of the authors' code."""
    found = [[Fraction(n)] * 3 for n in range(text)]
    for frame in range(frames):
        t = text + spacing * frame
        for y in range(height):
            for x in range(width):
                middle = [Fraction(height, 2), Fraction(width, 2)]
                if form == "code":
                    middle = [(height - 1) // 2, (width - 1) // 2]
                found.append([t, t + y + sign * middle[0], t + x + sign * middle[1]])
    last = found[-1][0]
    start = last + 1 if form == "code" else text + spacing * frames
    return [[float(n) for n in one] for one in found + [[start + n] * 3 for n in range(after)]]


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize(("height", "width"), [(2, 3), (3, 4)])
def test_frames_lie_on_the_diagonal(form, height, width):
    sizes = {"text": 2, "height": height, "width": width, "frames": 3, "after": 2}
    got = rows(posenc.positions_by("videorope_ids", **sizes, spacing=1.5, form=form))[0]
    assert got == diagonal(**sizes, spacing=Fraction(3, 2), form=form)
    assert got != diagonal(**sizes, spacing=Fraction(3, 2), form=form, sign=1)
    assert got != diagonal(**sizes, spacing=Fraction(3, 2), form={"paper": "code", "code": "paper"}[form])
    with pytest.raises(ValueError, match="form: expected one of 'paper', 'code', got 'vllm'"):
        posenc.positions_by("videorope_ids", text=1, height=1, width=1, form="vllm")


def test_words_alone_have_one_number_thrice():
    got = rows(posenc.positions_by("videorope_ids", text=3, height=1, width=1))[0]
    assert got[:3] == [[0.0] * 3, [1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("order", [(2, 1), (1, 2)])
def test_slow_pairs_of_videorope_read_time(order):
    """Eq. 6: of 64 pairs, 48 … 63 read t, the even ones before them x and the odd ones y; the authors' code swaps these."""
    encoding = posenc.create("videorope", d_head=128, order=order)
    x, one = torch.zeros(1, 1, 3, 128, dtype=torch.float64), torch.eye(3, dtype=torch.float64)[None]
    x[..., :64] = 1.0  # the first channel of every pair
    turned = encoding.rotate(x, Positions.at(one), "query")[0, 0]
    angle = torch.atan2(turned[:, 64:], turned[:, :64])  # [axis, pair]
    for pair in range(64):
        axis = 0 if pair >= 48 else order[pair % 2]
        for other in range(3):
            expected = 1e6 ** (-2 * pair / 128) if other == axis else 0.0
            assert abs(angle[other, pair].item() - expected) < 1e-12
    for wrong, message in (({"time": 64}, "time: expected fewer than the 64"), ({"order": (0, 1)}, "order: expected")):
        with pytest.raises(ValueError, match=message):
            posenc.create("videorope", d_head=128, **wrong)


# Omni-RoPE ------------------------------------------------------------------------------------------------------------


def shared_by_an_image(text, height, width, frames, after, spacing, begin=0):
    """get_omnirope_index of Huang et al. 2025: s + δτ, and rows and columns from 0."""
    found = [[Fraction(n)] * 3 for n in range(text)]
    for frame in range(frames):
        found += [[text + spacing * frame, begin + y, begin + x] for y in range(height) for x in range(width)]
    start = text + max(frames, height, width)
    return [[float(n) for n in one] for one in found + [[start + n] * 3 for n in range(after)]]


@pytest.mark.parametrize(("height", "width", "frames"), [(2, 3, 1), (3, 2, 4)])
def test_patches_of_an_image_share_a_number(height, width, frames):
    sizes = {"text": 2, "height": height, "width": width, "frames": frames, "after": 2}
    got = rows(posenc.positions_by("omni_rope_ids", **sizes, spacing=0.5))[0]
    assert got == shared_by_an_image(**sizes, spacing=Fraction(1, 2))
    assert got != shared_by_an_image(**sizes, spacing=Fraction(1, 2), begin=2)  # M-RoPE's
    assert got != shared_by_an_image(**sizes, spacing=Fraction(1)) or frames == 1


# VRoPE ----------------------------------------------------------------------------------------------------------------


def corners(text, height, width, frames, after, used=None):
    """generate_1d_positions and generate_nd_positions of the authors' vrope.py, written out."""
    current, found = text, [[n] * 4 for n in range(text)]
    used = height + width - 1 if used is None else used
    for frame in range(frames):
        for y in range(height):
            for x in range(width):
                flipped_y, flipped_x = height - 1 - y, width - 1 - x
                sums = [y + x, y + flipped_x, flipped_y + x, flipped_y + flipped_x]
                found.append([current + frame * used + one for one in sums])
    return found + [[current + frames * used + n] * 4 for n in range(after)]


@pytest.mark.parametrize(("height", "width"), [(2, 3), (3, 3), (1, 1)])
def test_patches_are_counted_from_four_corners(height, width):
    sizes = {"text": 2, "height": height, "width": width, "frames": 3, "after": 2}
    got = rows(posenc.positions_by("vrope_ids", **sizes))[0]
    assert got == corners(**sizes)
    assert got != corners(**sizes, used=height + width)
    if (height, width) == (3, 3):
        assert got[2 + 4] == [2 + 2] * 4  # the middle of a frame lies on the line of the words


def test_pairs_of_vrope_read_the_corners_in_turn():
    encoding = posenc.create("vrope", d_head=16, base=100.0)
    x, one = torch.zeros(1, 1, 4, 16, dtype=torch.float64), torch.eye(4, dtype=torch.float64)[None]
    x[..., :8] = 1.0  # the first channel of every pair
    turned = encoding.rotate(x, Positions.at(one), "query")[0, 0]
    angle = torch.atan2(turned[:, 8:], turned[:, :8])  # [coordinate, pair]
    for pair in range(8):
        for other in range(4):
            expected = 100 ** (-2 * pair / 16) if other == pair % 4 else 0.0
            assert abs(angle[other, pair].item() - expected) < 1e-12
    with pytest.raises(ValueError, match="d_head: expected an even number from 8"):
        posenc.create("vrope", d_head=6)


# MHRoPE ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "n_heads", "n_kv_heads"), [(None, 8, 8), ((1, 1, 1), 8, 4), ((0, 2, 2), 4, None)])
def test_heads_read_an_axis_each(sizes, n_heads, n_kv_heads):
    """freq_allocation/mhrope.py: heads of t, then h, then w, zeros for the rest; a group of queries as its key head."""
    encoding = posenc.create("mhrope", d_head=8, n_heads=n_heads, n_kv_heads=n_kv_heads, sizes=sizes, base=100.0)
    own = n_heads if n_kv_heads is None else n_kv_heads
    axes = [axis for axis, size in enumerate(sizes or (2, 3, 3)) for _ in range(size)] + [None] * own
    for heads in (n_heads, own):
        x, one = torch.zeros(1, heads, 3, 8, dtype=torch.float64), torch.eye(3, dtype=torch.float64)[None]
        x[..., :4] = 1.0  # the first channel of every pair
        turned = encoding.rotate(x, Positions.at(one), "key")[0]
        angle = torch.atan2(turned[..., 4:], turned[..., :4])  # [head, axis, pair]
        for head, other, pair in itertools.product(range(heads), range(3), range(4)):
            expected = 100 ** (-2 * pair / 8) if other == axes[head * own // heads] else 0.0
            assert abs(angle[head, other, pair].item() - expected) < 1e-12


def test_words_of_mhrope_are_rope_and_a_slice_keeps_its_axes():
    encoding = posenc.create("mhrope", d_head=8, n_heads=8, n_kv_heads=4, sizes=(1, 2, 0))
    x = torch.randn(2, 8, 5, 8, dtype=torch.float64, generator=generator())
    words = Positions.at(torch.arange(5.0)[None, :, None].expand(2, -1, 3))
    rope = posenc.create("rope", d_head=8, base=5000000.0, layout="half")
    expected = torch.cat([rope.rotate(x[:, :6], Positions.arange(2, 5), "query"), x[:, 6:]], dim=1)
    torch.testing.assert_close(encoding.rotate(x, words, "query"), expected, rtol=0, atol=1e-12)
    at = Positions.at(torch.randn(2, 5, 3, dtype=torch.float64, generator=generator(1)))
    whole, part = encoding.rotate(x, at, "query"), encoding.heads(1, 7)
    torch.testing.assert_close(part.rotate(x[:, 1:7], at, "query"), whole[:, 1:7], rtol=0, atol=0)
    torch.testing.assert_close(part.heads(2, 6).rotate(x[:, 3:7], at, "query"), whole[:, 3:7], rtol=0, atol=0)


def test_wrong_heads_of_mhrope():
    for sizes in ((3, 3, 3), (1, 1), (-1, 2, 2)):
        with pytest.raises(ValueError, match=r"sizes: expected"):
            posenc.create("mhrope", d_head=8, n_heads=8, sizes=sizes)
    with pytest.raises(ValueError, match="n_kv_heads: expected a number that divides n_heads=8, got 3"):
        posenc.create("mhrope", d_head=8, n_heads=8, n_kv_heads=3)


# Circle-RoPE ----------------------------------------------------------------------------------------------------------


def circle(text, height, width, after, radius, direction, turn=1):
    """get_circlerope_index of Multimodal-RoPEs with move_to_origin: map_to_circle, then the plane upright on (1, 1, 1)."""
    middle = [[(x - (width - 1) / 2, y - (height - 1) / 2) for x in range(width)] for y in range(height)]
    angle = [[math.atan2(y, x) for x, y in row] for row in middle]
    low, high = min(map(min, angle)), max(map(max, angle))
    found = [[float(n)] * 3 for n in range(text)]
    u = (-1 / math.sqrt(2), 1 / math.sqrt(2), 0.0)  # of x, y, z
    v = (-1 / math.sqrt(6), -1 / math.sqrt(6), 2 / math.sqrt(6))
    for y in range(height):
        for x in range(width):
            ray = (angle[y][x] - low) / (high - low) * 2 * math.pi if high > low else angle[y][x]
            theta = turn * (direction * ray + (1 - direction) * (y * width + x) / (height * width) * 2 * math.pi)
            a, b = radius * math.cos(theta), radius * math.sin(theta)
            place = [a * one + b * other for one, other in zip(u, v, strict=True)]
            found.append([text + n for n in reversed(place)])  # the code stacks t, h, w of x, y, z
    start = max(map(max, found[text:])) + 1
    return found + [[start + n] * 3 for n in range(after)]


@pytest.mark.parametrize(("height", "width"), [(2, 3), (3, 3), (1, 1)])
@pytest.mark.parametrize(("radius", "direction"), [(10.0, 0.5), (2.0, 0.0), (3.0, 1.0)])
def test_patches_lie_on_a_circle_around_the_words(height, width, radius, direction):
    sizes = {"text": 2, "height": height, "width": width, "after": 2, "radius": radius, "direction": direction}
    got = torch.tensor(rows(posenc.positions_by("circle_rope_ids", **sizes))[0], dtype=torch.float64)
    torch.testing.assert_close(got, torch.tensor(circle(**sizes), dtype=torch.float64), rtol=0, atol=1e-12)
    if height * width > 1:
        assert (got - torch.tensor(circle(**sizes, turn=-1), dtype=torch.float64)).abs().max() > 0.1
    image = got[2 : 2 + height * width]
    for word in range(-5, 5):  # a cone: one distance from a word to all patches
        torch.testing.assert_close(
            (image - word).square().sum(dim=1), torch.full((len(image),), radius**2 + 3.0 * (2 - word) ** 2).double()
        )


def test_a_direction_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"direction: expected a number from 0 to 1, got 1\.5"):
        posenc.positions_by("circle_rope_ids", text=1, height=2, width=2, direction=1.5)


# LARoPE ---------------------------------------------------------------------------------------------------------------


def test_a_position_is_a_part_of_its_sequence():
    """Kim et al. 2025: γ·n/L, γ = 10; rows padded on the right."""
    at = posenc.positions_by("larope_ids", lengths=(6, 4))
    assert at.coords.dtype == torch.float64
    for row, length in enumerate((6, 4)):
        expected = [float(Fraction(10 * n, length)) for n in range(length)]
        assert at.coords[row, :length].tolist() == pytest.approx(expected, abs=1e-15)
    assert at.document.tolist() == [[0] * 6, [0] * 4 + [-1] * 2]
    assert rows(posenc.positions_by("larope_ids", lengths=[4], gamma=1.0)) == [[0.0, 0.25, 0.5, 0.75]]
    with pytest.raises(ValueError, match="lengths: expected"):
        posenc.positions_by("larope_ids", lengths=())
    with pytest.raises(ValueError, match="gamma: expected a positive number"):
        posenc.positions_by("larope_ids", lengths=(2,), gamma=0.0)


def test_speech_and_text_run_side_by_side():
    """Cross-attention of 9 frames with 3 letters: scores turn by γ(m/9 - n/3), nothing where a frame is at its letter."""
    rope, width = posenc.create("rope", d_head=2, layout="interleaved"), 2
    q, k = (torch.zeros(1, 1, n, width, dtype=torch.float64) for n in (9, 3))
    q[..., 0] = k[..., 0] = 1.0
    frames, letters = (posenc.positions_by("larope_ids", lengths=(n,)) for n in (9, 3))
    scores = rope.rotate(q, frames, "query") @ rope.rotate(k, letters, "key").transpose(-1, -2)
    for m in range(9):
        for n in range(3):
            assert abs(scores[0, 0, m, n].item() - math.cos(10 * (m / 9 - n / 3))) < 1e-12


# TMRoPE ---------------------------------------------------------------------------------------------------------------


def timed(text, height, width, frames, audio, after, seconds, marks=0, rate=25, interval=2):
    """Loops over intervals; seconds is a Fraction."""
    first = text + (1 if marks else 0)
    found = [[n] * 3 for n in range(text)] + [[text] * 3] * marks
    at = [math.floor(frame * seconds * rate) for frame in range(frames)]
    for turn in range(max([*at, audio]) // (rate * interval) + 1):
        now = range(turn * rate * interval, (turn + 1) * rate * interval)
        patches = [(t, y, x) for t in at if t in now for y in range(height) for x in range(width)]
        found += [[first + n for n in patch] for patch in patches]
        found += [[first + s] * 3 for s in range(audio) if s in now]
    following = max(max(one) for one in found) + 1 if not marks else max(max(one) for one in found[text + marks :]) + 1
    found += [[following] * 3] * marks
    return found + [[following + (1 if marks else 0) + n] * 3 for n in range(after)]


@pytest.mark.parametrize("seconds", [Fraction(1), Fraction(1, 2), Fraction(28, 100)], ids=str)
def test_sound_and_picture_of_one_moment_share_a_time(seconds):
    sizes = {"text": 3, "height": 2, "width": 3, "frames": 9, "audio": 130, "after": 2, "marks": 2}
    got = rows(posenc.positions_by("tmrope_ids", **sizes, seconds=float(seconds)))[0]
    assert got == timed(**sizes, seconds=seconds)
    assert got != timed(**sizes, seconds=seconds, rate=24)
    assert got != timed(**sizes, seconds=seconds, interval=3)
    assert rows(posenc.positions_by("tmrope_ids", text=1, height=2, width=1, after=1))[0] == [
        [0, 0, 0],
        [1, 1, 1],
        [1, 2, 1],
        [3, 3, 3],
    ]


def test_tmrope_is_that_of_transformers():
    """Qwen2.5-Omni: a video with its sound between words, every second of it 25 positions."""
    transformers = pytest.importorskip("transformers")
    from transformers.models.qwen2_5_omni import modeling_qwen2_5_omni as omni

    audio, image, video, vision_start, audio_start = 11, 12, 13, 14, 15
    config = transformers.PretrainedConfig(
        image_token_id=image,
        video_token_id=video,
        audio_token_id=audio,
        vision_start_token_id=vision_start,
        audio_start_token_id=audio_start,
        position_id_per_seconds=25,
        seconds_per_chunk=2,
    )

    class Bare:
        spatial_merge_size = 2
        get_llm_pos_ids_for_vision = omni.Qwen2_5OmniPreTrainedModelForConditionalGeneration.get_llm_pos_ids_for_vision
        get_chunked_index = omni.Qwen2_5OmniPreTrainedModelForConditionalGeneration.get_chunked_index
        get_rope_index = omni.Qwen2_5OmniPreTrainedModelForConditionalGeneration.get_rope_index

    bare = Bare()
    bare.config = config
    frames, height, width, heard = 7, 2, 3, 87
    content = frames * height * width + heard
    # words, then the start of the picture and of the sound, what is seen and heard, two ends, words
    tokens = [1, 1, 1, vision_start, audio_start, *[video] * (content - heard), *[audio] * heard, 2, 2, 1, 1]
    lengths = next(n for n in range(1, 999) if ((((n - 1) // 2 + 1) - 2) // 2 + 1) == heard)
    theirs, _ = bare.get_rope_index(
        torch.tensor([tokens]),
        None,
        torch.tensor([[frames, 2 * height, 2 * width]]),
        torch.ones(1, len(tokens)),
        True,
        torch.tensor([lengths]),
        torch.tensor([0.5]),
    )
    ours = posenc.positions_by(
        "tmrope_ids", text=3, height=height, width=width, frames=frames, seconds=0.5, audio=heard, marks=2, after=2
    )
    assert torch.equal(ours.coords, theirs.movedim(0, -1).long())
