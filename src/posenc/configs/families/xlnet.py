"""XLNet and Funnel Transformer: Transformer-XL's projected sinusoids of the distance, and a segment term."""

from __future__ import annotations

from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


def _sizes(keys: Keys) -> tuple[dict[str, Any], dict[str, str]]:
    """d_head is d_model / n_head by default."""
    d_head = keys.whole("d_head", None) or keys.whole("d_model") // keys.whole("n_head")
    arguments = {"d_model": keys.whole("d_model"), "n_heads": keys.whole("n_head"), "d_head": d_head}
    said_by = {"d_model": keys.said_by("d_model"), "n_heads": keys.said_by("n_head"), "d_head": keys.said_by("d_head")}
    return arguments, said_by


@family("xlnet")
def xlnet(keys: Keys) -> PositionSpec:
    """Memory precedes the tokens, at negative positions, in segment 0."""
    arguments, said_by = _sizes(keys)
    attention = "layer.{layer}.rel_attn."
    weights = (
        Weight("u", f"{attention}r_w_bias"),
        Weight("v", f"{attention}r_r_bias"),
        Weight("s", f"{attention}r_s_bias"),
        Weight("w_r", f"{attention}r", order=(2, 0, 1)),
        Weight("e", f"{attention}seg_embed", order=(1, 0, 2)),
    )
    use = Use(
        "encodings.xlnet.XLNet",
        (*arguments.items(), ("segments", True)),
        (*said_by.items(), ("segments", "constant of the code")),
        weights,
        note=say("without token_type_ids there is no segment term: XLNet(segments=False)"),
    )
    causal = keys.text("attn_type", "bi", among=("bi", "uni")) == "uni"
    if keys.flag("bi_data", False):
        keys.error("bi_data", say("the second half of a batch reads distances in reverse, which is not supported here"))
    clamp = keys.get("clamp_len", -1)
    if isinstance(clamp, int) and clamp > 0:
        keys.error("clamp_len", say("distances beyond {clamp} count as {clamp}, which is not supported here", clamp=clamp))
    keys.note("mem_len", say("memory has positions -mlen … -1 and segment 0"))
    layers = [Layer((use,), causal=causal)] * keys.whole("n_layer")
    return stack_of(
        keys,
        layers,
        width="d_model",
        heads="n_head",
        length=None,
        d_head=arguments["d_head"],
        coordinates=say("(position, segment); only whether segments (token_type_ids) are equal matters"),
    )


@family("funnel")
def funnel(keys: Keys) -> PositionSpec:
    """Encoder blocks pool pairs of tokens; a pooled token keeps the position of the first.

    The first layer of a block has pooled queries and, with pool_q_only, unpooled keys. The decoder has all tokens again.
    """
    arguments, said_by = _sizes(keys)
    arguments["separate"], said_by["separate"] = bool(keys.flag("separate_cls", True)), "separate_cls"
    said_by["separate"] = keys.said_by("separate_cls")

    def layer(where: str, kind: str) -> Layer:
        weights = (
            Weight("u", f"{where}r_w_bias"),
            Weight("v", f"{where}r_r_bias"),
            Weight("s", f"{where}r_s_bias"),
            Weight("w_r", f"{where}r_kernel", order=(2, 0, 1)),
            *(Weight("e", f"{where}seg_embed", part=(0, 1 - n), into=(1, n)) for n in range(2)),
        )
        use = Use(
            "encodings.of_families.funnel.Funnel",
            tuple(arguments.items()),
            tuple(said_by.items()),
            weights,
            note=say("without token_type_ids there is no segment term"),
        )
        return Layer((use,), kind, causal=False)

    sizes = _counts(keys, "block_sizes", (4, 4, 4))
    repeats = _counts(keys, "block_repeats", (1,) * len(sizes))
    if len(repeats) != len(sizes):
        raise ConfigError(
            f"{keys.where('block_repeats')}: expected one for each of {len(sizes)} blocks, got {len(repeats)}"
        )
    encoder = [
        layer(f"encoder.blocks.{block}.{number}.attention.", f"block_{block}")
        for block, size in enumerate(sizes)
        for number in range(size)
        for _ in range(repeats[block])
    ]
    decoder = [layer(f"decoder.layers.{n}.attention.", "block_0") for n in range(keys.whole("num_decoder_layers", 2))]
    cls = say("at 1 - 2^block") if arguments["separate"] else say("like any token")
    cut = bool(keys.flag("truncate_seq", True)) and arguments["separate"]
    keys.note(
        "separate_cls",
        say(
            "the class token (token type 2, segment -1 here) is {cls}; pooling keeps every other position of the rest{cut}",
            cls=cls,
            cut=say(" but the last") if cut else "",
        ),
    )
    keys.text("attention_type", "relative_shift", among=("relative_shift", "factorized"))
    keys.flag("pool_q_only", True)
    about = {
        "d_model": arguments["d_model"],
        "n_heads": arguments["n_heads"],
        "d_head": arguments["d_head"],
        "coordinates": say("(position, segment), the class token in segment -1; pooled tokens keep theirs"),
    }
    return PositionSpec(
        keys.family,
        parts=(
            PositionSpec(keys.family, part="encoder", layers=tuple(encoder), **about),
            PositionSpec(keys.family, part="decoder", layers=tuple(decoder), **about),
        ),
    )


def _counts(keys: Keys, name: str, assumed: tuple[int, ...]) -> tuple[int, ...]:
    numbers = keys.numbers(name, assumed)
    if not numbers or any(not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 2**10 for n in numbers):
        raise ConfigError(f"{keys.where(name)}: expected whole numbers from 1 to 1024, got {numbers!r}")
    return tuple(numbers)
