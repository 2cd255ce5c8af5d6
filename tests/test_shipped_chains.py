"""The study of far context that is shipped: complete, and its page's table is recomputed from the stored trials."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from posenc.lab.records.record import Record
from posenc.lab.records.results import Folder

ROOT = Path(__file__).parent.parent
CHAINS = ROOT / "results" / "chains"
PAGES = [CHAINS / "README.md", CHAINS / "README.zh-CN.md"]
NAMES = {"RoPE": "rope", "KERPLE": "kerple", "ALiBi": "alibi", "T5": "t5", "FoX": "fox", "Transformer-XL": "transformer_xl"}
CHANGES = {"RoPE + YaRN": "yarn", "RoPE + Self-Extend": "self_extend"}


def optimum(rows: torch.Tensor, length: int) -> np.ndarray:
    """Bits of the last 64 symbols of each row by Pólya's counts, from exactly `length` symbols before each; by hand."""
    bits = np.zeros((len(rows), 64))
    for n, row in enumerate(rows.tolist()):
        for t in range(64):
            end = len(row) - 64 + t
            seen = row[max(0, end - length) : end]
            after = [b for a, b in pairwise(seen) if a == seen[-1]]
            bits[n, t] = -np.log2((after.count(row[end]) + 0.2) / (len(after) + 8 * 0.2))
    return bits.mean(1)


@pytest.fixture(scope="module")
def records():
    every = [Record.from_parquet(path.read_bytes()) for path in sorted((CHAINS / "trials").glob("*.parquet"))]
    return [record for record in every if record.about["trial"]["seed"] < 1_000_000]


def of_rows(records, encoding, mode, length, change=""):
    """Bits by seed and row."""
    by_seed = {}
    for record in records:
        if record.about["trial"]["encoding"] == encoding:
            rows = [
                (row["item"], row["value"])
                for row in record.rows.to_pylist()
                if (row["kind"], row["mode"], row["length"], row["change"]) == ("bits", mode, length, change)
            ]
            by_seed[record.about["trial"]["seed"]] = [value for _, value in sorted(rows)]
    return np.array([by_seed[seed] for seed in sorted(by_seed)])


@pytest.fixture(scope="module")
def offered():
    """What the optimum gains on each of the 128 chains that models are scored on."""
    from posenc.lab.tasks.chains import Chains

    scored = Chains(length=64, lengths=(64, 128, 256, 1024), symbols=8, held_out=128).scored(1024)
    rows = torch.cat([scored.tokens, scored.targets[:, -1:]], dim=1)
    return optimum(rows, 64) - optimum(rows, 1024)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_shows_what_the_stored_trials_say(page: Path, records, offered) -> None:
    """Gained and share from the rows of the trials, the optimum counted by hand; its whole context begins with the row."""
    lines = page.read_text("utf-8").split("<!-- table written by docs/make.py -->")[1].split("<!--")[0].strip().splitlines()
    table = {row[0].removesuffix(" ↓"): row[1:] for line in lines[2:] if (row := line.strip("| ").split(" | "))}
    assert set(table) >= NAMES.keys() | CHANGES.keys()
    best, cut, _, frozen = list(table.values())[:4]
    assert best[3].startswith(f"{offered.mean():+.3f} (")
    assert best[4] == "100 %"
    assert cut[3:] == ["+0.000", "0 %"]
    assert abs(float(frozen[3])) < 0.05 * offered.mean()
    for name in (*NAMES, *CHANGES):
        encoding, change = (NAMES[name], "") if name in NAMES else ("rope", CHANGES[name])
        near, far = of_rows(records, encoding, "last window", 64), of_rows(records, encoding, "same targets", 1024, change)
        gained = (near - far).mean()
        seeds, *numbers = table[name]
        assert int(seeds) == len(near) == len(far)
        assert numbers[:2] == [f"{near.mean():.2f}", f"{far.mean():.2f}"], name
        assert numbers[2].startswith(f"{gained:+.3f} ("), name
        assert numbers[3].startswith(f"{100 * gained / offered.mean():.0f} % ("), name


def test_all_trials_are_there() -> None:
    manifest = Folder(CHAINS).experiment()
    assert manifest is not None
    assert set(manifest["keys"]) <= set(Folder(CHAINS).keys())
    assert not manifest["failures"]
    content = b"".join(path.read_bytes() for path in CHAINS.rglob("*") if path.is_file())
    assert not any(place in content for place in (b"/tmp/", b"/home/", b"/root/", b"/work/"))
