"""wav2vec 2.0, HuBERT, WavLM, SEW and similar: a wide convolution over frames, added before the first layer."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

CONVOLUTION = say("none: neighbours within the convolution's reach; padding is zeroed if an attention mask is given")


def convolution(
    keys: Keys,
    path: str = "pos_conv_embed",
    *,
    normed_by_batch: bool = False,
    plain: bool = False,
    activation: str = "feat_extract_activation",
) -> Use:
    """wav2vec 2.0's convolution with weight norm; without it if `plain`, or after a batch norm (some HuBERT models)."""
    if keys.text(activation, "gelu") != "gelu":
        raise ConfigError(f"{keys.where(activation)}: expected 'gelu', got {keys.get(activation)!r}")
    sizes = {"d_model": "hidden_size", "kernel_size": "num_conv_pos_embeddings", "groups": "num_conv_pos_embedding_groups"}
    arguments = {ours: keys.whole(theirs) for ours, theirs in sizes.items()}
    said_by = {ours: keys.said_by(theirs) for ours, theirs in sizes.items()}
    inside = f"{path}.conv."
    if normed_by_batch:
        weights = [Weight("layers.0.weight", f"{inside}weight")]
        weights += [
            Weight(ours, f"{path}.batch_norm.{theirs}")
            for ours, theirs in (
                ("mean", "running_mean"),
                ("variance", "running_var"),
                ("gain", "weight"),
                ("shift", "bias"),
            )
        ]
        arguments |= {"weight_norm": False, "batch_norm": True}
        said_by |= dict.fromkeys(("weight_norm", "batch_norm"), keys.said_by("conv_pos_batch_norm"))
        keys.warning(
            "conv_pos_batch_norm",
            say(
                "padding is zeroed before the batch norm, which makes it nonzero again: it affects the "
                "last frames; posenc takes padding as absent"
            ),
        )
    elif plain:
        weights = [Weight("layers.0.weight", f"{inside}weight")]
        arguments |= {"weight_norm": False}
        said_by |= {"weight_norm": "constant of the code"}
    else:
        weights = [
            Weight("layers.0.gain", f"{inside}parametrizations.weight.original0"),
            Weight("layers.0.direction", f"{inside}parametrizations.weight.original1"),
        ]
    weights.append(Weight("layers.0.bias", f"{inside}bias"))
    keys.note(
        "num_conv_pos_embeddings",
        say("padding is zeroed before the convolution only if an attention mask is given; otherwise it is read as sound"),
    )
    return Use("encodings.convolutional.Convolutional", tuple(arguments.items()), tuple(said_by.items()), tuple(weights))


def _convolved(keys: Keys, *, normed_by_batch: bool = False, inside: Use | None = None) -> PositionSpec:
    """The convolution, then bidirectional layers with `inside` in each."""
    use = convolution(keys, normed_by_batch=normed_by_batch)
    layers = [Layer((inside,) if inside else (), causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, embedding=[use], length=None, coordinates=CONVOLUTION)


@family("omniasr_audio")
def omniasr_audio(keys: Keys) -> PositionSpec:
    """A plain convolution, without weight norm."""
    if keys.whole("num_conv_pos_embeddings") % 2:
        raise ConfigError(
            f"{keys.where('num_conv_pos_embeddings')}: expected an even number, got "
            f"{keys.get('num_conv_pos_embeddings')}; the code drops the last frame and fails with an odd one"
        )
    use = convolution(keys, "encode_positions", activation="hidden_act", plain=True)
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, embedding=[use], length=None, coordinates=CONVOLUTION)


@family("wav2vec2", "unispeech", "unispeech-sat")
def wav2vec2(keys: Keys) -> PositionSpec:
    return _convolved(keys)


@family("hubert")
def hubert(keys: Keys) -> PositionSpec:
    return _convolved(keys, normed_by_batch=bool(keys.flag("conv_pos_batch_norm", False)))


@family("wavlm")
def wavlm(keys: Keys) -> PositionSpec:
    """The convolution, and T5's buckets from one table, gated in each layer by its hidden states."""
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    arguments = {
        "n_heads": n_heads,
        "d_head": d_model // n_heads,
        "n_buckets": keys.whole("num_buckets", 320),
        "max_distance": keys.whole("max_bucket_distance", 800),
    }
    sources = {
        "n_heads": "num_attention_heads",
        "d_head": "hidden_size",
        "n_buckets": "num_buckets",
        "max_distance": "max_bucket_distance",
    }
    path = "layers.{layer}.attention.gru_rel_pos"
    weights = (
        Weight("rule.table", "layers.0.attention.rel_attn_embed.weight"),
        Weight("gate", f"{path}_linear.weight"),
        Weight("gate_offset", f"{path}_linear.bias"),
        Weight("constant", f"{path}_const", reshape=True),
    )
    gated = Use(
        "encodings.of_families.t5_gated.GatedT5",
        tuple(arguments.items()),
        tuple((ours, keys.said_by(theirs)) for ours, theirs in sources.items()),
        weights,
    )
    return _convolved(keys, inside=gated)


@family("sew")
def sew(keys: Keys) -> PositionSpec:
    return _squeezed(keys, _convolved(keys))


