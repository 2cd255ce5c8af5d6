"""Model types that transformers does not have: their repositories bring their own code, which auto_map names.

Each is read by the reader of the family whose code it repeats, or by one of its own in families/remote_code.py, with the
names and the defaults of its published configuration class. Nothing of this is compared with that code: it is not run.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.keys import Keys, facts
from posenc.configs.say import say
from posenc.support.languages import clauses

TASK = re.compile(r"(?:For[A-Z]\w*|LMHeadModel|Model)$")
TEXT_PARTS = (  # the names of the text model's section, whatever stands around it
    "text_config",
    "llm_config",
    "language_config",
    "language_model",
    "language_model_config",
    "llm_cfg",
    "lm_config",
    "thinker_config",
    "thinker",
    "decoder_config",
)

ELSEWHERE = re.compile(r"(text|llm|language|lm)\w*_(id|name|path|name_or_path)$")  # of a text model with its own file
DEPTHS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "num_transformer_layers")


@dataclass(frozen=True)
class Remote:
    """A family of remote code.

    reader    the model type whose reader reads it
    owner     its published configuration class
    names     other names of keys: the name that the reader asks for -> the one that the class has
    base      the base that the class assumes
    also      keys of published files that its code reads, or ignores, and that change nothing here
    like      the model type of transformers whose class has the same defaults
    """

    reader: str
    owner: str
    names: Mapping[str, str] = field(default_factory=dict)
    base: float | None = 10000.0
    also: tuple[str, ...] = ()
    like: str = ""

    def facts(self) -> dict[str, Any]:
        result = {"class": self.owner, "names": dict(self.names), "defaults": {}, "parts": {}, "base": self.base}
        if self.like:
            about = facts()[self.like]
            result = {**about, "class": self.owner, "names": about["names"] | dict(self.names)}
        return result


GPT2_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
FALCON_NAMES = {"num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}
GLM_NAMES = {"num_hidden_layers": "num_layers", "max_position_embeddings": "seq_length"}
OLMO_NAMES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "max_position_embeddings": "max_sequence_length",
}
MOLMO_NAMES = {ours: theirs for theirs, ours in OLMO_NAMES.items()}  # either is in published files
MISTRAL_NAMES = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
ELM_NAMES = {
    "hidden_size": "model_dim",
    "num_hidden_layers": "num_transformer_layers",
    "max_position_embeddings": "max_context_length",
}

REMOTE = {
    "Dream": Remote("Dream", "DreamConfig"),
    "Keye": Remote("qwen2_vl_text", "KeyeConfig", like="qwen2_vl_text"),
    "KeyeVL1_5": Remote("qwen2_vl_text", "KeyeVL1_5Config", like="qwen2_vl_text"),
    "RefinedWeb": Remote("falcon", "RWConfig", FALCON_NAMES, like="falcon"),
    "RefinedWebModel": Remote("falcon", "RWConfig", FALCON_NAMES, like="falcon"),
    "Yi": Remote("llama", "YiConfig", base=5000000.0),
    "aquila": Remote("llama", "AquilaConfig"),
    "arctic": Remote("llama", "ArcticConfig", base=1000000.0),
    "baichuan": Remote("baichuan", "BaichuanConfig"),
    "bidir_mistral": Remote("bidir_mistral", "BidirectionalMistralConfig", like="mistral"),
    "bailing_moe": Remote("bailing_moe", "BailingMoeConfig"),
    "bailing_moe_v2": Remote("bailing_moe", "BailingMoeV2Config", base=600000.0),
    "chatglm": Remote("chatglm", "ChatGLMConfig", GLM_NAMES, also=("original_rope",)),
    "codeshell": Remote("llama", "CodeShellConfig", GPT2_NAMES, also=("position_embedding_type",)),
    "deepseek": Remote("llama", "DeepseekConfig"),
    "deepseek_vl_v2": Remote("deepseek_vl_v2", "DeepseekVLV2Config", also=("global_view_pos",)),
    "deepseek_vl_v2_text": Remote("deepseek_vl_v2_text", "DeepseekV2Config", like="deepseek_v2"),
    "dots_ocr": Remote("qwen2", "DotsOCRConfig", like="qwen2"),
    "grok-1": Remote("grok-1", "Grok1Config", also=("sliding_window_size",)),
    "hunyuan": Remote("hunyuan_v1_moe", "HunYuanConfig", like="hunyuan_v1_moe"),
    "internlm": Remote("internlm", "InternLMConfig"),
    "internlm2": Remote("llama", "InternLM2Config"),
    "internvl_chat": Remote("internvl_chat", "InternVLChatConfig"),
    "jais": Remote("jais", "JAISConfig", GPT2_NAMES),
    "jina-bert-v2": Remote("jina-bert-v2", "JinaBertConfig", like="bert"),
    "jina-xlm-roberta-flash": Remote(
        "jina_embeddings_v3",
        "XLMRobertaFlashConfig",
        {"rope_theta": "rotary_emb_base"},
        like="xlm-roberta",
        also=("position_embedding_type",),
    ),
    "kimi_vl": Remote("kimi_vl", "KimiVLConfig"),
    "kimi_k2": Remote("deepseek_v3", "DeepseekV3Config", like="deepseek_v3"),
    "llada": Remote("llada", "LLaDAConfig", OLMO_NAMES, also=("rope_full_precision",)),
    "llama_bidirec": Remote("llama_bidirec", "LlamaBidirectionalConfig", like="llama"),
    "llava_llama": Remote("llama", "LlavaConfig", like="llama"),
    "llava_mistral": Remote("mistral", "LlavaMistralConfig", like="mistral"),
    "llava_qwen": Remote("qwen2", "LlavaQwenConfig", like="qwen2"),
    "mimo": Remote("qwen2", "MiMoConfig", like="qwen2", also=("use_mrope",)),
    "minicpm": Remote("llama", "MiniCPMConfig"),
    "minicpmo": Remote("minicpmv", "MiniCPMOConfig"),
    "minicpmv": Remote("minicpmv", "MiniCPMVConfig"),
    "minimax_m1": Remote("minimax_m1", "MiniMaxM1Config"),
    "minimax_text_01": Remote("minimax_m1", "MiniMaxText01Config"),
    "mixformer-sequential": Remote("phi-msft", "MixFormerSequentialConfig", GPT2_NAMES),
    "nomic-bert-2048": Remote(
        "nomic_bert",
        "NomicBertConfig",
        GPT2_NAMES | {"rope_theta": "rotary_emb_base"},
        like="nomic_bert",
        also=("max_trained_positions", "rotary_emb_fraction", "rotary_emb_interleaved", "rotary_emb_scale_base"),
    ),
    "molmo": Remote("molmo", "MolmoConfig", MOLMO_NAMES, also=("use_position_ids", "rope", "rope_full_precision")),
    "moss": Remote("gptj", "MossConfig", like="gptj"),
    "mosaic-bert": Remote("mosaic-bert", "BertConfig", like="bert", also=("position_embedding_type",)),
    "moonvit": Remote("moonvit", "MoonViTConfig"),
    "multi_modality": Remote("multi_modality", "MultiModalityConfig"),
    "nemotron-nas": Remote("nemotron-nas", "DeciLMConfig"),
    "new": Remote("new", "NewConfig"),
    "openelm": Remote("openelm", "OpenELMConfig", ELM_NAMES),
    "orion": Remote("llama", "OrionConfig"),
    "params.json": Remote("params.json", "TransformerArgs of mistral-inference", MISTRAL_NAMES, base=1000000.0),
    "phi3small": Remote("phi3small", "Phi3SmallConfig", {"rope_theta": "rope_embedding_base"}, base=1000000.0),
    "phi4mm": Remote("phi3", "Phi4MMConfig", like="phi3"),
    "phi-msft": Remote("phi-msft", "PhiConfig", GPT2_NAMES),
    "qwen": Remote("qwen", "QWenConfig", FALCON_NAMES | {"hidden_size": "n_embd"}),
    "skywork": Remote("llama", "SkyworkConfig"),
    "stablelm_epoch": Remote("stablelm_epoch", "StableLMEpochConfig", {"partial_rotary_factor": "rope_pct"}),
    "xverse": Remote("llama", "XverseConfig"),
}


# Files of a family of transformers that are made for other code: model type, key, its values (None: any) -> the family.
VARIANTS = {
    ("bert", "alibi_starting_size", None): "mosaic-bert",
    ("bert", "position_embedding_type", "alibi"): "jina-bert-v2",
    ("xlm-roberta", "position_embedding_type", "rotary"): "jina-xlm-roberta-flash",
    ("nomic_bert", "rotary_emb_base", None): "nomic-bert-2048",
}


def _family(keys: Keys) -> str:
    """The model type, or that of the code which the file is made for."""
    for (known, key, value), other in VARIANTS.items():
        if keys.family == known and keys.has(key) and value in (None, keys.data[key]):
            return other
    return keys.family


def with_remote_code(keys: Keys, known: Mapping[str, Any]) -> tuple[Keys, str]:
    """The keys as their family's reader takes them, and the model type of that reader, one of `known`.

    A note says where the code comes from. Raises ConfigError for a type that neither its name nor its architecture tells.
    """
    code = code_of(keys)
    where = say("remote code ({code})", code=code) if code else say("remote code")
    if (family := _family(keys)) in REMOTE:
        about = REMOTE[family]
        changed = keys.replaced(facts=about.facts())
        changed.remote = True
        changed.read |= {key: changed.data[key] for key in about.also if key in changed.data}
        remark = say("{where}: read from the published code's facts, not compared with it", where=where)
        same = say("its code is that of {like}", like=about.like)
        changed.note("model_type", clauses(remark, *[same] * (about.like == about.reader)))
        return changed, about.reader
    if keys.family in known:
        if code and not keys.path:
            keys.note(
                "auto_map",
                say(
                    "remote code: with trust_remote_code, {code} runs instead of transformers' own code, which is "
                    "read here",
                    code=code,
                ),
            )
        return keys, keys.family
    for named, name in _named(keys, known):
        changed = keys.of_family(named)
        changed.remote = True
        changed.note(
            "model_type",
            say(
                "{why}, {where}: read as {family}, whose class {name} the file names",
                why=say("{name!r} is not known", name=keys.family) if keys.family else say("missing"),
                where=where,
                family=named,
                name=name,
            ),
        )
        return with_remote_code(changed, known) if named in REMOTE else (changed, named)
    from_code = f", {where.en}" if code else ""
    inside = {name: keys.data[name].get("model_type") for name in TEXT_PARTS if isinstance(keys.data.get(name), Mapping)}
    nor = "".join(f", nor is that of its {name}, {model_type!r}" for name, model_type in inside.items() if model_type)
    what = (
        "if its code turns as that of a family that `posenc inspect --families` lists, write that family into a copy of "
        "the file; otherwise posenc needs a reader of it"
    )
    for key, value in keys.data.items():
        if isinstance(value, str) and ELSEWHERE.match(key):
            what = f"its text model has a file of its own, that of {key}, {value}: read that one"
    raise ConfigError(f"{keys.where('model_type')}: {keys.family!r} is not a known family{from_code}{nor}; {what}")


def text_section(keys: Keys, known: Mapping[str, Any]) -> str:
    """The section with a known text model in a file of a type that is not known; "" where there is none.

    A known class of the file decides first, where it has such a section itself.
    """
    if keys.family in known or (keys.family in REMOTE and not _around_text(keys)):
        return ""
    family, _ = next(_named(keys, known), ("", ""))
    own = facts().get(family, {"parts": {}})["parts"]
    for name in TEXT_PARTS:
        if not isinstance(inner := keys.data.get(name), Mapping) or name in own or family in REMOTE.keys() - {keys.family}:
            continue
        part = Keys(inner, str(inner.get("model_type") or ""), keys.where(name))
        if part.family in REMOTE or part.family in known or any(_named(part, known)) or text_section(part, known):
            return name
    return ""


def _around_text(keys: Keys) -> bool:
    """Whether a file of a text model's type has layers in a section alone, as VILA's of llava_llama."""
    flat = REMOTE[keys.family].reader != keys.family and not any(keys.has(name) for name in DEPTHS)
    return flat and any(isinstance(keys.data.get(name), Mapping) for name in TEXT_PARTS)


def other_family(keys: Keys, known: Mapping[str, Any]) -> tuple[str, str] | None:
    """The family that the file's classes name, and the class, where none of them is a class of its model_type."""
    if keys.family not in known and keys.family not in REMOTE:
        return None
    code = _family(keys)
    like = REMOTE[code].like if code in REMOTE else code  # files of NV-Embed name the class that its own is made from
    own = {_start(_class_of(family)) for family in (keys.family, code, like)}
    for name in _classes(keys):
        start = _text_start(keys, name)
        if start in own or f"{start}text" in own:
            return None
    return next(_named(keys, known), None)


