"""A ViT trained on images of one size and used on images twice as wide and high.

    6 × 6 patches, a red and a blue square   ─►  on which side of the blue one is the red one: 8 directions

The same scenes are drawn with 12 × 12 patches for the test. A learned grid is interpolated. RoPE counts rows and columns as
they are, or as those of the trained size (divided by 2), or reads the patches' centres between -1 and 1 (DINOv3).

    python examples/vit_other_resolution.py [--steps 300]
"""

import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

import posenc
from posenc import Positions

SIDE, DIRECTIONS = 6, 8
D_MODEL, HEADS, LAYERS = 32, 2, 2


def scenes(count, side, random):
    """Patches [n, side², 2], how red and how blue each is, and the direction from blue to red."""
    blue, red = torch.rand(2, count, 2, generator=random).mul(0.75).add(0.125)
    apart = red - blue
    keep = apart.norm(dim=-1) > 0.3
    centre = (torch.arange(side) + 0.5) / side
    images = []
    for place in (red, blue):
        near = (centre - place[..., None]).abs() < 0.125  # n, (y, x), side
        images.append((near[:, 0, :, None] & near[:, 1, None, :]).flatten(1))
    turns = torch.atan2(apart[:, 0], apart[:, 1]) / (2 * math.pi)
    return torch.stack(images, dim=-1).float()[keep], ((turns * DIRECTIONS).round() % DIRECTIONS).long()[keep]


ENCODINGS = {
    "learned grid": lambda: posenc.create("vit", d_model=D_MODEL, height=SIDE, width=SIDE),
    "RoPE, rows": lambda: posenc.create("axial_rope", d_head=D_MODEL // HEADS, base=100.0),
    "RoPE, rows / 2": lambda: posenc.create("axial_rope", d_head=D_MODEL // HEADS, base=100.0),
    "RoPE, centres": lambda: posenc.create("dinov3_rope", d_head=D_MODEL // HEADS),
}


def positions(name, side):
    """Of the class token and side × side patches. A rotation leaves a token at the origin as it is."""
    if name == "learned grid":
        return Positions.grid(side, side, prefix=1, sized=True)
    if name == "RoPE, centres":
        return Positions.joint([1, posenc.positions_by("patch_centres", height=side, width=side)])
    grid = Positions.grid(side, side)
    if name == "RoPE, rows / 2":
        grid = Positions.at(grid.coords * SIDE / side)
    return Positions.joint([1, grid])


class Block(nn.Module):
    def __init__(self, encoding):
        super().__init__()
        self.attention = posenc.Attention(D_MODEL, HEADS, encoding)
        self.mlp = nn.Sequential(nn.Linear(D_MODEL, 2 * D_MODEL), nn.GELU(), nn.Linear(2 * D_MODEL, D_MODEL))

    def forward(self, x, at):
        x = x + self.attention(F.layer_norm(x, x.shape[-1:]), at, causal=False)
        return x + self.mlp(F.layer_norm(x, x.shape[-1:]))


class ViT(nn.Module):
    def __init__(self, encoding):
        super().__init__()
        self.encoding = encoding
        self.token, self.patches = nn.Parameter(torch.zeros(D_MODEL)), nn.Linear(2, D_MODEL)
        self.blocks = nn.ModuleList(Block(encoding.at_layer(n + 1)) for n in range(LAYERS))
        self.out = nn.Linear(D_MODEL, DIRECTIONS)

    def forward(self, image, at):
        x = torch.cat([self.token.expand(len(image), 1, -1), self.patches(image)], dim=1)
        x = self.encoding.embed(x, at)  # what is added, once; the blocks hold what is left of it in deeper layers
        at = self.encoding.prepare(at)
        for block in self.blocks:
            x = block(x, at)
        return self.out(F.layer_norm(x[:, 0], x.shape[-1:]))


def trained(model, at, steps, random, rows=64):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / warm) * (1 - step / steps))
    for _ in range(steps):
        image, direction = scenes(rows, SIDE, random)
        loss = F.cross_entropy(model(image, at), direction)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def accuracy(model, at, side, random, rows=500):
    image, direction = scenes(rows, side, random)
    return (model(image, at).argmax(-1) == direction).float().mean().item()


def main(steps=300, names=tuple(ENCODINGS)):
    """The accuracy at the trained size and at twice the size, of each encoding."""
    results = {}
    print(f"{'':16}  {SIDE} × {SIDE}   {2 * SIDE} × {2 * SIDE}")
    for name in names:
        torch.manual_seed(0)
        begun = time.monotonic()
        model = trained(ViT(ENCODINGS[name]()), positions(name, SIDE), steps, torch.Generator().manual_seed(0))
        results[name] = {
            side: accuracy(model, positions(name, side), side, torch.Generator().manual_seed(1))
            for side in (SIDE, 2 * SIDE)
        }
        small, large = results[name].values()
        print(f"{name:16}  {small:5.0%}   {large:7.0%}   {time.monotonic() - begun:.0f} s")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    main(parser.parse_args().steps)
