"""Class I: biases and vectors of the distance."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import posenc
from field_bugs.reference import default_dtype, softmax, t5_bucket
from field_bugs.worlds import attention, heads, near, same, tokens
from posenc import Positions
from posenc.encodings import t5 as t5_module
from posenc.encodings.deberta import DeBERTa
from posenc.encodings.shaw import Shaw
from posenc.encodings.t5 import T5
from posenc.encodings.transformer_xl import TransformerXL
from test_laws import build

at_distance = T5.at_distance


def last_rows(name: str, impl: str = "auto") -> None:
    """Every decoded row over a cache is that row of one pass."""
    encoding, q, k = build(name), heads(1, 40), heads(1, 40, seed=1)
    whole = posenc.attend(q, k, k, encoding, Positions.arange(1, 40), impl=impl)
    for n in (1, 2, 7, 20, 40):
        seen = k[:, :, :n]
        at_q, at_k = Positions.decode([n - 1]), Positions.arange(1, n)
        row = posenc.attend(q[:, :, n - 1 : n], seen, seen, encoding, at_q, at_k, impl=impl)
        near(row, whole[:, :, n - 1 : n], f"{name} {n} tokens", 1e-5)


# I1, I2 -----------------------------------------------------------------------------------------------------------------


def test_I1_a_decoded_row_has_the_bias_of_its_position():
    for name in ("t5", "t5 both ways", "kerple", "fire"):
        last_rows(name)


def plant_I1_a_decoded_query_stands_at_0(patch):
    bias = T5.bias
    patch.setattr(T5, "bias", lambda self, q, k, at_q, at_k: bias(self, q, k, at_q.shift(-at_q.coords[:, 0]), at_k))
    patch.setattr(T5, "structure", posenc.PositionalEncoding.structure)


def plant_I1_the_bias_is_dropped_where_there_is_a_cache(patch):
    bias = T5.bias

    def dropped(self, q, k, at_q, at_k):
        of_pair = bias(self, q, k, at_q, at_k)
        return of_pair if q.shape[2] == k.shape[2] else lambda *pair: 0 * of_pair(*pair)

    patch.setattr(T5, "bias", dropped)
    patch.setattr(T5, "structure", posenc.PositionalEncoding.structure)


def test_I2_cross_attention_has_the_bias_that_is_asked_for_and_no_other():
    """T5's decoder reads no positions of the encoder: its cross-attention is that of NoPE, and the caller says so."""
    x, memory = tokens(1, 3), tokens(1, 6, seed=1)
    for name, reads in (("nope", False), ("t5 both ways", True)):
        model = attention(name)
        near_at, far_at = Positions.arange(1, 6), Positions.arange(1, 6, 40)
        outs = [model(x, Positions.arange(1, 3), memory, at, causal=False) for at in (near_at, far_at)]
        assert torch.equal(*outs) is not reads
    with pytest.raises(ValueError, match="memory, at_memory: expected both or neither"):
        model(x, Positions.arange(1, 3), memory)


def plant_I2_every_attention_has_a_bias(patch):
    bias = posenc.PositionalEncoding.bias

    def always(self, q, k, at_q, at_k):
        made = bias(self, q, k, at_q, at_k)
        return made or (lambda b, h, i, j: (at_q.coords[b, i] - at_k.coords[b, j]).float() * (h + 1) / 10)

    patch.setattr(posenc.encodings.nope.NoPE, "bias", always)
    patch.setattr(posenc.encodings.nope.NoPE, "seams", frozenset({"bias"}))


# I3 ---------------------------------------------------------------------------------------------------------------------

SIZES = {"encoder": (32, 128, True), "decoder": (32, 128, False), "320 buckets": (320, 800, True)}


def changes(n_buckets: int, max_distance: int, both_ways: bool) -> dict[int, int]:
    """Where each bucket begins, for distances up to 100 000 on either side: by whole numbers alone."""
    found, before = {}, None
    for delta in range(-2 * max_distance, 2 * max_distance + 1):
        bucket = t5_bucket(delta, n_buckets, max_distance, both_ways)
        if bucket != before:
            found[delta], before = bucket, bucket
    return found


