"""Learned tables as model families number and combine them, against their own modules and rows read by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.bases.learned_axes import LearnedAxes, with_sizes
from posenc.encodings.learned import Learned

from .by_hand import close, draw


def theirs(family: str, name: str):
    module = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    return getattr(module, name)


def drawn(*modules) -> None:
    """Every parameter drawn anew, also the row of padding that a fresh module keeps at zero."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for module in modules:
            for parameter in module.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))


def zeros(at: Positions, d: int) -> torch.Tensor:
    return torch.zeros(at.batch, at.length, d, dtype=torch.float64)


# One table -------------------------------------------------------------------------------------------------------------

IDS = torch.tensor([[5, 6, 7, 8, 1, 1], [1, 1, 5, 6, 7, 8], [4, 1, 3, 2, 7, 1]])  # 1 is padding


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("roberta", "RobertaEmbeddings"),
        ("longformer", "LongformerEmbeddings"),
        ("camembert", "CamembertEmbeddings"),
        ("mpnet", "MPNetEmbeddings"),
    ],
)
def test_roberta_counts_real_tokens_from_padding_idx_J1(family, name):
    """514 rows serve 512 tokens; padding reads row padding_idx, even where that row is not zero."""
    from transformers import MPNetConfig, RobertaConfig

    config = (MPNetConfig if family == "mpnet" else RobertaConfig)(
        vocab_size=10, hidden_size=4, max_position_embeddings=9, pad_token_id=1, type_vocab_size=1
    )
    embeddings = theirs(family, name)(config)
    drawn(embeddings)
    rows = embeddings.position_embeddings.weight.detach()
    numbers = (
        theirs(family, "create_position_ids_from_input_ids")(IDS, 1)
        if hasattr(
            __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"]),
            "create_position_ids_from_input_ids",
        )
        else embeddings.create_position_ids_from_input_ids(IDS, 1)
    )
    encoding = Learned(4, 9 - 2, row_offset=2, padding_row=1).double()
    encoding.load_state_dict({"table": rows})
    at = Positions.from_mask(IDS != 1)
    got = encoding.embed(zeros(at, 4), at)
    close(got, embeddings.position_embeddings(numbers).double())
    expected = np.zeros((*IDS.shape, 4))
    for b, row in enumerate(IDS.tolist()):
        number = 1
        for t, token in enumerate(row):
            number += token != 1
            expected[b, t] = rows[number if token != 1 else 1].numpy()
    close(got, expected)


def test_padding_is_not_asked_for_its_position():
    encoding = Learned(4, 3, row_offset=2, padding_row=0)
    at = Positions(torch.tensor([[99, 2]]), torch.tensor([[0, 1]]), torch.tensor([[-1, 0]]))
    close(encoding.embed(torch.zeros(1, 2, 4), at)[0], encoding.table[[0, 4]])
    with pytest.raises(ValueError, match="position 99 is outside 0 … 2"):
        Learned(4, 3, row_offset=2).embed(torch.zeros(1, 2, 4), at)


def test_bart_and_opt_start_two_rows_late():
    bart = theirs("bart", "BartLearnedPositionalEmbedding")(8, 4)
    opt = theirs("opt", "OPTLearnedPositionalEmbedding")(8, 4)
    encoding = Learned(4, 8, row_offset=2).double()
    encoding.load_state_dict({"table": bart.weight})
    at = Positions.arange(2, 5, 3)
    close(encoding.embed(zeros(at, 4), at), bart(IDS[:2, :5], past_key_values_length=3).detach().double().expand(2, -1, -1))
    encoding.load_state_dict({"table": opt.weight})
    mask = (IDS != 1).long()
    at = Positions.from_mask(mask)
    got, real = encoding.embed(zeros(at, 4), at), mask.bool()
    close(got[real], opt(mask).detach().double()[real])
    # OPT gives padding the row before position 0: row 1.
    padded = Learned(4, 8, row_offset=2, padding_row=1).double()
    padded.load_state_dict({"table": opt.weight})
    close(padded.embed(zeros(at, 4), at), opt(mask).detach().double())


def test_the_last_row_serves_whatever_is_beyond_TAPAS():
    encoding = Learned(4, 3, clamp=True).double()
    at = Positions.at(torch.tensor([[0, 2, 3, 1000]]))
    close(encoding.embed(zeros(at, 4), at)[0], encoding.table[[0, 2, 2, 2]])
    with pytest.raises(ValueError, match="position -1 is outside"):
        encoding.embed(zeros(at, 4), at.shift(-1))


