"""Class F: which position a token has."""

from __future__ import annotations

import itertools

import pytest
import torch

import posenc
import posenc.encodings.rope
from field_bugs.planting import ends_in
from field_bugs.reference import frequencies, rotated
from field_bugs.worlds import ROTARY, ROW_BY_ROW, attention, heads, near, outputs, same, tokens, world
from posenc import Positions, positions, shard_index
from posenc.attention.backends import reference, sdpa
from posenc.encodings.rope import RoPE
from posenc.frequencies import longrope, rotary
from posenc.kernels.sin_cos import sin_cos
from test_laws import build

PADDED = ("learned", "sinusoidal", "rope", "xpos", "alibi", "t5", "shaw", "transformer_xl", "cope", "fox", "path")
of_mask, of_ends, of_decoding = Positions.from_mask, Positions.packed, Positions.decode

# F1, F2 -----------------------------------------------------------------------------------------------------------------


def test_F1_a_row_padded_on_the_left_is_the_row_alone():
    """A rotation alone would not show it: its scores do not change when all positions move."""
    pad, length = 3, 6
    for name in PADDED:
        of = world(name, batch=1, length=pad + length)
        encoding = build(name)
        mask = torch.tensor([[0] * pad + [1] * length])
        padded = of.output(encoding, of.x, Positions.from_mask(mask))[:, :, pad:]
        near(padded, of.output(encoding, of.x[:, pad:], Positions.arange(1, length)), name)
    far = RoPE(8, frequencies=longrope(rotary(8), [1.0] * 4, [3.0] * 4, 16, factor=4.0), length=40)
    at = Positions.from_mask(torch.tensor([[0, 0, 1, 1]]))
    near(far.rotate(heads(1, 4), at, "key")[:, :, 2:], far.rotate(heads(1, 4)[:, :, 2:], Positions.arange(1, 2), "key"), "")


def test_F1_rows_of_other_padding_decode_at_their_own_positions():
    for name in ("rope", "learned", "sinusoidal", "alibi", "t5"):
        model, x = attention(name), tokens(2, 7)
        mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
        _, cache = model.decode(x[:, :5], Positions.from_mask(mask))
        out, _ = model.decode(x[:, 5:6], Positions.decode(mask.sum(dim=1)), cache)
        for row, begin in enumerate((2, 0)):
            alone = model(x[row : row + 1, begin:6], Positions.arange(1, 6 - begin))
            near(out[row : row + 1], alone[:, -1:], f"{name} row {row}")


@ends_in(ValueError)  # Attention.decode refuses it
def plant_F1_padding_is_counted(patch):
    def counts_all(mask):
        at = of_mask(mask)
        index = torch.arange(mask.shape[1])[None].expand(mask.shape)
        return Positions(index, index, at.document)

    patch.setattr(Positions, "from_mask", staticmethod(counts_all))


def test_F2_after_padding_on_the_right_the_next_position_is_the_rows_length():
    for name in ("rope", "learned", "sinusoidal", "alibi", "t5", "shaw"):
        model, x = attention(name), tokens(2, 8)
        mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
        lengths = mask.sum(dim=1)
        _, cache = model.decode(x[:, :5], Positions.from_mask(mask))
        for step in range(2):
            out, cache = model.decode(x[:, 5 + step : 6 + step], Positions.decode(lengths + step), cache)
        for row, length in enumerate(lengths.tolist()):
            seen = torch.cat([x[row : row + 1, :length], x[row : row + 1, 5:7]], dim=1)
            alone = model(seen, Positions.arange(1, length + 2))
            near(out[row : row + 1], alone[:, -1:], f"{name} row {row}")


@ends_in(ValueError)  # Attention.decode refuses it
def plant_F2_decoding_goes_on_from_the_width_of_the_batch(patch):
    def from_the_widest(lengths, **named):
        return of_decoding(torch.full_like(torch.as_tensor(lengths), int(torch.as_tensor(lengths).max())), **named)

    patch.setattr(Positions, "decode", staticmethod(from_the_widest))


