"""NoPE, RoPE and ALiBi in plain torch, without posenc: an independent control of the lab's language model.

    python examples/plain_torch_control.py train.txt held-out.txt --steps 300

Same model, training and scoring as the preset `quick` (docs/lab.md), written again from its description: a decoder of two
layers, width 64, four heads, pre-norm, GELU, bytes. Random numbers and windows differ, so scores agree within seed noise,
not bit for bit. Prints bits per byte of the last 32 bytes of held-out windows, by context length.

Legend: b rows, t tokens, h heads, c channels of a head.
"""

import argparse
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, LENGTH, ROWS = 64, 4, 2, 64, 16
RATE, WARMUP, TARGETS = 8e-3, 0.1, 32


def rope(x, base=10000.0):
    """Turns the pair (2n, 2n+1) of token p by the angle p · base^(-2n/c). x is [b, h, t, c]."""
    tokens, channels = x.shape[-2:]
    frequency = base ** (-torch.arange(0, channels, 2, dtype=torch.float64) / channels)
    angle = torch.arange(tokens, dtype=torch.float64)[:, None] * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def alibi(tokens):
    """-slope · (i - j), slopes 2^(-8/h), 2^(-16/h) …: [h, t, t]."""
    slopes = 2.0 ** (-8.0 * torch.arange(1, HEADS + 1) / HEADS)
    at = torch.arange(tokens)
    return -slopes[:, None, None] * (at[:, None] - at[None, :])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x, encoding):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if encoding == "rope":
            q, k = rope(q), rope(k)
        logits = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if encoding == "alibi":
            logits = logits + alibi(t)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        mixed = logits.masked_fill(future, -math.inf).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Model(nn.Module):
    def __init__(self, encoding, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.encoding = encoding
        self.embedding, self.head = nn.Embedding(256, WIDTH), nn.Linear(WIDTH, 256, bias=False)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.RMSNorm(WIDTH)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                std = weight.shape[1] ** -0.5
                std /= (2 * LAYERS) ** 0.5 if name.endswith(("out.weight", "down.weight")) else 1
                nn.init.normal_(weight, std={"embedding.weight": 1.0, "head.weight": 0.06}.get(name, std))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.encoding)
        return self.head(self.norm(x))


def trained(encoding, seed, text, steps):
    model = Model(encoding, seed)
    matrices = [weight for weight in model.parameters() if weight.ndim == 2]
    others = [weight for weight in model.parameters() if weight.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95))
    draw = torch.Generator().manual_seed(1000 + seed)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / (WARMUP * steps)) * (1 - step / steps)
        start = torch.randint(len(text) - LENGTH, (ROWS, 1), generator=draw)
        rows = text[start + torch.arange(LENGTH + 1)]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


@torch.no_grad()
def bits(model, text, length, longest):
    """Bits of the last 32 bytes of every window of the longest length, with `length` bytes of context."""
    windows = text[: len(text) // (longest + 1) * (longest + 1)].view(-1, longest + 1)[:, -length - 1 :]
    losses = [
        F.cross_entropy(model(part[:, :-1])[:, -TARGETS:].flatten(0, 1), part[:, -TARGETS:].flatten(), reduction="none")
        for part in windows.split(16)
    ]
    return torch.cat(losses).mean().item() / math.log(2)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("train", type=Path)
    options.add_argument("held_out", type=Path)
    options.add_argument("--steps", type=int, default=500)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 256])
    given = options.parse_args()
    train, held_out = (torch.tensor(list(path.read_bytes())) for path in (given.train, given.held_out))
    found = {}
    for encoding in ("nope", "rope", "alibi"):
        models = [trained(encoding, seed, train, given.steps) for seed in range(given.seeds)]
        found[encoding] = {
            length: [bits(model, held_out, length, max(given.lengths)) for model in models] for length in given.lengths
        }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
