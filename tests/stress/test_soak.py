"""Many decoded tokens: a rolling cache and a growing one, without growth in memory beyond the keys, and without drift."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch

from field_bugs.worlds import near
from posenc import Attention, KeyValueCache, Positions, create
from sampling import only

WINDOW, D_MODEL, N_HEADS = 256, 32, 2
NAMES = ("rope", "alibi")
SPARE = 24 * 2**20  # what the allocator may keep, in bytes


def resident() -> int:
    """Bytes of this process in memory now."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("resident memory is read from /proc")
    gc.collect()
    line = next(one for one in status.read_text().splitlines() if one.startswith("VmRSS"))
    return 1024 * int(line.split()[1])


def layer(name: str) -> Attention:
    torch.manual_seed(0)
    return Attention(D_MODEL, N_HEADS, create(name, d_model=D_MODEL, n_heads=N_HEADS)).eval()


def words(first: int, last: int) -> torch.Tensor:
    """Tokens first … last - 1: of a fixed text that repeats itself after 8191 tokens."""
    text = torch.randn(8191, D_MODEL, generator=torch.Generator().manual_seed(1))
    return text[torch.arange(first, last) % 8191][None]


def expected(name: str, first: int, last: int) -> torch.Tensor:
    """The output of token last - 1 over tokens first … last - 1, in float64 and in one pass."""
    exact = layer(name).double()
    return exact(words(first, last).double(), Positions.arange(1, last - first, first))[:, -1:]


@torch.no_grad()
def rolled(name: str, steps: int) -> None:
    """`steps` tokens, of which the cache holds the last WINDOW: right at every power of ten, and as large as before."""
    model, cache, text = layer(name), None, words(0, 8191)
    looked_at, memory = {10**n - 1 for n in range(1, 8)} | {steps - 1}, 0
    for n in range(steps):
        x = text[:, n % 8191 : n % 8191 + 1]
        if cache is not None and cache.at.length == WINDOW:
            cache = KeyValueCache(cache.k[:, :, 1:], cache.v[:, :, 1:], cache.at.narrow(1, WINDOW))
        out, cache = model.decode(x, Positions.decode([n]), cache)
        if n in looked_at:
            near(out, expected(name, max(0, n + 1 - WINDOW), n + 1), f"{name}, token {n}", 2e-6)
        if n == min(2000, steps // 2):
            memory = resident()
    assert cache.at.coords[0].tolist() == list(range(steps - WINDOW, steps))
    assert resident() - memory < SPARE, f"{name}: {(resident() - memory) >> 20} MiB more than after 2000 tokens"


@torch.no_grad()
def grown(name: str, steps: int) -> None:
    """`steps` tokens that all stay in the cache: right at every power of ten, and no more memory than the keys need."""
    model, cache, text = layer(name), None, words(0, 8191)
    looked_at, memory = {10**n - 1 for n in range(1, 8)} | {steps - 1}, resident()
    for n in range(steps):
        out, cache = model.decode(text[:, n % 8191 : n % 8191 + 1], Positions.decode([n]), cache)
        if n in looked_at:
            near(out, expected(name, 0, n + 1), f"{name}, token {n}", 2e-6)
            if n < steps - 1:
                memory = resident()
    at = cache.at
    held = sum(one.untyped_storage().nbytes() for one in (cache.k, cache.v, at.coords, at.order, at.document))
    assert held == steps * (2 * D_MODEL * 4 + 3 * 8), "the cache holds more than keys, values and positions"
    assert resident() - memory < SPARE + 4 * held


@pytest.mark.acceptance
@pytest.mark.parametrize("name", only(NAMES, "rope"))
def test_a_short_rolling_cache(name):
    rolled(name, 1500)


@pytest.mark.acceptance
def test_a_short_growing_cache():
    grown("rope", 600)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", NAMES)
def test_a_million_tokens_over_a_rolling_cache(name):
    rolled(name, 1_000_000)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", NAMES)
def test_twenty_thousand_tokens_over_a_growing_cache(name):
    grown(name, 20_000)


def test_drift_and_growth_are_noticed(monkeypatch):
    """Planted: decoded tokens whose positions run away, and a list that keeps every table."""
    from posenc.encodings.rope import RoPE
    from posenc.kernels.rotation import few_tokens

    made, kept = RoPE.tables, []

    def drifts(self, at, dtype):
        return made(self, at.replaced(coords=at.coords.double() * (1 + 1e-5)) if at.length == 1 else at, dtype)

    monkeypatch.setattr(few_tokens, "serves", lambda frequencies: False)  # which makes its tables itself
    monkeypatch.setattr(RoPE, "tables", drifts)
    with pytest.raises(AssertionError, match="differ"):
        rolled("rope", 1500)

    def leaks(self, at, dtype):
        kept.append(torch.ones(40_000))
        return made(self, at, dtype)

    monkeypatch.setattr(RoPE, "tables", leaks)
    with pytest.raises(AssertionError, match="MiB more than after 2000 tokens"):
        rolled("rope", 1500)
