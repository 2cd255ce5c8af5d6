"""What the recipes share: a tiny Llama on bytes, its training, perplexity by length, a table and a picture.

The text is Python's own standard library, so nothing is downloaded. The model is trained on 128 bytes and scored on the
same last 64 bytes of held-out documents after 64 to 960 bytes of context: a longer context only adds text before them.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import torch
import transformers
from torch.nn import functional as F

from posenc.lab.tasks.language_model import LanguageModel
from posenc.lab.text import corpus

TRAINED = 128
LENGTHS = (128, 192, 256, 512, 1024)
TASK = LanguageModel(length=TRAINED, lengths=LENGTHS, held_out=48, targets=64)
STEPS = 500
transformers.logging.set_verbosity_error()


def text():
    return corpus.read_corpus(None, LENGTHS[-1] + 1)


def folder():
    """Where the trained model and the results are kept: the first argument, or ./recipes."""
    made = Path(sys.argv[1] if len(sys.argv) > 1 else "recipes")
    made.mkdir(parents=True, exist_ok=True)
    return made


def trained(path, read, steps=STEPS):
    """A Llama with RoPE trained on TRAINED bytes. It is trained once and kept in `path`."""
    if (path / "config.json").exists():
        return transformers.LlamaForCausalLM.from_pretrained(path)
    torch.manual_seed(0)
    sizes = {"vocab_size": 256, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": TRAINED}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads))
    tune(model, read, steps, learning_rate=3e-3)
    model.save_pretrained(path)
    return model


def tune(model, read, steps, *, learning_rate, length=TRAINED, rows=None):
    """AdamW on random windows; the learning rate warms up over a tenth of the steps, then falls linearly."""
    random = torch.Generator().manual_seed(1)
    rows = 2048 // length if rows is None else rows
    task = TASK.model_copy(update={"length": length})
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.01)
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps), 1.0)
        batch = task.training_batch(rows, random, read)
        loss = F.cross_entropy(model(batch.tokens, use_cache=False).logits.flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


@torch.no_grad()
def perplexities(model, read):
    """Perplexity per byte of the same targets, for every length."""
    model.eval()
    found = {}
    for length in LENGTHS:
        batch = TASK.scored(length, read)
        losses = [
            F.cross_entropy(model(one[None], use_cache=False).logits[0], targets, reduction="sum", ignore_index=-100)
            for one, targets in zip(batch.tokens, batch.targets, strict=True)
        ]
        found[length] = math.exp(float(sum(losses)) / (len(losses) * TASK.targets))
    return found


def report(name, title, rows, begun):
    """Writes NAME.json, NAME.md and NAME.svg into the folder and prints the table."""
    head = "| perplexity at | " + " | ".join(f"{length} bytes" for length in LENGTHS) + " |"
    lines = [head, "|---" * (len(LENGTHS) + 1) + "|"]
    lines += [f"| {label} | " + " | ".join(f"{one:.2f}" for one in row.values()) + " |" for label, row in rows.items()]
    table = "\n".join(lines)
    print(f"{title}\n\n{table}\n\n{time.monotonic() - begun:.0f} s")
    (folder() / f"{name}.md").write_text(table + "\n", encoding="utf-8")
    (folder() / f"{name}.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    draw(title, rows, folder() / f"{name}.svg")


def draw(title, rows, path):
    """Perplexity over length, both on logarithmic axes; the trained length is a vertical line."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "posenc"
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    picture, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for label, row in rows.items():
        axes.plot(list(row), list(row.values()), marker="o", markersize=4, label=label)
    axes.axvline(TRAINED, color="0.6", linewidth=1, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    top = max(max(row.values()) for row in rows.values())
    axes.set_yticks([tick for tick in (3, 4, 6, 8, 12, 20, 40, 80, 160, 320) if tick <= 1.3 * top])
    axes.set(title=title, xlabel="bytes of context and targets (trained on 128)", ylabel="perplexity per byte")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)