# F3, F4 -----------------------------------------------------------------------------------------------------------------


def test_F3_the_same_document_twice_in_a_row_gives_the_same_twice():
    for name in PADDED:
        of, encoding = world(name, batch=1, length=10), build(name)
        x = torch.cat([of.x[:, :5], of.x[:, :5]], dim=1)
        packed = of.output(encoding, x, Positions.packed([0, 5, 10]))
        alone = of.output(encoding, x[:, :5], Positions.arange(1, 5))
        near(packed[:, :, :5], alone, f"{name}, first")
        near(packed[:, :, 5:], alone, f"{name}, second")


def plant_F3_positions_run_on(patch):
    def runs_on(ends, **named):
        at = of_ends(ends, **named)
        return Positions(at.order, at.order, at.document)

    patch.setattr(Positions, "packed", staticmethod(runs_on))


def plant_F3_positions_restart_but_documents_see_each_other(patch):
    def sees_all(ends, **named):
        at = of_ends(ends, **named)
        return Positions(at.coords, at.order, at.document * 0)

    patch.setattr(Positions, "packed", staticmethod(sees_all))


def test_F4_a_mask_with_document_numbers_is_refused():
    with pytest.raises(ValueError, match="document numbers go to packed"):
        Positions.from_mask(torch.tensor([[1, 1, 2, 2, 2, 0]]))
    assert Positions.packed([0, 2, 5]).coords.tolist() == [[0, 1, 0, 1, 2]]


def plant_F4_document_numbers_count_as_real_tokens(patch):
    patch.setattr(positions, "check_mask", lambda mask, shape: None)


# F5, F6 -----------------------------------------------------------------------------------------------------------------


def test_F5_axes_are_said_and_never_guessed_from_a_rank():
    ids = torch.arange(27).reshape(3, 3, 3)  # axes, batch and tokens are all 3
    at = Positions.mrope(ids)
    assert at.coords.shape == (3, 3, 3)
    assert at.coords[1, 2].tolist() == ids[:, 1, 2].tolist()
    listed = Positions.at(ids)
    assert listed.coords[1, 2].tolist() == ids[1, 2].tolist()
    for name in ("rope", "sinusoidal", "learned", "alibi"):
        of = world(name, batch=3, length=3)
        with pytest.raises(ValueError, match="coordinate"):
            of.output(build(name), of.x, at)
    multimodal = posenc.create("mrope", d_head=8, sizes=(2, 1, 1))
    with pytest.raises(ValueError, match="coordinate"):
        multimodal.rotate(heads(3, 3), Positions.arange(3, 3), "query")


def test_F5_positions_of_one_row_and_of_every_row():
    x = heads(3, 3)
    row = Positions.at(torch.tensor([[4, 9, 2]]))
    every = Positions.at(torch.tensor([[4, 9, 2]] * 3))
    same(RoPE(8).rotate(x, row, "query"), RoPE(8).rotate(x, every, "query"))
    with pytest.raises(ValueError, match="coords"):
        Positions.at(torch.tensor([4, 9, 2]))


def plant_F5_three_axes_are_taken_for_rows(patch):
    patch.setattr(Positions, "mrope", staticmethod(Positions.at))


def test_F6_the_values_of_positions_count_and_not_their_number():
    at = Positions.at(torch.tensor([[5, 9, 2, 2]]))
    for name in (*ROTARY, "sinusoidal", "learned"):
        encoding = build(name)
        whole = outputs(encoding, at)
        for n in range(4):
            alone = (
                encoding.embed(tokens(1, 4)[:, n : n + 1], at.take([n])),
                encoding.rotate(heads(1, 4)[:, :, n : n + 1], at.take([n]), "query"),
            )
            near(whole[0][:, n : n + 1], alone[0], f"{name} embed {n}", 1e-6)
            near(whole[1][:, :, n : n + 1], alone[1], f"{name} rotate {n}", 1e-6)


