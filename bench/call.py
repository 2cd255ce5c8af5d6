"""One call of `attend` on few keys: what the Python around the kernel costs. Positions are prepared, as README says.

    floor   F.scaled_dot_product_attention(is_causal=True) on the same q, k, v; a mask makes it slower, which is a row

Legend: b batch, h heads, t tokens, d channels of a head.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from bench import truth
from bench.bias import Inputs, explicit
from bench.contest import Contender, Contest, Entry, from_call
from bench.gate import rounding
from bench.plan import Case

METHODS = ("NoPE", "RoPE", "ALiBi", "T5", "Shaw")
CALLS = 200  # in a turn: one takes some ten microseconds


def build(case: Case, device: str = "cpu") -> Contest:
    floor = Inputs(case, device)
    hidden = floor.may()[:, None]

    def torch_s(**options: object) -> Contender:
        q, k, v = floor.qkv
        return from_call(torch.no_grad()(lambda: [F.scaled_dot_product_attention(q, k, v, **options)]))  # type: ignore[arg-type]

    def allowed(_: str, exact: Sequence[Tensor]) -> list[float]:
        """Roundings of logits up to the largest, and of a sum of weights times values."""
        return [64 * rounding(torch.float32) * max(x.abs().max().item() for x in exact)]

    entries = [Entry("torch, given a mask", "torch", functools.partial(torch_s, attn_mask=hidden), truth="NoPE")]
    entries += [Entry(name, "posenc", functools.partial(ours, case, name, device), truth=name) for name in METHODS]
    return Contest(
        Entry("torch", "torch", functools.partial(torch_s, is_causal=True)),
        entries,
        {name: functools.partial(exact, case, name, device) for name in METHODS},
        allowed,
        repeat=CALLS,
    )


def ours(case: Case, method: str, device: str) -> Contender:
    from posenc.attention import attend

    inputs = Inputs(replace(case, name=method), device)
    with torch.no_grad():  # as the call, so that few tokens carry no table of a rotation
        (q, k, v), (encoding, at) = inputs.qkv, inputs.posenc()
    return from_call(torch.no_grad()(lambda: [attend(q, k, v, encoding, at)]))


def exact(case: Case, method: str, device: str) -> list[Tensor]:
    """The formula in fp64."""
    inputs, rows = Inputs(replace(case, name=method), device), torch.arange(case.length, device=device)
    if method not in ("NoPE", "RoPE"):
        return explicit(inputs, rows, torch.float64)
    q, k, v = (x.double() for x in inputs.qkv)
    if method == "RoPE":
        q, k = (truth.rotated(x, rows[None], "half") for x in (q, k))
    each = [
        truth.attention(q[:, n], k[:, n], v[:, n], lambda logits, _: logits, inputs.may(), rows, inputs.scale)
        for n in range(case.heads)
    ]
    return [torch.stack(each, dim=1)]
