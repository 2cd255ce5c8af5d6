"""The example on the page of every encoding of several coordinates: what it computes is the paper's or the authors' formula
at the authors' coordinates.

The page's own Python is run. Its parameters are drawn anew, since many start at zero, and its last line is run again in
fp64. What is expected is written here by hand: coordinates first, such as the middles of patches from -1 to 1, and the
formula at them. Legend: h heads, i query, j key, t tokens, d channels of a head, m d_model.
"""

import itertools
import math

import numpy as np
import pytest
import torch

import posenc
from posenc.catalogue.description import built, program

from .by_hand import close, each, turned

H, W, LENGTH, M, HEADS, D = 4, 6, 16, 512, 8, 64  # as on the pages
SEVERAL = [entry.name for entry in posenc.catalogue.ENTRIES if entry.axes > 1 and entry.kind != "positions"]
ATOL = 1e-9


# Coordinates, as the authors' code makes them ------------------------------------------------------------------------

GRID = [(y, x) for y in range(H) for x in range(W)]
CLASS = (-1, 0)  # the mark of a class token
THRICE = [(n,) * 3 for n in range(LENGTH)]
FROM_ONE = [(y + 1, x + 1) for y, x in GRID]
MIDDLES = [((y + 0.5) / H, (x + 0.5) / W) for y, x in GRID]  # SAM, ComRoPE: cumsum - ½ over the size
AROUND_ZERO = [(2 * (y + 0.5) / H - 1, 2 * (x + 0.5) / W - 1) for y, x in GRID]  # DINOv3
ENDS = [(y / (H - 1), x / (W - 1)) for y, x in GRID]  # LieRE: linspace(0, 1, n)
DETR = [(2 * math.pi * (y + 1) / (H + 1e-6), 2 * math.pi * (x + 1) / (W + 1e-6)) for y, x in GRID]
BOXES = [(n, n % 8 * 120, n // 8 * 20 + 20) for n in range(LENGTH)]  # LayoutLMv2: index, left, lower edge
EVENTS = [(n, 60 * n, 60 * n + 60) for n in range(LENGTH)]
SENTENCES = [(n % 4, n // 4) for n in range(LENGTH)]
CAMERAS = [(c, y, x) for c in range(4) for y in range(2) for x in range(2)]


def qwen2_vl() -> list[tuple]:
    """4 words, an image of 4 × 2 patches, 4 words: words go on after the image's largest number."""
    image = [(4, 4 + y, 4 + x) for y in range(4) for x in range(2)]
    after = max(max(patch) for patch in image) + 1
    return [(n,) * 3 for n in range(4)] + image + [(after + n,) * 3 for n in range(4)]


def diagonal() -> list[tuple]:
    """VideoRoPE, equation 7: 4 words, two frames of 2 × 2 patches two positions apart, 4 words."""
    video = [(4 + 2 * f, 4 + 2 * f + y - 1, 4 + 2 * f + x - 1) for f in range(2) for y in range(2) for x in range(2)]
    return [(n,) * 3 for n in range(4)] + video + [(8 + n,) * 3 for n in range(4)]


def without_time() -> list[tuple]:
    """HoPE for videos: the same by the code of VideoRoPE, which takes (2 - 1) // 2 = 0 and goes on at 7; time is 0."""
    video = [(0, 4 + 2 * f + y, 4 + 2 * f + x) for f in range(2) for y in range(2) for x in range(2)]
    return [(0, n, n) for n in range(4)] + video + [(0, 7 + n, 7 + n) for n in range(4)]


def corners() -> list[tuple]:
    """VRoPE: 4 words, two frames of 2 × 2 patches counted from four corners, three positions apart, 4 words."""
    video = [
        (4 + 3 * f + y + x, 5 + 3 * f + y - x, 5 + 3 * f - y + x, 6 + 3 * f - y - x)
        for f in range(2)
        for y in range(2)
        for x in range(2)
    ]
    return [(n,) * 4 for n in range(4)] + video + [(10 + n,) * 4 for n in range(4)]


def paths() -> list[list[int]]:
    """Of a binary heap: node n is child 1 or 2 of node (n - 1) // 2; the last branch first."""
    found = []
    for node in range(LENGTH):
        path = []
        while node:
            path.append(2 - node % 2)
            node = (node - 1) // 2
        found.append(path + [0] * (12 - len(path)))
    return found


def eigenvectors(got: np.ndarray) -> np.ndarray:
    """[t, 8] of the normalised Laplacian of a path, without the first; the free signs are those of `got`.

    √degree·cos(π m t/(n - 1)), which is known in closed form: no eigenvalue is computed here.
    """
    n = LENGTH
    degree = np.array([1, *[2] * (n - 2), 1])
    columns = np.array([np.sqrt(degree) * np.cos(np.pi * m * np.arange(n) / (n - 1)) for m in range(1, 9)]).T
    columns /= np.linalg.norm(columns, axis=0)
    return columns * np.sign((columns * got).sum(axis=0))


# The page ------------------------------------------------------------------------------------------------------------


class Page:
    """What the example computes in fp64 with drawn parameters, and what it is made of; `instead` replaces its positions."""

    def __init__(self, name: str, instead: posenc.Positions | None = None) -> None:
        self.name, made = name, {}
        code = program(built(posenc.catalogue.BY_NAME[name]))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            exec(compile(code, name, "exec"), made)
        encoding = posenc.laws.draw_parameters(made["encoding"], seed=1, std=0.3).double()
        at = encoding.prepare((instead or made["at"]).replaced(tables={}), torch.float64)
        made |= {"encoding": encoding, "at": at}
        made |= {key: made[key].double() for key in ("words", "q", "k", "v") if key in made}
        if "attention" in made:
            made["attention"] = made["attention"].double()
            made["attention"].encoding = encoding
        with torch.no_grad():
            for line in code.splitlines():
                if line.startswith(("x = ", "out = ")):
                    exec(line, made)
        self.parameters = {key: value.detach().numpy() for key, value in encoding.named_parameters()}
        self.coords = made["at"].coords[0].double().numpy()
        self.causal = "causal=False" not in code
        self.made = made

    def __getitem__(self, parameter: str) -> np.ndarray:
        return self.parameters[parameter]

    def array(self, key: str) -> np.ndarray:
        """One row of the batch."""
        return self.made[key][0].detach().numpy()

    @property
    def added(self) -> np.ndarray:
        return self.array("x") - self.array("words")


def attended(q, k, v, logits_too=0.0, scale=D**-0.5, causal=False) -> np.ndarray:
    logits = np.einsum("hid,hjd->hij", q, k) * scale + logits_too
    if causal:
        logits = np.where(np.tril(np.ones(logits.shape[1:], dtype=bool)), logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


# Vectors that are added, [t, m] --------------------------------------------------------------------------------------


def waves(p: float, width: int, base: float = 10000.0) -> list[tuple[float, float]]:
    return [(math.sin(p * base ** (-i / width)), math.cos(p * base ** (-i / width))) for i in range(width)]


def apart(p: float, width: int) -> list[float]:
    return [s for s, _ in waves(p, width)] + [c for _, c in waves(p, width)]


def in_turns(p: float, width: int) -> list[float]:
    return list(itertools.chain(*waves(p, width)))


def random_fourier(page: Page) -> np.ndarray:
    z = (2 * np.array([(x, y) for y, x in MIDDLES]) - 1) @ page["matrix"]
    return np.concatenate([np.sin(2 * np.pi * z), np.cos(2 * np.pi * z)], axis=1)


def learnable_fourier(page: Page) -> np.ndarray:
    z = np.array(MIDDLES) @ page["directions"].T
    r = np.concatenate([np.cos(z), np.sin(z)], axis=1) / math.sqrt(M)
    hidden = r @ page["inner"].T + page["inner_offset"]
    gelu = hidden * np.vectorize(lambda a: (1 + math.erf(a / math.sqrt(2))) / 2)(hidden)
    return gelu @ page["outer"].T + page["outer_offset"]


def tree_pe(page: Page) -> np.ndarray:
    p = np.tanh(page["decay"])
    rows = [
        np.concatenate(
            [(b == one) * p**step * np.sqrt((1 - p * p) * M / 2) for step, b in enumerate(path) for one in (1, 2)]
        )
        for path in paths()
    ]
    return np.pad(np.array(rows), ((0, 0), (0, M - len(rows[0]))))


def conditional(page: Page) -> np.ndarray:
    image = np.pad(page.array("words").reshape(H, W, M), ((1, 1), (1, 1), (0, 0)))
    out = [
        page["constant"] + sum(page["weight"][:, v, h] * image[y + v, x + h] for v in range(3) for h in range(3))
        for y, x in GRID
    ]
    return np.array(out)


def frame_column_row(page: Page) -> np.ndarray:
    """CogVideoX-2B: d/4 channels of the frame, 3d/8 of column and of row, both over 1.875."""
    places = [(f, y / 1.875, x / 1.875) for f in range(2) for y in range(2) for x in range(4)]
    return np.array([apart(f, M // 8) + apart(x, 3 * M // 16) + apart(y, 3 * M // 16) for f, y, x in places])


ADDED = {
    "sinusoidal_3d": frame_column_row,
    "sinusoidal_2d": lambda page: np.array([apart(x, M // 4) + apart(y, M // 4) for y, x in GRID]),
    "detr": lambda page: np.array([in_turns(y, M // 4) + in_turns(x, M // 4) for y, x in DETR]),
    "random_fourier": random_fourier,
    "learnable_fourier": learnable_fourier,
    "vit": lambda page: page["table"][[0, *(1 + W * y + x for y, x in GRID)]],
    "learned_2d": lambda page: np.array([page["axis_tables.0"][y] + page["axis_tables.1"][x] for y, x in FROM_ONE]),
    "tree_pe": tree_pe,
    "coordinate_projection": lambda page: eigenvectors(page.coords) @ page["weight"].T + page["offset"],
    "conditional": conditional,
    "bipe": lambda page: np.array([page["parts.0.axis_tables.0"][n] for n, _ in SENTENCES]),
}


# Rotations: the matrix of a head and token, which multiplies its query and its key -----------------------------------


def spectrum(base: float, width: int = D) -> list[float]:
    return [base ** (-2 * i / width) for i in range(width // 2)]


def angles_of(layout: str, of_token):
    """Rotations whose pairs turn by the angles of_token(page, h, t), as a matrix."""

    def matrix(page: Page, h: int, t: int) -> np.ndarray:
        angles = of_token(page, h, t)
        return np.array([turned(one, angles, layout) for one in np.eye(D)]).T

    return matrix


def shared(coords, *frequencies) -> object:
    """angles = coordinate a times its frequencies, one axis after the other."""
    return lambda page, h, t: [c * f for c, own in zip(coords[t], frequencies, strict=True) for f in own]


def by_pair(coords, base: float, axis_of_pair) -> object:
    return lambda page, h, t: [coords[t][axis_of_pair(n)] * f for n, f in enumerate(spectrum(base))]


def by_head(coords, base: float, axes) -> object:
    return lambda page, h, t: [coords[t][axes[h]] * f for f in spectrum(base)]


def mixed(coords_of) -> object:
    """angle of a pair = Σ_a coordinate a times a learned frequency of its head."""
    return lambda page, h, t: list(np.einsum("a,ap->p", coords_of(page)[t], page["frequencies"][:, h]))


def blocks(exponents):
    """exp of the skew matrices [8, 8, 8] of a head's blocks, side by side."""

    def matrix(page: Page, h: int, t: int) -> np.ndarray:
        found = torch.block_diag(*torch.linalg.matrix_exp(torch.from_numpy(exponents(page, h, t))))
        return found.numpy()

    return matrix


def liere(page: Page, h: int, t: int) -> np.ndarray:
    upper = np.triu(page["generators"][h], 1)  # [a, n, s, s]
    return np.einsum("a,ansr->nsr", ENDS[t], upper - upper.swapaxes(-1, -2))


def com_rope(page: Page, h: int, t: int) -> np.ndarray:
    free = page["generators"][h]
    return np.einsum("a,an,nsr->nsr", MIDDLES[t], page["mixture"], free - free.swapaxes(-1, -2))


def ape(page: Page, h: int, t: int) -> np.ndarray:
    """W of the path's branches from the root to the node: the branch nearest to the node turns first."""
    found = np.eye(D)
    for branch in reversed([b for b in paths()[t] if b]):
        free = torch.from_numpy(page["generators"][branch - 1])
        found = found @ torch.linalg.matrix_exp(free - free.T).numpy()
    return found


ROWS_THEN_COLUMNS = spectrum(10000.0, D // 2)
QWEN2, QWEN3 = (8, 12, 12), (12, 10, 10)  # pairs of time, height and width in the proportions of their configurations
TURNED = {
    "axial_rope": angles_of("interleaved", shared(GRID, ROWS_THEN_COLUMNS, ROWS_THEN_COLUMNS)),
    "pixtral_rope": angles_of("half", shared(GRID, spectrum(10000.0)[::2], spectrum(10000.0)[1::2])),
    "dinov3_rope": angles_of(
        "half", shared(AROUND_ZERO, *[[2 * math.pi * 100 ** (-4 * j / D) for j in range(D // 4)]] * 2)
    ),
    "mrope": angles_of("half", by_pair(qwen2_vl(), 1e6, lambda n: (n >= QWEN2[0]) + (n >= QWEN2[0] + QWEN2[1]))),
    "interleaved_mrope": angles_of("half", by_pair(qwen2_vl(), 5e6, lambda n: n % 3 if n < 3 * QWEN3[1] else 0)),
    "videorope": angles_of("half", by_pair(diagonal(), 1e6, lambda n: 0 if n >= 24 else 2 - n % 2)),
    "mm_rope": angles_of("half", by_pair(qwen2_vl(), 10000.0, lambda n: (0, 0, 1, 2, 1, 2, 1, 2)[n % 8])),
    "hybrid_hope": angles_of("half", by_pair(without_time(), 1e6, lambda n: 0 if n >= 24 else 1 + n % 2)),
    "mhrope": angles_of("half", by_head(qwen2_vl(), 5e6, (0, 0, 1, 1, 1, 2, 2, 2))),
    "vrope": angles_of("half", by_pair(corners(), 10000.0, lambda n: n % 4)),
    "bipe": angles_of("half", by_pair(SENTENCES, 10000.0, lambda n: 1)),
    "to_rope": angles_of("interleaved", by_pair([(n, n * n) for n in range(LENGTH)], 10000.0, lambda n: n >= 16)),
    "rope_mixed": angles_of("interleaved", mixed(lambda page: GRID)),
    "wire": angles_of("interleaved", mixed(lambda page: eigenvectors(page.coords))),
    "liere": blocks(liere),
    "com_rope": blocks(com_rope),
    "ape": ape,
}


def turned_by(page: Page) -> np.ndarray:
    """Queries and keys multiplied with the matrix of their head and token."""
    q, k, v = (page.array(key) for key in "qkv")
    matrix = TURNED[page.name]
    for h, t in each(*q.shape[:2]):
        turn = matrix(page, h, t)
        q[h, t], k[h, t] = turn @ q[h, t], turn @ k[h, t]
    return attended(q, k, v, causal=page.causal)


# Cameras: a matrix of every token, (Dᵀq)·(D⁻¹k) and D Σ D⁻¹v ---------------------------------------------------------


def pose(c: int) -> np.ndarray:
    """The cameras of the page stand side by side."""
    found = np.eye(4)
    found[0, 3] = c / LENGTH
    return found


def turning(angles, layout: str) -> np.ndarray:
    return np.array([turned(one, angles, layout) for one in np.eye(2 * len(angles))]).T


def prope(page: Page, c: int, y: int, x: int) -> np.ndarray:
    """Li et al. 2025 and their code: cameras on half of the channels, RoPE of base 100 by column, then by row."""
    own = [100.0 ** (-n / (D // 8)) for n in range(D // 8)]
    parts = [pose(c)] * (D // 8) + [turning([-place * f for f in own], "half").T for place in (x, y)]
    return torch.block_diag(*map(torch.from_numpy, parts)).numpy()


def gta(page: Page, c: int, y: int, x: int) -> np.ndarray:
    """Miyato et al. 2023 and their code: rows and columns as fractions, frequencies 2π·2^(n - N)."""
    camera = pose(c)
    camera[:3, 3] *= page["scale"][0]
    angles = [-2 * math.pi * 2.0 ** (n - D // 8) * place for n in range(1, D // 8 + 1) for place in (y / 2, x / 2)]
    return torch.block_diag(*map(torch.from_numpy, [camera] * (D // 8) + [turning(angles, "interleaved")])).numpy()


def between_cameras(page: Page) -> np.ndarray:
    q, k, v = (page.array(key) for key in "qkv")
    own = np.array([{"prope": prope, "gta": gta}[page.name](page, *token) for token in CAMERAS])
    back = np.linalg.inv(own)
    q, k, v = np.einsum("tdc,htd->htc", own, q), np.einsum("tcd,htd->htc", back, k), np.einsum("tcd,htd->htc", back, v)
    return np.einsum("tcd,htd->htc", own, attended(q, k, v, causal=page.causal))


# Numbers that are added to the logits, [h, i, j] ---------------------------------------------------------------------


def of_pairs(coords, number) -> np.ndarray:
    """number(h, i, j) of the coordinates of a query and a key, of all heads."""
    n = len(coords)
    return np.array([[[number(h, i, j) for j in range(n)] for i in range(n)] for h in range(HEADS)])


def swin(page: Page) -> np.ndarray:
    def number(h, i, j):
        down, across = GRID[i][0] - GRID[j][0], GRID[i][1] - GRID[j][1]
        return page["table"][(down + H - 1) * (2 * W - 1) + across + W - 1, h]

    return of_pairs(GRID, number)


def levit(page: Page) -> np.ndarray:
    def number(h, i, j):
        return page["table"][abs(GRID[i][0] - GRID[j][0]) * W + abs(GRID[i][1] - GRID[j][1]), h]

    return of_pairs(GRID, number)


def alibi_2d(page: Page) -> np.ndarray:
    """get_2dalibi: slopes 2^(-8/n), 2^(-16/n), …, times the straight distance."""
    return of_pairs(GRID, lambda h, i, j: -(2.0 ** (-8 * (h + 1) / HEADS)) * math.dist(GRID[i], GRID[j]))


def beit(page: Page) -> np.ndarray:
    """The class token comes first; the last three rows of the table are its own."""
    found = np.zeros((HEADS, len(GRID) + 1, len(GRID) + 1))
    found[:, 1:, 1:] = swin(page)
    found[:, 0, 1:] = page["table"][-3][:, None]
    found[:, 1:, 0] = page["table"][-2][:, None]
    found[:, 0, 0] = page["table"][-1]
    return found


def decomposed(page: Page) -> np.ndarray:
    q = page.array("q")

    def number(h, i, j):
        down, across = GRID[i][0] - GRID[j][0], GRID[i][1] - GRID[j][1]
        return q[h, i] @ (page["rows"][down + H - 1] + page["columns"][across + W - 1])

    return of_pairs(GRID, number)


def irpe(page: Page) -> np.ndarray:
    """The product method with ratio 1.9: offsets up to 1 are exact, those from 2 on share buckets up to 3."""
    q, places = page.array("q"), [CLASS, *GRID]

    def piecewise(x: int) -> int:
        if abs(x) <= 1.9:
            return x
        index = round(1.9 + math.log(abs(x) / 1.9) / math.log(8) * 1.9)
        return int(math.copysign(int(min(index, 3.8)), x))

    def number(h, i, j):
        row = 49
        if i and j:
            row = 7 * (piecewise(places[i][0] - places[j][0]) + 3) + piecewise(places[i][1] - places[j][1]) + 3
        return q[h, i] @ page["of_key"][0, row] / math.sqrt(D)

    return of_pairs(places, number)


def lookhere(page: Page) -> np.ndarray:
    """The first of four layers: corners of 90° and triangles with slope ½, strength 2, layer factor 1.5."""
    sees = [
        lambda down, across: down <= 0 and across <= 0,
        lambda down, across: down <= 0 and across >= 0,
        lambda down, across: down >= 0 and across <= 0,
        lambda down, across: down >= 0 and across >= 0,
        lambda down, across: down <= -abs(across),
        lambda down, across: down >= abs(across),
        lambda down, across: across <= -abs(down),
        lambda down, across: across >= abs(down),
    ]
    places = [CLASS, *GRID]

    def number(h, i, j):
        if not (i and j):
            return 0.0
        down, across = places[j][0] - places[i][0], places[j][1] - places[i][1]
        return -2 * 1.5 * 0.5 * math.hypot(down, across) if sees[h](down, across) else -1e30

    return of_pairs(places, number)


def t5_bucket(delta: int, n_buckets: int, most: int) -> int:
    """LayoutLMv2's relative_position_bucket of j - i, both ways; `delta` is i - j."""
    side = n_buckets // 2
    exact, n = side // 2, abs(delta)
    far = exact + int(math.log(n / exact) / math.log(most / exact) * (side - exact)) if n >= exact else n
    return min(far, side - 1) + side * (delta < 0)


def t5_axes(page: Page) -> np.ndarray:
    sizes = ((32, 128), (64, 256), (64, 256))

    def number(h, i, j):
        return sum(page[f"axis_tables.{a}"][t5_bucket(BOXES[i][a] - BOXES[j][a], *size), h] for a, size in enumerate(sizes))

    return of_pairs(BOXES, number)


def swin_v2(page: Page) -> np.ndarray:
    def number(i, j):
        share = [(GRID[i][a] - GRID[j][a]) / (size - 1) for a, size in enumerate((H, W))]
        seen = [math.copysign(math.log2(1 + 8 * abs(one)) / 3, one) for one in share]
        hidden = np.maximum(page["inner"] @ seen + page["inner_offset"], 0)
        return 16 / (1 + np.exp(-page["outer"] @ hidden))

    return np.array([[number(i, j) for j in range(len(GRID))] for i in range(len(GRID))]).transpose(2, 0, 1)


BIASED = {
    "alibi_2d": alibi_2d,
    "swin": swin,
    "levit": levit,
    "beit": beit,
    "decomposed": decomposed,
    "irpe": irpe,
    "lookhere": lookhere,
    "t5_axes": t5_axes,
    "swin_v2": swin_v2,
}


def biased(page: Page) -> np.ndarray:
    q, k, v = (page.array(key) for key in "qkv")
    scale = D**-0.5
    if page.name == "swin_v2":
        q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
        q, scale = q * np.exp(np.minimum(page["log_scale"], math.log(100)))[:, None, None], 1.0
    return attended(q, k, v, BIASED[page.name](page), scale, page.causal)


# The rest ------------------------------------------------------------------------------------------------------------


def lepe(page: Page) -> np.ndarray:
    """Attention without positions, and a convolution of the values, padded with zeros."""
    v = page.array("v")
    image = np.pad(v.reshape(HEADS, H, W, D), ((0, 0), (1, 1), (1, 1), (0, 0)))
    near = [sum(image[:, y + a, x + b] * page["kernel"][:, :, a, b] for a in range(3) for b in range(3)) for y, x in GRID]
    return attended(page.array("q"), page.array("k"), v) + page["constant"][:, None] + np.stack(near, axis=1)


def hstu(page: Page) -> np.ndarray:
    """SiLU in the softmax's place, over earlier events; buckets of time by the natural logarithm over 0.301."""
    q, k, v = (page.array(key) for key in "qkv")

    def number(h, i, j):
        between = abs(EVENTS[i][2] - EVENTS[j][1])
        return page["position_table"][j - i + 2047] + page["time_table"][int(math.log(max(between, 1)) / 0.301)]

    logits = np.einsum("hid,hjd->hij", q, k) + of_pairs(EVENTS, number)
    return np.where(np.tril(np.ones((LENGTH, LENGTH))), logits / (1 + np.exp(-logits)), 0) @ v


def pape(page: Page) -> np.ndarray:
    """Parabolas of the offset, of positions (column, row) from 1; W's columns are in that order."""
    attention, x = page.made["attention"], page.array("words")
    q, k, v = (
        (x @ getattr(attention, one).weight.detach().numpy().T).reshape(-1, HEADS, D).swapaxes(0, 1)
        for one in ("query", "key", "value")
    )
    directions = page["directions"][..., ::-1]
    fall, slope = (
        np.log1p(np.exp(np.einsum("tm,hnm->htn", x, page["weight"][0]))),
        np.einsum("tm,hnm->htn", x, page["weight"][1]),
    )
    places = np.array([(column, row) for row, column in FROM_ONE])
    along = np.einsum("hna,ija->hnij", directions, places[:, None] - places[None])
    term = np.einsum("hin,hnij->hij", slope, along) - np.einsum("hin,hnij->hij", fall, along**2)
    out = attended(q, k, v, term / math.sqrt(D), causal=page.causal)
    return out.swapaxes(0, 1).reshape(-1, M) @ attention.out.weight.detach().numpy().T


OTHERS = {"lepe": lepe, "hstu": hstu, "pape": pape, "prope": between_cameras, "gta": between_cameras}
CAUSAL = {
    "mrope",
    "interleaved_mrope",
    "videorope",
    "mm_rope",
    "hybrid_hope",
    "vrope",
    "mhrope",
    "hstu",
    "to_rope",
    "bipe",
}  # words and events have an order


def agrees(page: Page, atol: float = ATOL) -> None:
    """Raises AssertionError where the page computes something else than its oracle."""
    if page.name in ADDED:
        close(page.added, ADDED[page.name](page), atol)
    if "out" in page.made:
        found = OTHERS.get(page.name) or (turned_by if page.name in TURNED else biased)
        close(page.array("out"), found(page), atol)


@pytest.mark.parametrize("name", SEVERAL)
def test_the_example_of_the_page_is_the_formula_at_the_authors_coordinates(name):
    page = Page(name)
    agrees(page)
    assert page.causal == ("out" not in page.made or name in CAUSAL), "patches, nodes and cameras have no order"


PLAIN = {
    **dict.fromkeys(("detr", "random_fourier", "learnable_fourier", "learned_2d"), GRID),
    **dict.fromkeys(("dinov3_rope", "liere", "com_rope"), GRID),
    **dict.fromkeys(("mrope", "interleaved_mrope", "videorope", "mhrope", "mm_rope", "hybrid_hope", "t5_axes"), THRICE),
    "vrope": [(n,) * 4 for n in range(LENGTH)],
}
"""Rows and columns, or the index three times, for encodings that read other coordinates."""


@pytest.mark.parametrize("name", PLAIN)
def test_other_coordinates_are_noticed(name):
    page = Page(name, posenc.Positions.at(torch.tensor([PLAIN[name]])))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        agrees(page, atol=1e-2)


def test_every_encoding_of_several_coordinates_has_an_oracle():
    assert sorted(SEVERAL) == sorted({*ADDED, *TURNED, *BIASED, *OTHERS})
