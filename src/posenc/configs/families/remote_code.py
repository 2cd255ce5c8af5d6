"""Families whose code is in their repositories, where it is not that of a family of transformers.

Each reader states what the published modelling code does with position; posenc.configs.remote has the names of the keys.
"""

from __future__ import annotations

import re
from dataclasses import replace

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.errors import ConfigError
from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.families.bloom import linear
from posenc.configs.families.deepseek_v3 import latent, stack, with_rotation
from posenc.configs.families.gpt2 import gpt2
from posenc.configs.families.llama import llama, same_kind
from posenc.configs.families.qwen2 import qwen2
from posenc.configs.families.qwen2_vl import with_section_type
from posenc.configs.family import bidirectional, decoder, family, head_width, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, RECURRENT, SLIDING, attention_among
from posenc.configs.spec import Layer, PositionSpec, Use


@family("chatglm")
def chatglm(keys: Keys) -> PositionSpec:
    """ChatGLM 2 and 3, GLM-4-9B: interleaved pairs in the first half of each head; base 10000·rope_ratio."""
    if keys.flag("position_encoding_2d", False):
        raise ConfigError(f"{keys.where('position_encoding_2d')}: ChatGLM-6B's two coordinates per token are not read")
    ratio = keys.number("rope_ratio", 1.0)
    d_head = keys.whole("kv_channels", None) or head_width(keys)
    use = rope(keys, d_head=d_head, rotary_dim=d_head // 2, layout="interleaved", base=10000.0 * ratio)
    origins = {"base": f"10000 · {keys.said_by('rope_ratio')}" if keys.has("rope_ratio") else "constant of the code"}
    return decoder(keys, _said(use, **origins), kinds=same_kind(keys), d_head=d_head)


@family("baichuan")
def baichuan(keys: Keys) -> PositionSpec:
    """7B: RoPE, half pairs. 13B: ALiBi; its files have model_max_length and no max_position_embeddings."""
    if keys.has("max_position_embeddings"):
        keys.get("model_max_length", None)
        return llama(keys)
    keys.note("model_max_length", say("ALiBi, as in the code of the 13B models: the file has no max_position_embeddings"))
    layers = [Layer((linear(keys, "num_attention_heads"),))] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, length="model_max_length")


@family("qwen")
def qwen(keys: Keys) -> PositionSpec:
    """Qwen 1: RoPE, half pairs, over rotary_pct of the head."""
    d_head = keys.whole("kv_channels", None) or head_width(keys)
    rotary_dim = int(d_head * keys.number("rotary_pct", 1.0))
    use = rope(keys, d_head=d_head, rotary_dim=rotary_dim, base_key="rotary_emb_base")
    length = keys.whole("seq_length", None)
    if keys.flag("use_dynamic_ntk", False):
        keys.warning(
            "use_dynamic_ntk",
            say("past {length} tokens the base grows in steps; the frequencies here are those before", length=length),
        )
    if keys.flag("use_logn_attn", False):
        keys.warning(
            "use_logn_attn",
            say("past {length} tokens queries are multiplied by ln(p)/ln({length}); not read here", length=length),
        )
    keys.get("max_position_embeddings", None)
    return decoder(keys, use, kinds=same_kind(keys), d_head=d_head, length="seq_length")


@family("internlm")
def internlm(keys: Keys) -> PositionSpec:
    """InternLM 1: Llama, with the base and dynamic NTK of factor 1 in `rotary`."""
    settings = keys.table("rotary")
    if not settings:
        return llama(keys)
    inner = Keys(settings, "", keys.where("rotary"))
    kind = inner.text("type", "origin", among=("origin", "dynamic"))
    scaling = {"rope_scaling": {"type": "dynamic", "factor": 1.0}} if kind == "dynamic" else {}
    return llama(keys.replaced({"rope_theta": inner.number("base", 10000.0)} | scaling))


