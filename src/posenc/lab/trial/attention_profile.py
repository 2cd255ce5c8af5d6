"""Attention during training: mean probability by distance, similarity of learned rows, links between words.

    distance   query - key      3  2  1  0 -1        probability of each, mean over the queries that have such a key
    similarity cos(table[p], table[p'])              of a learned table
    link       p(key | query) of one pair of words beside 1 / visible keys

Legend: b rows, h heads, i query, j key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.attention.backends.reference import probabilities
from posenc.encoding import PositionalEncoding
from posenc.encodings.learned import Learned
from posenc.lab.records.record import Rows
from posenc.lab.tasks.task import Task
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial.model import Transformer
from posenc.positions import Positions, may_attend
from posenc.structure import rotated
from posenc.support.tensors import full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float

SHARES = (0.0, 0.03, 0.1, 0.3, 1.0)  # of the steps
FEW = 8  # rows that are recorded if the task has no links
MOST_LINKED = 16
MOST_TABLE_ROWS = 64


class Profile:
    """Records attention at the steps `steps`, on held-out rows at the trained length; rows with links if there are any."""

    def __init__(self, task: Task, text: Corpus | None, steps: int) -> None:
        self.causal, self.steps = task.causal, frozenset(round(share * steps) for share in SHARES)
        batch = task.scored(task.length, text)
        chosen = sorted({link.row for link in batch.links})[:MOST_LINKED] or list(range(min(FEW, len(batch.tokens))))
        self.tokens = batch.tokens[chosen]
        self.items = chosen if batch.item is None else batch.item[chosen].tolist()
        self.links = [replace(link, row=chosen.index(link.row)) for link in batch.links if link.row in chosen]

    @torch.no_grad()
    def look(self, model: Transformer, step: int, rows: Rows) -> None:
        model.eval()
        device = model.head.weight.device
        at = model.prepare(Positions.arange(1, self.tokens.shape[1], device=device))
        layers = list[Tensor]()

        def watch(q: Tensor, k: Tensor, encoding: PositionalEncoding, at: Positions) -> None:
            with full_precision(q):
                at = at.expand(len(q))
                q, k = rotated(encoding, q.float(), k.float(), at, at)
                layers.append(probabilities(q, k, encoding, at, at, self.causal).cpu())

        model.hidden(self.tokens.to(device), at, watcher=watch)
        if not all(bool(probs.isfinite().all()) for probs in layers):
            return  # the loss of the next step reports it
        for layer, probs in enumerate(layers):
            self.add_distances(rows, probs, step=step, layer=layer)
            self.add_links(rows, probs, step=step, layer=layer)
        if isinstance(table := model.encoding(0), Learned):
            add_similarity(rows, table, step)

    def add_distances(self, rows: Rows, probs: Float[Tensor, "b h i j"], *, step: int, layer: int) -> None:
        mean, tokens = probs.double().mean(0), probs.shape[-1]
        for distance in range(0 if self.causal else 1 - tokens, tokens):
            for head, value in enumerate(mean.diagonal(-distance, 1, 2).mean(-1).tolist()):
                rows.add("attention", value, step=step, layer=layer, head=head, position=distance)

    def add_links(self, rows: Rows, probs: Float[Tensor, "b h i j"], *, step: int, layer: int) -> None:
        at = Positions.arange(1, probs.shape[-1])
        seen = may_attend(at, at, self.causal)[0, 0].sum(-1)
        for link in self.links:
            for head, value in enumerate(probs[link.row, :, link.query, link.key].tolist()):
                rows.add(
                    "link",
                    value,
                    step=step,
                    layer=layer,
                    head=head,
                    item=self.items[link.row],
                    note=link.name,
                    weight=1 / int(seen[link.query]),
                )


def add_similarity(rows: Rows, encoding: Learned, step: int) -> None:
    """Cosines of up to 64 evenly spaced rows; only rows of positions, not reserved rows before them."""
    table = encoding.table[encoding.row_offset :].double().cpu()
    chosen = torch.arange(0, len(table), -(-len(table) // MOST_TABLE_ROWS))
    unit = F.normalize(table[chosen], dim=1)
    for position, line in zip(chosen.tolist(), (unit @ unit.T).tolist(), strict=True):
        for other, value in zip(chosen.tolist(), line, strict=True):
            rows.add("similarity", value, step=step, position=position, other=other)
