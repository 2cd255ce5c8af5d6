"""The key of a trial: SHA-256 of what decides its numbers.

    key = SHA-256 of { the trial's configuration and seed, digest of the text, NUMERICS_VERSION }

The version of torch, the device and the revision of the code are provenance (`posenc.lab.records.provenance`): they are
kept with the record, and they are not part of the key. A comment, a rename or a faster kernel therefore leaves every result
where it is. `posenc lab repeat` checks that a trial of other code is still what this code computes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# Raise this number when training or scoring is meant to give other numbers: every trial then runs again. Add a line below.
#
# version | date       | what changed
# 1       | 2026-11-22 | the first; results of posenc 0.1 were carried over
NUMERICS_VERSION = 1


def key_of(trial: Mapping[str, Any], text: str, numerics: int) -> str:
    """64 hexadecimal digits. `trial` is plain JSON; `text` is the digest of the text, "" where the trial reads none."""
    decisive = canonical({"trial": trial, "text": text, "numerics": numerics})
    return hashlib.sha256(decisive.encode()).hexdigest()


def canonical(data: Any) -> str:
    """JSON that is the same text for the same data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