@family("phi-msft")
def phi_msft(keys: Keys) -> PositionSpec:
    """Phi 1 to 2 as published: RoPE over the first rotary_dim channels, half pairs."""
    use = rope(keys, d_head=head_width(keys), rotary_dim=keys.whole("rotary_dim", 32), base=10000.0)
    return decoder(keys, _said(use, rotary_dim=keys.said_by("rotary_dim")), kinds=same_kind(keys))


@family("stablelm_epoch")
def stablelm_epoch(keys: Keys) -> PositionSpec:
    """RoPE, half pairs, over rope_pct of the head."""
    return decoder(keys, rope(keys, d_head=head_width(keys), partial=True, partial_default=0.25), kinds=same_kind(keys))


@family("openelm")
def openelm(keys: Keys) -> PositionSpec:
    """RoPE, half pairs; the number of heads differs between layers."""
    d_head = keys.whole("head_dim")
    use = rope(keys, d_head=d_head, base_key="rope_freq_constant")
    keys.get("rope_max_length", None)
    return replace(decoder(keys, use, kinds=same_kind(keys), d_head=d_head, heads="n_heads"), n_heads=None)


@family("jais")
def jais(keys: Keys) -> PositionSpec:
    """ALiBi with the paper's slopes, or a learned table."""
    if keys.text("position_embedding_type", "learned", among=("learned", "alibi")) == "learned":
        return gpt2(keys)
    layers = [Layer((linear(keys, "num_attention_heads"),))] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers)