def test_I3_every_distance_falls_into_its_bucket():
    delta = torch.arange(-100_000, 100_001)
    for what, (n_buckets, max_distance, both_ways) in SIZES.items():
        made = T5(4, n_buckets=n_buckets, max_distance=max_distance, bidirectional=both_ways)
        begins = changes(n_buckets, max_distance, both_ways)
        steps = np.array(sorted(begins))
        expected = np.array([begins[step] for step in steps])[
            np.searchsorted(steps, delta.clamp(steps[0]).numpy(), "right") - 1
        ]
        for how in (lambda e: e, lambda e: e.half(), lambda e: e.to(torch.bfloat16), lambda e: e.double()):
            got = how(made).bucket(delta)
            wrong = (got.numpy() != expected).sum()
            assert wrong == 0, f"{what}: {wrong} distances in wrong buckets"
        for dtype in (torch.int32, torch.int64):
            with default_dtype(torch.bfloat16), torch.autocast("cpu", dtype=torch.bfloat16):
                assert torch.equal(made.bucket(delta.to(dtype)), got)
    small = T5(4).bucket(torch.arange(-100, 101, dtype=torch.int8))
    assert torch.equal(small, T5(4).bucket(torch.arange(-100, 101)))


def by_logarithm(self, delta):
    side, exact = self.exact + len(self.starts) + 1, self.exact
    distance = (delta.abs() if self.after else delta.clamp(min=0)).long()
    most = {15: 128, 31: 128, 159: 800, 319: 800}.get(side - 1, 128)
    far = (
        exact
        + (torch.log(distance.float().clamp(min=1) / exact) / math.log(most / exact) * (side - exact) * (1 - 1e-7)).long()
    )
    bucket = torch.where(distance < exact, distance, far.clamp(max=side - 1))
    return bucket + self.after * (delta < 0) if self.after else bucket


def plant_I3_buckets_by_a_logarithm_in_fp32(patch):
    patch.setattr(t5_module.Buckets, "__call__", by_logarithm)


# I5, I7 -----------------------------------------------------------------------------------------------------------------


def test_I5_shaw_clips_beyond_its_table_and_decodes():
    for impl in ("auto", "reference"):
        last_rows("shaw", impl)
        last_rows("shaw keys", impl)
    encoding = build("shaw")
    q = heads(1, 1)
    at_limit, beyond = (
        posenc.attend(q, q, q, encoding, Positions.decode([encoding.max_distance + more]), Positions.arange(1, 1))
        for more in (0, 1000)
    )
    same(at_limit, beyond)
    assert encoding.row(torch.tensor(0), torch.tensor([-10_000, 10_000])).tolist() == [0, len(encoding.keys) - 1]


def plant_I5_a_row_beyond_the_table_wraps_round(patch):
    patch.setattr(
        Shaw, "row", lambda self, query, key: (key - query + self.max_distance) % (self.max_distance + 1 + self.right)
    )
    patch.setattr(Shaw, "structure", posenc.PositionalEncoding.structure)


def plant_I5_a_decoded_query_is_the_first(patch):
    patch.setattr(Shaw, "row", lambda self, query, key, of=Shaw.row: of(self, query - query.amax(), key))
    patch.setattr(Shaw, "structure", posenc.PositionalEncoding.structure)


def deberta_by_loops(encoding: DeBERTa, q: torch.Tensor, k: torch.Tensor, at_q: list[int], at_k: list[int]) -> np.ndarray:
    """Attention with k as values; rows clipped to the table, asymmetric in sign."""
    content_q, content_k = q[0].double().numpy(), k[0].double().numpy()
    table = {name: encoding.projected(name, torch.float64).detach().numpy() for name in ("key", "query")}  # [h, r, d]
    span, scale = encoding.span, 1 / math.sqrt(3 * q.shape[-1])
    logits = np.zeros((content_q.shape[0], len(at_q), len(at_k)))
    for h, i, j in itertools.product(range(len(logits)), range(len(at_q)), range(len(at_k))):
        row = min(max(at_q[i] - at_k[j] + span, 0), 2 * span - 1)
        logits[h, i, j] = content_q[h, i] @ content_k[h, j]
        logits[h, i, j] += content_q[h, i] @ table["key"][h, row] + content_k[h, j] @ table["query"][h, row]
    return softmax(scale * logits, np.ones_like(logits, dtype=bool)) @ content_k


