"""A small Transformer that takes any encoding. Two arms of an experiment differ by the encoding only.

    x = token embedding
    per layer:  x = encoding.at_layer(n).embed(x)
                x = x + W_o · attend(q, k, v, encoding)     q, k, v = W · norm(x)
                x = x + W_down · gelu(W_up · norm(x))       block gelu
    logits = W_head · norm(x)

The block swiglu is that of models of today, such as Qwen 3: q and k of each head are normalized before they are rotated,
and the feed-forward network is W_down · (silu(W_gate · norm(x)) · (W_up · norm(x))). Henry et al. 2020, arXiv 2010.04245;
Shazeer 2020, arXiv 2002.05202.

A decoder, or an encoder if attention is not causal. Absolute encodings are added to the residual stream at layer 0,
FLOATER's at every layer.
Legend: b rows, t tokens, n target positions, d d_model, h heads, v vocabulary.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.attention import attend
from posenc.encoding import PositionalEncoding
from posenc.encodings.learned import Learned
from posenc.encodings.nope import NoPE
from posenc.lab.experiment.arm import Arm
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.lab.experiment import Size
    from posenc.support.shapes import Float, Int

EMBEDDING = 1.0  # standard deviation of the initial token embeddings


class Norm(nn.Module):
    """x / rms(x) · gain."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = F.rms_norm(x, (x.shape[-1],), self.gain)
        return normed


class Watcher(Protocol):
    """Receives the inputs of a layer's attention, and its positions."""

    def __call__(self, q: Tensor, k: Tensor, encoding: PositionalEncoding, at: Positions) -> None: ...


class Layer(nn.Module):
    impl = "auto"  # the backend of attend; the benchmark of a training step compares "auto" with "reference"
    window: tuple[int | None, int | None] | None = None  # of attend

    def __init__(self, size: Size, causal: bool) -> None:
        super().__init__()
        d, wide = size.d_model, size.widening * size.d_model
        self.n_heads, self.causal = size.n_heads, causal
        self.before_attention, self.before_mlp = Norm(d), Norm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, wide, bias=False), nn.Linear(wide, d, bias=False)

    def forward(
        self, x: Float[Tensor, "b t d"], encoding: PositionalEncoding, at: Positions, watcher: Watcher | None
    ) -> Float[Tensor, "b t d"]:
        x = encoding.embed(x, at)
        hidden = self.before_attention(x)
        at = encoding.read_hidden(hidden, at)
        heads = self.qkv(hidden).unflatten(-1, (3, self.n_heads, -1))  # [b, t, 3, h, dh]
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        q, k = self.scaled(q, k)
        if watcher is not None:
            watcher(q, k, encoding, at)
        out = attend(q, k, v, encoding, at, causal=self.causal, window=self.window, impl=self.impl)
        x = x + self.out(out.transpose(1, 2).flatten(-2))
        return x + self.feed_forward(self.before_mlp(x))

    def scaled(self, q: Float[Tensor, "b h t dh"], k: Float[Tensor, "b h t dh"]) -> tuple[Tensor, Tensor]:
        return q, k

    def feed_forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        widened: Tensor = self.down(F.gelu(self.up(x)))
        return widened


class SwiGLULayer(Layer):
    """The layer of the block swiglu."""

    def __init__(self, size: Size, causal: bool) -> None:
        super().__init__(size, causal)
        d, d_head = size.d_model, size.d_model // size.n_heads
        self.query_norm, self.key_norm = Norm(d_head), Norm(d_head)
        self.gate = nn.Linear(d, size.widening * d, bias=False)

    def scaled(self, q: Float[Tensor, "b h t dh"], k: Float[Tensor, "b h t dh"]) -> tuple[Tensor, Tensor]:
        return self.query_norm(q), self.key_norm(k)

    def feed_forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        widened: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return widened


BLOCKS = {"gelu": Layer, "swiglu": SwiGLULayer}


