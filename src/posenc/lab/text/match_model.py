"""What a longer window is worth to a predictor that does find far repetitions: a measure of the text, not of a model.

    near    p(byte | the ORDER bytes before) from counts in the training documents, smoothed by Witten and Bell
    match   the longest run of bytes before the target, LEAST or more, that occurred earlier in the window; its next byte
    both    w · [byte is the one after the match] + (1 - w) · near, with a weight w for each length of the match, fitted to
            windows of the training documents (expectation maximisation)

The scored bytes are the same for every window. So the fall of the bits from one window to a longer one is what the added
bytes hold for this predictor. A better one may gain more: it is a lower bound of what the text offers.

Legend: n windows, w bytes of a window, t targets, the last bytes of each window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy import ndarray as Array

    from posenc.support.shapes import Float, Int

ORDER = 5  # bytes of the near context: a key of 6 bytes fits an int64
LEAST, MOST = 4, 32  # bytes of a match; longer ones count as MOST
ROUNDS = 30
COUNTED, FITTED = 8_000_000, 200  # bytes of training documents that are counted; windows that the weights are fitted to


class Near:
    """Counts of every run of 1 to ORDER + 1 bytes in a text.

    Witten and Bell 1991: p(b | c) = (n(cb) + d(c) · p(b | c without its first byte)) / (n(c) + d(c)), d the number of
    different bytes seen after c; below the empty context, 1/256.
    """

    def __init__(self, documents: Sequence[bytes], order: int = ORDER) -> None:
        self.order = order
        texts = [np.frombuffer(document, np.uint8).astype(np.int64) for document in documents]
        counted = [_counted([_keys(text, length) for text in texts]) for length in range(1, order + 2)]
        self._runs = [(runs, counts, np.concatenate([[0], np.cumsum(counts)])) for runs, counts in counted]

    def __call__(self, before: Int[Array, "k order"], byte: Int[Array, "k"]) -> Float[Array, "k"]:
        """The probability of each byte after the `order` bytes before it."""
        probability = np.full(len(byte), 1 / 256)
        for length, (runs, counts, total) in enumerate(self._runs):
            context = _joined(before[:, self.order - length :])
            low, high = (np.searchsorted(runs, (context + end) * 256) for end in (0, 1))
            seen, kinds = total[high] - total[low], high - low
            run = context * 256 + byte
            at = np.minimum(np.searchsorted(runs, run), len(runs) - 1)
            of_byte = np.where(runs[at] == run, counts[at], 0)
            probability = np.where(seen > 0, (of_byte + kinds * probability) / np.maximum(seen + kinds, 1), probability)
        return probability


def _keys(text: Int[Array, "n"], length: int) -> Int[Array, "n"]:
    """Every run of that many bytes as one number, the first byte the highest."""
    ends = len(text) - length + 1
    return sum((text[n : n + ends] << 8 * (length - 1 - n) for n in range(length)), np.zeros(max(ends, 0), np.int64))


def _joined(runs: Int[Array, "k n"]) -> Int[Array, "k"]:
    return sum((runs[:, n] << 8 * (runs.shape[1] - 1 - n) for n in range(runs.shape[1])), np.zeros(len(runs), np.int64))


def _counted(keys: Sequence[Int[Array, "n"]]) -> tuple[Int[Array, "k"], Int[Array, "k"]]:
    runs, counts = np.unique(np.concatenate(keys), return_counts=True)
    return runs, counts


def match(window: bytes) -> tuple[int, int]:
    """The length, up to MOST, of the longest end of `window` that occurs earlier in it, and the byte after its last such
    occurrence; (0, 0) where none has LEAST bytes.
    """
    length, follows = 0, 0
    while length < min(MOST, len(window) - 1):
        tried = max(LEAST, length + 1)
        at = window.rfind(window[-tried:], 0, len(window) - 1)
        if tried >= len(window) or at < 0:
            break
        length, follows = tried, window[at + tried]
    return length, follows


def fitted(lengths: Int[Array, "k"], hits: Float[Array, "k"], near: Float[Array, "k"]) -> Float[Array, "MOST+1"]:
    """The weight of the match for each of its lengths that makes these bytes most probable; 0 for lengths not seen.

    At most n / (n + 1) for n bytes: were all of them the match's, the weight 1 would make the first other one impossible.
    """
    weights = np.zeros(MOST + 1)
    for length in np.unique(lengths[lengths > 0]):
        hit, other, weight = hits[lengths == length], near[lengths == length], 0.5
        for _ in range(ROUNDS):
            mixed = weight * hit + (1 - weight) * other
            weight = float(np.mean(weight * hit / np.maximum(mixed, 1e-300)))
        weights[length] = min(weight, len(hit) / (len(hit) + 1))
    return weights


def bits_by_window(
    near: Near, fit: Int[Array, "m w"], scored: Int[Array, "n w"], targets: int, widths: Sequence[int]
) -> dict[int, float]:
    """Bits a byte of the last `targets` bytes of the `scored` windows, each from at most so many bytes before it as the
    window has: those of its last `width` bytes, as a model sees them. The weights are fitted to the windows `fit`.
    """
    of_fit, of_scored = (_near(near, windows, targets) for windows in (fit, scored))
    bits = {}
    for width in widths:
        weights = fitted(*_matches(fit, targets, width), of_fit)
        lengths, hits = _matches(scored, targets, width)
        weight = weights[lengths]
        bits[width] = float(-np.log2(weight * hits + (1 - weight) * of_scored).mean())
    return bits


def _near(near: Near, windows: Int[Array, "n w"], targets: int) -> Float[Array, "k"]:
    """The probability of each target from the bytes right before it, which every window has."""
    places = range(windows.shape[1] - targets, windows.shape[1])
    before = np.stack([windows[:, place - near.order : place] for place in places], 1).reshape(-1, near.order)
    return near(before, windows[:, places.start :].reshape(-1))


def _matches(windows: Int[Array, "n w"], targets: int, width: int) -> tuple[Int[Array, "k"], Float[Array, "k"]]:
    """For each target: the length of its match in the last `width` bytes before it, and whether the match is right."""
    shown = windows[:, -width - 1 :]
    places = range(shown.shape[1] - targets, shown.shape[1])
    texts = [bytes(line) for line in shown.astype(np.uint8).tolist()]
    matches = np.array([match(text[:place]) for text in texts for place in places])
    right = (matches[:, 1] == shown[:, places.start :].reshape(-1)) & (matches[:, 0] > 0)
    return matches[:, 0], right.astype(float)


def divided(train: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Two parts of the training documents: what is counted, up to COUNTED bytes and nine tenths, and the rest, which the
    weights are fitted to. The document in which the first part ends is cut there.
    """
    left, counted, rest = min(COUNTED, sum(map(len, train)) * 9 // 10), list[bytes](), list[bytes]()
    for document in train:
        counted.append(document[:left])
        rest.append(document[left:])
        left -= len(counted[-1])
    return [document for document in counted if document], [document for document in rest if document]
