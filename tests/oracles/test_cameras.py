"""PRoPE and GTA by explicit matrices for every pair. Li et al. 2025, Miyato et al. 2023, and their code.

The second oracle is a property: another choice of the world's axes leaves every output as it was.
"""

import math

import numpy as np
import pytest
import torch

import posenc
from posenc import Positions, attend
from posenc.encodings.gta import GTA
from posenc.encodings.prope import PRoPE

from .by_hand import close, draw, each

H, G, D, HEIGHT, WIDTH, CAMERAS = 2, 1, 16, 2, 3, 3
T = CAMERAS * HEIGHT * WIDTH


def pose(seed: int) -> np.ndarray:
    """World to camera: a rotation by QR, and a translation."""
    turn, _ = np.linalg.qr(draw(seed, 3, 3))
    turn = turn * np.sign(np.linalg.det(turn))
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = turn, draw(seed + 100, 3)
    return found


def lens(seed: int) -> np.ndarray:
    fx, fy, cx, cy = 300 + 50 * draw(seed, 4)
    return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])


POSES = np.stack([[pose(10 * b + c) for c in range(CAMERAS)] for b in range(2)])
LENSES = np.stack([[lens(10 * b + c) for c in range(CAMERAS)] for b in range(2)])
PIXELS = {"image_height": 480.0, "image_width": 640.0}


def numbered(lenses=True, poses=POSES, **options) -> Positions:
    given = {"intrinsics": torch.from_numpy(LENSES), **PIXELS} if lenses else {}
    return posenc.positions_by("cameras", poses=torch.from_numpy(poses), height=HEIGHT, width=WIDTH, **given, **options)


def matrix(b: int, c: int, lenses: bool) -> np.ndarray:
    """P of a camera: K in units of the image, its centre at 0, times T."""
    if not lenses:
        return POSES[b, c]
    k = LENSES[b, c]
    lifted = np.eye(4)
    lifted[0, 0], lifted[1, 1] = k[0, 0] / 640, k[1, 1] / 480
    lifted[0, 2], lifted[1, 2] = k[0, 2] / 640 - 0.5, k[1, 2] / 480 - 0.5
    return lifted @ POSES[b, c]


def tokens() -> list[tuple[int, int, int]]:
    return [(c, y, x) for c in range(CAMERAS) for y in range(HEIGHT) for x in range(WIDTH)]


