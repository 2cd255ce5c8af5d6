"""Families whose code is in their repositories, where it is not that of a family of transformers.

Each reader states what the published modelling code does with position; posenc.configs.remote has the names of the keys.
"""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.families.bloom import linear
from posenc.configs.families.gpt2 import gpt2
from posenc.configs.families.llama import llama, same_kind
from posenc.configs.family import bidirectional, decoder, family, head_width, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, RECURRENT, attention_among
from posenc.configs.spec import Layer, PositionSpec, Use


@family("chatglm")
def chatglm(keys: Keys) -> PositionSpec:
    """ChatGLM 2 and 3, GLM-4-9B: interleaved pairs in the first half of each head; base 10000·rope_ratio."""
    if keys.flag("position_encoding_2d", False):
        raise ConfigError(f"{keys.where('position_encoding_2d')}: ChatGLM-6B's two coordinates per token are not read")
    ratio = keys.number("rope_ratio", 1.0)
    d_head = keys.whole("kv_channels", None) or head_width(keys)
    use = rope(keys, d_head=d_head, rotary_dim=d_head // 2, layout="interleaved", base=10000.0 * ratio)
    said = {"base": f"10000 · {keys.said_by('rope_ratio')}" if keys.has("rope_ratio") else "constant of the code"}
    return decoder(keys, _said(use, **said), kinds=same_kind(keys), d_head=d_head)


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
    said = keys.table("rotary")
    if not said:
        return llama(keys)
    inner = Keys(said, "", keys.where("rotary"))
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
    if not isinstance(blocks, list) or len(blocks) not in (0, count) or not all(isinstance(one, dict) for one in blocks):
        raise ConfigError(f"{keys.where('block_configs')}: expected one object for each of {count} layers")
    attention = [one.get("attention") or {} for one in blocks] or [{}] * count
    kinds = ["mlp" if one.get("no_op") or one.get("replace_with_linear") else FULL for one in attention]
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
    said = say(
        "a learned vector for each patch of {size} pixels, resized for other images: not read here",
        size=keys.whole("patch_size", 14),
    )
    return PositionSpec(keys.family, coordinates=said)


def _said(use: Use | None, **said: str) -> Use | None:
    return None if use is None else replace(use, said_by=tuple((dict(use.said_by) | said).items()))
