"""Learned grids and their other sizes against the interpolation of torch in fp64 and the families' own modules."""

import importlib
import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils import _pytree

from posenc import PositionalEncoding, Positions, Stack, attend, create
from posenc.encodings.bases.learned_grid import LearnedGrid
from posenc.encodings.sinusoidal import Sinusoidal

from .by_hand import close, draw


def filled(*args, dtype=torch.float64, table=None, **options) -> LearnedGrid:
    encoding = LearnedGrid(*args, **options).to(dtype)
    drawn = torch.from_numpy(draw(1, *encoding.table.shape)) if table is None else table
    encoding.load_state_dict({"table": drawn.to(dtype)})
    return encoding


def added(encoding: LearnedGrid, at: Positions) -> torch.Tensor:
    return encoding.embed(torch.zeros(at.batch, at.length, encoding.d_model, dtype=encoding.table.dtype), at)


def interpolated(table: torch.Tensor, old, new, **options) -> torch.Tensor:
    """[new cells, d] by torch itself."""
    image = table.reshape(1, *old, -1).permute(0, 3, 1, 2)
    return F.interpolate(image, size=new, **options).permute(0, 2, 3, 1).reshape(new[0] * new[1], -1)


def test_rows_of_the_table_are_read_row_by_row():
    encoding = filled(3, 2, 4, prefix=2)
    got, table = added(encoding, Positions.grid(2, 4, prefix=2)), encoding.table
    close(got[0], table)
    at = Positions.at(torch.tensor([[[1, 2], [-1, 1], [0, 3], [-1, -1], [-1, 0]]]))
    close(added(encoding, at)[0], torch.cat([table[[2 + 6, 1, 2 + 3]], torch.zeros(1, 3), table[[0]]]))


WAYS = [
    ("nearest", False, False),
    *((mode, *way) for mode in ("bicubic", "bilinear") for way in ((False, False), (True, False), (False, True))),
]


@pytest.mark.parametrize(("mode", "antialias", "corners"), WAYS)
def test_the_grid_of_the_table_is_read_as_it_is_J5(mode, antialias, corners):
    """Also where sizes are given and where the table is resized to its own size: bit by bit."""
    encoding = filled(3, 5, 4, prefix=1, mode=mode, antialias=antialias, align_corners=corners, dtype=torch.float32)
    assert torch.equal(added(encoding, Positions.grid(5, 4, prefix=1, sized=True))[0], encoding.table)
    assert torch.equal(encoding.resize(5, 4).table, encoding.table)


SIZES = [(14, 14), (1, 1), (7, 20), (61, 3), (115, 2), (3, 122), (16, 28), (129, 5)]
WAYS = [
    {"mode": "bicubic"},
    {"mode": "bilinear"},
    {"mode": "bilinear", "align_corners": True},
    {"mode": "bicubic", "align_corners": True},
    {"mode": "bilinear", "antialias": True},
    {"mode": "bicubic", "antialias": True},
]


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_size_by_its_target_J5(size, options):
    """A target size, never a scale: 61, 115 and 122 are those where a scale factor lost a row."""
    encoding = filled(2, 14, 14, prefix=1, **options)
    expected = interpolated(encoding.table[1:].detach(), (14, 14), size, **options)
    close(added(encoding, Positions.grid(*size, sized=True))[0], expected, 1e-10)
    resized = encoding.resize(*size)
    close(resized.table[1:], expected, 1e-10)
    assert torch.equal(resized.table[0], encoding.table[0])
    close(added(resized, Positions.grid(*size, prefix=1))[0], resized.table)


@pytest.mark.parametrize("antialias", [False, True])
def test_vit_reads_other_sizes_as_transformers_does_or_as_timm_does(antialias):
    """timm's resample_abs_pos_embed: bicubic with antialias; interpolate_pos_encoding of transformers: without."""
    encoding = create("vit", d_model=2, antialias=antialias).double()
    for size in ((7, 7), (10, 20), (24, 24)):
        both = [
            interpolated(encoding.table[1:].detach(), (14, 14), size, mode="bicubic", antialias=way)
            for way in (antialias, not antialias)
        ]
        got = added(encoding, Positions.grid(*size, sized=True))[0]
        close(got, both[0], 1e-10)
        assert (got - both[1]).abs().max() > 1e-3


