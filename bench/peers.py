"""Other libraries by the name of their distribution: which are installed, at which version. Needs no torch.

rope.py, bias.py and table.py call them through their public names.
"""

from __future__ import annotations

from posenc.kernels.machine import version
from posenc.support.extras import install

PEERS = {
    "transformers": "cpu",
    "torchtune": "cpu",
    "rotary-embedding-torch": "cpu",
    "x-transformers": "cpu",
    "positional-encodings": "cpu",
    "flash-attn": "cuda",
    "liger-kernel": "cuda",
    "transformer-engine": "cuda",
}
"""The first device they run on; those for cuda have no CPU code."""
NOT_ASKED = "not asked for"


def chosen(words: str, device: str) -> dict[str, str]:
    """Distribution to version, or to why it takes no part. "auto": every installed one; "none"; or names with commas.

    Raises ValueError for an unknown name, and for one asked for by name that cannot take part.
    """
    names = list(PEERS) if words in ("auto", "none") else [word.strip() for word in words.split(",")]
    if unknown := [name for name in names if name not in PEERS]:
        raise ValueError(f"unknown peer {unknown[0]!r}; known: {', '.join(PEERS)}; or auto, or none")
    standings = {name: _standing(name, device) if name in names else NOT_ASKED for name in PEERS}
    if words == "none":
        return dict.fromkeys(PEERS, NOT_ASKED)
    if words != "auto" and (missing := [name for name in names if not takes_part(standings[name])]):
        raise ValueError(f"{missing[0]}: {standings[missing[0]]}; {install('peers')} installs the peers for the CPU")
    return standings


def _standing(name: str, device: str) -> str:
    if PEERS[name] == "cuda" and device == "cpu":
        return "needs a GPU"
    return version(name) or "not installed"


def takes_part(standing: str) -> bool:
    return standing[:1].isdigit()