def test_tapas_counts_within_cells():
    from transformers import TapasConfig

    config = TapasConfig(
        vocab_size=5,
        hidden_size=4,
        max_position_embeddings=3,
        type_vocab_sizes=[1, 9, 9, 1, 1, 1, 1],
        reset_position_index_per_cell=True,
    )
    module = theirs("tapas", "TapasEmbeddings")(config).eval()
    drawn(module)
    columns = torch.tensor([[0, 0, 1, 1, 2, 1, 1, 1, 1], [3, 3, 3, 3, 3, 0, 3, 3, 1]])
    rows = torch.tensor([[0, 0, 0, 0, 0, 1, 0, 1, 1], [1, 1, 1, 1, 1, 0, 1, 2, 1]])
    numbers = []
    handle = module.position_embeddings.register_forward_hook(lambda _, given, __: numbers.append(given[0]))
    types = torch.stack([torch.zeros_like(rows), columns, rows, *[torch.zeros_like(rows)] * 4], dim=-1)
    module(input_ids=torch.zeros_like(rows), token_type_ids=types)
    handle.remove()
    encoding = Learned(4, 3, clamp=True).double()
    encoding.load_state_dict({"table": module.position_embeddings.weight})
    at = Positions.within(rows * 100 + columns)
    close(encoding.embed(zeros(at, 4), at), module.position_embeddings.weight.detach().double()[numbers[0]])
    firsts = [
        [[(r, c) for r, c in zip(*row, strict=True)].index(cell) for cell in zip(*row, strict=True)]
        for row in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    assert at.coords.tolist() == [[t - first for t, first in enumerate(row)] for row in firsts]
    assert at.coords.max() > 3
    with pytest.raises(ValueError, match="segments: expected an integer tensor"):
        Positions.within(torch.zeros(2, 3))


@pytest.mark.parametrize("size", [3, 8, 11, 20])
@pytest.mark.parametrize("mode", ["nearest", "centres"])
def test_resize_modes(mode, size):
    encoding = Learned(3, 8, row_offset=1, padding_row=0).double()
    resized = encoding.resize(size, mode)
    table = encoding.table.detach().numpy()
    expected = [table[0]]
    for i in range(size):
        if mode == "nearest":
            expected.append(table[1 + i * 8 // size])
        else:
            place = min(max((i + 0.5) * 8 / size - 0.5, 0), 7)
            below = min(int(place), 6)
            expected.append((1 - (place - below)) * table[1 + below] + (place - below) * table[2 + below])
    close(resized.table, np.array(expected))
    assert (resized.padding_row, resized.row_offset, resized.max_positions) == (0, 1, size)


# A table for every coordinate ------------------------------------------------------------------------------------------


def filled(encoding: LearnedAxes, tables) -> LearnedAxes:
    encoding = encoding.double()
    encoding.load_state_dict({f"axis_tables.{n}": table for n, table in enumerate(tables)})
    return encoding


BOXES = torch.tensor([[[0, 1, 4, 9], [3, 3, 3, 5]], [[10, 2, 11, 4], [7, 0, 9, 1]]])
NAMES = ("x", "y", "h", "w")


def test_layoutlm_sums_six_rows_of_four_tables():
    from transformers import LayoutLMConfig

    config = LayoutLMConfig(
        vocab_size=5, hidden_size=4, max_2d_position_embeddings=12, max_position_embeddings=3, type_vocab_size=1
    )
    module = theirs("layoutlm", "LayoutLMEmbeddings")(config).eval()
    drawn(module)
    tables = [getattr(module, f"{name}_position_embeddings").weight.detach() for name in NAMES]
    encoding = filled(LearnedAxes(4, (12,) * 4, axes=6, shares=(0, 1, 0, 1, 2, 3)), tables)
    at = Positions.at(with_sizes(BOXES))
    got = encoding.embed(zeros(at, 4), at)
    x, y, h, w = (table.double().numpy() for table in tables)
    expected = np.zeros((2, 2, 4))
    for b, t in np.ndindex(2, 2):
        x0, y0, x1, y1 = BOXES[b, t].tolist()
        expected[b, t] = x[x0] + y[y0] + x[x1] + y[y1] + h[y1 - y0] + w[x1 - x0]
    close(got, expected)
    module.LayerNorm = torch.nn.Identity()
    ids = torch.zeros(2, 2, dtype=torch.long)
    boxed, unboxed = (module(input_ids=ids, bbox=bbox) for bbox in (BOXES, torch.zeros_like(BOXES)))
    at_zero = Positions.at(with_sizes(torch.zeros_like(BOXES)))
    close(got - encoding.embed(zeros(at, 4), at_zero), (boxed - unboxed).detach().double(), 1e-5)


def test_udop_sums_corners_and_deformable_levels_stand_alone():
    module = theirs("udop", "UdopCellEmbeddings")(11, 4)
    corners = torch.rand(2, 3, 4, generator=torch.Generator().manual_seed(0))
    tables = [module.x_position_embeddings.weight, module.y_position_embeddings.weight]
    encoding = filled(LearnedAxes(4, (11, 11), axes=4, shares=(0, 1, 0, 1)), tables)
    at = Positions.at((corners * 10).long())
    close(encoding.embed(zeros(at, 4), at), module(corners).detach().double(), 1e-6)
    # one table of feature levels, read from the first of three coordinates
    levels, table = LearnedAxes(4, (3,), axes=3, reads=(0,)), torch.from_numpy(draw(3, 3, 4))
    at = Positions.at(torch.tensor([[[2, 7, 900], [0, 4, 1]]]))
    close(filled(levels, [table]).embed(zeros(at, 4), at)[0], table[[2, 0]])


def test_layoutlmv3_puts_six_rows_side_by_side():
    widths = dict(zip(NAMES, (3, 3, 2, 2), strict=True))
    module = SimpleNamespace(**{f"{name}_position_embeddings": torch.nn.Embedding(12, widths[name]) for name in NAMES})
    expected = theirs("layoutlmv3", "LayoutLMv3TextEmbeddings").calculate_spatial_position_embeddings(module, BOXES)
    tables = [getattr(module, f"{name}_position_embeddings").weight for name in NAMES]
    encoding = LearnedAxes(16, (12,) * 4, axes=6, shares=(0, 1, 0, 1, 2, 3), combine="concat", widths=(3, 3, 3, 3, 2, 2))
    at = Positions.at(with_sizes(BOXES))
    close(filled(encoding, tables).embed(zeros(at, 16), at), expected.detach().double())


@pytest.mark.parametrize(("family", "prefix"), [("detr", "Detr"), ("grounding_dino", "GroundingDino"), ("florence2", "")])
def test_detr_puts_columns_before_rows(family, prefix):
    d = 9 if family == "florence2" else 8
    if family == "detr":
        module = theirs(family, "DetrLearnedPositionEmbedding")(4)
        expected = module((1, 8, 3, 5), torch.device("cpu"), torch.float32)
    elif family == "grounding_dino":
        module = theirs(family, "GroundingDinoLearnedPositionEmbedding")(SimpleNamespace(d_model=8))
        expected = module(torch.zeros(1, 8, 3, 5))
    else:
        vision = SimpleNamespace(max_position_embeddings=50, embed_dim=[d])
        module = theirs(family, "Florence2VisionLearnedAbsolutePositionEmbedding2D")(SimpleNamespace(vision_config=vision))
        expected = module(torch.zeros(1, d, 3, 5))
    encoding = LearnedAxes(d, (50, 50), reads=(1, 0), combine="concat", widths=(d - d // 2, d // 2))
    filled(encoding, [module.column_embeddings.weight, module.row_embeddings.weight])
    at = Positions.grid(3, 5)
    close(encoding.embed(zeros(at, d), at), expected.detach().double().flatten(2).transpose(1, 2))


def test_gemma4_sums_x_and_y_and_leaves_padding_alone():
    patches = torch.tensor([[[0, 3], [2, 1], [-1, -1]], [[4, 4], [1, 0], [3, 2]]])  # (x, y)
    table = torch.from_numpy(draw(1, 2, 5, 6))
    module = SimpleNamespace(position_embedding_table=table)
    patcher = theirs("gemma4", "Gemma4VisionPatchEmbedder")
    expected = patcher._position_embeddings(module, patches, (patches == -1).all(-1))
    encoding = filled(LearnedAxes(6, (5, 5), silent="negative"), table)
    at = Positions.at(patches)
    close(encoding.embed(zeros(at, 6), at), expected)
    assert expected[0, 2].abs().max() == 0


def test_pix2struct_sums_rows_and_columns():
    from transformers import Pix2StructVisionConfig

    config = Pix2StructVisionConfig(hidden_size=6, patch_embed_hidden_size=4, seq_len=7, dropout_rate=0.0)
    module = theirs("pix2struct", "Pix2StructVisionEmbeddings")(config)
    places = torch.tensor([[[1, 1], [1, 2], [6, 3], [0, 0]]])
    flattened = torch.cat([places.float(), torch.from_numpy(draw(2, 1, 4, 4)).float()], dim=-1)
    x = module.patch_projection(flattened[..., 2:]).double()
    encoding = filled(LearnedAxes(6, (7, 7)), [module.row_embedder.weight, module.column_embedder.weight])
    close(encoding.embed(x, Positions.at(places)), module(flattened).double().detach(), 1e-6)


def test_reformer_folds_one_position_into_two():
    config = SimpleNamespace(
        axial_pos_shape=(4, 5),
        axial_pos_embds_dim=(2, 4),
        hidden_size=6,
        hidden_dropout_prob=0.0,
        attn_layers=["local"],
        local_attn_chunk_length=4,
        lsh_attn_chunk_length=4,
    )
    module = theirs("reformer", "AxialPositionEmbeddings")(config).eval()
    drawn(module)
    numbers = torch.tensor([[0, 4, 5, 13, 19], [7, 6, 18, 1, 2]])
    encoding = LearnedAxes(6, (4, 5), combine="concat", widths=(2, 4), folded=True)
    filled(encoding, [weight.detach().reshape(-1, weight.shape[-1]) for weight in module.weights])
    at = Positions.at(numbers)
    got = encoding.embed(zeros(at, 6), at)
    close(got, module(numbers).detach().double())
    rows, columns = (table.detach().numpy() for table in encoding.axis_tables)
    close(got[0, 3], np.concatenate([rows[2], columns[3]]))  # 13 = 2·5 + 3
    with pytest.raises(ValueError, match="coordinate 0: position 20 is outside 0 … 19"):
        encoding.embed(zeros(at, 6), at.shift(1))


def test_gradients_reach_the_rows_that_were_read():
    encoding = LearnedAxes(4, (3, 3)).double()
    at = Positions.at(torch.tensor([[[0, 2], [0, 1]]]))
    encoding.embed(zeros(at, 4), at).sum().backward()
    close(encoding.axis_tables[0].grad[:, 0], np.array([2.0, 0, 0]))
    close(encoding.axis_tables[1].grad[:, 0], np.array([0, 1.0, 1.0]))


def test_wrong_arguments():
    at = Positions.at(torch.tensor([[[0, 3]]]))
    with pytest.raises(ValueError, match="coordinate 1: position 3 is outside 0 … 2"):
        LearnedAxes(4, (3, 3)).embed(torch.zeros(1, 1, 4), at)
    with pytest.raises(ValueError, match="coordinate 0: position -1 is outside 0 … 2"):
        LearnedAxes(4, (3, 3)).embed(torch.zeros(1, 1, 4), Positions.at(torch.tensor([[[-1, 2]]])))
    with pytest.raises(ValueError, match="coordinate 0: position -1 is outside 0 … 2"):
        LearnedAxes(4, (3, 3)).embed(torch.zeros(1, 1, 4), Positions.at(torch.tensor([[[-1, -1]]])))
    with pytest.raises(TypeError, match="needs integer positions"):
        LearnedAxes(4, (3, 3)).embed(torch.zeros(1, 1, 4), Positions.at(torch.zeros(1, 1, 2)))
    with pytest.raises(ValueError, match=r"widths: expected 2 widths with the sum d_model=5, got \(2, 2\)"):
        LearnedAxes(5, (3, 3), combine="concat")
    with pytest.raises(ValueError, match="widths: summed blocks"):
        LearnedAxes(4, (3, 3), widths=(2, 2))
    with pytest.raises(ValueError, match=r"shares: expected a table 0 … 1 for each of 2 blocks"):
        LearnedAxes(4, (3, 3), shares=(0, 0))
    with pytest.raises(ValueError, match="widths: blocks that share a table need one width"):
        LearnedAxes(4, (3,), axes=2, shares=(0, 0), combine="concat", widths=(1, 3))
    with pytest.raises(ValueError, match="combine: expected one of 'sum', 'concat'"):
        LearnedAxes(4, (3, 3), combine="product")
    with pytest.raises(ValueError, match="folded: the position is one number"):
        LearnedAxes(4, (3, 3), reads=(1, 0), folded=True)
    with pytest.raises(ValueError, match="max_positions: expected a whole number from 1 for every table"):
        LearnedAxes(4, (3, 0))
    with pytest.raises(ValueError, match=r"boxes: expected \[b, t, 4\]"):
        with_sizes(torch.zeros(1, 2, 6))
    with pytest.raises(ValueError, match="padding_row: expected a row 0 … 4, got 5"):
        Learned(4, 3, row_offset=2, padding_row=5)
    with pytest.raises(ValueError, match="mode: expected one of 'ends', 'centres', 'nearest'"):
        Learned(4, 3).resize(4, "cubic")


def test_negative_silences_by_the_coordinates_that_are_read():
    """TimeSformer's class token stands at frame -1 and at a column of its own."""
    axes = LearnedAxes(4, (3,), axes=2, reads=(0,), silent="negative")
    x = torch.randn(1, 2, 4)
    added = axes.embed(x, Positions.at(torch.tensor([[[-1, 5], [2, -7]]]))) - x
    assert torch.equal(added[0, 0], torch.zeros(4))
    torch.testing.assert_close(added[0, 1], axes.axis_tables[0][2])
