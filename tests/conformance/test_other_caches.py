"""The caches of mlx-lm and vLLM: target other-caches of tools/acceptance.py. docs/caches.md has the releases."""

from __future__ import annotations

import pytest
import torch

from conformance import vllm_caches
from posenc import Attention, Positions, create
from posenc.attention.pages import slots
from posenc.checking.bugs import BUGS
from posenc.checking.caches import check_cache

LAWS_OF_ALL = {"decode_equals_prefill", "earlier_calls_do_not_matter", "other_dtypes_do_not_matter"}


def checked(adapter):
    results = check_cache(adapter.write, adapter.read, adapter.crop, window=getattr(adapter, "window", None))
    return {one.law: one for one in results}


def verdicts(results, verdict):
    return {law for law, one in results.items() if one.verdict == verdict}


@pytest.fixture
def mlx():
    pytest.importorskip("mlx_lm.models.cache")
    from conformance import mlx_caches

    return mlx_caches


@pytest.mark.parametrize("kind", ["Growing", "Quantized", "Batch"])
def test_growing_caches_of_mlx_lm_hold(mlx, kind):
    results = checked(getattr(mlx, kind)())
    assert verdicts(results, "passed") == LAWS_OF_ALL | {"rollback_equals_never_seen"}
    assert not verdicts(results, "failed")


@pytest.mark.parametrize("kind", ["Rotating", "BatchRotating"])
def test_rotating_caches_of_mlx_lm_hold_and_refuse_to_be_rolled_back_once_full(mlx, kind):
    results = checked(getattr(mlx, kind)())
    assert verdicts(results, "passed") == LAWS_OF_ALL | {"ring_equals_window"}
    assert results["rollback_equals_never_seen"].verdict == "not declared"


def test_the_concatenating_cache_of_mlx_lm_keeps_rejected_drafts(mlx):
    """`trim` lowers its offset, and the next tokens are put after those that were trimmed."""
    results = checked(mlx.Concatenating())
    assert verdicts(results, "failed") == {"rollback_equals_never_seen"}
    assert results["rollback_equals_never_seen"].bug is BUGS["rolled back"]


def test_faults_are_seen_through_the_adapters(mlx, monkeypatch):
    monkeypatch.setattr(mlx.mlx_cache.KVCache, "trim", lambda self, n: n)
    assert verdicts(checked(mlx.Growing()), "failed") == {"rollback_equals_never_seen"}
    monkeypatch.setattr(mlx.mlx_cache.RotatingKVCache, "_temporal_order", lambda self, v: v)
    assert "ring_equals_window" in verdicts(checked(mlx.Rotating()), "failed")


@pytest.fixture
def vllm():
    path = vllm_caches.extension()
    if path is None:
        pytest.skip("vLLM for the CPU is not installed")
    torch.ops.load_library(str(path))
    return vllm_caches


def test_the_paged_cache_of_vllm_holds_row_by_row(vllm):
    results = checked(vllm.Paged())
    assert verdicts(results, "passed") == LAWS_OF_ALL | {"rollback_equals_never_seen", "rows_have_their_own_positions"}
    assert not verdicts(results, "failed")


@torch.no_grad()
@pytest.mark.parametrize("name", ["rope", "alibi"])
def test_the_attention_of_vllm_reads_the_table_of_a_paged_cache(vllm, name):
    """Its kernel over a store that its operator has written, through our slots and our table, after a rollback by row."""
    torch.manual_seed(0)
    layer = Attention(128, 4, create(name, d_head=32, n_heads=4))
    x = torch.randn(2, 48, 128)
    mask = torch.ones(2, 40, dtype=torch.long)
    mask[0, :7] = 0
    _, cache = layer.decode(x[:, :40], Positions.from_mask(mask))
    cache = cache.crop([31, 36])
    paged = cache.paged(32, 6).reserve([32, 37])
    at = Positions.decode([31, 36])
    expected, paged = layer.decode(x[:, 40:41], at, paged)
    store = torch.zeros(2, 6, 4, 32, 32)
    for row, length in enumerate((32, 37)):
        slot = slots(paged.table[row : row + 1], torch.arange(length)[None], 32)[0]
        vllm.write(store, *(x[row].transpose(0, 1)[slot] for x in (paged.k, paged.v)), slot)
    q = (
        layer.encoding.rotate(layer._split(layer.query(x[:, 40:41])), at, "query")
        .transpose(1, 2)
        .flatten(0, 1)
        .contiguous()
    )
    out, lengths, starts = torch.empty_like(q), torch.tensor([32, 37], dtype=torch.int32), torch.tensor([0, 1, 2]).int()
    plan = torch.ops._C.get_scheduler_metadata(2, 4, 4, 32, lengths, q.dtype, starts, True, -1, "vec", True, None, "auto")
    slopes = 2.0 ** (-2.0 * torch.arange(1, 5)) if name == "alibi" else None
    table = paged.table.clamp(min=0).int()
    torch.ops._C.cpu_attention_with_kv_cache(
        *(q, store[0], store[1], out, starts, lengths, 32**-0.5, True, slopes, -1, table, 0.0, plan, None, None, 1.0, 1.0),
        "auto",
    )
    torch.testing.assert_close(layer.out(out.flatten(1)), expected[:, 0], rtol=2e-5, atol=2e-6)