def test_F6_tokens_in_another_order_give_the_same_in_that_order():
    order = [2, 0, 3, 1]
    for name in ROW_BY_ROW:
        of, encoding = world(name, batch=1, length=4), build(name)
        q, k, v, at = of.heads(encoding, of.x, Positions.at(torch.tensor([[5, 9, 12, 30]])))
        whole = of.attend(encoding, q, k, v, at)
        mixed = of.attend(encoding, q[:, :, order], k[:, :, order], v[:, :, order], at.take(order))
        near(mixed, whole[:, :, order], name, 5e-6)


def plant_F6_positions_are_counted_from_the_first(patch):
    def counted(at, frequencies, dtype):
        index = torch.arange(at.length)[None] + at.coords[:, :1]
        return sin_cos(at.replaced(coords=index), frequencies, dtype)

    patch.setattr(posenc.encodings.rope, "sin_cos", counted)


# F8, F11 ----------------------------------------------------------------------------------------------------------------


def test_F8_every_chunking_gives_what_one_pass_gives():
    n = 6
    chunkings = [cuts for size in range(n) for cuts in itertools.combinations(range(1, n), size)]
    for name in ("rope", "learned", "sinusoidal", "alibi", "t5", "shaw", "cope", "fox"):
        model, x = attention(name), tokens(1, n)
        expected = model(x, Positions.arange(1, n))
        for cuts in chunkings if name == "rope" else chunkings[::7]:
            cache, outs = None, []
            for begin, end in itertools.pairwise((0, *cuts, n)):
                at = Positions.decode([begin]) if end - begin == 1 else Positions.arange(1, end - begin, begin)
                out, cache = model.decode(x[:, begin:end], at, cache)
                outs.append(out)
            near(torch.cat(outs, dim=1), expected, f"{name} {cuts}")


@ends_in(ValueError)  # Attention.decode refuses it
def plant_F8_every_decoded_token_is_at_position_0(patch):
    patch.setattr(Positions, "decode", staticmethod(lambda lengths, **named: of_decoding([0] * len(lengths), **named)))


@ends_in(ValueError)  # Attention.decode refuses it
def plant_F8_the_offset_counts_twice(patch):
    made = Positions.arange.__func__

    def twice(cls, batch, length, start=0, **named):
        return made(cls, batch, length, 2 * start, **named)

    patch.setattr(Positions, "arange", classmethod(twice))


def multimodal() -> RoPE:
    return posenc.create("mrope", d_head=8, sizes=(2, 1, 1))


def test_F11_text_alone_is_the_rotation_of_one_axis():
    coords = torch.arange(5, 11)[None]
    got = multimodal().rotate(heads(1, 6), Positions.mrope(coords.expand(3, 1, 6)), "query")
    near(got, rotated(heads(1, 6), range(5, 11), frequencies(8, 1e6), "half"), "text")


def test_F11_chunks_of_a_picture_and_its_text_are_the_whole():
    """What position the text after a picture has is an argument of every row; no module keeps it."""
    encoding, at = multimodal(), posenc.positions_by("mrope_ids", text=3, height=2, width=3, after=2)
    n = at.length
    x = heads(1, n)
    whole = encoding.rotate(x, at, "key")
    for cut in range(1, n):
        parts = [encoding.rotate(x[:, :, part], at.take(list(part_of)), "key") for part, part_of in split(cut, n)]
        near(torch.cat(parts, dim=2), whole, f"cut at {cut}", 1e-6)
    rows = torch.tensor([[[7]], [[30]]]).expand(2, 1, 3)  # two requests, each with its own delta
    decoded = encoding.rotate(heads(2, 1), Positions.at(rows), "key")
    for row, position in enumerate((7, 30)):
        expected = rotated(heads(2, 1)[row : row + 1], [position], frequencies(8, 1e6), "half")
        near(decoded[row : row + 1], expected, f"row {row}")


def split(cut: int, n: int):
    return [(slice(0, cut), range(cut)), (slice(cut, n), range(cut, n))]


def plant_F11_the_first_row_decides(patch):
    made = RoPE.tables

    def tables(self, at, dtype):
        first = at.replaced(coords=at.coords[:1].expand(at.coords.shape))
        return made(self, first if self.axes == 3 else at, dtype)

    patch.setattr(RoPE, "tables", tables)


