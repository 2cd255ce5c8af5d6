"""A trained model with another encoding in the place of its own: what it loses, and what a short training gives back.

    python tools/surgery.py                          SmolLM2-135M and a novel, 200 steps: 25 minutes of one core
    python tools/surgery.py --steps 50 plain nope    fewer steps, some of the methods of posenc lab score

Every method gets the same training: windows of --tokens tokens from the first half of the novel, in an order that a seed
draws, all weights, AdamW. Perplexity is that of posenc lab score, of windows in the second half, before and after. "plain"
says what the training gives to the model as it is. "nope" is DroPE's recipe: RoPE is dropped in every layer, and a short
training at a length that was trained recalibrates the model. Each score is one line of results/real/smollm2-surgery.jsonl.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from posenc.transformers import scores
from posenc.transformers.commands.score import load, read
from posenc.transformers.scores import Method, Score, Text

RESULTS = Path(__file__).parents[1] / "results" / "real" / "smollm2-surgery.jsonl"
METHODS = ("plain", "nope", "alibi", "t5")
LENGTHS = (512, 2048)
SCORED, COPIED = 256, 32  # of a window, as in posenc lab score
STEPS, TOKENS, RATE, WARMUP = 200, 128, 2e-4, 20


def train(model: Any, tokens: torch.Tensor, steps: int, length: int, rate: float = RATE) -> list[float]:
    """Trains all weights of the model on windows of the tokens; returns the loss of each step, in nats.

    The learning rate warms up linearly and decays linearly to 0. Matrices are multiplied in bfloat16.
    """
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    shape = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) / WARMUP, (steps - n) / steps))
    draw = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(steps):
        begin = int(torch.randint(len(tokens) - length, (), generator=draw))
        window = tokens[None, begin : begin + length + 1]
        with torch.autocast(window.device.type, torch.bfloat16):
            logits = model(window[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits[0].float(), window[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        shape.step()
        losses.append(loss.item())
    model.eval()
    return losses


def measured(model: Any, text: Text, method: Method, key: str) -> list[Score]:
    """The scores of a model at every length, of the last window of the text."""
    end, found = text.ends()[0], []
    for n in LENGTHS:
        begin = time.monotonic()
        loss, copied = scores.score(model, text, n, end)
        found.append(Score(key, str(method), n, end, loss, copied, round(time.monotonic() - begin, 2)))
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Other encodings in a trained model, before and after a short training.")
    parser.add_argument("methods", nargs="*", metavar="METHOD", help=f"of posenc lab score; {', '.join(METHODS)}")
    parser.add_argument("--steps", type=int, default=STEPS, help="of training, 0 for none")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of the window of a step")
    asked = parser.parse_args(arguments)
    import trained_models

    own, tokenizer = load(str(trained_models.smollm2()), "float32")
    text = read(trained_models.botchan(), tokenizer, 1, SCORED, COPIED)
    text.check(LENGTHS)
    key = scores.key_of(own, text)
    first_half = text.tokens[: len(text.tokens) // 2]
    for method in map(Method.parse, asked.methods or METHODS):
        twin = scores.changed(own, method, max(LENGTHS))
        for parameter in twin.parameters():
            parameter.data = parameter.data.clone()
        begin = time.process_time()
        after = []
        before = measured(twin, text, method, key)
        if asked.steps:
            train(twin, first_half, asked.steps, asked.tokens)
            after = measured(twin, text, method, key)
        for steps, of in ((0, before), (asked.steps, after)):
            for one in of:
                line = json.dumps(asdict(one) | {"steps": steps, "tokens": asked.tokens if steps else 0})
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
                print(line, flush=True)
        print(f"{method}: {time.process_time() - begin:.0f} seconds of the processor", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
