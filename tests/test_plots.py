"""The pictures: what they hold, what colour it has, and that it stays inside the page."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from posenc.catalogue.lookup import BY_NAME, FOUNDATION
from posenc.encodings.alibi import ALiBi
from posenc.encodings.floater import FLOATER
from posenc.encodings.learned import Learned
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.shaw import Shaw
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.encodings.t5 import T5
from posenc.encodings.transformer_xl import TransformerXL
from posenc.encodings.xpos import XPos
from posenc.pictures import plots
from posenc.pictures.plots import order, scores, tables
from posenc.pictures.plots.braille import Canvas
from posenc.pictures.plots.effect import effect
from posenc.pictures.plots.picture import number, rounded
from posenc.pictures.plots.style import CYCLIC, DIVERGING, mix
from posenc.pictures.plots.terminal import draw
from posenc.pictures.plots.views import VIEWS, Request, methods_of, picture_of, views_of
from sampling import a_third, one_in

EVERY = [(method, view) for method in FOUNDATION for view in views_of(method)]


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])


def linear(colour: str) -> np.ndarray:
    srgb = rgb(colour)
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def sinusoid(length: int, d: int) -> np.ndarray:
    return np.array(
        [[wave(p * 10000 ** (-2 * i / d)) for i in range(d // 2) for wave in (math.sin, math.cos)] for p in range(length)]
    )


# Colours


def test_minus_one_is_blue_zero_is_white_and_one_is_red():
    blue, white, red = (rgb(mix(DIVERGING, at)) for at in (0.0, 0.5, 1.0))
    assert blue[2] > blue[0] + 0.3
    assert red[0] > red[2] + 0.3
    assert white.min() > 0.95
    assert mix(DIVERGING, -7) == mix(DIVERGING, 0)  # beyond the end is the end
    assert mix(DIVERGING, 7) == mix(DIVERGING, 1)


def test_size_is_darkness_on_both_sides_alike():
    luminance = np.array([0.2126, 0.7152, 0.0722])
    left = [linear(mix(DIVERGING, 0.5 - at)) @ luminance for at in np.linspace(0, 0.5, 11)]
    right = [linear(mix(DIVERGING, 0.5 + at)) @ luminance for at in np.linspace(0, 0.5, 11)]
    for side in (left, right):
        assert all(a > b for a, b in itertools.pairwise(side))
    assert np.abs(np.array(left) - right).max() < 0.12


@pytest.mark.parametrize(
    "seen",
    [  # Machado, Oliveira and Fernandes 2009, severity 1
        pytest.param(
            [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
            id="protanopia",
        ),
        pytest.param(
            [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
            id="deuteranopia",
        ),
        pytest.param(
            [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
            id="tritanopia",
        ),
    ],
)
def test_the_sign_can_be_told_by_the_colour_blind(seen):
    for at in (0.2, 0.35, 0.5):
        left, right = (np.clip(np.array(seen) @ linear(mix(DIVERGING, 0.5 + sign * at)), 0, 1) for sign in (-1, 1))
        assert np.linalg.norm(np.sqrt(left) - np.sqrt(right)) > 0.25


def test_the_ring_of_angles_closes_and_keeps_the_meaning_of_red_and_blue():
    assert mix(CYCLIC, 0) == mix(CYCLIC, 1)
    quarter, half, three = (rgb(mix(CYCLIC, at)) for at in (0.25, 0.5, 0.75))
    assert quarter[0] > quarter[2] + 0.2  # the sine is positive
    assert three[2] > three[0] + 0.2  # the sine is negative
    assert half.max() < 0.35


# What the pictures hold


@pytest.mark.parametrize(("length", "width"), [(30, 20), (50, 128), (100, 512)])
def test_the_heat_map_is_the_table_on_a_scale_from_minus_one_to_one(length, width):
    figure = plots.heatmap(Sinusoidal(width), length=length, width=width)
    (image,) = figure.axes[0].images
    assert np.abs(np.asarray(image.get_array()) - sinusoid(length, width)).max() < 1e-12
    assert image.get_clim() == (-1, 1)
    assert image.origin == "upper"  # position 0 on top
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("channel", "position")


def test_a_cell_of_the_drawn_heat_map_has_the_colour_of_its_value():
    figure = plots.heatmap(Sinusoidal(8), length=6, width=8)
    (image,) = figure.axes[0].images
    drawn = image.to_rgba(image.get_array())
    red = drawn[0, 1]  # cos 0 = 1
    assert tuple(np.round(red[:3] * 255)) == tuple(np.round(rgb(DIVERGING[-1]) * 255))
    blue = drawn[3, 1]  # cos 3 = -.99
    assert blue[2] > blue[0] + 0.3


def test_the_heat_map_of_a_rotation_is_cosine_and_sine_of_its_angle():
    for layout in ("interleaved", "half"):
        table = tables.table_of(RoPE(8, layout=layout), 5, 8).numpy()
        sin, cos = sinusoid(5, 8)[:, 0::2], sinusoid(5, 8)[:, 1::2]
        expected = np.stack([cos, sin], -1).reshape(5, 8) if layout == "interleaved" else np.concatenate([cos, sin], 1)
        assert np.abs(table - expected).max() < 1e-12


def test_learned_tables_are_shown_as_they_are():
    encoding = Learned(6, 9)
    picture = tables.heatmap(encoding, length=9, width=6)
    assert torch.equal(picture.panels[0].values, encoding.table.detach().double())
    assert picture.limit == float(encoding.table.detach().abs().max())


def test_column_64_of_128_is_pair_32():
    picture = tables.waves(Sinusoidal(128))
    assert [line.name for line in picture.lines] == [
        "channel 0: pair 0, ω = 1",
        "channel 32: pair 16, ω = 0.1",
        "channel 64: pair 32, ω = 0.01",
    ]
    assert "Channel 64 is pair 32, not frequency number 64: ω = 0.01, one turn in 628 positions." in picture.idea
    for line, omega in zip(picture.lines, (1, 0.1, 0.01), strict=True):
        assert np.abs(line.y.numpy() - np.sin(np.arange(512) * omega)).max() < 1e-11
    with pytest.raises(ValueError, match="columns: expected channels 0 … 127"):
        tables.waves(Sinusoidal(128), columns=(128,))


def test_the_hands_of_the_clocks():
    picture = tables.clock(Sinusoidal(128))
    assert picture.positions[0] == 0
    assert picture.positions[-1] == 100
    assert (picture.pairs[0], picture.pairs[-1]) == (0, 63)
    for row, position in enumerate(picture.positions):
        for column, pair in enumerate(picture.pairs):
            assert float(picture.angles[row, column]) == pytest.approx(position * 10000 ** (-2 * pair / 128))
    axes = plots.clock(Sinusoidal(128)).axes[0]
    hands = [line for line in axes.lines if line.get_linewidth() == 1.9]
    one = hands[len(picture.pairs)]  # position 1, pair 0: one radian clockwise from twelve, at (0, 1)
    assert one.get_xdata()[1] == pytest.approx(0.33 * math.sin(1))
    assert one.get_ydata()[1] == pytest.approx(1 - 0.33 * math.cos(1))  # the axis points down


def test_the_ladder_of_wavelengths():
    picture = tables.wavelength_ladder(RoPE(128), length=4096)
    within, beyond = picture.lines
    assert (len(within.x), len(beyond.x)) == (46, 18)
    assert float(within.y[0]) == pytest.approx(2 * math.pi)
    assert float(beyond.y[-1]) == pytest.approx(2 * math.pi * 10000 ** (126 / 128))
    assert len(tables.wavelength_ladder(RoPE(128), length=10**6).lines) == 1
    with pytest.raises(ValueError, match="encoding: Learned has no frequencies"):
        tables.wavelength_ladder(Learned(4, 4))


def test_the_shift_matrix_as_a_picture():
    values = tables.shift(lag=3, d_model=4).panels[0].values
    block = [[math.cos(3), math.sin(3)], [-math.sin(3), math.cos(3)]]
    assert np.abs(values[:2, :2].numpy() - block).max() < 1e-15
    assert not values[:2, 2:].any()


def test_angles_go_round():
    picture = tables.angles(RoPE(8), length=20)
    for p in range(20):
        for i in range(4):
            assert float(picture.panels[0].values[p, i]) == pytest.approx(p * 10**-i % (2 * math.pi), abs=1e-12)
    assert picture.cyclic


def test_the_path_lies_in_the_plane_that_shows_most():
    table = Learned(5, 40)
    picture = tables.path(table, length=40, width=5)
    rows = table.table.detach().double().numpy()
    centred = rows - rows.mean(axis=0)
    largest = np.sort(np.linalg.eigvalsh(centred.T @ centred))[::-1]
    spread = (picture.points.numpy() ** 2).sum(axis=0)
    assert np.abs(spread - largest[:2]).max() < 1e-10
    assert picture.share == pytest.approx(largest[:2].sum() / largest.sum())


def test_the_closest_rows_are_marked():
    picture = tables.distance(d_model=2)
    assert picture.marks[0].x == 710
    assert picture.marks[0].text == "6.03e−5 at lag 710"
    assert float(picture.lines[0].y.min()) == picture.marks[0].y


def test_decay_with_its_bound():
    picture = scores.decay(RoPE(128), width=128)
    bound, ones, independent = picture.lines
    assert float(bound.y[0]) == float(ones.y[0]) == 1
    assert [mark.text for mark in picture.marks] == ["bound: first rise 18 → 19", "ones: first rise 11 → 12"]
    assert float(independent.y.abs().max()) < 0.03
    lag = 30
    expected = sum(math.cos(lag * 10000 ** (-2 * i / 128)) for i in range(64)) / 64
    assert float(ones.y[lag]) == pytest.approx(expected)


def test_decay_of_the_others():
    alibi = scores.decay(ALiBi(2, slopes=(0.5, 0.25)), length=10)
    assert [float(line.y[9]) for line in alibi.lines] == [-4.5, -2.25]
    both_sides = scores.sinusoidal_decay(length=20, d_model=16)
    assert torch.equal(both_sides.lines[0].y, both_sides.lines[0].y.flip(0))
    assert float(both_sides.lines[0].y[19]) == 1  # lag 0 in the middle
    floater = scores.decay(FLOATER(8), length=20, width=8)
    assert len(floater.lines[0].y) == 20
    assert float(floater.lines[0].y[0]) == 1
    xpos = scores.decay(XPos(16), length=20, width=16)
    assert float(xpos.lines[0].y[19]) < float(scores.decay(RoPE(16), length=20, width=16).lines[1].y[19])


def test_bias_maps_head_by_head():
    picture = scores.bias(ALiBi(4), n_heads=4, d_head=8, length=40)
    assert [panel.title for panel in picture.panels] == [
        "head 0, slope 0.25",
        "head 1, slope 0.0625",
        "head 2, slope 0.0156",
        "head 3, slope 0.00391",
    ]
    assert float(picture.panels[0].values[3, 7]) == -1
    assert picture.limit == 5  # not 9.75: there a weight is nothing anyway
    t5 = T5(2)
    with torch.no_grad():
        t5.table.copy_(torch.arange(64).view(32, 2) / 10)
    causal = scores.bias(t5, n_heads=2, d_head=8, length=6, causal=True)
    assert float(causal.panels[1].values[5, 1]) == pytest.approx(0.9)  # distance 4, head 1
    assert causal.panels[1].values[1, 5].isnan()
    figure = plots.bias(t5, n_heads=2, d_head=8, length=6, causal=True)
    assert math.isnan(figure.axes[0].images[0].get_array().filled(np.nan)[1, 5])
    shaw = scores.bias(Shaw(8, max_distance=2), n_heads=1, d_head=8, length=9)
    values = shaw.panels[0].values
    assert torch.allclose(values[0, 2:], values[0, 2:3].expand(7))  # clipped from distance 2 on


def test_the_terms_of_transformer_xl_have_the_shapes_they_should():
    encoding = TransformerXL(16, 2)
    four = [panel.values for panel in scores.terms(encoding, length=7).panels]
    assert torch.allclose(four[2], four[2][:1].expand(7, 7))  # u·k: one row for all queries
    for offset in range(-6, 7):
        diagonal = four[3].diagonal(offset)
        assert torch.allclose(diagonal, diagonal[:1].expand(len(diagonal)))  # v·W R: the distance alone
    assert not torch.allclose(four[1], four[1][:1].expand(7, 7))
    random = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 2, 7, 8, generator=random, dtype=torch.float64)[0, 0] for _ in range(2))
    assert torch.allclose(four[0], q @ k.T / math.sqrt(8))  # head 0


def test_order_bars():
    picture = order.order({"nope": NoPE(), "rope": RoPE(8), "t5": T5(4)})
    by_label = {group.label: group.values for group in picture.groups}
    assert by_label["bidirectional, 1 layer"][0] < 1e-14
    assert by_label["bidirectional, 1 layer"][1] > 0.1
    assert by_label["bidirectional, 2 layers"][2] is None  # T5's buckets here are causal
    assert min(by_label["causal, 1 layer"]) > 0.1
    text = draw(picture, 100, False).plain
    assert text.count("for causal attention only") == 2
    words = [child.get_text() for child in plots.order_sensitivity({"t5": T5(4)}).axes[0].texts]
    assert words.count("for causal attention only") == 1


def test_taylor_bars_and_their_remainder():
    picture = order.taylor()
    sizes = dict(zip(picture.names, picture.groups[0].values, strict=True))
    assert abs(sizes["mixed, m with n"]) < abs(sizes["gradient at n"])
    assert f"{abs(sizes['mixed, m with n']) / sum(map(abs, list(sizes.values())[:-1])):.2%}" in picture.idea[1]
    assert 0 < picture.floor < min(map(abs, sizes.values()))
    with_half, without = order.remainder().lines
    slope = [float((line.y[4] / line.y[0]).log10() / (line.x[4] / line.x[0]).log10()) for line in (with_half, without)]
    assert slope == pytest.approx([3, 2], abs=0.1)


# Drawn


@pytest.mark.parametrize(("method", "view"), one_in(3, EVERY))
def test_every_picture_of_every_encoding_is_drawn(method, view):
    """In the terminal within its width, with and without colour, and as numbers that JSON can hold."""
    picture, _ = picture_of(method, view, Request())
    for width in (40, 80, 133):
        for colour in (True, False):
            text = draw(picture, width, colour)
            assert max(line.cell_len for line in text.split()) <= width
            assert len(text.split()) < 75
            assert picture.idea[0].split()[0] in text.plain
    json.loads(json.dumps(picture.data(), allow_nan=False))
    assert all(picture.idea)


@pytest.mark.parametrize("view", ["clock", "angles", "wavelengths"])
def test_frequencies_of_every_encoding_of_the_catalogue_are_drawn(view):
    for method in methods_of(view):
        picture, _ = picture_of(method, view, Request())
        json.dumps(picture.data(), allow_nan=False)


def test_pairs_that_never_turn_have_no_clock():
    picture, _ = picture_of("proportional", "clock", Request())
    assert all(map(math.isfinite, picture.wavelengths))
    assert picture.pairs[-1] == 47  # of 64 pairs, the first three quarters turn
    assert "64 pairs" in picture.idea[1]
    assert "16 of them never turn" in picture.idea[1]


FILES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize(("view", "suffix"), one_in(7, itertools.product(VIEWS, FILES)))
def test_every_kind_of_picture_becomes_a_file(view, suffix, tmp_path):
    picture, _ = picture_of(methods_of(view)[-1], view, Request())
    plots.save(picture, tmp_path / f"x{suffix}")
    assert (tmp_path / f"x{suffix}").read_bytes().startswith(FILES[suffix])
    assert isinstance(plots.figure(picture), Figure)


def test_the_same_picture_makes_the_same_file(tmp_path):
    for name in ("a", "b"):
        for suffix in (".png", ".svg", ".pdf"):
            plots.save(tables.shift(), tmp_path / f"{name}{suffix}")
    for suffix in (".png", ".svg", ".pdf"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("view", a_third(VIEWS))
def test_every_word_lies_on_the_page_and_none_on_the_picture(view):
    figure = plots.figure(picture_of(methods_of(view)[-1], view, Request())[0])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, page = canvas.get_renderer(), figure.bbox
    shown = [axes for axes in figure.axes if axes.get_visible()]
    words = [
        *figure.texts,
        *(text for axes in shown for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)),
    ]
    for text in words:
        box = text.get_window_extent(renderer)
        if text.get_text():
            assert page.x0 <= box.x0, text.get_text()
            assert box.x1 <= page.x1, text.get_text()
            assert page.y0 <= box.y0, text.get_text()
            assert box.y1 <= page.y1, text.get_text()
    lowest = min(text.get_window_extent(renderer).y0 for text in figure.texts)
    assert lowest > max(axes.get_tightbbox(renderer).y1 for axes in shown)


@pytest.mark.acceptance
def test_drawing_leaves_no_trace():
    code = "import posenc, sys; posenc.plots.shift(); print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_the_terminal_needs_no_matplotlib():
    code = """
