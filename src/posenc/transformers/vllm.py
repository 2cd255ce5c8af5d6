"""A plug-in of vLLM: it serves a saved folder whose layers have a rotation of posenc, or no positions.

    install posenc            in vLLM's environment; its entry point vllm.general_plugins is `register`
    vllm serve FOLDER         "architectures": ["PosencLlamaForCausalLM"] of the folder chooses the class that is made here

The model is vLLM's own: its kernel turns queries and keys by the cos and sin of the encoding, and only these differ. Its
configuration has the family's model type, which vLLM compares.
Biases, positions that are read and values that turn have no place in vLLM's attention, and are refused.
Held against vLLM 0.33.0: its class RotaryEmbedding, the model files of SERVED, and both registries. Run in vLLM 0.32.0
on a CPU.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from posenc.configs.attached import KEY, NAMED, PREFIX
from posenc.encoding import PositionalEncoding
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.positions import Positions
from posenc.transformers.auto_classes import config_class
from posenc.transformers.saved import restored

SERVED = {  # model type: vLLM's file and class. Every layer of these calls self.rotary_emb(positions, q, k)
    "gemma": ("gemma", "GemmaForCausalLM"),
    "gemma2": ("gemma2", "Gemma2ForCausalLM"),
    "glm4": ("glm4", "Glm4ForCausalLM"),
    "llama": ("llama", "LlamaForCausalLM"),
    "mistral": ("mistral", "MistralForCausalLM"),
    "mixtral": ("mixtral", "MixtralForCausalLM"),
    "qwen2": ("qwen2", "Qwen2ForCausalLM"),
    "qwen2_moe": ("qwen2_moe", "Qwen2MoeForCausalLM"),
    "qwen3": ("qwen3", "Qwen3ForCausalLM"),
    "qwen3_moe": ("qwen3_moe", "Qwen3MoeForCausalLM"),
}
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")  # what a layer holds; one that another process holds has nothing inside


def register() -> None:
    """Tells vLLM the model types and architectures of posenc's folders. vLLM calls it in each of its processes."""
    from transformers import AutoConfig
    from vllm import ModelRegistry
    from vllm.transformers_utils.config import _CONFIG_REGISTRY

    for model_type, (_, name) in SERVED.items():
        read_by = _of_family(model_type)
        _CONFIG_REGISTRY[PREFIX + model_type] = read_by
        AutoConfig.register(PREFIX + model_type, read_by, exist_ok=True)  # AutoTokenizer reads the file in any process
        ModelRegistry.register_model(NAMED + name, f"{__name__}:{NAMED}{name}")


def __getattr__(name: str) -> type:
    """The classes that `register` names, made when vLLM asks for one: `PosencLlamaForCausalLM`, `PosencLlamaConfig`."""
    for model_type, (module, model_name) in SERVED.items():
        if name == NAMED + model_name:
            return _with_rotations(module, model_name)
        if name == _config_name(model_type):
            return _of_family(model_type)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _of_family(model_type: str) -> type:
    """The configuration of a folder. The class has the folder's model type, and its instances have the family's.

    vLLM compares an instance's model type with names of families: it refuses float16 for Gemma 2 and GLM-4.
    """
    base: Any = config_class(model_type)

    def __init__(self: Any, **options: Any) -> None:
        if KEY in options:
            layers_of(options[KEY], model_type)  # refuses in the first process, before weights are read
        base.__init__(self, **options)
        self.model_type = model_type

    name = _config_name(model_type)  # pickle finds the class by it, for a process that was spawned
    return type(name, (base,), {"__init__": __init__, "__module__": __name__, "__qualname__": name})


def _config_name(model_type: str) -> str:
    return NAMED + SERVED[model_type][1].removesuffix("ForCausalLM") + "Config"


@cache
def _with_rotations(module: str, name: str) -> type[nn.Module]:
    base: Any = getattr(import_module(f"vllm.model_executor.models.{module}"), name)

    def __init__(self: Any, *, vllm_config: Any, prefix: str = "", **options: Any) -> None:
        base.__init__(self, vllm_config=vllm_config, prefix=prefix, **options)
        told = vllm_config.model_config
        put(self, getattr(told.hf_config, KEY, None), told.max_model_len)

    return type(NAMED + name, (base,), {"__init__": __init__, "__module__": __name__})


