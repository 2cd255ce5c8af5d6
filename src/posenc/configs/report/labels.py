"""The words of the report's page, in both languages."""

from __future__ import annotations

from posenc.configs.say import say
from posenc.configs.short_factors import SHORT_AT_ANY_LENGTH
from posenc.support.languages import Words

LABELS = {
    "trained": say("trained on {0:,} positions"),
    "not said": say("trained length not in the file"),
    "scaled": say("scaled to {0:,} by {1}"),
    "scaled or": say("scaled to {0:,} by {1} (or {2:,})"),
    "by": say("with {0}"),
    "up to": say("up to {0:,}: every position and angle was seen in training"),
    "beyond": say("beyond {0:,}: {1}"),
    "or beyond": say(" (or beyond {0:,})"),
    "longer": say("longer: {0}"),
    "do": say("what to do: {0}"),
    "errors": say("first: {0} in this file, under findings"),
    "warnings": say("{0} about this file, under findings"),
    "nothing": say("no attention layers of its own"),
    "comma": say(", "),
    "layers": say("{0} layers"),
    "layer": say("1 layer"),
    "heads": say(", {0} heads of {1} channels"),
    "positions": say("positions: {0}"),
    "input": say("input"),
    "every layer": say("every layer"),
    "every layer but": say("every layer but {0}"),
    "layers n": say("layers {0}"),
    "layer n": say("layer {0}"),
    "causal": say("causal"),
    "both": say("both directions"),
    "window": say(", a window of {0:,} tokens"),
    "chunk": say(", in chunks of {0:,} tokens"),
    "not attention": say("not attention: no positions"),
    "from embeddings": say("from the embeddings only"),
    "no positions": say("no positions"),
    "pairs": say("pairs"),
    "base": say("base"),
    "scaling": say("scaling"),
    "given": say("frequencies"),
    "listed": say("listed in the file"),
    "axes": say("axes"),
    "axes are": say("{0} coordinates for each token; {1} pairs read them"),
    "cos and sin": say("cos and sin"),
    "softmax scale": say("softmax scale"),
    "note": say("note"),
    "half": say("half: channel i pairs with i + d/2"),
    "interleaved": say("interleaved: channel 2i pairs with 2i + 1"),
    "all": say("all {0} channels"),
    "first": say("the first {1} of {0} channels"),
    "last": say("the last {1} of {0} channels"),
    "reverse": say(", the other way round"),
    "too": say("; {0} too"),
    "and": say(" and "),
    "wavelengths": say("wavelengths"),
    "from to": say("{0} … {1} positions"),
    "still": say("{0} of {1} pairs never rotate"),
    "unfinished": say("unfinished"),
    "unfinished are": say("{0} of {1} rotating pairs do not complete a turn in {2:,}"),
    "the window": say(", all that the layer sees"),
    "from pair": say(", from pair {0} on"),
    "largest angle": say("largest angle"),
    "angle is": say("{0} rad at position {1:,}"),
    "error there": say("error there"),
    "error is": say("{0:.1e} with fp32 angles (exact='model'), {1:.1e} with bf16 tables; exact='fp64' has none"),
    "at": say("at {0:,}:"),
    "new": say("{0} of {1} pairs have angles not seen in training: {2}"),
    "or new": say(" (or {0}: {1})"),
    "none new": say("no pair has angles not seen in training"),
    "findings": say("findings"),
    "no findings": say("no findings"),
    "facts": say("facts of nearly every model"),
    "more facts": say("--facts: layouts and precision"),
    "grade error": say("error"),
    "grade warning": say("warning"),
    "grade note": say("note"),
    "learned tables": say("learned tables"),
    "mean cosine": say("mean cosine of rows by distance"),
    "columns": say("weight,rows,at 1,at 8,at 64,by distance,offset,dead"),
    "explained": say(
        "by distance: share of the variance of all cosines that distance alone explains; offset: 0 if a row is equally "
        "similar to the k-th row after and before it; dead: rows with a norm near 0."
    ),
    "to": say("to {0:,} positions"),
    "factor": say("factor {0:.6g}; frequencies in radians per position"),
    "frequencies": say(",fastest,middle,slowest,cos/sin,what it is"),
    "now": say("now"),
    "run": say("to run it with {0}"),
    "ignores": say("ignores {0}"),
    "other methods": say("   (others: --method)"),
    "shortened": say("long lists are shortened here; --json and --out have them in full"),
}


SCALINGS = {
    "configs.gguf.divided": say("a factor for each pair"),
    SHORT_AT_ANY_LENGTH: say("LongRoPE with short factors at any length"),
    "configs.short_factors.with_scales": say("LongRoPE with a scale for each set of factors"),
    "configs.short_factors.mixed_ntk": say("mixed NTK"),
}


def scaling_name(kind: str) -> Words:
    """The name of a scaling for readers: that of its setting, or words for the function that computes it."""
    return SCALINGS.get(kind, Words(kind.rpartition(".")[2].replace("_", " ")))
