"""The positions of a GGUF file as a PositionSpec: what llama.cpp computes.

    ω_i = base^(-2i/d) / factor_i       rope_freqs: llama3's scaling, as one number for each pair

llama.cpp rotates neighbouring channels (2i, 2i + 1) in some architectures, and halves (i, i + d/2) in others. Where the
model itself has halves and the architecture neighbours (Llama), its converter permutes the rows of q and k. Source:
llama.cpp, llama_model_rope_type, and gguf-py 0.19.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from posenc.dialects import gguf_file
from posenc.dialects.errors import ConfigError
from posenc.dialects.gguf_file import GGUF
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Rotation, Use
from posenc.frequencies import Arithmetic, Frequencies

NEIGHBOURS = frozenset(
    [
        "arcee",
        "arctic",
        "bailingmoe",
        "baichuan",
        "chameleon",
        "chatglm",
        "cohere2",
        "command-r",
        "deci",
        "deepseek",
        "deepseek2",
        "ernie4_5",
        "ernie4_5-moe",
        "glm4",
        "granite",
        "granitehybrid",
        "granitemoe",
        "internlm2",
        "llada",
        "llama",
        "llama4",
        "minicpm",
        "mistral3",
        "neo-bert",
        "olmo",
        "plm",
        "smollm3",
        "starcoder",
        "xverse",
    ]
)
PERMUTED = NEIGHBOURS - {"chatglm", "cohere2", "command-r", "deepseek2", "ernie4_5", "ernie4_5-moe", "glm4", "llama4"}
ALIBI = frozenset(["bloom", "mpt", "jais", "refact", "jina-bert-v2"])
LEARNED = frozenset(["bert", "gpt2", "starcoder"])
NOTHING = frozenset(["mamba", "mamba2", "rwkv6", "rwkv7", "t5", "t5encoder", "arwkv7"])
PERMUTES = "llama.cpp's converter permutes q and k"


def is_gguf(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return path.suffix == ".gguf" or file.read(4) == b"GGUF"


def read(path: str | PathLike[str]) -> PositionSpec:
    """The positional encoding of a GGUF model. Raises ConfigError for a bad file and for an unknown kind of scaling."""
    found = gguf_file.read(Path(path))
    architecture = found.keys.get("general.architecture")
    if not isinstance(architecture, str):
        raise ConfigError(f"{path}: general.architecture is missing; it names the keys of the others")
    start = f"{architecture}."
    keys = Keys({name.removeprefix(start): value for name, value in found.keys.items()}, architecture, architecture)
    count = keys.whole("block_count")
    length, window = keys.whole("context_length", None), keys.whole("attention.sliding_window", None, least=0)
    d_model, n_heads = keys.whole("embedding_length"), _heads(keys)
    use = _use(found, keys, architecture, d_model, n_heads)
    layers = _windows(keys, Layer((use,) if use else (), causal=keys.flag("attention.causal", True)), count, window)
    return PositionSpec(
        architecture,
        config_class="GGUF",
        layers=layers,
        trained_length=length,
        d_model=d_model,
        n_heads=n_heads,
        d_head=dict(use.arguments).get("d_head") if use else None,
        remarks=tuple(keys.remarks),
        keys=tuple(keys.read.items()),
    )


def _heads(keys: Keys) -> int | None:
    """The number of query heads; None if it differs between layers."""
    said = keys.get("attention.head_count", None)
    if isinstance(said, list):
        return int(said[0]) if said and len(set(said)) == 1 else None
    found: int | None = keys.whole("attention.head_count", None)
    return found


def _windows(keys: Keys, layer: Layer, count: int, window: int | None) -> tuple[Layer, ...]:
    """The layers, windowed ones as the file's pattern says; all of them without one."""
    sliding = replace(layer, kind="sliding_attention", window=window or None)
    pattern = keys.get("attention.sliding_window_pattern", None)
    if not window:
        return (layer,) * count
    if isinstance(pattern, list) and len(pattern) == count:
        return tuple(sliding if slides else layer for slides in pattern)
    keys.note(
        "attention.sliding_window",
        "llama.cpp's code decides which layers have the window; shown for all of them",
        "哪些层有窗口由 llama.cpp 的代码决定；这里所有层都画上窗口",
    )
    return (sliding,) * count


