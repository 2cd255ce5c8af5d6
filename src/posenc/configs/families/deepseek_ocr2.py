"""DeepSeek-OCR 2 and Unlimited OCR: a SAM vision encoder, a second encoder and a text decoder."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, side_of, tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("deepseek_ocr2_sam_vision_model", "unlimited_ocr_sam_vision_model")
def deepseek_ocr2_sam_vision_model(keys: Keys) -> PositionSpec:
    """A bicubic grid, and decomposed relative position bias in every layer: over the image or within windows."""
    height, width, source = side_of(keys)
    d_model, n_heads, count = keys.whole("hidden_size"), keys.whole("num_attention_heads"), keys.whole("num_hidden_layers")
    if d_model % n_heads:
        raise ConfigError(f"{keys.where('hidden_size')}: {d_model} is not a multiple of num_attention_heads={n_heads}")
    whole, side = keys.get("global_attn_indexes"), keys.whole("window_size", least=0)
    if height != width:
        raise ConfigError(f"{keys.where('image_size')}: {height} × {width} patches; the code supports square images only")
    if not isinstance(whole, (list, tuple)) or not all(isinstance(number, int) for number in whole):
        raise ConfigError(f"{keys.where('global_attn_indexes')}: expected a list of layer numbers, got {whole!r}")
    table = grid(keys, "pos_embed", height, width, source, antialias=True)
    table = replace(table, weights=(Weight("table", "pos_embed", reshape=True),))
    layers = []
    for number in range(count):
        everywhere = number in whole or not side
        reach = (height, width) if everywhere else (side, side)
        origin = source if everywhere else keys.said_by("window_size")
        bias = Use(
            "encodings.decomposed.DecomposedBias",
            (("d_head", d_model // n_heads), ("window", reach)),
            (("d_head", "hidden_size / num_attention_heads"), ("window", origin)),
            (Weight("rows", "layers.{layer}.attn.rel_pos_h"), Weight("columns", "layers.{layer}.attn.rel_pos_w")),
        )
        kind = "full_attention" if everywhere else "window_attention"
        layers.append(Layer((bias,) if keys.flag("use_rel_pos") else (), kind, None if everywhere else side * side, False))
    keys.note(
        "window_size",
        say(
            "all layers except {layers} attend within windows of {side} × {side} patches, with coordinates "
            "within the window; windows at the border are padded, and padding is attended to",
            layers=list(whole),
            side=side,
        ),
    )
    return stack_of(keys, layers, embedding=[table] if keys.flag("use_abs_pos") else [], length=None, coordinates=RASTER)


@family("deepseek_ocr2_encoder")
def deepseek_ocr2_encoder(keys: Keys) -> PositionSpec:
    """A language model as encoder: patches attend to all patches, learned queries to the patches and earlier queries."""
    count = keys.whole("num_hidden_layers")
    window = keys.whole("sliding_window", None) if keys.flag("use_sliding_window") else None
    first = keys.whole("max_window_layers", least=0)
    kinds = keys.names("layer_types", None, length=count)
    if kinds is None:
        kinds = tuple("sliding_attention" if window is not None and n >= first else "full_attention" for n in range(count))
    d_head = keys.whole("head_dim", None) or keys.whole("hidden_size") // keys.whole("num_attention_heads")
    use = rope(keys, d_head=d_head)
    if window is not None:
        keys.warning("sliding_window", say("passed to the kernel, but the mask ignores it"))
    layers = [Layer((use,) if use else (), kind, window if kind == "sliding_attention" else None) for kind in kinds]
    where = say("patches in sequence, then learned queries, counted from 0; attention among patches is bidirectional")
    return stack_of(keys, layers, d_head=d_head, coordinates=where)


@family("deepseek_ocr2_vision", "unlimited_ocr_vision")
def deepseek_ocr2_vision(keys: Keys) -> PositionSpec:
    if keys.family == "deepseek_ocr2_vision":
        keys.note(
            "encoder_config", say("144 or 256 learned queries follow the patches, depending on the number of patches")
        )
    return PositionSpec(keys.family, parts=parts(keys, "sam_config", "encoder_config"))


@family("unlimited_ocr_vision_encoder")
def unlimited_ocr_vision_encoder(keys: Keys) -> PositionSpec:
    """CLIP's grid with a row for the class token, interpolated bicubically."""
    height, width, origin = side_of(keys)
    table = grid(keys, "position_embedding.weight", height, width, origin, prefix=1, antialias=True)
    return tower(keys, [], embedding=[table], coordinates=say("a class token, then {raster}", raster=RASTER))


@family("deepseek_ocr2_text", "unlimited_ocr_text")
def deepseek_ocr2_text(keys: Keys) -> PositionSpec:
    """As Llama. Unlimited OCR's window applies to generated tokens only: the prompt is always visible."""
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    if d_model % n_heads:
        raise ConfigError(f"{keys.where('hidden_size')}: {d_model} is not a multiple of num_attention_heads={n_heads}")
    count, kind = keys.whole("num_hidden_layers"), "full_attention"
    if keys.family == "unlimited_ocr_text":
        kind = "reference_sliding_attention"
        keys.note(
            "sliding_window",
            say(
                "after the prompt, a token attends to the whole prompt and to the last {window} tokens, itself "
                "included; attention within the prompt is causal",
                window=keys.whole("sliding_window"),
            ),
        )
    kinds = keys.names("layer_types", None, length=count) or (kind,) * count
    return decoder(keys, rope(keys, d_head=d_model // n_heads), kinds=kinds, d_head=d_model // n_heads)


@family("deepseek_ocr2", "unlimited_ocr")
def deepseek_ocr2(keys: Keys) -> PositionSpec:
    """Early files of Unlimited OCR have language_config, and the window at the top level."""
    old = keys.data.get("language_config")
    if keys.family == "unlimited_ocr" and isinstance(old, dict) and not keys.has("text_config"):
        window = keys.whole("sliding_window", None)
        within = {} if window is None else {"sliding_window": window}
        keys.data["text_config"] = old | within | {"model_type": "unlimited_ocr_text"}
        keys.note("language_config", say("the old name of text_config"))
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"))
