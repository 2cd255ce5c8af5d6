"""Grids of several axes, joint sequences and the positions of diffusion transformers, by loops over tokens.

The loops repeat what diffusers 0.42.1 computes: pipelines/flux/pipeline_flux.py and pipeline_flux_kontext.py,
pipelines/flux2/pipeline_flux2.py, models/transformers/transformer_qwenimage.py, transformer_hunyuan_video.py and
models/embeddings.py. tests/test_inspect_diffusers.py runs that code where pip can download it.
"""

import itertools
import math
from pathlib import Path

import pytest
import torch

import posenc
from oracles.by_hand import close
from posenc import Positions


def rows(at: Positions) -> list:
    """Coordinates of the only row, as numbers."""
    return at.coords[0].tolist()


def patches(*sizes: int) -> list:
    return [list(one) for one in itertools.product(*map(range, sizes))]


def test_a_grid_of_three_axes_is_a_video_frame_by_frame():
    at = Positions.grid(2, 3, 4, batch=2)
    assert at.coords.tolist() == [patches(2, 3, 4)] * 2
    assert at.order.tolist() == [list(range(24))] * 2
    assert rows(Positions.grid(2, 1, 2, sized=True)) == [[f, 0, x, 2, 1, 2] for f in range(2) for x in range(2)]
    assert rows(Positions.grid(1, 1, 1, prefix=2)) == [[-1, 0, 0], [-1, 1, 0], [0, 0, 0]]


def test_a_grid_starts_where_it_is_told():
    assert rows(Positions.grid(2, 2, start=(-1, 5))) == [[-1, 5], [-1, 6], [0, 5], [0, 6]]
    assert rows(Positions.grid(1, 2, 1, start=(10, 0, 0))) == [[10, 0, 0], [10, 1, 0]]
    for start in ((1,), (1, 2, 3), ()):
        with pytest.raises(ValueError, match="start: expected 2 whole numbers, one for each axis, got"):
            Positions.grid(2, 2, start=start)
    with pytest.raises(ValueError, match=r"sizes: expected \(height, width\) or \(frames, height, width\), got \(3,\)"):
        Positions.grid(3)


def test_joint_parts_stand_in_one_order():
    at = Positions.joint([2, Positions.grid(1, 2), Positions.grid(1, 1, start=(7, 7)), 1])
    assert rows(at) == [[0, 0], [0, 0], [0, 0], [0, 1], [7, 7], [0, 0]]
    assert at.order.tolist() == [[0, 1, 2, 3, 4, 5]]
    real = Positions.joint([1, Positions.at(torch.tensor([[0.5, 2.0]])), Positions.arange(1, 1)])
    assert real.coords.tolist() == [[0.0, 0.5, 2.0, 0.0]]
    padded = Positions.joint([1, Positions.from_mask(torch.tensor([[1, 0]]))])
    assert padded.document.tolist() == [[0, 0, -1]]
    assert Positions.joint([0, Positions.grid(1, 1)]).length == 1


def test_parts_that_do_not_make_one_sequence_are_refused():
    with pytest.raises(ValueError, match="parts: expected at least one Positions, which says how many axes there are"):
        Positions.joint([3])
    for wrong in (-1, True, 1.5, "a"):
        with pytest.raises(ValueError, match="parts: expected a whole number from 0, got"):
            Positions.joint([wrong, Positions.grid(1, 1)])
    with pytest.raises(ValueError, match="parts: expected coords of one batch and the same axes"):
        Positions.joint([Positions.arange(1, 2), Positions.grid(1, 1)])