def turning(angles: list[float], layout: str) -> np.ndarray:
    width, found = 2 * len(angles), np.zeros((2 * len(angles), 2 * len(angles)))
    for n, angle in enumerate(angles):
        i, j = (2 * n, 2 * n + 1) if layout == "interleaved" else (n, n + width // 2)
        found[i, i] = found[j, j] = math.cos(angle)
        found[i, j], found[j, i] = -math.sin(angle), math.sin(angle)
    return found


def block(*parts: np.ndarray) -> np.ndarray:
    size = sum(len(part) for part in parts)
    found, at = np.zeros((size, size)), 0
    for part in parts:
        found[at : at + len(part), at : at + len(part)] = part
        at += len(part)
    return found


def prope(b: int, token: tuple[int, int, int], lenses: bool, base=100.0) -> np.ndarray:
    """D of Li et al. 2025: products are (Dᵀq)·(D⁻¹k), outputs D Σ D⁻¹v."""
    c, y, x = token
    column, row = ([place * base ** (-n / (D // 8)) for n in range(D // 8)] for place in (x, y))
    return block(*[matrix(b, c, lenses)] * (D // 8), turning(column, "half"), turning(row, "half"))


def gta(b: int, token: tuple[int, int, int], scale: float, swapped=False) -> np.ndarray:
    """ρ⁻¹ of Miyato et al. 2023, with the code's frequencies and axes: make_2dcoord's first axis is the row."""
    c, y, x = token
    camera = POSES[b, c].copy()
    camera[:3, 3] *= scale
    places = (x / WIDTH, y / HEIGHT) if swapped else (y / HEIGHT, x / WIDTH)
    angles = [-2 * math.pi * 2.0 ** (n - D // 8) * place for n in range(1, D // 8 + 1) for place in places]
    return block(*[camera] * (D // 8), turning(angles, "interleaved"))


def expected(q, k, v, found) -> np.ndarray:
    """softmax(q·(D_i D_j⁻¹)k/√d) and Σ (D_i D_j⁻¹)v, the whole matrix of every pair."""
    out = np.zeros_like(q)
    for b, h, i in each(*q.shape[:3]):
        relative = [found[b][i] @ np.linalg.inv(found[b][j]) for j in range(T)]
        logits = np.array([q[b, h, i] @ relative[j] @ k[b, h // (H // G), j] / math.sqrt(D) for j in range(T)])
        weights = np.exp(logits - logits.max())
        out[b, h, i] = sum(w * relative[j] @ v[b, h // (H // G), j] for j, w in enumerate(weights / weights.sum()))
    return out


def drawn():
    return draw(1, 2, H, T, D), draw(2, 2, G, T, D), draw(3, 2, G, T, D)


@pytest.mark.parametrize("lenses", [True, False])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_prope_by_the_matrix_of_every_pair(impl, lenses):
    q, k, v = drawn()
    got = attend(*map(torch.from_numpy, (q, k, v)), PRoPE(D), numbered(lenses), causal=False, impl=impl)
    right = [[prope(b, token, lenses) for token in tokens()] for b in range(2)]
    close(got, expected(q, k, v, right), atol=1e-10)
    for broken in (
        [[prope(b, token, not lenses) for token in tokens()] for b in range(2)],
        [[prope(b, token, lenses, base=10.0) for token in tokens()] for b in range(2)],
        [[np.linalg.inv(one) for one in row] for row in right],
    ):
        with pytest.raises(AssertionError):
            close(got, expected(q, k, v, broken), atol=1e-3)


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_gta_by_the_matrix_of_every_pair(impl):
    q, k, v = drawn()
    encoding = GTA(D).double()
    with torch.no_grad():
        encoding.scale.fill_(0.7)
    at = numbered(False, fractions=True)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False, impl=impl)
    close(got, expected(q, k, v, [[gta(b, token, 0.7) for token in tokens()] for b in range(2)]), atol=1e-10)
    for scale, swapped in ((1.0, False), (0.7, True)):
        broken = [[gta(b, token, scale, swapped) for token in tokens()] for b in range(2)]
        with pytest.raises(AssertionError):
            close(got, expected(q, k, v, broken), atol=1e-3)


@pytest.mark.parametrize("encoding", [PRoPE(D), GTA(D).double()], ids=["prope", "gta"])
def test_another_world_changes_nothing(encoding):
    q, k, v = map(torch.from_numpy, drawn())
    moved = POSES @ pose(77)  # the same cameras, seen from other axes
    if isinstance(encoding, GTA):
        with torch.no_grad():
            encoding.scale.fill_(1.0)
    lenses = isinstance(encoding, PRoPE)
    one, other = (attend(q, k, v, encoding, numbered(lenses, poses), causal=False) for poses in (POSES, moved))
    close(one, other.detach(), atol=1e-10)
    shifted = POSES.copy()
    shifted[:, 1, :3, 3] += 1.0  # one camera moves
    third = attend(q, k, v, encoding, numbered(lenses, shifted), causal=False)
    assert (one - third).abs().max() > 1e-3


def test_cached_keys_are_transformed():
    """Tokens decoded one after the other see what a prefill sees."""
    x, at = torch.from_numpy(draw(5, 2, T, 32)), numbered()
    layer = posenc.Attention(32, H, PRoPE(D), d_head=D).double()
    cache, outputs = None, []
    for begin, end in ((0, 7), (7, 8), (8, T)):
        out, cache = layer.decode(x[:, begin:end], at.take(range(begin, end)), cache)
        outputs.append(out)
    close(torch.cat(outputs, dim=1), layer(x, at).detach(), atol=1e-10)


def test_coordinates_are_rows_columns_and_three_rows_of_the_matrix():
    got = numbered().coords
    for b, (t, (c, y, x)) in ((b, one) for b in range(2) for one in enumerate(tokens())):
        close(got[b, t], np.array([y, x, *matrix(b, c, True)[:3].ravel()]))
    fractions = numbered(False, fractions=True).coords[0, :, :2]
    close(fractions, np.array([[y / HEIGHT, x / WIDTH] for _, y, x in tokens()]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"poses": 2 * torch.eye(4).expand(1, 1, 4, 4)}, "poses: expected"),
        ({"poses": torch.diag(torch.tensor([2.0, 1, 1, 1])).expand(1, 1, 4, 4)}, "poses: expected .* with a rotation R"),
        ({"poses": torch.full((1, 1, 4, 4), math.nan)}, "poses: expected numbers up to 1e15"),
        ({"intrinsics": torch.zeros(1, 1, 3, 3)}, "intrinsics: expected positive focal lengths"),
        ({"intrinsics": torch.ones(1, 1, 3, 3)}, "intrinsics: expected .fx 0 cx"),
        ({"image_width": 0.0}, "image_width: expected a positive number"),
    ],
    ids=str,
)
def test_wrong_cameras(wrong, message):
    given = {"poses": torch.eye(4).expand(1, 1, 4, 4), "height": 2, "width": 2}
    with pytest.raises(ValueError, match=message):
        posenc.positions_by("cameras", **{**given, **wrong})


@pytest.mark.parametrize("kind", [PRoPE, GTA])
def test_wrong_sizes(kind):
    with pytest.raises(ValueError, match="d_head: expected a multiple of 8, got 12"):
        kind(12)
    with pytest.raises(ValueError, match=r"reads 14 coordinate\(s\) per token"):
        kind(D).rotate(torch.zeros(1, 1, 4, D), Positions.grid(2, 2), "query")
    with pytest.raises(ValueError, match="side: expected one of"):
        kind(D).rotate(torch.zeros(1, 1, 4, D), Positions.grid(2, 2), "left")
