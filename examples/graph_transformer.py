"""A graph transformer on random graphs: what each way to tell it the edges makes visible.

    12 nodes, one of them marked   ─►  of every node: is it two edges from the marked one, and is it in a triangle?

Attention sees a set of nodes. The edges reach it through the positions of nodes in the Laplacian's eigenvectors (LapPE) or
the chances of walks to return (RWSE), both added to the embeddings, or as a bias for each pair: the edges of the shortest
path (Graphormer), and the chances of walks from one node to the other (RRWP).

    python examples/graph_transformer.py [--steps 250]
"""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

import posenc
from posenc import Positions
from posenc.encodings.bases.pairs import PairBias, walks
from posenc.encodings.graphormer import Graphormer, shortest_paths

NODES, STEPS_OF_WALK = 12, 6
D_MODEL, HEADS, LAYERS = 64, 4, 2


def graphs(count, random):
    """Adjacency [n, 12, 12], a mark on one node [n, 12], and the two answers of every node [n, 12, 2]."""
    upper = (torch.rand(count, NODES, NODES, generator=random) < 0.2).float().triu(1)
    adjacency = upper + upper.mT
    marked = torch.randint(NODES, (count,), generator=random)
    apart = shortest_paths(adjacency)[torch.arange(count), marked]
    triangle = torch.linalg.matrix_power(adjacency, 3).diagonal(dim1=1, dim2=2) > 0
    return adjacency, F.one_hot(marked, NODES), torch.stack([apart == 2, triangle], dim=-1).float()


class Edges(nn.Module):
    """What tells a model the edges: an encoding, and the positions of a batch of graphs for it."""

    def __init__(self, name):
        super().__init__()
        self.name = name
        self.encoding = {
            "none": lambda: posenc.create("nope"),
            "LapPE": lambda: posenc.create("coordinate_projection", d_model=D_MODEL, axes=8),
            "RWSE": lambda: posenc.create("coordinate_projection", d_model=D_MODEL, axes=8),
            "Graphormer": lambda: Graphormer(HEADS, max_distance=NODES),
            "RRWP": lambda: PairBias(HEADS, STEPS_OF_WALK),
        }[name]()

    def positions(self, adjacency):
        if self.name == "LapPE":  # the sign of an eigenvector is a free choice, drawn anew in training
            return posenc.positions_by("lappe", adjacency=adjacency, vectors=8, random_signs=self.training)
        if self.name == "RWSE":
            return posenc.positions_by("rwse", adjacency=adjacency, steps=8)
        nodes = Positions.arange(len(adjacency), NODES)
        if self.name == "Graphormer":
            return self.encoding.with_pairs(nodes, shortest_paths(adjacency))
        return self.encoding.with_pairs(nodes, walks(adjacency, STEPS_OF_WALK)) if self.name == "RRWP" else nodes


class Block(nn.Module):
    def __init__(self, encoding):
        super().__init__()
        self.attention = posenc.Attention(D_MODEL, HEADS, encoding)
        self.mlp = nn.Sequential(nn.Linear(D_MODEL, 2 * D_MODEL), nn.GELU(), nn.Linear(2 * D_MODEL, D_MODEL))

    def forward(self, x, at):
        x = x + self.attention(F.layer_norm(x, x.shape[-1:]), at, causal=False)
        return x + self.mlp(F.layer_norm(x, x.shape[-1:]))


class GraphTransformer(nn.Module):
    def __init__(self, edges):
        super().__init__()
        self.edges, self.nodes = edges, nn.Embedding(2, D_MODEL)
        self.blocks = nn.ModuleList(Block(edges.encoding.at_layer(n + 1)) for n in range(LAYERS))
        self.out = nn.Linear(D_MODEL, 2)

    def forward(self, mark, adjacency):
        at = self.edges.positions(adjacency)
        x = self.edges.encoding.embed(self.nodes(mark), at)
        for block in self.blocks:
            x = block(x, at)
        return self.out(F.layer_norm(x, x.shape[-1:]))


def trained(model, steps, random, rows=32):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / warm) * (1 - step / steps))
    for _ in range(steps):
        adjacency, mark, answers = graphs(rows, random)
        loss = F.binary_cross_entropy_with_logits(model(mark, adjacency), answers, pos_weight=torch.tensor(3.0))  # rare
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def right(model, random, rows=500):
    """The share of nodes whose answer is right, yes and no counted alike, for each question."""
    adjacency, mark, answers = graphs(rows, random)
    said, is_so = model(mark, adjacency) > 0, answers > 0.5
    return [
        (said[is_so[..., n], n].float().mean() + (~said)[~is_so[..., n], n].float().mean()).item() / 2 for n in range(2)
    ]


def main(steps=250, names=("none", "LapPE", "RWSE", "Graphormer", "RRWP")):
    """The shares of right answers to both questions, of each way to tell the edges. A guess is right half of the time."""
    results = {}
    print(f"{'':12}  two edges away   in a triangle")
    for name in names:
        torch.manual_seed(0)
        begun = time.monotonic()
        model = trained(GraphTransformer(Edges(name)), steps, torch.Generator().manual_seed(0))
        results[name] = right(model, torch.Generator().manual_seed(1))
        print(f"{name:12}  {results[name][0]:14.0%}   {results[name][1]:13.0%}   {time.monotonic() - begun:.0f} s")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=250)
    main(parser.parse_args().steps)