import sys
sys.modules["matplotlib"] = None
from posenc.pictures.plots.views import picture_of, Request
from posenc.pictures.plots.terminal import draw
from posenc import plots
picture, _ = picture_of("rope", "heatmap", Request())
print(len(draw(picture, 80, True).plain) > 500)
try:
    plots.figure(picture)
except ModuleNotFoundError as error:
    print(error)
"""
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.splitlines()
    assert lines == [
        "True",
        "a picture in a file needs matplotlib: pip install '.[plots]' in the folder of posenc's sources",
    ]


# In the terminal


def test_cells_of_the_terminal_have_the_colours_of_their_values():
    picture = tables.heatmap(Sinusoidal(8), length=4, width=8)
    lines = draw(picture, 80, True).split()
    first = next(line for line in lines if "▀" in line.plain)
    start = first.plain.index("▀")
    cells = [span.style for span in first.spans if span.start >= start]
    over, _, under = str(cells[3]).removeprefix("not dim ").partition(" on ")  # scale 3: cells 3-5 are channel 1
    assert over == mix(DIVERGING, 1.0)  # cos 0, in row 0
    assert under == mix(DIVERGING, 1.0)  # still row 0: a cell is three half lines high
    assert str(cells[0]).startswith(f"not dim {mix(DIVERGING, 0.5)}")  # sin 0


def test_letters_of_the_terminal_show_sign_and_size():
    picture = tables.heatmap(Sinusoidal(4), length=4, width=4)
    rows = [line.plain for line in draw(picture, 80, False).split()]
    drawn = [row[2:6] for row in rows[3:7]]
    # sin p, cos p, sin p/100, cos p/100 for p = 0 … 3, in quarters of the scale
    assert drawn == ["·#·#", "#+·#", "#-·#", "·=·#"]


def test_wide_tables_are_thinned_in_pairs_and_say_so():
    picture = tables.heatmap(Sinusoidal(512), length=100, width=512)
    text = draw(picture, 80, False).plain
    assert "shown: 24 of 100 rows, 76 of 512 columns; --out FILE.png shows all" in text
    top = text.splitlines()[3][3:]
    assert top == "·#" * 38  # sines and cosines of 0: no column is left without its partner


def test_braille_dots_stand_where_they_should():
    canvas = Canvas(2, 1, (0, 3, 0, 3))
    canvas.path([0, 3], [0, 3], "#ffffff")  # the rising diagonal of a 4 × 4 grid of dots
    assert canvas.lines()[0].plain == "⡠⠊"
    canvas = Canvas(2, 1, (0, 3, 0, 3))
    canvas.points([0, 3, 9, 0, -9, 0], [3, 0, 0, 9, 0, -9], "#ffffff")  # what lies outside is left out
    assert canvas.lines()[0].plain == "⠁⢀"
    canvas.letter(3, 0, "●")
    assert canvas.lines()[0].plain == "⠁●"


def test_numbers_are_short_and_have_a_true_minus():
    assert [number(value) for value in (0.0, -0.0, 0.5, -0.2127, 6.03e-5, 54410.2, -1234.0, 1e-12)] == [
        "0",
        "0",
        "0.5",
        "−0.213",
        "6.03e−5",
        "54\u2009410",
        "−1\u2009234",
        "1e−12",
    ]
    assert [rounded(value) for value in (0.564, -0.0023, 6.66e-16, 3.0)] == ["0.56", "−2.3e−3", "6.7e−16", "3"]


@pytest.mark.parametrize("name", ["fox", "path", "wall"])
def test_a_picture_that_would_be_one_colour_has_a_scale_that_follows_its_values(name):
    """No fifth of the scale holds more than half of what is seen, and the key names where each ends."""
    picture = effect(BY_NAME[name])
    values = torch.stack([panel.values for panel in picture.panels])
    seen = values[~values.isnan()]
    assert float((seen.abs() > 0.96 * 5).double().mean()) > 0.3  # on the scale of all other pictures
    place = picture.on_the_scale(seen)
    fifths = torch.histc(place.abs(), 5, 0, 1) / len(seen)
    assert fifths.max() < 0.6
    assert picture.steps[-1] == picture.limit == float(seen.abs().max())
    order = seen.argsort()
    assert (place[order].diff() > -1e-9).all()  # the scale keeps the order
    ends = picture.on_the_scale(torch.tensor(picture.ticks, dtype=torch.float64))
    torch.testing.assert_close(ends, torch.linspace(-1, 1, len(picture.ticks), dtype=torch.float64))


def test_a_table_of_stripes_is_shown_without_its_mean():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        floater = FLOATER(16, n_layers=1)
    picture = tables.heatmap(floater, length=12, width=16)
    assert "minus its mean over positions" in picture.title
    torch.testing.assert_close(picture.panels[0].values.mean(0), torch.zeros(16, dtype=torch.float64), atol=1e-9, rtol=0)
    assert "minus" not in tables.heatmap(Sinusoidal(16), length=12, width=16).title
