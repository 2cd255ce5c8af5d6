"""A transformers model of SmolLM2's sizes: as it is, with posenc's rotation kernel, and with its own RoPE attached.

    floor   the model alone; compiled: the model alone, compiled

Weights are random. Exact results are the logits of the model alone in fp64.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from bench.contest import Contender, Contest, Entry, from_call
from bench.gate import limits
from bench.plan import Case

VOCABULARY = 4096  # of 49 152: the head is no part of what is compared


def build(case: Case, device: str = "cpu") -> Contest:
    def logits(change: Callable[[Any], object], dtype: torch.dtype = torch.float32) -> Contender:
        model = loaded(case, device, dtype)
        change(model)
        forward = (
            torch.compile(model, fullgraph=True) if case.name.startswith("compiled") and dtype == torch.float32 else model
        )
        source = torch.Generator().manual_seed(1)
        tokens = torch.randint(VOCABULARY, (case.batch, case.cached + case.length), generator=source).to(device)
        return from_call(
            decoding(model, tokens, case.cached) if case.cached else lambda: [forward(tokens, use_cache=False).logits]
        )

    def allowed(_: str, exact: Sequence[Tensor]) -> list[float]:
        """Four times the error of the model alone, and a few roundings for the order of sums."""
        return limits(logits(unchanged).results(), exact, times=4, roundings=16)

    changes = {"fast": fast} if case.name.startswith("compiled") else {"fast": fast, "its own RoPE attached": attached}
    return Contest(
        Entry("the model alone", "transformers", lambda: logits(unchanged)),
        [Entry(name, "posenc", lambda change=change: logits(change)) for name, change in changes.items()],  # type: ignore[misc]
        {"": logits(unchanged, torch.float64).results},
        allowed,
        ("logits",),
    )


def loaded(case: Case, device: str, dtype: torch.dtype) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    d_model = case.heads * case.width
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=d_model, intermediate_size=8 * d_model // 3, num_hidden_layers=case.layers,
        num_attention_heads=case.heads, num_key_value_heads=case.kv_heads, max_position_embeddings=8192,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0}, tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    return LlamaForCausalLM(config).eval().requires_grad_(False).to(device, dtype)


def decoding(model: Any, tokens: Tensor, cached: int) -> Callable[[], list[Tensor]]:
    """The logits of the last token after a cache of the others, which is the same for every call."""
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    model(tokens[:, :cached], past_key_values=cache)

    def step() -> list[Tensor]:
        out: Tensor = model(tokens[:, cached:], past_key_values=cache).logits
        cache.crop(cached - tokens.shape[1])  # negative: how many to drop
        return [out]

    return step


def _subject() -> Any:
    """posenc.transformers, imported by name as the peers are, since bench and it are on one floor."""
    return importlib.import_module("posenc.transformers")


def unchanged(_: Any) -> None:
    """The floor."""


def fast(model: Any) -> None:
    _subject().fast(model)


def attached(model: Any) -> None:
    import posenc

    config = model.config
    d_head = config.hidden_size // config.num_attention_heads
    _subject().attach(model, posenc.create("rope", d_head=d_head, base=100_000.0, layout="half"))
