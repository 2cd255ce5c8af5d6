"""What is added or biased under a name of its own: the papers' formulas by loops over the parameters, in fp64.

Each formula is also broken on purpose, which must be noticed. Classes have oracle files of their own.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import posenc
from cases import cases
from oracles.by_hand import close, draw
from posenc import Positions
from posenc.catalogue import lookup

D, HEADS = 16, 4


def numbers(tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def drawn(name: str, **sizes):
    return posenc.laws.draw_parameters(posenc.create(name, **sizes), seed=3).double()


def added(encoding, at: Positions) -> np.ndarray:
    """What is added to zeros, [t, d]."""
    return numbers(encoding.embed(torch.zeros(1, at.length, encoding.d_model, dtype=torch.float64), at)[0])


def biases(encoding, q: np.ndarray, k: np.ndarray, at: Positions) -> np.ndarray:
    """The term of every head and pair, [h, i, j]; q and k are [h, t, d]."""
    term = encoding.bias(torch.from_numpy(q)[None], torch.from_numpy(k)[None], at, at)
    b, h, i, j = torch.meshgrid(*map(torch.arange, (1, *q.shape[:2], k.shape[1])), indexing="ij")
    return numbers(term(b, h, i, j)[0])


# Added to the embedding -----------------------------------------------------------------------------------------------

CELLS = [(0, 0), (2, 5), (7, 1), (11, 13)]


def waves(p: float, width: int, base: float = 10000.0) -> list[tuple[float, float]]:
    return [(math.sin(p * base ** (-2 * i / width)), math.cos(p * base ** (-2 * i / width))) for i in range(width // 2)]


def sin_then_cos(p: float, width: int) -> list[float]:
    return [s for s, _ in waves(p, width)] + [c for _, c in waves(p, width)]


def in_pairs(p: float, width: int) -> list[float]:
    return [value for pair in waves(p, width) for value in pair]


def cells() -> Positions:
    return Positions.at(torch.tensor([CELLS]))


def test_sinusoidal_2d_puts_columns_first():
    got = added(posenc.create("sinusoidal_2d", d_model=D), cells())
    close(got, np.array([sin_then_cos(x, D // 2) + sin_then_cos(y, D // 2) for y, x in CELLS]))
    wrong = np.array([sin_then_cos(y, D // 2) + sin_then_cos(x, D // 2) for y, x in CELLS])
    assert np.abs(got - wrong).max() > 0.1
    first = Positions.at(torch.tensor([[[-1, -1], [-1, 3]]]))
    assert not added(posenc.create("sinusoidal_2d", d_model=D), first).any()
    with_class_token = added(posenc.create("sinusoidal_2d", d_model=D), Positions.grid(3, 4, prefix=2))
    assert not with_class_token[:2].any()
    close(with_class_token[2:], added(posenc.create("sinusoidal_2d", d_model=D), Positions.grid(3, 4)))


def test_sinusoidal_3d_is_cogvideox_2bs():
    """get_3d_sincos_pos_embed of diffusers: the frame in d/4, then column and row in 3d/8 each; text, first, gets zeros."""
    width, steps = 32, {"frame_step": 2.0, "patch_step": 1.875}
    encoding = posenc.create("sinusoidal_3d", d_model=width, **steps)
    places = [(f, y, x) for f in range(3) for y in range(2) for x in range(4)]

    def written(places):
        return np.array(
            [
                sin_then_cos(f / 2.0, width // 4)
                + sin_then_cos(x / 1.875, 3 * width // 8)
                + sin_then_cos(y / 1.875, 3 * width // 8)
                for f, y, x in places
            ]
        )

    got = added(encoding, Positions.grid(3, 2, 4))
    close(got, written(places))
    assert np.abs(got - written([(f, x, y) for f, y, x in places])).max() > 0.1
    with_text = added(encoding, Positions.grid(3, 2, 4, prefix=5))
    assert not with_text[:5].any()
    close(with_text[5:], got)
    with pytest.raises(ValueError, match="d_model: expected a multiple of 16, got 24"):
        posenc.create("sinusoidal_3d", d_model=24)


def test_detr_puts_rows_first_and_interleaves():
    at = posenc.positions_by("pixels", height=2, width=3)
    got = added(posenc.create("detr", d_model=D), at)
    counts = [(y / (2 + 1e-6) * 2 * math.pi, x / (3 + 1e-6) * 2 * math.pi) for y in range(1, 3) for x in range(1, 4)]
    close(got, np.array([in_pairs(y, D // 2) + in_pairs(x, D // 2) for y, x in counts]), atol=1e-11)
    wrong = np.array([in_pairs(y * 2 / 3, D // 2) + in_pairs(x, D // 2) for y, x in counts])
    assert np.abs(got - wrong).max() > 0.01


def test_vit_has_a_row_for_each_patch_after_that_of_the_class_token():
    encoding = drawn("vit", d_model=D)
    table = numbers(encoding.table)
    assert table.shape == (1 + 14 * 14, D)
    got = added(encoding, Positions.grid(14, 14, prefix=1))
    close(got, table)
    assert np.abs(got[1:] - table[:-1]).max() > 0.1


def test_learned_2d_sums_a_row_and_a_column():
    encoding = drawn("learned_2d", d_model=D, max_positions=20)
    rows, columns = (numbers(table) for table in encoding.axis_tables)
    got = added(encoding, cells())
    close(got, np.array([rows[y] + columns[x] for y, x in CELLS]))
    assert np.abs(got - np.array([rows[x] + columns[y] for y, x in CELLS])).max() > 0.1


@pytest.mark.parametrize(("places", "shape"), [(2048, (32, 64)), (1000, (25, 40)), (97, (1, 97))])
def test_reformer_reads_two_digits_of_the_position(places, shape):
    encoding = drawn("reformer", d_model=D, max_positions=places)
    rows, columns = (numbers(table) for table in encoding.axis_tables)
    assert (len(rows), len(columns)) == shape
    assert rows.shape[1] == columns.shape[1] == D // 2
    at = [0, 1, shape[1] - 1, places - 1]
    got = added(encoding, Positions.at(torch.tensor([at])))
    close(got, np.array([[*rows[p // shape[1]], *columns[p % shape[1]]] for p in at]))
    if shape[0] > 1:
        wrong = np.array([[*rows[p % shape[0]], *columns[p // shape[0]]] for p in at])
        assert np.abs(got - wrong).max() > 0.1


def test_random_fourier_reads_x_before_y():
    encoding = drawn("random_fourier", d_model=D)
    matrix = numbers(encoding.matrix)  # [2, d/2]
    at = posenc.positions_by("patch_centres", height=2, width=4, low=0.0, high=1.0)
    got = added(encoding, at)
    rows = []
    for y in (0.25, 0.75):
        for x in (0.125, 0.375, 0.625, 0.875):
            z = [2 * math.pi * ((2 * x - 1) * matrix[0, n] + (2 * y - 1) * matrix[1, n]) for n in range(D // 2)]
            rows.append([math.sin(a) for a in z] + [math.cos(a) for a in z])
    close(got, np.array(rows))
    swapped = drawn("random_fourier", d_model=D)
    with torch.no_grad():
        swapped.matrix.copy_(encoding.matrix.flip(0))
    assert np.abs(added(swapped, at) - np.array(rows)).max() > 0.1


def test_scaled_sinusoidal_is_weighted_by_one_number():
    encoding = drawn("scaled_sinusoidal", d_model=D)
    (alpha,) = (numbers(parameter).item() for parameter in encoding.parameters())
    got = added(encoding, Positions.at(torch.tensor([[0, 3, 400]])))
    close(got, alpha * np.array([in_pairs(p, D) for p in (0, 3, 400)]))
    assert [p.item() for p in posenc.create("scaled_sinusoidal", d_model=D).parameters()] == [1.0]
    assert np.abs(got - np.array([in_pairs(p, D) for p in (0, 3, 400)])).max() > 0.1


# Biases of windows ----------------------------------------------------------------------------------------------------

HEIGHT, WIDTH = 3, 4
PATCHES = [(y, x) for y in range(HEIGHT) for x in range(WIDTH)]


def qk(d: int = D) -> tuple[np.ndarray, np.ndarray]:
    return draw(1, HEADS, len(PATCHES), d), draw(2, HEADS, len(PATCHES), d)


def by_hand(term) -> np.ndarray:
    n = len(PATCHES)
    return np.array([[[term(h, PATCHES[i], PATCHES[j]) for j in range(n)] for i in range(n)] for h in range(HEADS)])


@pytest.mark.parametrize("name", ["swin", "beit", "levit"])
def test_windows_have_a_number_for_every_difference(name):
    encoding = drawn(name, n_heads=HEADS, height=HEIGHT, width=WIDTH)
    table = numbers(encoding.table)
    got = biases(encoding, *qk(), Positions.grid(HEIGHT, WIDTH))

    def signed(h, query, key):
        return table[(query[0] - key[0] + HEIGHT - 1) * (2 * WIDTH - 1) + query[1] - key[1] + WIDTH - 1, h]

    def absolute(h, query, key):
        return table[abs(query[0] - key[0]) * WIDTH + abs(query[1] - key[1]), h]

    right = absolute if name == "levit" else signed
    close(got, by_hand(right))
    assert np.abs(got - by_hand(lambda h, query, key: right(h, key, (query[0], key[1])))).max() > 0.1
    rows = {"swin": 35, "beit": 38, "levit": 12}
    assert len(table) == rows[name]


def test_beit_gives_the_class_token_numbers_of_its_own():
    encoding = drawn("beit", n_heads=HEADS, height=HEIGHT, width=WIDTH)
    table = numbers(encoding.table)
    q, k = draw(1, HEADS, 13, D), draw(2, HEADS, 13, D)
    got = biases(encoding, q, k, Positions.grid(HEIGHT, WIDTH, prefix=1))
    for h in range(HEADS):
        close(got[h, 0, 1:], np.full(12, table[35, h]))  # class to patch
        close(got[h, 1:, 0], np.full(12, table[36, h]))
        assert got[h, 0, 0] == table[37, h]


@pytest.mark.parametrize(
    ("name", "window"),
    [("swin", (7, 7)), ("beit", (14, 14)), ("levit", (14, 14)), ("swin_v2", (8, 8)), ("decomposed", (14, 14))],
)
def test_windows_are_those_of_the_papers(name, window):
    assert posenc.create(name, d_model=D, n_heads=HEADS).configuration["window"] == window


def test_swin_v2_computes_the_bias_from_logarithms():
    encoding = drawn("swin_v2", n_heads=HEADS, height=HEIGHT, width=WIDTH)
    inner, offset, outer = (numbers(p) for p in (encoding.inner, encoding.inner_offset, encoding.outer))

    def seen(difference: int, size: int) -> float:
        share = 8 * difference / (size - 1)
        return math.copysign(math.log2(1 + abs(share)) / math.log2(8), share) if share else 0.0

    def term(h, query, key, sixteen=16.0):
        x = np.array([seen(query[0] - key[0], HEIGHT), seen(query[1] - key[1], WIDTH)])
        return sixteen / (1 + math.exp(-(outer[h] @ np.maximum(inner @ x + offset, 0))))

    got = biases(encoding, *qk(), Positions.grid(HEIGHT, WIDTH))
    close(got, by_hand(term), atol=1e-11)
    assert np.abs(got - by_hand(lambda *at: term(*at, sixteen=15.0))).max() > 0.1
    q = draw(5, HEADS, 1, D)
    turned = numbers(encoding.rotate(torch.from_numpy(q)[None], Positions.grid(1, 1), "query")[0])
    scale = np.exp(np.minimum(numbers(encoding.log_scale), math.log(100)))
    close(turned, q / np.linalg.norm(q, axis=-1, keepdims=True) * scale[:, None, None], atol=1e-11)
    assert encoding.softmax_scale(D) == 1.0


def test_decomposed_multiplies_the_query_with_two_vectors():
    encoding = drawn("decomposed", d_head=D, height=HEIGHT, width=WIDTH)
    rows, columns = numbers(encoding.rows), numbers(encoding.columns)
    q, k = qk()
    got = biases(encoding, q, k, Positions.grid(HEIGHT, WIDTH))

    def term(h, query, key, sign=1):
        i = PATCHES.index(query)
        return q[h, i] @ (rows[sign * (query[0] - key[0]) + HEIGHT - 1] + columns[sign * (query[1] - key[1]) + WIDTH - 1])

    close(got, by_hand(term), atol=1e-11)
    assert np.abs(got - by_hand(lambda *at: term(*at, sign=-1))).max() > 0.1


# Of distances ---------------------------------------------------------------------------------------------------------


def test_distance_table_clips_on_both_sides():
    encoding = drawn("distance_table", n_heads=HEADS)
    table = numbers(encoding.table)
    assert len(table) == 2 * 128 + 1
    places = [0, 1, 5, 300]
    at = Positions.at(torch.tensor([places]))
    got = biases(encoding, draw(1, HEADS, 4, D), draw(2, HEADS, 4, D), at)
    for sign in (1, -1):
        expected = np.array(
            [[[table[min(max(sign * (j - i), -128), 128) + 128, h] for j in places] for i in places] for h in range(HEADS)]
        )
        if sign == 1:
            close(got, expected)
        else:
            assert np.abs(got - expected).max() > 0.1


def test_falcon_alibi_rounds_to_bfloat16():
    encoding = posenc.create("falcon_alibi", n_heads=HEADS)
    places = [0, 3, 255, 259]
    got = biases(encoding, draw(1, HEADS, 4, D), draw(2, HEADS, 4, D), Positions.at(torch.tensor([places])))
    slopes = [2.0 ** (-2 * (h + 1)) for h in range(HEADS)]
    rounded = {0: 0, 3: 3, 255: 255, 259: 260}  # bfloat16 has 8 bits
    close(got, np.array([[[m * rounded[j] / math.sqrt(D) for j in places] for _ in places] for m in slopes]))
    assert got[0, 0, 3] != slopes[0] * 259 / math.sqrt(D)


def test_inkling_mixes_curves_of_the_distance():
    encoding = drawn("inkling", n_heads=HEADS, d_model=HEADS * D, extent=3)
    assert posenc.create("inkling", n_heads=HEADS, d_model=8).configuration["profiles"] == 16
    assert posenc.create("inkling", n_heads=HEADS, d_model=8).configuration["extent"] == 1024
    x, at = draw(6, 5, HEADS * D), Positions.arange(1, 5)
    project, bank = numbers(encoding.project), numbers(encoding.bank)
    got = biases(encoding, draw(1, HEADS, 5, D), draw(2, HEADS, 5, D), encoding.read_hidden(torch.from_numpy(x)[None], at))
    for sign in (1, -1):
        expected = np.zeros((HEADS, 5, 5))
        for h, i, j in np.ndindex(HEADS, 5, 5):
            if 0 <= sign * (i - j) < 3:
                expected[h, i, j] = (project[h] @ x[i]) @ bank[:, sign * (i - j)]
        if sign == 1:
            close(got, expected, atol=1e-10)
        else:
            assert np.abs(got - expected).max() > 0.1


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("deberta", {"d_model": 64, "n_heads": 4}, {"max_distance": 512, "n_buckets": None, "terms": ("c2p", "p2c")}),
        ("deberta_v2", {"d_model": 64, "n_heads": 4}, {"max_distance": 512, "n_buckets": 256, "norm_eps": 1e-7}),
        ("xlnet", {"d_model": 64, "n_heads": 4}, {"base": 10000.0, "segments": False, "d_head": 16}),
        ("t5_axes", {"n_heads": 4}, {"n_buckets": (32, 64, 64), "max_distance": (128, 256, 256), "bias_over_sqrt": False}),
        ("wavlm", {"d_model": 64, "n_heads": 4}, {"n_buckets": 320, "max_distance": 800, "reads": "hidden", "d_head": 16}),
        ("convolutional", {"d_model": 64}, {"kernel_size": 128, "groups": 16, "layers": 1, "weight_norm": True}),
        ("conditional", {"d_model": 64}, {"kernel_size": 3}),
    ],
)
def test_defaults_are_the_papers(name, sizes, expected):
    configuration = posenc.create(name, **sizes).configuration
    assert {key: configuration[key] for key in expected} == expected


# Every name has an oracle ---------------------------------------------------------------------------------------------

HERE = Path(__file__).parent
ORACLES = {
    file.name: file.read_text() for file in HERE.glob("test_*.py") if file.stem not in ("test_catalogue", "test_one_layer")
}


@cases("entry", lookup.ENTRIES)
def test_every_name_has_an_oracle(entry):
    """A file of this folder that names it or, where it is a class, imports the class."""
    imported = re.compile(rf"^from posenc\S* import .*\b{entry.class_name}\b", re.MULTILINE)
    found = [
        name for name, text in ORACLES.items() if f'"{entry.name}"' in text or (not entry.builder and imported.search(text))
    ]
    assert found, f"{entry.name}: no oracle"