def _use(found: GGUF, keys: Keys, architecture: str, d_model: int, n_heads: int | None) -> Use | None:
    most = keys.number("attention.max_alibi_bias", None, positive=False)
    if architecture in ALIBI or most:
        heads = keys.whole("attention.head_count")
        arguments: tuple[tuple[str, Any], ...] = (("n_heads", heads),)
        arguments += (("bias_max", most),) if most not in (None, 8.0) else ()
        return Use("encodings.alibi.ALiBi", arguments, (("n_heads", keys.said_by("attention.head_count")),))
    if architecture in LEARNED:
        rows = keys.whole("context_length")
        said = (("max_positions", keys.said_by("context_length")),)
        return Use("encodings.learned.Learned", (("d_model", d_model), ("max_positions", rows)), said)
    if architecture in NOTHING:
        keys.note("general.architecture", f"the positions of {architecture} are not read", f"不读 {architecture} 的位置")
        return None
    d_head = keys.whole("attention.key_length", None) or (
        d_model // n_heads if n_heads else keys.whole("attention.key_length")
    )
    width = keys.whole("rope.dimension_count", d_head)
    rotation = _rotation(found, keys, width)
    said_by = {"base": keys.said_by("rope.freq_base"), "rotary_dim": keys.said_by("rope.dimension_count")}
    layout = "interleaved" if architecture in NEIGHBOURS else "half"
    said_by["layout"] = PERMUTES if architecture in PERMUTED else f"llama.cpp's code for {architecture}"
    arguments = (("d_head", d_head), ("layout", layout), ("frequencies", rotation))
    arguments += (("trailing", True),) if architecture == "deepseek2" else ()
    return Use("encodings.rope.RoPE", arguments, tuple(said_by.items()))


def _rotation(found: GGUF, keys: Keys, width: int) -> Rotation:
    base, length = keys.number("rope.freq_base", 10000.0), keys.whole("context_length", None)
    kind = keys.text("rope.scaling.type", "none", among=("none", "linear", "yarn", "longrope"))
    factor = keys.number("rope.scaling.factor", None) or keys.number("rope.scale_linear", None)
    original = keys.whole("rope.scaling.original_context_length", None) or length
    if "rope_factors_long" in found.factors:
        if original is None or length is None:
            raise ConfigError(f"{keys.where('context_length')}: missing; LongRoPE's factors need it")
        given = {"short_factor": found.factors.get("rope_factors_short"), "long_factor": found.factors["rope_factors_long"]}
        given |= {"original_length": original, "factor": length / original}
        given |= {"attention_factor": keys.number("rope.scaling.attn_factor", None)}
        return _kept(width, base, "longrope", given)
    if "rope_freqs" in found.factors:
        return Rotation(width, base, "dialects.gguf.divided", (("factors", found.factors["rope_freqs"]),))
    if kind == "linear" or (kind == "none" and factor not in (None, 1.0)):
        return Rotation(width, base, "linear", (("factor", factor or 1.0),))
    if kind == "yarn":
        betas = {f"beta_{side}": keys.number(f"rope.scaling.yarn_beta_{side}", None) for side in ("fast", "slow")}
        return _kept(width, base, "yarn", {"factor": factor, "original_length": original} | betas)
    return Rotation(width, base)


def _kept(width: int, base: float, kind: str, given: dict[str, Any]) -> Rotation:
    return Rotation(width, base, kind, tuple(sorted((name, value) for name, value in given.items() if value is not None)))


def divided(width: int, base: float, *, arithmetic: Arithmetic, factors: tuple[float, ...]) -> Frequencies:
    """base^(-2i/d) / factor_i. Raises ValueError unless there is a factor for each pair."""
    made = Rotation(width, base).frequencies(arithmetic).at_length(1)
    if len(factors) != len(made):
        raise ValueError(f"rope_freqs: expected one factor for each of {len(made)} pairs, got {len(factors)}")
    values = tuple(value / factor for value, factor in zip(made, factors, strict=True))
    return replace(made, values=values, base=None, values_from=f"{made.values_from}, divided by rope_freqs")
