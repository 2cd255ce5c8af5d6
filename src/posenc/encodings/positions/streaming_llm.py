"""StreamingLLM: positions within the cache, which keeps the first tokens and the last ones.

    0 … sinks-1 for the first tokens,  sinks … sinks+window-1 for the last ones, wherever they stood in the text

Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.2. Cached keys move with
posenc.rerotate; see there.
"""

from __future__ import annotations

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def streaming_llm(length: int, *, sinks: int = 4, window: int = 1020) -> Positions:
    """The positions of what a cache of a text of `length` tokens holds: 0, 1, 2, … up to sinks + window.

    length  tokens of the text so far
    sinks   first tokens that are never evicted
    window  last tokens that are kept

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(window=window)
    checks.whole(0, sinks=sinks)
    return Positions.arange(1, min(length, sinks + window))