class Transformer(nn.Module):
    """`model(tokens, model.prepare(at))`; `positions` is the number of positions seen in training."""

    def __init__(self, arm: Arm, size: Size, *, vocabulary: int, causal: bool, positions: int, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            self.embedding = nn.Embedding(vocabulary, size.d_model)
            self.layers = nn.ModuleList(BLOCKS[size.block](size, causal) for _ in range(size.n_layers))
            self.last_norm = Norm(size.d_model)
            self.head = nn.Linear(size.d_model, vocabulary, bias=False)
            draw(self, seed, size.n_layers)
            torch.manual_seed(seed_of("encoding", seed))
            self.encodings = arm.create(
                d_model=size.d_model, n_heads=size.n_heads, n_layers=size.n_layers, positions=positions, causal=causal
            )
            self._draw_tables(arm.table_std(EMBEDDING))
        for n, layer in enumerate(self.layers):
            assert isinstance(layer, Layer)
            if arm.window is not None and not isinstance(self.encoding(n), NoPE):
                layer.window = (arm.window - 1, arm.window - 1)

    @torch.no_grad()
    def _draw_tables(self, std: float) -> None:
        """Draws the parameters. Learned rows have the scale of the embeddings that they are added to, as in BERT and GPT-2.

        With a deviation of 0.02 beside 1, the model does not use them during half of a short training (LOG.md).
        """
        for encoding in self.encodings:
            if isinstance(encoding, Learned):
                encoding.table.normal_(0, std)

    def prepare(self, at: Positions) -> Positions:
        """Computes tables for all layers. Layers with the same configuration share one table.

        Layers that each learn their own tables compute them themselves.
        """
        first = self.encodings[0]
        if len(self.encodings) > 1 and first.learned_tables:
            return at
        prepared: Positions = first.prepare(at)  # type: ignore[operator]
        return prepared

    def forward(self, tokens: Int[Tensor, "b t"], at: Positions) -> Float[Tensor, "b t v"]:
        return self.logits(self.hidden(tokens, at))

    def hidden(self, tokens: Int[Tensor, "b t"], at: Positions, watcher: Watcher | None = None) -> Float[Tensor, "b t d"]:
        """The residual stream after the last layer."""
        x: Tensor = self.embedding(tokens)
        for n, layer in enumerate(self.layers):
            x = layer(x, self.encoding(n), at, watcher)
        return x

    def logits(self, x: Float[Tensor, "*places d"]) -> Float[Tensor, "*places v"]:
        logits: Tensor = self.head(self.last_norm(x))
        return logits

    def encoding(self, n: int) -> PositionalEncoding:
        """The encoding of layer n: its own module, or its view of the shared one."""
        encoding = self.encodings[n if len(self.encodings) > 1 else 0].at_layer(n)  # type: ignore[operator]
        assert isinstance(encoding, PositionalEncoding)
        return encoding

    def drop_positions(self) -> None:
        """Removes the encoding from all layers; the other weights stay."""
        self.encodings = nn.ModuleList([PositionalEncoding()])

    def encoding_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.encodings.parameters())


@torch.no_grad()
def draw(model: nn.Module, seed: int, n_layers: int) -> None:
    """Draws every matrix from a generator seeded by its name, so that all arms have the same weights.

    N(0, 1/fan_in); matrices that write to the residual stream are divided by √(2 layers); embeddings N(0, 1); the head
    N(0, 0.06²), so that the first predictions are nearly uniform.
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        std: float = parameter.shape[1] ** -0.5
        if name.endswith(("out.weight", "down.weight")):
            std /= (2 * n_layers) ** 0.5
        std = {"embedding.weight": EMBEDDING, "head.weight": 0.06}.get(name, std)
        parameter.normal_(0, std, generator=torch.Generator().manual_seed(seed_of(name, seed)))


def seed_of(name: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{name} {seed}".encode()).digest()[:7], "big")