def unknown_class(keys: Keys, known: Mapping[str, Any]) -> str:
    """A class of a file that brings no code, whose name is not that of its known model_type; "" where all are."""
    if keys.path or keys.has("auto_map") or (keys.family not in known and keys.family not in REMOTE):
        return ""
    own = [_start(name) for name in (_class_of(keys.family), keys.family) if name]
    named = [name for name in _classes(keys) if _start(name)]
    alike = any(start.startswith(_start(name)) or _start(name).startswith(start) for name in named for start in own)
    return "" if alike else next(iter(named), "")


def _named(keys: Keys, known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The families that the file's classes name, each with the class."""
    for name in _classes(keys):
        named = by_class().get(_text_start(keys, name))
        if named is not None and (named in REMOTE or named in known):
            yield named, name


def _text_start(keys: Keys, name: str) -> str:
    """The start of a class; that of the text model, if it is for text alone and the file has no section for text."""
    text = f"{_start(name)}text"
    return text if name.endswith("ForCausalLM") and text in by_class() and not keys.has("text_config") else _start(name)


@functools.cache
def by_class() -> dict[str, str]:
    """The start of a model's class in small letters, such as "deepseekv3" -> the model type of that name."""
    own = [name for name, about in facts().items() if name == about["folder"]]  # a class of several types is this one's
    types = (name for name in (*reversed(REMOTE), *reversed(facts()), *own) if _class_of(name))
    of_types = {_start(model_type): model_type for model_type in REMOTE}  # llava_llama: LlavaLlamaForCausalLM
    return of_types | {_start(_class_of(model_type)): model_type for model_type in types}


def _class_of(model_type: str) -> str:
    return REMOTE[model_type].owner if model_type in REMOTE else facts().get(model_type, {"class": ""})["class"]


def _start(name: str) -> str:
    """The name of a class without its task, in small letters: repositories write GLM and Glm, Kimi_K25 and KimiK25."""
    return TASK.sub("", name.removesuffix("Config")).replace("_", "").casefold()


def _classes(keys: Keys) -> list[str]:
    """The classes that the file names: models of its own code first, its configuration last."""
    auto_map, listed = keys.data.get("auto_map"), keys.data.get("architectures")
    coded = auto_map if isinstance(auto_map, Mapping) else {}
    models = [name for task, name in coded.items() if task.startswith("AutoModel")]
    named = [*models, *(listed if isinstance(listed, (list, tuple)) else ()), coded.get("AutoConfig")]
    return list(dict.fromkeys(name.rpartition(".")[2] for name in named if isinstance(name, str)))


def code_of(keys: Keys) -> str:
    """The class in the repository that auto_map names, such as "modeling_qwen.QWenLMHeadModel"."""
    auto_map = keys.data.get("auto_map")
    named = [value for value in auto_map.values() if isinstance(value, str)] if isinstance(auto_map, Mapping) else []
    return next((value for value in named if "model" in value.lower() and "configuration" not in value), "")
