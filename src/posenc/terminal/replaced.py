"""What took the place of commands and options that are gone, for whoever still types them."""

from __future__ import annotations

from collections.abc import Sequence

BENCHMARKS = ("bias", "visible", "call", "table", "layer", "model", "attached", "step")
BENCH_OPTIONS = ("--peers", "--threads", "--seconds", "--sweep", "--device", "--out", "--strict")
IN_THE_REPOSITORY = "in the repository, make bench; posenc bench NAME measures what an encoding costs on this machine"
REPLACED = {
    "lab verify": "posenc lab repeat TRIAL --in DIR trains one trial again and compares every score",
    "lab submit": "posenc lab publish DIR --out NAME.zip writes report, trials and configuration as one file",
    "lab board": "posenc lab report DIR writes the table of a folder's encodings",
    "lab run standard": "posenc lab run study trains until the models converge; posenc lab run quick takes minutes",
    "lab run full": "posenc lab run study trains until the models converge; with --engine ray, on a cluster",
    "lab run ladder": "an experiment of your own with other `steps`: posenc lab run FILE.yaml (docs/lab.md)",
    "lab run … --engine slurm": "start posenc lab run with the same --out on every machine, for example by sbatch --array; "
    "runs share a folder",
    "lab run … --shard": "models of the lab are trained in one process; posenc lab run --workers N trains N at a time",
    **dict.fromkeys((f"bench {name}" for name in BENCHMARKS), IN_THE_REPOSITORY),
    **dict.fromkeys((f"bench … {option}" for option in BENCH_OPTIONS), IN_THE_REPOSITORY),
}


def replacement(words: Sequence[str]) -> str | None:
    """The line for the words of a command line, None for one that is not gone.

    An entry is the beginning of a command line. After "…" stands an option, and its value where only that is gone.
    """
    given = " ".join(words).replace("=", " ") + " "
    for old, line in REPLACED.items():
        begins, _, option = old.partition(" … ")
        if given.startswith(f"{begins} ") and f" {option}".rstrip() in given:
            return f"posenc {old.replace(' …', '')} is gone: {line}"
    return None
