"""Two models of the lab's study, to be stretched: trained at 128 bytes, they continue texts of up to 1024.

    posenc lab run study                     trains and scores them with sixty-eight others (results/study)
    python -m posenc.explorer.train_stretch  trains these two alone and writes stretch.npz; needs the extra lab

    ENCODING.parameter …   float16   the weights after training; the lab's names
    tale.LANGUAGE          uint8     the start of a held-out text

A model reads bytes and says the next one. YaRN is no third model: it is the one with RoPE, with other frequencies.
Legend: t bytes.
"""

from __future__ import annotations

import codecs
import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.attention.module import Attention, KeyValueCache
from posenc.catalogue.lookup import create
from posenc.explorer import recorded
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding
    from posenc.support.shapes import Float

FILE = Path(__file__).parent / "stretch.npz"
PROMPTS = {  # words of the held-out tales, whose text before them is the rest of the prompt
    "zh": "银杏村没有人知道赵志川为什么",
    "en": "Klaistai wanted to buy the yellow quilt from Kigres for",
}
TALE = 4096  # bytes of a held-out text in the record
WRITTEN = 64  # bytes that a model writes
BYTES = 256
Trained = Literal["alibi", "rope"]


def about() -> dict[str, Any]:
    """Settings and provenance of the record."""
    return recorded.about(FILE)


def prompt(text: str, length: int) -> bytes:
    """The last `length` bytes of a held-out tale that goes on with the text: a Chinese one for a Chinese text."""
    language = "zh" if re.search("[\u3000-\u9fff]", text) else "en"
    tale = recorded.arrays(FILE)[f"tale.{language}"].tobytes()
    before = tale[: tale.index(PROMPTS[language].encode())]
    return (before + text.encode())[-length:]


def readable(text: bytes) -> str:
    """The text of some bytes. Of a character that is cut at either end nothing is left; other wrong bytes are �."""
    start = next((n for n, byte in enumerate(text[:4]) if byte & 0xC0 != 0x80), 0)
    return codecs.getincrementaldecoder("utf-8")("replace").decode(text[start:])


class Read(NamedTuple):
    """What a model does with a prompt of t bytes.

    bits      of every byte but the first: -log2 of the probability that the model gave it
    written   the bytes that it writes after the prompt, always the most probable one
    """

    bits: Float[Tensor, "t-1"]
    written: bytes


class Block(nn.Module):
    def __init__(self, d_model: int, n_heads: int, widening: int, encoding: PositionalEncoding) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = nn.RMSNorm(d_model), nn.RMSNorm(d_model)
        self.attention = Attention(d_model, n_heads, encoding)
        self.up = nn.Linear(d_model, widening * d_model, bias=False)
        self.down = nn.Linear(widening * d_model, d_model, bias=False)

    def forward(self, x: Tensor, at: Positions, cache: KeyValueCache | None) -> tuple[Tensor, KeyValueCache]:
        seen, cache = self.attention.decode(self.before_attention(x), at, cache)
        x = x + seen
        return x + self.down(F.gelu(self.up(self.before_mlp(x)))), cache


class Model(nn.Module):
    """The lab's Transformer of posenc.Attention blocks, in fp64: posenc.replace_encoding changes its positions."""

    def __init__(self, size: dict[str, int], encoding: PositionalEncoding) -> None:
        super().__init__()
        d_model = size["d_model"]
        self.embedding, self.last_norm = nn.Embedding(BYTES, d_model), nn.RMSNorm(d_model)
        self.blocks = nn.ModuleList(
            Block(d_model, size["n_heads"], size["widening"], encoding) for _ in range(size["n_layers"])
        )
        self.head = nn.Linear(d_model, BYTES, bias=False)

    def forward(
        self, tokens: Tensor, at: Positions, caches: list[KeyValueCache | None] | None = None
    ) -> tuple[Tensor, list[KeyValueCache | None]]:
        """Logits of the next bytes, and the caches that the byte after them needs."""
        x, kept = self.embedding(tokens), list[KeyValueCache | None]()
        for block, past in zip(self.blocks, caches or [None] * len(self.blocks), strict=True):
            x, longer = block(x, at, past)
            kept.append(longer)
        return self.head(self.last_norm(x)), kept

    @torch.no_grad()
    def read(self, text: bytes) -> Read:
        """Reads a text of at least two bytes and writes what follows."""
        logits, caches = self(torch.tensor([list(text)]), Positions.arange(1, len(text)))
        bits, written = _bits(logits, text), [int(logits[0, -1].argmax())]
        while len(written) < WRITTEN:
            at = Positions.decode([len(text) + len(written) - 1])
            logits, caches = self(torch.tensor([written[-1:]]), at, caches)
            written.append(int(logits[0, -1].argmax()))
        return Read(bits, bytes(written))

    @torch.no_grad()
    def bits(self, text: bytes) -> Float[Tensor, "t-1"]:
        """The bits of `read`, without writing."""
        return _bits(self(torch.tensor([list(text)]), Positions.arange(1, len(text)))[0], text)


def _bits(logits: Tensor, text: bytes) -> Float[Tensor, "t-1"]:
    return F.cross_entropy(logits[0, : len(text) - 1], torch.tensor(list(text[1:])), reduction="none") / math.log(2)


def load(encoding: Trained) -> Model:
    """The trained model with an encoding."""
    size = about()["size"]
    model = Model(size, create(encoding, d_model=size["d_model"], n_heads=size["n_heads"])).double().eval()
    model.load_state_dict(_weights(encoding))
    return model


@cache
def _weights(encoding: str) -> dict[str, Tensor]:
    """The weights under the names that `Model` has for them: the lab's projection qkv is three."""
    weights = dict[str, Tensor]()
    for lab, array in recorded.arrays(FILE).items():
        if not lab.startswith(f"{encoding}."):
            continue
        name, values = lab.removeprefix(f"{encoding}."), torch.from_numpy(array).double()
        name = name.replace("layers.", "blocks.").replace(".gain", ".weight").replace(".out.", ".attention.out.")
        if "qkv" not in name:
            weights[name] = values
            continue
        for part, projection in zip(("query", "key", "value"), values.chunk(3), strict=True):
            weights[name.replace("qkv", f"attention.{part}")] = projection
    return weights
