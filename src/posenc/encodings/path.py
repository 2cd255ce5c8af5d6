"""A path of Householder-like reflections between key and query, each made by a token in between.

    q_i·k_j  becomes  k_jᵀ H_{j+1} H_{j+2} … H_i q_i,   H_t = I - β_t w_t w_tᵀ
    β_t = 2σ(u·x_t + c),   w_t = SiLU(short convolution of W x)_t, brought to length 1;   W of low rank

Yang et al. 2025, "PaTH Attention: Position Encoding via Accumulating Householder Transformations", section 2. The rank,
SiLU and 1e-6 under the root of the length are those of the authors' code in flash-linear-attention. With a forget gate on
top: path_fox.py.

By blocks of B tokens: with L = strictly lower part of diag(β) W Wᵀ in a block and T = (I + L)⁻¹ diag(β),
    H_1 … H_B = I - (T W)ᵀ W,   k_jᵀ H_{j+1} … H_r q = q·k_j - Σ_{s > j, t ≤ r} (k_j·w_s) T_ts (w_t·q)
Legend: b batch, h query heads, g key heads, i query, j key, t tokens, d d_head, m d_model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, scale_of
from posenc.encodings.bases.content_dependent import (
    ReadsEarlierTokens,
    along_the_path,
    carried,
    cut,
    entries,
    filled_up,
    short_convolution,
    taken,
)
from posenc.kernels.eager import exporting
from posenc.positions import Positions
from posenc.structure import Blocks
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, for_heads, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

BLOCK = 64  # tokens of the path that queries pass at once where all pairs are held
QUERIES = 128  # queries of a block in longer rows, and the tokens that keys pass at once there
SMALLEST = 1e-6  # added under the root of the length of w


class PaTH(ReadsEarlierTokens):
    """k·H…H·q in the place of q·k, each H from the hidden state of a token between key and query, the query's included.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    d_head      channels of a head
    n_kv_heads  key heads, each with a path of its own; None: n_heads
    rank        of the projection to w
    conv_size   tokens that the short convolution reads, this one included

    Parameters: down [rank, d_model] and up [n_kv_heads·d_head, rank]; taps [n_kv_heads·d_head, conv_size];
    turn [n_kv_heads, d_model] and turn_offset [n_kv_heads] of β. Call read_hidden(x, at) once a layer; `Attention` does.
    With β = 0 it is NoPE. A call's own scale and softcap are refused, since q·k is replaced.
    Time O(queries·keys·(d + 64)); memory O(queries·keys). A causal row of more than 128 tokens is taken by blocks of 128
    queries, in memory O(queries·(d + 128 + d²/128)) without gradients. For every token the cache holds two vectors of
    n_kv_heads·d_head more.
    """

    @checked
    def __init__(
        self, d_model: int, n_heads: int, d_head: int, *, n_kv_heads: int | None = None, rank: int = 32, conv_size: int = 3
    ) -> None:
        checks.whole(rank=rank, conv_size=conv_size)
        super().__init__(
            d_model=d_model, n_heads=n_heads, d_head=d_head, n_kv_heads=n_kv_heads, rank=rank, conv_size=conv_size
        )
        paths = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads % paths:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {paths}")
        self.d_model, self.n_heads, self.d_head, self.paths, self.conv_size = d_model, n_heads, d_head, paths, conv_size
        self.earlier = conv_size - 1
        self.down = nn.Parameter(torch.empty(rank, d_model))
        self.up = nn.Parameter(torch.empty(paths * d_head, rank))
        self.taps = nn.Parameter(torch.empty(paths * d_head, conv_size))
        self.turn, self.turn_offset = nn.Parameter(torch.empty(paths, d_model)), nn.Parameter(torch.zeros(paths))
        for parameter in (self.down, self.up, self.taps, self.turn):
            bound = parameter.shape[1] ** -0.5
            nn.init.uniform_(parameter, -bound, bound)

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """W x, w and β of every token."""
        plain = F.linear(F.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype))
        before = None if past is None else (past, self.state(past)[0])
        w = F.silu(short_convolution(plain, self.taps, at, before)).unflatten(-1, (self.paths, self.d_head))
        w = w * (w.square().sum(dim=-1, keepdim=True) + SMALLEST).rsqrt()
        beta = 2 * F.linear(x, self.turn.to(x.dtype), self.turn_offset.to(x.dtype)).sigmoid()
        return plain, w, beta

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        w, beta = self._path(q, at_k)
        index, places = along_the_path(at_q, at_k)
        with full_precision(q):
            if not (q.shape[2] and k.shape[2]):
                return entries(q @ k.transpose(-1, -2))  # no pairs
            if index is None:
                scores = path_scores(q, k, w, beta, places)
            else:
                sorted_k, w, beta = (taken(x.transpose(1, 2), index).transpose(1, 2) for x in (k, w, beta))
                scores = path_scores(q, sorted_k, w, beta, places)
                scores = scores.gather(-1, index.argsort(dim=1)[:, None, None].expand_as(scores))
            correction = (scores - q @ k.transpose(-1, -2)).mul_(scale_of(self, self.d_head))
        return entries(correction)

    def structure(self) -> Blocks:
        return Blocks(self._logits, QUERIES)

    def _logits(self, q: Tensor, k: Tensor, at: Positions) -> Iterator[Tensor]:
        return cut(by_blocks(q * scale_of(self, self.d_head), k, *self._path(q, at)), q.shape[2])

    def _path(self, q: Tensor, at: Positions) -> tuple[Float[Tensor, "b h j d"], Float[Tensor, "b h j"]]:
        """w and β of every token for each query head."""
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        _, w, beta = (state.to(q.dtype) for state in self.state(at))
        return for_heads(self, w, q, "paths"), for_heads(self, beta, q, "paths")

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> PaTH:
        """The slice's query heads, each with a path of its own."""
        part = PaTH(**{**self.configuration, "n_heads": stop - start, "n_kv_heads": stop - start}).to(self.down)
        rows = [head // (self.n_heads // self.paths) for head in range(start, stop)]
        part.down.copy_(self.down)
        for name in ("turn", "turn_offset"):
            getattr(part, name).copy_(getattr(self, name)[rows])
        for name in ("up", "taps"):
            whole = getattr(self, name).unflatten(0, (self.paths, self.d_head))
            getattr(part, name).copy_(whole[rows].flatten(0, 1))
        return part


def path_scores(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b h j d"],
    w: Float[Tensor, "b h j d"],
    beta: Float[Tensor, "b h j"],
    places: Int[Tensor, "b i"],
) -> Float[Tensor, "b h i j"]:
    """k_j·H_{j+1} … H_p·q_i for every pair, p the query's place among the keys, which lie in the order of the path."""
    if exporting():
        raise NotImplementedError(
            "PaTH: passes the blocks of keys one after the other in Python, so that an exported graph would be right for "
            "one number of blocks only; ONNX has no triangular solve either"
        )
    keys = k.shape[2]
    k, w, along, whole = _passages(k, w, beta, BLOCK)
    by_block = []
    for block in reversed(range(k.shape[2])):  # the query passes the blocks from its own place backwards
        passed = torch.arange(block * BLOCK, (block + 1) * BLOCK, device=q.device) <= places[..., None]  # [b, i, t]
        met = (q @ w[:, :, block].transpose(-1, -2)) * passed[:, None]
        by_block.append(q @ k[:, :, block].transpose(-1, -2) - met @ along[:, :, block])
        q = q - met @ whole[:, :, block]
    scores = torch.cat(by_block[::-1], dim=-1)
    if torch.compiler.is_compiling():
        return scores.index_select(-1, torch.arange(keys, device=q.device))
    return scores[..., :keys]


def by_blocks(
    q: Float[Tensor, "b h t d"], k: Float[Tensor, "b h t d"], w: Float[Tensor, "b h t d"], beta: Float[Tensor, "b h t"]
) -> Iterator[Float[Tensor, "b h i j"]]:
    """The same for tokens in causal order, each a query and a key: blocks of queries with all keys up to the end of their
    block, the last token again where the last block is not full. Entries for later keys are -inf.

    A query passes its own block backwards once, a key passes its own block and then every block after it: k ← k·H_1 … H_B.
    """
    q = q.index_select(2, filled_up(q.shape[2], QUERIES, q.device)).unflatten(2, (-1, QUERIES))
    k, w, along, whole = _passages(k, w, beta, QUERIES)
    met = (q @ w.transpose(-1, -2)).tril()
    later = torch.ones(QUERIES, QUERIES, dtype=torch.bool, device=q.device).triu(1)
    near = (q @ k.transpose(-1, -2) - met @ along).masked_fill(later, -torch.inf)
    passed = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device) - whole.transpose(-1, -2) @ w  # H_1 … H_B, [… d, d]
    keys = k - along.transpose(-1, -2) @ w
    return carried(q - met @ whole, keys, near, lambda held, block: held @ passed[:, :, block])


def _passages(k: Tensor, w: Tensor, beta: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Keys and w by blocks, [b, h, blocks, B, d]; T (W Kᵀ) of the keys before each w, [… t, j], and T W, [… t, d]."""
    keys = k.shape[2]
    filled = filled_up(keys, block, k.device)  # the last key again where a block is not full, with β = 0
    beta = beta.index_select(2, filled) * (torch.arange(len(filled), device=k.device) < keys)
    k, w = (x.index_select(2, filled).unflatten(2, (-1, block)) for x in (k, w))
    beta = beta.unflatten(2, (-1, block))
    lower = (beta[..., None] * (w @ w.transpose(-1, -2))).tril(-1)
    eye = torch.eye(block, dtype=k.dtype, device=k.device)
    inverse = torch.linalg.solve_triangular(eye + lower, eye * beta[..., None, :], upper=False, unitriangular=True)
    return k, w, inverse @ (w @ k.transpose(-1, -2)).tril(-1), inverse @ w