def test_all_patches_of_another_image_are_no_corner_of_the_table():
    """A part of an image says so: it is picked, or has a start. Sizes stay as long as the tokens do."""
    encoding = filled(3, 4, 4, prefix=1)
    small = Positions.grid(2, 3, prefix=1, batch=2)
    wrong = "those of an image of 2 × 3 patches, and the table is of 4 × 4; .*sized=True.*resize\\(2, 3\\).*start="
    kept = (small, small.rows(0, 1), small.to("cpu"), small.rows(0, 1).expand(3), small.replaced(tables={}))
    for at in kept:
        with pytest.raises(ValueError, match=wrong):
            added(encoding, at)
    whole = Positions.grid(4, 4, prefix=1)
    parts = (whole.take([1, 2]), whole.narrow(0, 5), Positions.grid(2, 3, start=(0, 0)), Positions.grid(2, 3, start=(2, 1)))
    again = (Positions.cat([small, small]), small.take([0, 1]), Positions.at(small.coords), small.shift(0))
    for at in (whole, *parts, *again):
        rows = 1 + 4 * at.coords[..., 0] + at.coords[..., 1]
        close(added(encoding, at), encoding.table[torch.where(at.coords[..., 0] < 0, 0, rows)])
    of_any_size = torch.compile(lambda at: at.expand(2).replaced(tables={}).coords + 1, backend="eager", fullgraph=True)
    for sizes in ((2, 3), (3, 2), (1, 6)):
        with torch.compiler.set_stance("default" if sizes == (2, 3) else "fail_on_recompile"):
            assert of_any_size(Positions.grid(*sizes)).shape == (2, 6, 2)
    specs = [_pytree.tree_structure(Positions.grid(*sizes)) for sizes in ((2, 3), (4, 4))]
    assert specs[0] == specs[1]
    of_video = filled(3, 4, 4, axes=3, reads=(1, 2))
    assert added(of_video, Positions.grid(2, 4, 4)).shape == (1, 32, 3)
    with pytest.raises(ValueError, match="those of an image of 2 × 3 patches"):
        added(of_video, Positions.grid(4, 2, 3))


@pytest.mark.parametrize("old", [3, 14, 27])
def test_nearest_is_exact_in_integers(old):
    """Row ⌊i·old/new⌋, by fractions."""
    encoding = filled(1, old, 1, mode="nearest")
    for new in range(1, 80):
        wanted = [int(Fraction(i * old, new)) for i in range(new)]
        close(added(encoding, Positions.grid(new, 1, sized=True))[0], encoding.table[wanted])


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_one_patch_wide_with_antialias(mode):
    """Axis by axis: torch 2.13 on the CPU, asked for width 1 at once, repeats its first row (SigLIP 2 inherits that)."""
    encoding = filled(2, 4, 4, mode=mode, antialias=True)
    high = interpolated(encoding.table.detach(), (4, 4), (5, 4), mode=mode, antialias=True)
    expected = interpolated(high.view(5, 4, 2).transpose(0, 1).reshape(20, 2), (4, 5), (1, 5), mode=mode, antialias=True)
    close(added(encoding, Positions.grid(5, 1, sized=True))[0], expected, 1e-10)


def test_images_of_several_sizes_share_a_batch():
    encoding = filled(2, 4, 4)
    parts = [Positions.grid(*size, sized=True).coords[0] for size in ((2, 3), (6, 1), (1, 6))]
    got = added(encoding, Positions.at(torch.stack(parts)))
    for row, size in enumerate(((2, 3), (6, 1), (1, 6))):
        close(got[row], interpolated(encoding.table.detach(), (4, 4), size, mode="bicubic"), 1e-12)


