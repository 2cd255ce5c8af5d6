"""Snapshots of two small language models during training, one with a learned table and one with FLOATER.

    python -m posenc.explorer.trained       trains both in some minutes on two cores and writes trained.npz

    learned       [snapshot, position, channel]        the table
    floater.…     [snapshot, …]                        FLOATER's parameters; posenc solves its path from them
    …attention    [snapshot, layer, head, distance]    mean probability at that distance, held-out text
    …first        [snapshot, layer, head]              mean probability of the row's first token, from position 8 on
    …bits         [snapshot]                           training loss, mean since the snapshot before

Only this command needs the extra lab; reading needs only the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from posenc.encodings.floater import FLOATER
from posenc.explorer import recorded

if TYPE_CHECKING:
    from numpy import ndarray as Array
    from torch import Tensor

    from posenc.lab.experiment import Trial
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.model import Transformer
    from posenc.support.shapes import Float

FILE = Path(__file__).parent / "trained.npz"
ENCODINGS = ("learned", "floater")
STEPS = (0, 20, 60, 100, 150, 200, 300, 500, 800, 1300, 2000)
LENGTH = 32
HELD_OUT = 64  # rows of the text that attention is looked at on: the lab's default when the record was made
FROM = 8  # the first token is not looked at for being near

SETTINGS: dict[str, Any] = {
    "seed": 0,
    "size": {"d_model": 48, "n_heads": 4, "n_layers": 2, "widening": 4},
    "training": {"steps": STEPS[-1], "rows": 32, "learning_rate": 0.008},
    "task": {"name": "language_model", "length": LENGTH, "lengths": [LENGTH], "targets": LENGTH // 2},
}


def record() -> dict[str, Array]:
    """The arrays by name. Do not change them in place."""
    return recorded.arrays(FILE)


def about() -> dict[str, Any]:
    """The provenance of the record: settings, steps, text, date, versions."""
    return recorded.about(FILE)


def learned() -> Float[Tensor, "snapshot position channel"]:
    return torch.from_numpy(record()["learned"]).double()


@torch.no_grad()
def floater(snapshot: int) -> FLOATER:
    """FLOATER at a snapshot, with one path per layer."""
    size = SETTINGS["size"]
    encoding = FLOATER(size["d_model"], size["n_layers"])
    for name, parameter in encoding.named_parameters():
        parameter.copy_(torch.from_numpy(record()[f"floater.{name}"][snapshot]))
    return encoding


def even(length: int = LENGTH) -> tuple[Float[Tensor, "distance"], float]:
    """Uniform attention over the visible tokens: mean probability by distance, and for the first token."""
    share = 1 / torch.arange(1, length + 1, dtype=torch.float64)  # of the query at each position
    return torch.stack([share[distance:].mean() for distance in range(length)]), float(share[FROM:].mean())


# The command ----------------------------------------------------------------------------------------------------------


def trial(encoding: str) -> Trial:
    from posenc.lab.experiment import Size, Training, Trial

    return Trial(
        task=SETTINGS["task"] | {"held_out": HELD_OUT},
        encoding=encoding,
        seed=SETTINGS["seed"],
        size=Size(**SETTINGS["size"]),
        training=Training(**SETTINGS["training"]),
    )


def snapshots(encoding: str, text: Corpus) -> Iterator[dict[str, Array]]:
    """A snapshot at every step of STEPS."""
    from posenc.lab.trial.training import Run

    run = Run(trial(encoding), text)
    look, losses, since = _looking(run.trial, text), run.losses(), list[float]()
    yield {**_parameters(encoding, run.model), **look(run.model), "bits": np.array(np.nan)}
    for step, bits in enumerate(losses, start=1):
        since.append(bits)
        if step in STEPS:
            yield {**_parameters(encoding, run.model), **look(run.model), "bits": np.array(np.mean(since))}
            since.clear()


def _parameters(encoding: str, model: Transformer) -> dict[str, Array]:
    parameters = {name: value.detach().numpy().copy() for name, value in model.encoding(0).named_parameters()}
    return {"": parameters["table"]} if encoding == "learned" else parameters


def _looking(trial: Trial, text: Corpus) -> Callable[[Transformer], dict[str, Array]]:
    """Mean attention of each head by distance, and to the first token of the row."""
    from posenc.lab.records.record import Rows
    from posenc.lab.trial.attention_profile import Profile

    class Watching(Profile):
        seen: list[Tensor]

        def add_distances(self, rows: Rows, probs: Tensor, *, step: int, layer: int) -> None:
            self.seen.append(probs.double().mean(0))

    profile = Watching(trial.task, text, trial.training.steps)

    def look(model: Transformer) -> dict[str, Array]:
        profile.seen = []
        profile.look(model, 0, Rows())
        model.train()
        probs = torch.stack(profile.seen)  # [layer, head, query, key]
        distances = [probs.diagonal(-distance, 2, 3).mean(-1) for distance in range(probs.shape[-1])]
        return {"attention": torch.stack(distances, -1).numpy(), "first": probs[:, :, FROM:, 0].mean(-1).numpy()}

    return look


def main() -> None:
    from datetime import UTC, datetime

    import posenc
    from posenc.lab.records.provenance import revision
    from posenc.lab.text import corpus

    torch.set_num_threads(1)
    text = corpus.read_corpus(None, LENGTH + 1)
    arrays = dict[str, Any]()
    for encoding in ENCODINGS:
        taken = list(snapshots(encoding, text))
        for name in taken[0]:
            arrays[f"{encoding}.{name}".rstrip(".")] = np.stack([snapshot[name] for snapshot in taken]).astype(np.float32)
    settings = {
        "settings": SETTINGS,
        "steps": STEPS,
        "date": datetime.now(UTC).date().isoformat(),
        "posenc": posenc.__version__,
        "torch": torch.__version__,
        "revision": revision(),
        "text": {"source": text.source, "sha256": text.sha256},
    }
    recorded.write(FILE, settings, arrays)


if __name__ == "__main__":
    main()