def test_I7_deberta_by_loops_whatever_the_lengths():
    """More queries than keys, and fewer; rows do not depend on how many there are."""
    encoding = build("deberta").double()
    for queries, keys, start in ((5, 5, 0), (2, 7, 5), (7, 2, 0), (1, 6, 30)):
        q, k = heads(1, queries, dtype=torch.float64), heads(1, keys, dtype=torch.float64, seed=1)
        at_q, at_k = Positions.arange(1, queries, start), Positions.arange(1, keys)
        got = posenc.attend(q, k, k, encoding, at_q, at_k, causal=False)
        expected = deberta_by_loops(encoding, q, k, list(range(start, start + queries)), list(range(keys)))
        near(got[0], expected, f"{queries} {keys} {start}", 1e-10)


def plant_I7_position_to_content_has_the_other_sign(patch):
    bias = DeBERTa.bias

    def turned_round(self, q, k, at_q, at_k):
        right = bias(self, q, k, at_q, at_k)
        row = self.row
        try:
            self.row = lambda delta: row(-delta)
            wrong = bias(self, q * 0, k, at_q, at_k)
            content = bias(self, q * 0, k, at_q, at_k)
        finally:
            del self.row
        mirrored = lambda b, h, i, j: right(b, h, i, j) - content(b, h, i, j) + wrong(b, h, j, i)  # noqa: E731
        return mirrored if at_q.length == at_k.length else lambda *pair: 0.9 * right(*pair)

    patch.setattr(DeBERTa, "bias", turned_round)


def plant_I7_the_length_is_the_largest_distance(patch):
    bias = DeBERTa.bias

    def by_length(self, q, k, at_q, at_k):
        span = self.span
        self.row = lambda delta: (delta + k.shape[2]).clamp(0, 2 * span - 1)
        try:
            of_pair, row = bias(self, q, k, at_q, at_k), self.row
        finally:
            del self.row

        def with_it(*pair):
            self.row = row
            try:
                return of_pair(*pair)
            finally:
                del self.row

        return with_it

    patch.setattr(DeBERTa, "bias", by_length)


def test_I5_transformer_xl_decodes_too():
    for name in ("transformer_xl", "xlnet"):
        last_rows(name)
    assert isinstance(build("transformer_xl"), TransformerXL)


# I8 ---------------------------------------------------------------------------------------------------------------------


def gradients_of_a_table(impl: str, device: str) -> torch.Tensor:
    torch.manual_seed(1)
    encoding, q = T5(4, n_buckets=8, max_distance=16).to(device), heads(1, 40, 16).to(device)
    at = Positions.arange(1, 40, device=device)
    out = posenc.attend(q, q, q, encoding, at, impl=impl)
    (out * heads(1, 40, 16, seed=5).to(device)).sum().backward()
    return encoding.table.grad.cpu()


def test_I8_gradients_of_a_learned_bias_are_those_of_the_definition():
    """Each backend of the CPU that serves a learned bias; FlexAttention refuses to lose a gradient."""
    expected = gradients_of_a_table("reference", "cpu")
    assert float(expected.abs().sum()) > 0.01
    for impl in ("sdpa", "toeplitz", "auto"):
        near(gradients_of_a_table(impl, "cpu"), expected, impl, 1e-5)
    with pytest.raises((ValueError, RuntimeError, NotImplementedError)):
        gradients_of_a_table("flex", "cpu")


@pytest.mark.cuda
def test_I8_on_cuda():
    expected = gradients_of_a_table("reference", "cpu")
    for impl in ("flex", "sdpa", "auto"):
        near(gradients_of_a_table(impl, "cuda"), expected, impl, 1e-4)


def plant_I8_the_table_is_read_without_gradients(patch):
    patch.setattr(T5, "at_distance", lambda self, delta: at_distance(self, delta).detach() + 0 * self.table.sum())
    made = posenc.attention.backends.reference.attend

    def right(call):
        with pytest.MonkeyPatch.context() as undone:
            undone.setattr(T5, "at_distance", at_distance)
            return made(call)

    patch.setattr(posenc.attention.backends.reference, "attend", right)