@family("jina-bert-v2")
def jina_bert_v2(keys: Keys) -> PositionSpec:
    """Jina's BERT: ALiBi over the distance to both sides, with the paper's slopes; no table."""
    keys.get("position_embedding_type")
    layers = [Layer((linear(keys, "num_attention_heads"),), causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers)


@family("mosaic-bert")
def mosaic_bert(keys: Keys) -> PositionSpec:
    """MosaicBERT and DNABERT-2: ALiBi over the distance to both sides, with the paper's slopes; no table."""
    keys.whole("max_position_embeddings", None)
    layers = [Layer((linear(keys, "num_attention_heads"),), causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, length="alibi_starting_size")


@family("llada")
def llada(keys: Keys) -> PositionSpec:
    """A masked diffusion model: Llama's RoPE, bidirectional."""
    if keys.flag("alibi", False) or not keys.flag("rope", True):
        raise ConfigError(f"{keys.where('rope')}: LLaDA is read with RoPE only")
    return bidirectional(llama(keys))


@family("Dream")
def Dream(keys: Keys) -> PositionSpec:
    """A masked diffusion model: Qwen 2's RoPE, bidirectional."""
    return bidirectional(llama(keys))


@family("nemotron-nas")
def nemotron_nas(keys: Keys) -> PositionSpec:
    """Llama 3.1's RoPE; block_configs says which layers have no attention."""
    blocks = keys.get("block_configs", [])
    count = keys.whole("num_hidden_layers")
    if not isinstance(blocks, list) or len(blocks) not in (0, count) or not all(isinstance(b, dict) for b in blocks):
        raise ConfigError(f"{keys.where('block_configs')}: expected one object for each of {count} layers")
    attention = [block.get("attention") or {} for block in blocks] or [{}] * count
    kinds = ["mlp" if settings.get("no_op") or settings.get("replace_with_linear") else FULL for settings in attention]
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)


@family("minimax_m1")
def minimax_m1(keys: Keys) -> PositionSpec:
    """RoPE over the first rotary_dim channels in layers of attn_type_list 1; the others are linear attention."""
    types = keys.wholes("attn_type_list", length=keys.whole("num_hidden_layers"), least=0)
    kinds = attention_among(
        keys, [FULL if kind else RECURRENT for kind in types], (RECURRENT,), say("linear attention with a fixed decay")
    )
    use = rope(keys, d_head=head_width(keys), rotary_dim=keys.whole("rotary_dim"))
    return decoder(keys, _said(use, rotary_dim=keys.said_by("rotary_dim")), kinds=kinds)


@family("internvl_chat")
def internvl_chat(keys: Keys) -> PositionSpec:
    """The text model is llm_config; image tokens count like text tokens."""
    return PositionSpec(keys.family, parts=parts(keys, "llm_config", vision_config="intern_vit_6b"))


@family("intern_vit_6b")
def intern_vit_6b(keys: Keys) -> PositionSpec:
    where = say(
        "a learned vector for each patch of {size} pixels, resized for other images: not read here",
        size=keys.whole("patch_size", 14),
    )
    return PositionSpec(keys.family, coordinates=where)


@family("params.json")
def params_json(keys: Keys) -> PositionSpec:
    """Mistral's own format, beside consolidated.safetensors: RoPE with interleaved pairs. The class assumes base 10^6."""
    if keys.has("qk_rope_head_dim"):
        raise ConfigError(f"{keys.where('qk_rope_head_dim')}: latent attention is read from config.json of this model only")
    for name in ("vision_encoder", "multimodal"):
        if keys.has(name):
            keys.note(name, say("an encoder of images or sound: read from config.json of this model only"))
    count, window = keys.whole("num_hidden_layers"), keys.get("sliding_window", None)
    windows = window if isinstance(window, list) else [window]
    if count % len(windows) or not all(size is None or (type(size) is int and size > 0) for size in windows):
        raise ConfigError(
            f"{keys.where('sliding_window')}: expected tokens or null, for all layers or in turn, got {window}"
        )
    use = rope(_with_yarn(keys), d_head=head_width(keys), layout="interleaved", also_read=("beta", "alpha", "apply_scale"))
    uses = (*((use,) if use else ()), *_growing(keys))
    layers = [Layer(uses, SLIDING if size else FULL, size) for size in windows * (count // len(windows))]
    trained = keys.whole("max_position_embeddings", None) or keys.whole("max_seq_len", None)
    return stack_of(keys, layers, d_head=head_width(keys), length=trained)


def _with_yarn(keys: Keys) -> Keys:
    """The same keys with `yarn` as rotary settings: beta and alpha are beta_fast and beta_slow, apply_scale false is a
    scale of 1."""
    settings = keys.table("yarn")
    if not settings:
        return keys
    names = {"beta": "beta_fast", "alpha": "beta_slow"}
    known = {names.get(key, key): value for key, value in settings.items() if key != "apply_scale"}
    once = {} if Keys(settings, "", keys.where("yarn")).flag("apply_scale", True) else {"attention_factor": 1.0}
    return keys.replaced({"rope_parameters": {"rope_type": "yarn"} | known | once})


def _growing(keys: Keys) -> tuple[Use, ...]:
    """Queries × 1 + β·ln(1 + ⌊p/length⌋), as in Ministral 3."""
    settings = Keys(keys.table("llama_4_scaling"), "", keys.where("llama_4_scaling"))
    if not settings.data or not settings.number("beta", positive=False):
        return ()
    arguments = {
        "scale": settings.number("beta"),
        "trained_length": settings.whole("original_max_position_embeddings"),
        "offset": 0,
    }
    said_by = {"scale": settings.where("beta"), "trained_length": settings.where("original_max_position_embeddings")}
    return (Use("encodings.bases.temperature.FloorLogTemperature", tuple(arguments.items()), tuple(said_by.items())),)


@family("bailing_moe")
def bailing_moe(keys: Keys) -> PositionSpec:
    """Ling and Ring: RoPE, half pairs, over partial_rotary_factor of the head; 2.0 assumes half of it, the first all."""
    second = keys.family == "bailing_moe_v2"
    partial = second or keys.has("partial_rotary_factor")
    use = rope(keys, d_head=head_width(keys), partial=partial, partial_default=0.5 if second else 1.0)
    return decoder(keys, use, kinds=same_kind(keys))


@family("grok-1")
def grok_1(keys: Keys) -> PositionSpec:
    """Grok 1 and 2: RoPE, half pairs. Grok 2's scaling has the type "original", which changes no frequency."""
    kind = keys.text("rope_type", "original")
    if kind != "original":
        raise ConfigError(f"{keys.where('rope_type')}: expected 'original', which is Grok 2's, got {kind!r}")
    keys.get("original_max_position_embeddings", None)
    if (start := keys.whole("attn_temperature_len", -1, least=-1)) > 0:
        keys.warning(
            "attn_temperature_len",
            say("from position {start} on logits are multiplied by log p / log {start}; not read here", start=start),
        )
    return llama(keys)


@family("minicpmv")
def minicpmv(keys: Keys) -> PositionSpec:
    """MiniCPM-V and MiniCPM-o: the text model is MiniCPM, Llama or, where the file has their keys, Qwen 2 or 3."""
    return qwen2(keys) if keys.has("use_sliding_window") else llama(keys)


@family("llama_bidirec")
def llama_bidirec(keys: Keys) -> PositionSpec:
    """Embeddings from Llama that attends to both sides (NV-Retriever)."""
    return bidirectional(llama(keys))


@family("bidir_mistral")
def bidir_mistral(keys: Keys) -> PositionSpec:
    """NV-Embed's text model: Mistral that attends to both sides, without its window (eager masks of padding alone)."""
    if keys.get("sliding_window", None):
        keys.note("sliding_window", say("all layers have full attention in the code"))
    return bidirectional(llama(keys.replaced(without=("sliding_window",))))


@family("molmo")
def molmo(keys: Keys) -> PositionSpec:
    """RoPE, half pairs; the image encoder's sizes are constants of the code."""
    keys.note("model_type", say("images: CLIP's encoder of 336 × 336 pixels, a learned vector for each patch: not read"))
    return llama(keys)


@family("phi3small")
def phi3small(keys: Keys) -> PositionSpec:
    """RoPE, half pairs; LongRoPE has a scale of cos and sin of its own for each set of factors.

    Every dense_attention_every_n_layers-th layer sees all tokens; the others see blocks of them, which differ by head.
    """
    count, every = keys.whole("num_hidden_layers"), keys.whole("dense_attention_every_n_layers", 2)
    kinds = [FULL if (n + 1) % every == 0 else "block_sparse_attention" for n in range(count)]
    near = keys.whole("blocksparse_num_local_blocks", 16) * keys.whole("blocksparse_block_size", 64)
    keys.note(
        "dense_attention_every_n_layers",
        say(
            "{sparse} of {layers} layers see their last {near} tokens, in blocks, and of those before every {stride}th "
            "block, another one for each head",
            sparse=count - kinds.count(FULL),
            layers=count,
            near=near,
            stride=keys.whole("blocksparse_vert_stride", 8),
        ),
    )
    if keys.flag("mup_use_scaling", True):
        keys.note("mup_attn_multiplier", say("logits are q·k · mup_attn_multiplier / d_head, not q·k / √d_head"))
    return decoder(keys, _phi3small_rotation(keys), kinds=kinds)


def _phi3small_rotation(keys: Keys) -> Use | None:
    scale, settings = keys.number("rope_position_scale", 1.0), keys.table("rope_scaling")
    if not settings:
        linear = {} if scale == 1 else {"rope_scaling": {"type": "linear", "factor": scale}}
        return rope(keys.replaced(linear), d_head=head_width(keys))
    use = rope(keys, d_head=head_width(keys), also_read=("short_mscale", "long_mscale"))
    if use is None or use.rotation is None or use.rotation.kind != "longrope":
        where = keys.where("rope_scaling")
        raise ConfigError(say("{where}.type: expected 'su'; Phi-3-small's code has no other", where=where))
    inner = Keys(settings, "", keys.where("rope_scaling"))
    scales = tuple((name, inner.number(name)) for name in ("short_mscale", "long_mscale"))
    scaled = replace(use.rotation, kind="configs.short_factors.with_scales", parameters=(*use.rotation.parameters, *scales))
    return with_rotation(use, scaled)


@family("new")
def new(keys: Keys) -> PositionSpec:
    """Alibaba's GTE 1.5 and multilingual: RoPE, half pairs, bidirectional; NTK scaling is fixed from the start."""
    if keys.flag("logn_attention_scale", False):
        keys.warning("logn_attention_scale", say("queries are multiplied by a logarithm of the length; not read here"))
    layers = keys.whole("num_hidden_layers")
    if keys.text("position_embedding_type", "rope", among=("rope", "absolute")) == "absolute":
        table = learned_table(keys.replaced(without=("position_embedding_type",)), BERT_TABLE)
        return stack_of(keys, [Layer(causal=False)] * layers, embedding=[table])
    settings = keys.table("rope_scaling")
    if settings.get("type") != "ntk":
        use = rope(keys, d_head=head_width(keys))
    else:
        plain = rope(keys.replaced(without=("rope_scaling",)), d_head=head_width(keys))
        assert plain is not None
        assert plain.rotation is not None
        inner = Keys(settings, "", keys.where("rope_scaling"))
        parameters = {"factor": inner.number("factor"), "mixed_b": inner.number("mixed_b", None)}
        parameters = {name: value for name, value in parameters.items() if value is not None}
        rotation = replace(plain.rotation, kind="configs.short_factors.mixed_ntk", parameters=tuple(parameters.items()))
        use = _said(with_rotation(plain, rotation), **{name: keys.where(f"rope_scaling.{name}") for name in parameters})
    return bidirectional(decoder(keys, use, kinds=[FULL] * layers))


@family("deepseek_vl_v2")
def deepseek_vl_v2(keys: Keys) -> PositionSpec:
    """DeepSeek-VL2 and DeepSeek-OCR: DeepSeek-V2 as language_config, with latent attention or, in small ones, Llama's."""
    named = with_section_type(keys, "language_config", "deepseek_vl_v2_text")
    named = with_section_type(named, "vision_config", "siglip_of_timm")
    return PositionSpec(keys.family, parts=parts(named, "language_config", "vision_config"), coordinates=LIKE_TEXT)


@family("deepseek_vl_v2_text")
def deepseek_vl_v2_text(keys: Keys) -> PositionSpec:
    """Latent attention, interleaved pairs in and half pairs out, unless use_mla is false."""
    if keys.flag("use_mla", True):
        return stack(keys, latent(keys, interleave=True), same_kind(keys))
    for unused in ("qk_nope_head_dim", "qk_rope_head_dim"):
        keys.get(unused, None)
    return llama(keys)


@family("multi_modality")
def multi_modality(keys: Keys) -> PositionSpec:
    """Janus and DeepSeek-VL: Llama as language_config."""
    named = with_section_type(keys, "vision_config", "siglip_of_timm")
    return PositionSpec(
        keys.family, parts=parts(named, vision_config="siglip_of_timm", language_config="llama"), coordinates=LIKE_TEXT
    )


SIGLIP = {  # model_name of DeepSeek's files: width, layers, heads
    "siglip_large_patch16_384": (1024, 24, 16),
    "siglip_so400m_patch14_384": (1152, 27, 16),
}


@family("siglip_of_timm")
def siglip_of_timm(keys: Keys) -> PositionSpec:
    """SigLIP as the timm library has it: a learned grid, one image size; others than SigLIP are not read."""
    settings = keys.table("params") if keys.has("params") else keys.data
    inner = Keys(dict(settings), "", keys.where("params") if keys.has("params") else keys.path)
    name, image = inner.text("model_name", ""), inner.whole("image_size", 384)
    known = SIGLIP.get(name.removesuffix(".webli"))
    patch = re.search(r"patch(\d+)", name)
    if known is None or patch is None:
        keys.note("model_name", say("{name}: this image encoder is not read", name=name or "vision_config"))
        return PositionSpec(keys.family, coordinates=say("not read"))
    width, layers, heads = known
    side = image // int(patch[1])
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    sized = keys.replaced(sizes)
    origin = f"{inner.where('image_size')} / {inner.where('model_name')}"
    return tower(sized, [], embedding=[grid(sized, "pos_embed", side, side, origin, reshape=True)], coordinates=RASTER)


def _said(use: Use | None, **origins: str) -> Use | None:
    return None if use is None else use.with_said_by(origins)