def put(model: nn.Module, entry: Any, tokens: int) -> None:
    """Sets the rotation of every layer that the entry names and this process holds, for requests of up to `tokens`.

    Raises ValueError for an encoding that vLLM's attention has no place for, and for a layer without a rotation of its own.
    """
    encodings, layers = layers_of(entry, type(model).__name__)
    inside = [(int(match[1]), module) for path, module in model.named_modules() if (match := LAYER.search(path))]
    turning = {n: module for n, module in inside if isinstance(getattr(module, "rotary_emb", None), nn.Module)}
    if missing := sorted(({n for n, _ in inside} & layers.keys()) - turning.keys()):
        raise ValueError(f"{KEY}.layers: layer {missing[0]} of {type(model).__name__} has no rotation in vLLM to replace")
    made = dict[tuple[str, torch.dtype | None], nn.Module]()  # layers with the same encoding share one table, as in vLLM
    for n, module in turning.items():
        if n in layers:
            encoding = encodings[layers[n]]
            key = encoding.identity, getattr(module.rotary_emb, "dtype", None)
            if key not in made:
                made[key] = rotation(encoding, module.rotary_emb, tokens)
            module.rotary_emb = made[key]


def layers_of(entry: Any, model: str) -> tuple[list[PositionalEncoding], dict[int, int]]:
    """The encodings of an entry, and which of them each layer has. Raises ValueError for one that vLLM cannot serve."""
    encodings, by_part = restored(entry, trust_code=False)
    if by_part.keys() != {""}:
        raise ValueError(f"{KEY}.layers: {model} has no parts, got those of {', '.join(by_part)}")
    for number, encoding in enumerate(encodings):
        if reason := why_not(encoding):
            name = f"{KEY}.encodings[{number}]: vLLM cannot serve {type(encoding).__name__}"
            raise ValueError(f"{name}: {reason}; posenc.transformers.from_pretrained serves the folder")
    return encodings, by_part[""]


def why_not(encoding: PositionalEncoding) -> str | None:
    """Why vLLM cannot serve the encoding; None if it can."""
    if type(encoding) is NoPE:
        return None
    if not isinstance(encoding, RoPE) or type(encoding).rotate is not RoPE.rotate:
        return "it is not a rotation of queries and keys, the only part of attention that a plug-in replaces"
    if list(encoding.parameters()):
        return "it has parameters, and the folder's weights reach vLLM's own modules only"
    if encoding.made_for is not None:
        return "its frequencies follow the length of the request, and vLLM keeps one table"
    if encoding.axes != 1 or encoding.sides != {"query", "key"}:
        return "vLLM turns queries and keys by one coordinate"
    if encoding.start:
        return "its last channels turn, and vLLM turns the first"
    if encoding.frequencies.softmax_scale != 1:
        return "it changes the scale of the softmax, which vLLM's attention has set"
    return None


def rotation(encoding: PositionalEncoding, previous: nn.Module, tokens: int) -> nn.Module:
    """The module that takes the place of vLLM's own: `forward(positions, q, k)` returns q and k."""
    return Unturned() if isinstance(encoding, NoPE) else _turned(encoding, previous, tokens)


class Unturned(nn.Module):
    """A layer without positions."""

    def forward(self, positions: Tensor, query: Tensor, key: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        return query, key


def _turned(encoding: Any, previous: Any, tokens: int) -> nn.Module:
    from vllm.model_executor.layers.rotary_embedding import RotaryEmbedding

    class Rotation(RotaryEmbedding):
        """vLLM's, by the cos and sin of posenc: a row for each position, n cos and then n sin."""

        def _compute_cos_sin_cache(self) -> Tensor:
            cos, sin = encoding.tables(Positions.arange(1, self.max_position_embeddings), torch.float32)
            return torch.cat((cos[0], sin[0]), dim=-1)

    half = encoding.layout == "half"
    return Rotation(encoding.d_head, encoding.rotary_dim, tokens, 0.0, half, previous.dtype)
