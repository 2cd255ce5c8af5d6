"""The table of a trained model on longer and longer windows, from the scores that are kept in results/real."""

from __future__ import annotations

import json
from pathlib import Path

from posenc.support.languages import Language
from posenc.transformers.commands.score import TITLES, markdown
from posenc.transformers.scores import Score, table

SCORES = Path(__file__).parents[1] / "results" / "real" / "smollm2-botchan.jsonl"
ABOUT = {
    "model": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "dtype": "bfloat16",
    "text": "botchan.txt",
    "samples": 1,
    "trained": 8192,
    "scored": 512,
    "copied": 128,
}


def scores_table(language: Language) -> str:
    scores = [Score(**json.loads(line)) for line in SCORES.read_text("utf-8").splitlines()]
    return markdown({of: table(scores, of) for of in TITLES}, ABOUT, language).strip()