@pytest.mark.parametrize("name", ["axial_rope", "pixtral_rope", "rope_mixed", "dinov3_rope"])
def test_tokens_at_the_origin_are_not_turned(name):
    """Class and register tokens, as timm's and DINOv3's rotations leave them; those of a grid's prefix turn."""
    rope = posenc.create(name, d_model=32, n_heads=2).double()
    x = torch.randn(1, 2, 3 + 6, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    grid = Positions.grid(2, 3)
    with torch.no_grad():
        got = rope.rotate(x, Positions.joint([3, grid]), "query")
        assert torch.equal(got[:, :, :3], x[:, :, :3])
        close(got[:, :, 3:], rope.rotate(x[:, :, 3:], grid, "query").numpy())
        turned = rope.rotate(x, Positions.grid(2, 3, prefix=3), "query")
    assert not torch.allclose(turned[:, :, :3], x[:, :, :3])


# Diffusion transformers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("references", [(), ((1, 2),), ((1, 2), (2, 1))])
def test_flux_puts_text_at_the_origin_and_reference_images_one_step_further(references):
    got = posenc.positions_by("flux_ids", text=2, height=2, width=3, references=references)
    expected = [[0, 0, 0]] * 2 + [[0, y, x] for y in range(2) for x in range(3)]
    for k, (height, width) in enumerate(references):
        expected += [[k + 1, y, x] for y in range(height) for x in range(width)]
    assert rows(got) == expected
    assert got.order.tolist() == [list(range(len(expected)))]


def test_flux2_counts_words_on_a_fourth_axis():
    got = posenc.positions_by("flux2_ids", text=3, height=2, width=2, references=((1, 2), (1, 1)))
    expected = [[0, 0, 0, n] for n in range(3)] + [[0, y, x, 0] for y in range(2) for x in range(2)]
    assert rows(got) == [*expected, [10, 0, 0, 0], [10, 0, 1, 0], [20, 0, 0, 0]]
    assert rows(posenc.positions_by("flux2_ids", text=0, height=1, width=1)) == [[0, 0, 0, 0]]


@pytest.mark.parametrize(("height", "width", "references"), [(4, 6, ()), (3, 2, ()), (5, 4, ((7, 2), (1, 1)))])
def test_msrope_counts_from_the_middle_and_text_follows_on_the_diagonal(height, width, references):
    """QwenEmbedRope: the last ⌈n/2⌉ rows of neg_index, which ends with -1, then the first ⌊n/2⌋ of pos_index."""
    got = posenc.positions_by("msrope_ids", text=2, height=height, width=width, references=references)
    images, most = [], 0
    for k, (h, w) in enumerate([(height, width), *references]):
        down = [*range(-4096, 0)][-(h - h // 2) :] + [*range(4096)][: h // 2]
        across = [*range(-4096, 0)][-(w - w // 2) :] + [*range(4096)][: w // 2]
        images += [[k, y, x] for y in down for x in across]
        most = max(h // 2, w // 2, most)
    assert rows(got) == [[most] * 3, [most + 1] * 3, *images]


@pytest.mark.parametrize(
    ("height", "width", "layers", "condition"), [(4, 6, 3, (4, 6)), (2, 2, 5, (3, 1)), (1, 1, 1, (8, 3))]
)
def test_qwen_image_layered_puts_the_image_at_minus_one(height, width, layers, condition):
    """QwenEmbedLayer3DRope: the last image reads neg_index[-1]; text begins at the number of layers at least."""
    references = [(height, width)] * (layers - 1)
    got = posenc.positions_by("msrope_ids", text=2, height=height, width=width, references=references, layered=condition)
    images, most = [], layers
    for k, (h, w) in [*((k, (height, width)) for k in range(layers)), (-1, condition)]:
        images += [[k, y, x] for y in range(h // 2 - h, h // 2) for x in range(w // 2 - w, w // 2)]
        most = max(h // 2, w // 2, most)
    assert rows(got) == [[most] * 3, [most + 1] * 3, *images]


@pytest.mark.parametrize(("sizes", "base", "before", "after"), [((16, 56, 56), 256.0, 0, 3), ((16, 24, 24), 10000.0, 3, 0)])
def test_hunyuan_and_cogvideox_leave_text_unturned(sizes, base, before, after):
    """Text after the video (HunyuanVideo) or before it (CogVideoX); patches turn by angles of frame, row and column."""
    rope = posenc.encodings.rope.RoPE(
        sum(sizes), frequencies=posenc.frequencies.separate(sizes, base), layout="interleaved"
    )
    at = Positions.joint([before, Positions.grid(2, 2, 3), after])
    x = torch.randn(1, 1, 15, sum(sizes), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    got = rope.rotate(x, at, "query")[0, 0]
    expected = x[0, 0].clone()
    for token, place in enumerate(patches(2, 2, 3)):
        angle = torch.cat([p * base ** (-torch.arange(0, n, 2).double() / n) for p, n in zip(place, sizes, strict=True)])
        real, imaginary = x[0, 0, before + token, 0::2], x[0, 0, before + token, 1::2]
        turned = torch.stack(
            [real * angle.cos() - imaginary * angle.sin(), real * angle.sin() + imaginary * angle.cos()], -1
        )
        expected[before + token] = turned.flatten()
    close(got, expected.numpy())


@pytest.mark.parametrize("rate", [25.0, 24.0])
def test_ltx_counts_seconds_and_pixels(rate):
    """LTXVideoRotaryPosEmbed with rope_interpolation_scale = (8/rate, 32, 32), and 2c - 1 as it multiplies frequencies."""
    got = posenc.positions_by("ltx_ids", frames=2, height=2, width=3, frame_rate=rate)
    shares = [(t * 8 / rate / 20, y * 32 / 2048, x * 32 / 2048) for t, y, x in patches(2, 2, 3)]
    close(got.coords[0], torch.tensor([[2 * c - 1 for c in one] for one in shares], dtype=torch.float64).numpy(), 1e-15)
    for wrong in ({"frame_rate": 0.0}, {"seconds": -1.0}, {"pixels": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected a"):
            posenc.positions_by("ltx_ids", frames=1, height=1, width=1, **wrong)


@pytest.mark.parametrize("page", ["images.md", "images.zh-CN.md"])
def test_the_row_of_sd3_adds_what_its_class_adds(page):
    """diffusers' PatchEmbed divides the numbers of its table of 192 by 192 / 64: the sinusoids of column, then of row."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith("| SD3,"))
    *_, call, numbering = row.split("`")[1::2]
    at = eval(numbering, {"posenc": posenc, "height": 64, "width": 64})
    encoding = eval(call.replace("d_model=1536", "d_model=16"), {"posenc": posenc})
    got = encoding.embed(torch.zeros(1, 64 * 64, 16, dtype=torch.float64), at)[0]
    for patch, (y, x) in {0: (64, 64), 1: (64, 65), 64 * 5 + 3: (69, 67), 4095: (127, 127)}.items():
        angles = [number * 64 / 192 / 10000 ** (i / 4) for number in (x, y) for i in range(4)]
        sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
        expected = [*sines[:4], *cosines[:4], *sines[4:], *cosines[4:]]
        assert got[patch].tolist() == pytest.approx(expected, abs=2**-19)  # half a step of float32 at 42