@family("sew-d")
def sew_d(keys: Keys) -> PositionSpec:
    return _squeezed(keys, _convolved(keys, inside=_disentangled(keys)))


def _squeezed(keys: Keys, spec: PositionSpec) -> PositionSpec:
    """The convolution is sampled at every n-th frame and added to the mean of n frames."""
    factor = keys.whole("squeeze_factor", 2)
    note = say(
        "what it adds at frames 0, {factor}, {second}, … is added to the means of {factor} frames each",
        factor=factor,
        second=2 * factor,
    )
    keys.note("squeeze_factor", say("the convolution's {note}; attention sees the means", note=note))
    added, *inside = spec.layers[0].uses
    layers = (replace(spec.layers[0], uses=(replace(added, note=note), *inside)), *spec.layers[1:])
    return replace(spec, layers=layers)


def _disentangled(keys: Keys) -> Use | None:
    """DeBERTa's terms with one table for all layers.

    Positions use the content's projection unless share_att_key is false.
    """
    terms = tuple(term for term in keys.names("pos_att_type", ("p2c", "c2p")) if term in ("c2p", "p2c"))
    if not keys.flag("relative_attention", True) or not terms:
        if terms:
            keys.warning(
                "pos_att_type", say("no positions, but q·k is still divided by √(d·{terms})", terms=1 + len(terms))
            )
        return None
    limit, buckets = keys.get("max_relative_positions", -1), keys.get("position_buckets", -1)
    rows = "max_relative_positions" if isinstance(limit, int) and limit > 0 else "max_position_embeddings"
    arguments = {
        "d_model": keys.whole("hidden_size"),
        "n_heads": keys.whole("num_attention_heads"),
        "max_distance": keys.whole(rows),
        "terms": terms,
    }
    sources = {"d_model": "hidden_size", "n_heads": "num_attention_heads", "max_distance": rows, "terms": "pos_att_type"}
    if isinstance(buckets, int) and buckets > 0:
        arguments["n_buckets"], sources["n_buckets"] = keys.whole("position_buckets"), "position_buckets"
    weights = [Weight("table", "rel_embeddings.weight")]
    if "layer_norm" in keys.text("norm_rel_ebd", "layer_norm").lower():
        arguments["norm_eps"], sources["norm_eps"] = keys.number("layer_norm_eps", 1e-7), "layer_norm_eps"
        weights += [Weight("norm", "encoder.LayerNorm.weight"), Weight("norm_offset", "encoder.LayerNorm.bias")]
    shared = bool(keys.flag("share_att_key", True))
    stem = "encoder.layer.{layer}.attention.self."
    for term, name in (("c2p", "key"), ("p2c", "query")):
        if term in terms:
            path = f"{stem}{name}_proj" if shared else f"{stem}pos_{name}_proj"
            weights += [
                Weight(name, f"{path}.weight", reshape=True),
                Weight(f"{name}_offset", f"{path}.bias", reshape=True),
            ]
    return Use(
        "encodings.deberta.DeBERTa",
        tuple(arguments.items()),
        tuple((ours, keys.said_by(theirs)) for ours, theirs in sources.items()),
        tuple(weights),
    )


@family("data2vec-audio")
def data2vec_audio(keys: Keys) -> PositionSpec:
    """num_conv_pos_embeddings convolutions, each followed by a layer norm without parameters.

    Attention has no positions.
    """
    if keys.text("feat_extract_activation", "gelu") != "gelu":
        raise ConfigError(
            f"{keys.where('feat_extract_activation')}: expected 'gelu', got {keys.get('feat_extract_activation')!r}"
        )
    if keys.whole("num_conv_pos_embeddings") > 2**10:
        raise ConfigError(
            f"{keys.where('num_conv_pos_embeddings')}: expected the number of convolutions, such as "
            f"5, got {keys.get('num_conv_pos_embeddings')}"
        )
    sizes = {
        "d_model": "hidden_size",
        "kernel_size": "conv_pos_kernel_size",
        "groups": "num_conv_pos_embedding_groups",
        "layers": "num_conv_pos_embeddings",
    }
    arguments = {ours: keys.whole(theirs) for ours, theirs in sizes.items()} | {"normed": True, "weight_norm": False}
    said_by = {ours: keys.said_by(theirs) for ours, theirs in sizes.items()}
    said_by |= dict.fromkeys(("normed", "weight_norm"), "constant of the code")
    weights = tuple(
        Weight(f"layers.{n}.{kind}", f"pos_conv_embed.layers.{n}.conv.{kind}")
        for n in range(keys.whole("num_conv_pos_embeddings"))
        for kind in ("weight", "bias")
    )
    keys.warning(
        "num_conv_pos_embeddings",
        say(
            "padding is zeroed before the first convolution only and affects the last frames; posenc takes "
            "padding as absent"
        ),
    )
    use = Use("encodings.convolutional.Convolutional", tuple(arguments.items()), tuple(said_by.items()), weights)
    return stack_of(
        keys,
        [Layer(causal=False)] * keys.whole("num_hidden_layers"),
        embedding=[use],
        length=None,
        coordinates=say("none: neighbours within the convolutions' reach"),
    )