def test_navit_packs_images_and_interpolates_a_table_for_each_axis():
    """timm's naflexvit.py, "factorized": F.interpolate of each table to the image, rows plus columns; images do not mix."""
    sizes, d = [(2, 3), (4, 2), (1, 9)], 6
    ends = [0, *np.cumsum([h * w for h, w in sizes])]
    rows, columns = filled(d, 5, 1, mode="bilinear"), filled(d, 1, 7, mode="bilinear")
    images = Positions.joint([Positions.grid(h, w, sized=True) for h, w in sizes])
    at = Positions.packed([int(end) for end in ends]).replaced(coords=images.coords)
    got = Stack(rows, columns).embed(torch.zeros(1, at.length, d, dtype=torch.float64), at)[0]
    for n, (h, w) in enumerate(sizes):
        y, x = (F.interpolate(one.table.T[None], size=side, mode="linear")[0].T for one, side in ((rows, h), (columns, w)))
        close(got[ends[n] : ends[n + 1]], (y[:, None] + x[None]).reshape(h * w, d))
    q, k, v = torch.randn(3, 1, 2, at.length, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    packed = attend(q, k, v, PositionalEncoding(), at, causal=False)
    for begin, end in itertools.pairwise(map(int, ends)):
        part = (one[:, :, begin:end] for one in (q, k, v))
        close(packed[:, :, begin:end], F.scaled_dot_product_attention(*part))


@pytest.mark.parametrize("patch", [8, 10, 12, 15, 16, 20, 24, 30, 40, 48])
def test_flexivit_reads_its_table_at_every_patch_size(patch):
    """jax.image.resize(table, (240/p, 240/p), "linear"): hats as wide as a cell of the coarser grid, normalised."""
    side = 240 // patch
    encoding = filled(3, 7, 7, mode="bilinear", antialias=True)
    wide = max(1.0, 7 / side)
    hats = np.array(
        [[max(0.0, 1 - abs((i + 0.5) * 7 / side - 0.5 - cell) / wide) for cell in range(7)] for i in range(side)]
    )
    hats /= hats.sum(axis=1, keepdims=True)
    table = encoding.table.detach().numpy().reshape(7, 7, 3)
    expected = np.einsum("yr,xc,rcd->yxd", hats, hats, table).reshape(side * side, 3)
    close(added(encoding, Positions.grid(side, side, sized=True))[0], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_in_fp32_whatever_the_model(dtype):
    encoding = filled(4, 6, 6, mode="bicubic", dtype=dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = added(encoding, Positions.grid(9, 4, sized=True))
    assert got.dtype == dtype
    exact = interpolated(encoding.table.detach().double(), (6, 6), (9, 4), mode="bicubic")
    close(got[0].double(), exact, 3 * torch.finfo(dtype).eps)


def test_gradients_by_differences():
    encoding = filled(2, 3, 2, prefix=1, mode="bicubic")
    at = Positions.grid(2, 4, prefix=1, sized=True)
    x = torch.from_numpy(draw(4, 1, 9, 2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, _: encoding.embed(x, at).sin(), (x, encoding.table))


def test_tokens_without_a_place_spoil_no_gradient():
    encoding = filled(2, 3, 2)
    at = Positions.at(torch.tensor([[[1, 1, 4, 2], [-1, -1, 0, 0]]]))
    out = added(encoding, at)
    out.sum().backward()
    assert out[0, 1].abs().max() == 0
    assert torch.isfinite(encoding.table.grad).all()


# Families --------------------------------------------------------------------------------------------------------------


def theirs(family: str, name: str):
    importlib.import_module("transformers")
    module = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    return getattr(module, name)


VIT = {
    "vit": ("ViTEmbeddings", "ViTConfig", 1, {}),
    "deit": ("DeiTEmbeddings", "DeiTConfig", 2, {}),
    "dinov2": ("Dinov2Embeddings", "Dinov2Config", 1, {}),
    "dinov2_with_registers": ("Dinov2WithRegistersEmbeddings", "Dinov2WithRegistersConfig", 1, {"antialias": True}),
    "vit_mae": ("ViTMAEEmbeddings", "ViTMAEConfig", 1, {}),
    "vit_msn": ("ViTMSNEmbeddings", "ViTMSNConfig", 1, {}),
    "ijepa": ("IJepaEmbeddings", "IJepaConfig", 0, {}),
    "pixio": ("PixioEmbeddings", "PixioConfig", 8, {}),
}


@pytest.mark.parametrize("size", [(3, 3), (2, 5), (7, 4)])
@pytest.mark.parametrize("family", VIT)
def test_vit_like(family, size):
    import transformers

    embeddings, config, prefix, options = VIT[family]
    config = getattr(transformers, config)(image_size=12, patch_size=4, hidden_size=8, num_channels=1)
    module = theirs(family, embeddings)(config)
    table = torch.from_numpy(draw(2, *module.position_embeddings.shape)).float()
    with torch.no_grad():
        module.position_embeddings.copy_(table)
    tokens = torch.zeros(1, size[0] * size[1] + prefix, 8)
    expected = module.interpolate_pos_encoding(tokens, size[0] * 4, size[1] * 4).detach()
    encoding = filled(8, 3, 3, prefix=prefix, table=table[0], **options)
    expected = expected[:, -(size[0] * size[1] + prefix) :]
    close(added(encoding, Positions.grid(*size, prefix=prefix, sized=True)), expected.double(), 1e-5)
    close(encoding.resize(*size).table, expected[0].double(), 1e-5)


def test_siglip2_bilinear_antialias_in_one_batch():
    table, sizes = torch.from_numpy(draw(3, 16, 6)).float(), [(2, 3), (5, 2), (1, 7), (4, 4)]
    shapes = torch.tensor(sizes)
    expected = theirs("siglip2", "Siglip2VisionEmbeddings").resize_positional_embeddings(table.view(4, 4, 6), shapes, 16)
    encoding = filled(6, 4, 4, mode="bilinear", antialias=True, table=table)
    for row, size in enumerate(sizes):
        got = added(encoding, Positions.grid(*size, sized=True))[0]
        close(got, expected[row, : size[0] * size[1]].double(), 1e-5)


@pytest.mark.parametrize(
    ("mode", "corners", "border"),
    [
        ("bilinear", True, "repeat"),
        ("bilinear", False, "repeat"),
        ("bicubic", False, "repeat"),
        ("bilinear", False, "zero"),
    ],
    ids=["qwen3_vl", "paddleocr_vl", "kimi_k25", "muse"],
)
def test_multimodal_towers(mode, corners, border):
    """Gather indices and weights of their own helper, several images and frames in one row."""
    utils = importlib.import_module("transformers.vision_utils")
    grids = torch.tensor([[1, 4, 6], [2, 2, 2], [1, 8, 10], [1, 5, 5]])
    padding = "zeros" if border == "zero" else "border"
    indices, weights = utils.get_vision_interpolation_indices_and_weights(grids, 5, mode, corners, 1, padding)
    encoding = filled(6, 5, 5, mode=mode, align_corners=corners, border=border)
    expected = (encoding.table.detach()[indices] * weights.double()[..., None]).sum(1)
    parts = [Positions.grid(h, w, sized=True) for t, h, w in grids.tolist() for _ in range(t)]
    close(added(encoding, Positions.cat(parts))[0], expected, 1e-5)


def test_qwen3_vl_reads_patches_in_merged_order():
    utils = importlib.import_module("transformers.vision_utils")
    indices, weights = utils.get_vision_interpolation_indices_and_weights(torch.tensor([[1, 4, 6]]), 5, "bilinear", True, 2)
    encoding = filled(6, 5, 5, mode="bilinear", align_corners=True)
    expected = (encoding.table.detach()[indices] * weights.double()[..., None]).sum(1)
    order = torch.arange(24).view(2, 2, 3, 2).permute(0, 2, 1, 3).flatten()  # blocks of 2 × 2
    close(added(encoding, Positions.grid(4, 6, sized=True).take(order))[0], expected, 1e-5)


@pytest.mark.parametrize("family", ["idefics2", "idefics3"])
def test_idefics_takes_the_cell_of_the_corner(family):
    """Their fp32 fractions agree with whole numbers but for 25, 49, 50 and 55 patches of 70."""
    import transformers

    config = getattr(transformers.models, family)
    config = getattr(config, f"configuration_{family}")
    config = getattr(config, f"{family.capitalize()}VisionConfig")(
        hidden_size=2, image_size=70, patch_size=1, num_channels=1
    )
    module = theirs(family, f"{family.capitalize()}VisionEmbeddings")(config)
    torch.nn.init.zeros_(module.patch_embedding.weight)
    torch.nn.init.zeros_(module.patch_embedding.bias)
    table = module.position_embedding.weight.detach()
    bucket, nearest = filled(2, 70, 70, mode="bucket", table=table), filled(2, 70, 70, mode="nearest", table=table)
    different = set()
    for size in range(1, 71):
        at = Positions.grid(2, size, sized=True)
        expected = module(torch.zeros(1, 1, 2, size), torch.ones(1, 2, size, dtype=torch.bool)).detach().double()
        close(added(bucket, at), expected)
        if not torch.equal(added(nearest, at), expected):
            different.add(size)
    assert different == {25, 49, 50, 55}


def test_timesformer_nearest():
    table = torch.from_numpy(draw(5, 1 + 16, 3))
    encoding = filled(3, 4, 4, prefix=1, mode="nearest", table=table)
    for size in ((3, 5), (8, 2), (7, 7)):
        expected = interpolated(table[1:], (4, 4), size, mode="nearest")
        close(added(encoding, Positions.grid(*size, sized=True))[0], expected)


@pytest.mark.parametrize("size", [(3, 5), (7, 2), (4, 4)])
def test_radio_cuts_from_a_square(size):
    """An image says it is as high as wide: its grid is cut from the square that holds it."""
    table = torch.from_numpy(draw(11, 16, 3)).float()
    owner = SimpleNamespace(position_embedding=table[None], max_rows=4, max_cols=4)
    expected = theirs("radio", "RadioPatchEmbeddings")._interpolate_position_embedding(owner, size, torch.float32)
    coords = Positions.grid(*size, sized=True).coords.clone()
    coords[..., 2:] = max(size)
    encoding = filled(3, 4, 4, mode="bilinear", table=table)
    close(added(encoding, Positions.at(coords)), expected.double(), 1e-5)


def test_videoprism_frames_are_a_grid_one_wide():
    table = torch.from_numpy(draw(12, 1, 8, 6)).float()
    owner = SimpleNamespace(position_embeddings=table)
    encoding = filled(6, 8, 1, mode="bilinear", antialias=True, table=table[0])
    for frames in (3, 5, 12):
        expected = theirs("videoprism", "VideoPrismTemporalEmbeddings").interpolate_pos_encoding(
            owner, torch.zeros(1, frames, 6)
        )
        close(added(encoding, Positions.grid(frames, 1, sized=True)), expected.double(), 1e-5)


@pytest.mark.parametrize("size", [(3, 5), (7, 2)])
def test_yolos_keeps_detection_tokens_behind(size):
    """Its table ends with the detection tokens; here they are prefix rows 1, 2, … and may stand anywhere."""
    config = SimpleNamespace(num_detection_tokens=2, image_size=(6, 8), patch_size=2)
    table = torch.from_numpy(draw(13, 1, 1 + 12 + 2, 4))
    module = theirs("yolos", "InterpolateInitialPositionEmbeddings")(config)
    expected = module(table, (size[0] * 2, size[1] * 2))
    rows = torch.cat([table[0, :1], table[0, -2:], table[0, 1:-2]])
    encoding = filled(4, 3, 4, prefix=3, table=rows)
    at = Positions.grid(*size, prefix=3, sized=True)
    order = torch.tensor([0, *range(3, at.length), 1, 2])
    close(added(encoding, at.take(order)), expected)


def test_kimi_stacks_a_grid_and_frames():
    """Five coordinates: the grid reads four of them, the sinusoid over time one; a single image has frame 0."""
    kimi = importlib.import_module("transformers.models.kimi_k25.modeling_kimi_k25")
    config = SimpleNamespace(hidden_size=8, pos_emb_time=4, pos_emb_height=3, pos_emb_width=3)
    module = kimi.Kimi_K25VisionPositionEmbeddings(config)
    table = torch.from_numpy(draw(6, 3, 3, 8)).float()
    with torch.no_grad():
        module.position_embeddings.copy_(table)
    images = torch.tensor([[1, 2, 5], [3, 4, 2]])
    expected = module(torch.zeros(10 + 24, 8), images).detach()
    frames = [torch.zeros(10), torch.arange(1, 4).repeat_interleave(8)]
    parts = [Positions.grid(2, 5, sized=True).coords, *[Positions.grid(4, 2, sized=True).coords] * 3]
    coords = torch.cat([torch.cat(frames).long()[None, :, None], torch.cat(parts, dim=1)], dim=-1)
    space = LearnedGrid(8, 3, 3, axes=5, reads=(1, 2, 3, 4)).double()
    space.load_state_dict({"table": table.flatten(0, 1)})
    time = Sinusoidal(8, axes=5, reads=(0,), layout="sin_cos", offset=-1, silent="negative")
    got = Stack(space, time).embed(torch.zeros(1, 34, 8, dtype=torch.float64), Positions.at(coords))
    close(got[0], expected.double(), 1e-5)


def test_sam3_and_sam2_repeat_a_window():
    table = torch.from_numpy(draw(8, 6, 4))
    got = added(filled(4, 2, 3, mode="tile", table=table), Positions.grid(5, 7, sized=True))[0]
    close(got, torch.stack([table[y % 2 * 3 + x % 3] for y in range(5) for x in range(7)]))
    sam3 = theirs("sam3", "Sam3ViTEmbeddings")._tile_position_embeddings
    square = torch.from_numpy(draw(8, 1, 9, 4))
    encoding = filled(4, 3, 3, mode="tile", table=square[0])
    close(added(encoding, Positions.grid(5, 7, sized=True)), sam3(None, square, 5, 7))
    window, grid = torch.from_numpy(draw(9, 1, 4, 2, 2)), torch.from_numpy(draw(10, 1, 4, 3, 3))
    hiera = SimpleNamespace(pos_embed_window=window, pos_embed=grid)
    expected = theirs("sam2", "Sam2HieraDetModel")._get_pos_embed(hiera, (6, 8)).reshape(1, 48, 4)
    flat = [part[0].flatten(1).T for part in (grid, window)]
    stack = Stack(filled(4, 3, 3, table=flat[0]), filled(4, 2, 2, mode="tile", table=flat[1]))
    close(stack.embed(torch.zeros(1, 48, 4, dtype=torch.float64), Positions.grid(6, 8, sized=True)), expected)


def test_wrong_arguments():
    encoding = filled(2, 3, 2, prefix=1)
    for place in ([3, 0], [0, 2], [-1, 1], [-2, 0], [0, -1]):
        with pytest.raises(ValueError, match=rf"a token at \[{place[0]}, {place[1]}\] is outside the grid 3 × 2"):
            added(encoding, Positions.at(torch.tensor([[[0, 0], place]])))
    with pytest.raises(ValueError, match=r"a token at \[4, 0, 4, 4\] is outside"):
        added(encoding, Positions.at(torch.tensor([[[4, 0, 4, 4]]])))
    with pytest.raises(ValueError, match=r"reads \(y, x\) or \(y, x, height, width\)"):
        added(encoding, Positions.arange(1, 3))
    with pytest.raises(TypeError, match="needs whole patches"):
        added(encoding, Positions.at(torch.zeros(1, 3, 2)))
    with pytest.raises(ValueError, match="antialias, align_corners: one of them at most"):
        LearnedGrid(2, 3, 2, antialias=True, align_corners=True)
    with pytest.raises(ValueError, match="antialias, align_corners: one of them at most, and both for kernels"):
        LearnedGrid(2, 3, 2, mode="nearest", antialias=True)
    with pytest.raises(ValueError, match="mode: expected one of 'bicubic', 'bilinear', 'nearest', 'bucket', 'tile'"):
        LearnedGrid(2, 3, 2, mode="area")
    with pytest.raises(ValueError, match="axes, reads: expected both or neither"):
        LearnedGrid(2, 3, 2, axes=3)
    with pytest.raises(ValueError, match=r"reads: expected the coordinates \(y, x\)"):
        LearnedGrid(2, 3, 2, axes=3, reads=(0, 1, 2))
    with pytest.raises(ValueError, match=r"reads 3 coordinate\(s\) per token"):
        added(LearnedGrid(2, 3, 2, axes=3, reads=(1, 2)), Positions.grid(3, 2))
    with pytest.raises(ValueError, match="prefix: expected a whole number from 0, got -1"):
        Positions.grid(3, 2, prefix=-1)
    with pytest.raises(ValueError, match="border: expected one of 'repeat', 'zero'"):
        LearnedGrid(2, 3, 2, border="wrap")
    with pytest.raises(ValueError, match="height: expected a whole number from 1, got 0"):
        LearnedGrid(2, 0, 2)


def test_acts_at_the_first_layer_only():
    encoding, at = filled(2, 3, 2), Positions.grid(3, 2)
    x = torch.from_numpy(draw(7, 1, 6, 2))
    assert encoding.at_layer(0) is encoding
    assert torch.equal(encoding.at_layer(1).embed(x, at), x)
    np.testing.assert_allclose(encoding.embed(x, at).detach(), x + encoding.table.detach())


def test_a_surplus_reads_the_grid_a_little_finer():
    """Patch i of n is at (i + ½)·cells/(n + surplus) - ½, as torch reads a grid at a given scale."""
    table = torch.from_numpy(draw(15, 16, 3))
    for height, width in ((3, 5), (7, 2)):
        scale = ((height + 0.1) / 4, (width + 0.1) / 4)
        cells = table.T.reshape(1, 3, 4, 4)
        expected = torch.nn.functional.interpolate(cells, scale_factor=scale, mode="bicubic").flatten(2).transpose(1, 2)
        encoding = filled(3, 4, 4, surplus=0.1, table=table)
        close(added(encoding, Positions.grid(height, width, sized=True)), expected)
    with pytest.raises(ValueError, match="surplus"):
        LearnedGrid(3, 4, 4, mode="nearest", surplus=0.1)