def plant_F11_positions_count_within_a_chunk(patch):
    made = RoPE.tables

    def tables(self, at, dtype):
        within = at.replaced(coords=at.coords - at.coords[:, :1])
        return made(self, within if self.axes == 3 else at, dtype)

    patch.setattr(RoPE, "tables", tables)


# F10, F13 ---------------------------------------------------------------------------------------------------------------


def test_F10_the_tokens_of_every_rank():
    assert [shard_index(8, rank, 2, zigzag=True, cu_seqlens=[0, 4, 8]).tolist() for rank in (0, 1)] == [
        [0, 3, 4, 7],
        [1, 2, 5, 6],
    ]
    assert [shard_index(8, rank, 4).tolist() for rank in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert shard_index(8, 1, 2, zigzag=True).tolist() == [2, 3, 4, 5]


def test_F10_shards_of_every_rank_give_the_whole():
    """All ranks, not the first alone: contiguous and zigzag, one document and packed ones."""
    n = 16
    for name in ("rope", "sinusoidal", "learned", "alibi", "t5", "xpos", "shaw", "cope"):
        of, encoding = world(name, batch=1, length=n), build(name)
        for ends, size, zigzag in itertools.product(([0, n], [0, 8, n]), (2, 4), (False, True)):
            at = Positions.packed(ends)
            q, k, v, at = of.heads(encoding, of.x, at)
            whole = of.attend(encoding, q, k, v, at)
            shards = [shard_index(n, rank, size, zigzag=zigzag, cu_seqlens=ends) for rank in range(size)]
            gathered = torch.cat(shards)
            scattered = torch.empty_like(whole)
            for rank, index in enumerate(shards):
                mine = at.shard(rank, size, zigzag=zigzag, cu_seqlens=ends)
                out = of.attend(encoding, q[:, :, index], k[:, :, gathered], v[:, :, gathered], mine, at.take(gathered))
                scattered[:, :, index] = out
            near(scattered, whole, f"{name} {ends} {size} {zigzag}", 5e-6)


def plant_F10_every_rank_counts_from_0(patch):
    def from_zero(self, rank, size, **named):
        return Positions.arange(self.batch, self.length // size)

    patch.setattr(Positions, "shard", from_zero)


def plant_F10_documents_are_not_cut_one_by_one(patch):
    made = positions.shard_index
    whole = lambda length, rank, size, *, zigzag=False, cu_seqlens=None: made(length, rank, size, zigzag=zigzag)  # noqa: E731
    patch.setitem(test_F10_the_tokens_of_every_rank.__globals__, "shard_index", whole)


def test_F13_the_causal_mask_follows_positions_where_counts_differ():
    for queries, keys in ((1, 5), (2, 5), (5, 2), (5, 5)):
        start = max(keys - queries, 0)
        at_q, at_k = Positions.arange(1, queries, start), Positions.arange(1, keys)
        q, k, v = heads(1, queries), heads(1, keys, seed=1), heads(1, keys, seed=2)
        for impl in ("reference", "sdpa", "auto"):
            out = posenc.attend(q, k, v, posenc.create("nope"), at_q, at_k, impl=impl)
            for i in range(queries):
                seen = start + i + 1
                alone = posenc.attend(
                    q[:, :, i : i + 1],
                    k[:, :, :seen],
                    v[:, :, :seen],
                    posenc.create("nope"),
                    at_q.take([i]),
                    at_k.narrow(0, min(seen, keys)),
                    causal=False,
                    impl="reference",
                )
                near(out[:, :, i : i + 1], alone, f"{impl} {queries} {keys} {i}")


def plant_F13_the_mask_is_cut_at_the_upper_left_corner(patch):
    def upper_left(at_q, at_k, causal, *rest):
        return torch.ones(1, 1, at_q.length, at_k.length, dtype=torch.bool).tril()

    for backend in (reference, sdpa):
        if hasattr(backend, "allowed"):
            patch.setattr(backend, "allowed", upper_left)
