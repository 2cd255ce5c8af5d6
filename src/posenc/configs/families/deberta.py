"""DeBERTa: content-to-position and position-to-content terms from one table of distances that all layers share.

Version 1 has one row for each distance. Version 2 has logarithmic buckets if position_buckets is set, can normalise the
table (norm_rel_ebd) and can project it with the content's weights (share_att_key). An absolute position table is added if
position_biased_input is set. He et al. 2021, DeBERTa."""

from __future__ import annotations

from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.family import family, head_width, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

ATTENTION = "encoder.layer.{layer}.attention.self."


@family("deberta", "deberta-v2")
def deberta(keys: Keys) -> PositionSpec:
    second = keys.family == "deberta-v2"
    terms = _terms(keys)
    d_head = head_width(keys, key="attention_head_size") if second else head_width(keys, key="")
    keys.get("max_relative_positions", -1)  # says something where attention is relative only
    uses: list[Use] = []
    if keys.flag("relative_attention", False):
        if terms:
            uses.append(_relative(keys, terms, d_head, second))
        else:
            keys.warning("pos_att_type", say("names no term: relative_attention has no effect"))
    elif terms:
        keys.warning(
            "relative_attention",
            say(
                "false: scores have no position terms, but q·k is still divided by √({n_terms}·d_head), for the "
                "terms of pos_att_type",
                n_terms=len(terms) + 1,
            ),
        )
    embedding = []
    if keys.flag("position_biased_input", True):
        width = "embedding_size" if keys.has("embedding_size") else "hidden_size"
        embedding = [learned_table(keys, BERT_TABLE, width=width)]
    if second and keys.whole("conv_kernel_size", 0, least=0):
        keys.note(
            "conv_kernel_size",
            say("a convolution over the embeddings is added after the first layer; it depends on order too"),
        )
    layers = [Layer(tuple(uses), causal=False)] * keys.whole("num_hidden_layers")
    length = "max_position_embeddings" if embedding else None
    return stack_of(keys, layers, embedding=embedding, d_head=d_head, length=length)


def _terms(keys: Keys) -> tuple[str, ...]:
    value: Any = keys.get("pos_att_type", [])
    names = [part.strip() for part in value.lower().split("|")] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not set(names) <= {"c2p", "p2c"}:
        raise ConfigError(f"{keys.where('pos_att_type')}: expected 'c2p', 'p2c' or both, got {value!r}")
    return tuple(term for term in ("c2p", "p2c") if term in names)


def _relative(keys: Keys, terms: tuple[str, ...], d_head: int, second: bool) -> Use:
    """The limit is max_relative_positions, or max_position_embeddings if that is below 1."""
    limit = "max_relative_positions"
    said_limit = keys.get(limit, -1)
    if not isinstance(said_limit, int) or said_limit < 1:
        limit = "max_position_embeddings"
    arguments: dict[str, Any] = {
        "d_model": keys.whole("hidden_size"),
        "n_heads": keys.whole("num_attention_heads"),
        "d_head": d_head,
        "max_distance": keys.whole(limit),
        "terms": terms,
    }
    said_by = {
        "d_model": keys.said_by("hidden_size"),
        "n_heads": keys.said_by("num_attention_heads"),
        "max_distance": keys.said_by(limit),
        "terms": keys.said_by("pos_att_type"),
    }
    said_by["d_head"] = keys.said_by("attention_head_size") if keys.has("attention_head_size") else said_by["d_model"]
    weights = [Weight("table", "encoder.rel_embeddings.weight")]
    stored = {"key": "pos_proj", "query": "pos_q_proj"}
    if second:
        buckets = keys.get("position_buckets", -1)
        if isinstance(buckets, int) and buckets > 0:
            arguments["n_buckets"], said_by["n_buckets"] = keys.whole("position_buckets"), keys.said_by("position_buckets")
        if "layer_norm" in [part.strip() for part in keys.text("norm_rel_ebd", "none").lower().split("|")]:
            arguments["norm_eps"] = keys.number("layer_norm_eps", 1e-7)
            said_by["norm_eps"] = keys.said_by("layer_norm_eps")
            weights += [Weight("norm", "encoder.LayerNorm.weight"), Weight("norm_offset", "encoder.LayerNorm.bias")]
        shared = keys.flag("share_att_key", False)
        stored = {side: f"{side}_proj" if shared else f"pos_{side}_proj" for side in ("key", "query")}
    for term, side in (("c2p", "key"), ("p2c", "query")):
        if term in terms:
            weights.append(Weight(side, f"{ATTENTION}{stored[side]}.weight", reshape=True))
            if second or side == "query":
                weights.append(Weight(f"{side}_offset", f"{ATTENTION}{stored[side]}.bias", reshape=True))
    return Use("encodings.deberta.DeBERTa", tuple(arguments.items()), tuple(said_by.items()), tuple(weights))
