"""A diffusion transformer on synthetic images: text and patches in one sequence, with FLUX's positions and without any.

    text "blue", "row 2", "column 4"   ─►  an image of 6 × 6 pixels with a blue square there

The model learns the velocity from noise to image (rectified flow, Liu et al. 2022) and draws by Euler steps. Text stands at
the origin and patches at (0, row, column); RoPE reads the three axes with channels of their own, as in FLUX.1.

    python examples/diffusion_transformer.py [--steps 250]
"""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

import posenc
from posenc.encodings.rope import RoPE

SIDE, COLOURS, WORDS = 6, 3, 3  # pixels of a side, colours, words of a text
D_MODEL, HEADS, LAYERS = 64, 4, 2
AXES = (4, 6, 6)  # channels of each head for image, row and column


def scenes(count, random):
    """Texts [n, 3] of colour, row and column, and the images [n, 36, 3] of which each pixel is a token."""
    colour = torch.randint(COLOURS, (count,), generator=random)
    row, column = torch.randint(1, SIDE - 1, (2, count), generator=random)
    image = -torch.ones(count, SIDE, SIDE, COLOURS)
    for n in range(count):
        image[n, row[n] - 1 : row[n] + 2, column[n] - 1 : column[n] + 2, colour[n]] = 1
    text = torch.stack([colour, COLOURS + row, COLOURS + SIDE + column], dim=-1)
    return text, image.flatten(1, 2)


class Block(nn.Module):
    """Attention and an MLP, both modulated by the time of the diffusion."""

    def __init__(self, encoding):
        super().__init__()
        self.attention = posenc.Attention(D_MODEL, HEADS, encoding)
        self.mlp = nn.Sequential(nn.Linear(D_MODEL, 4 * D_MODEL), nn.GELU(), nn.Linear(4 * D_MODEL, D_MODEL))
        self.modulation = nn.Linear(D_MODEL, 6 * D_MODEL)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x, time, at):
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.modulation(time)[:, None].chunk(6, dim=-1)
        normed = F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift
        x = x + (1 + gate) * self.attention(normed, at, causal=False)
        normed = F.layer_norm(x, x.shape[-1:]) * (1 + scale_mlp) + shift_mlp
        return x + (1 + gate_mlp) * self.mlp(normed)


class DiffusionTransformer(nn.Module):
    def __init__(self, encoding):
        super().__init__()
        self.encoding = encoding
        self.words, self.pixels = nn.Embedding(COLOURS + 2 * SIDE, D_MODEL), nn.Linear(COLOURS, D_MODEL)
        self.time = nn.Sequential(nn.Linear(1, D_MODEL), nn.SiLU(), nn.Linear(D_MODEL, D_MODEL), nn.SiLU())
        self.blocks = nn.ModuleList(Block(encoding) for _ in range(LAYERS))
        self.out = nn.Linear(D_MODEL, COLOURS)

    def forward(self, text, noisy, time):
        """The velocity of each pixel."""
        x = torch.cat([self.words(text), self.pixels(noisy)], dim=1)
        at = posenc.positions_by("flux_ids", text=WORDS, height=SIDE, width=SIDE)
        at, time = self.encoding.prepare(at), self.time(time[:, None])  # tables once, for all blocks
        for block in self.blocks:
            x = block(x, time, at)
        return self.out(F.layer_norm(x, x.shape[-1:]))[:, WORDS:]


def trained(model, steps, random, rows=32):
    """The losses of the first and the last fifth of the steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / warm) * (1 - step / steps))
    losses = []
    for _ in range(steps):
        text, image = scenes(rows, random)
        noise, time = torch.randn(image.shape, generator=random), torch.rand(rows, generator=random)
        noisy = (1 - time)[:, None, None] * noise + time[:, None, None] * image
        loss = F.mse_loss(model(text, noisy, time), image - noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    fifth = max(1, steps // 5)
    return sum(losses[:fifth]) / fifth, sum(losses[-fifth:]) / fifth


@torch.no_grad()
def drawn(model, text, random, steps=20):
    """Images of the texts, from noise."""
    x = torch.randn(len(text), SIDE * SIDE, COLOURS, generator=random)
    for step in range(steps):
        x = x + model(text, x, torch.full((len(text),), step / steps)) / steps
    return x


def main(steps=250, count=64):
    """Losses, and the share of pixels that are drawn as the text says, for each encoding."""
    rope = RoPE(sum(AXES), frequencies=posenc.frequencies.separate(AXES, base=100.0))
    results = {}
    for name, encoding in (("rope on three axes", rope), ("no positions", posenc.create("nope"))):
        random = torch.Generator().manual_seed(0)
        torch.manual_seed(0)
        model, begun = DiffusionTransformer(encoding), time.monotonic()
        first, last = trained(model, steps, random)
        text, image = scenes(count, random)
        square = image > 0
        hit = (drawn(model, text, random) > 0)[square].float().mean().item()
        results[name] = {"first": first, "last": last, "drawn": hit}
        seconds = time.monotonic() - begun
        print(f"{name:20}  loss {first:.2f} → {last:.2f}   pixels of the square {hit:4.0%}   {seconds:.0f} s")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=250)
    main(parser.parse_args().steps)
