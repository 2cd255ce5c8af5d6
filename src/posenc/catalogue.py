"""Every encoding by name: what it is called elsewhere, who uses it, where it comes from. Needs no torch to read.

`names()` lists them, `create(name, ...)` builds one from sizes alone, `look_up(word)` leads there from other names.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding


@dataclass(frozen=True)
class Entry:
    """One encoding. `also_called` are hints for people who know it by another name; none of them is an alias."""

    name: str
    class_name: str
    chinese: str
    formula: str
    also_called: tuple[str, ...]
    used_by: tuple[str, ...]
    source: str

    def load(self) -> type[PositionalEncoding]:
        """The class; imports torch."""
        loaded: type[PositionalEncoding] = getattr(
            importlib.import_module(f"posenc.encodings.{self.name}"), self.class_name
        )
        return loaded


ENTRIES = (
    Entry(
        "nope", "NoPE", "无位置编码", "q·k/√d",
        ("none", "no_position", "no positional encoding", "无位置编码"),
        ("SmolLM3 and Llama 4 (every fourth layer)", "Jamba", "Kimi-Linear"),
        "Haviv et al. 2022, arXiv 2203.16634; Kazemnejad et al. 2023, arXiv 2305.19466, section 3",
    ),
    Entry(
        "sinusoidal", "Sinusoidal", "正弦位置编码", "x + [sin pω, cos pω]",
        ("positional_encoding", "sinusoidal_position_encoding", "positionalEncoding", "PositionalEncoding1D", "sin_cos",
         "sine", "absolute", "fixed", "正弦位置编码", "三角函数位置编码", "绝对位置编码"),
        ("the original Transformer", "Marian", "Whisper (encoder)", "M2M100"),
        "Vaswani et al. 2017, arXiv 1706.03762, section 3.5",
    ),
    Entry(
        "learned", "Learned", "可学习位置编码", "x + table[p]",
        ("LearnablePositionalEncoding", "learnable", "trainable", "embedding", "position_embeddings", "wpe",
         "absolute_learned", "可学习位置编码", "可训练位置编码"),
        ("BERT", "GPT-2", "OPT", "ViT"),
        "Gehring et al. 2017, arXiv 1705.03122, section 3.2; Devlin et al. 2018, arXiv 1810.04805",
    ),
    Entry(
        "floater", "FLOATER", "连续动力系统位置编码", "x + p(0) + ∫h(τ, p)dτ",
        ("flow", "ode", "neural_ode", "continuous", "递归位置编码", "动态系统位置编码"),
        ("research: WMT translation and RoBERTa fine-tuning by its authors",),
        "Liu et al. 2020, arXiv 2003.09229, section 3",
    ),
    Entry(
        "shaw", "Shaw", "相对位置编码", "q·(k + a[j-i]), v + a'[j-i]",
        ("relative", "relative_key", "relative_position", "RelativePositionalEncoding", "相对位置编码"),
        ("Music Transformer", "Wav2Vec2-BERT and SeamlessM4T v2 (keys only)", "VITS"),
        "Shaw et al. 2018, arXiv 1803.02155, section 3",
    ),
    Entry(
        "transformer_xl", "TransformerXL", "Transformer-XL 相对位置编码", "(q+u)·k + (q+v)·W_R R[i-j]",
        ("xl", "transfo_xl", "txl", "relative_xl", "rel_pos", "XLNet"),
        ("Transformer-XL", "XLNet", "Conformer"),
        "Dai et al. 2019, arXiv 1901.02860, section 3.3",
    ),
    Entry(
        "t5", "T5", "T5 相对位置偏置", "q·k + b[bucket(i-j)]",
        ("relative_attention_bias", "t5_bias", "bucket", "RelativePositionBias", "relative_bias", "相对位置偏置"),
        ("T5", "mT5", "UMT5", "LongT5", "Switch"),
        "Raffel et al. 2020, arXiv 1910.10683, section 2.1",
    ),
    Entry(
        "alibi", "ALiBi", "线性偏置注意力", "q·k - m|i-j|",
        ("linear_bias", "attention_with_linear_biases", "linear_biases", "AlibiPositionalBias", "线性偏置"),
        ("BLOOM", "MPT", "Falcon-RW"),
        "Press et al. 2021, arXiv 2108.12409, section 3",
    ),
    Entry(
        "rope", "RoPE", "旋转位置编码", "R(p)q · R(p')k",
        ("rotary", "RotaryPositionalEmbedding", "RotaryEmbedding", "rotary_embedding", "rotary_position_embedding",
         "roformer", "apply_rotary_pos_emb", "rotate_half", "旋转位置编码", "旋转式位置编码"),
        ("LLaMA", "Qwen", "Mistral", "GPT-NeoX", "GPT-J"),
        "Su et al. 2021, arXiv 2104.09864, section 3.2",
    ),
    Entry(
        "xpos", "XPos", "可外推旋转位置编码", "R(p)q ζ^(p/s) · R(p')k ζ^(-p'/s)",
        ("x_pos", "XPOS", "extrapolatable", "lex", "length_extrapolatable"),
        ("LeX Transformer", "RetNet"),
        "Sun et al. 2022, arXiv 2212.10554, section 2.2",
    ),
    Entry(
        "cope", "CoPE", "上下文位置编码", "q·k + q·e[Σ σ(q·k)]",
        ("contextual", "contextual_position_encoding", "ContextualPositionEncoding", "上下文位置编码"),
        ("research: language modelling and counting by its authors",),
        "Golovneva et al. 2024, arXiv 2405.18719, section 4",
    ),
)  # fmt: skip
BY_NAME = {entry.name: entry for entry in ENTRIES}
SIZES = ("d_model", "d_head", "n_heads", "n_kv_heads", "n_layers", "max_positions")

# Words that mean a function or a builder here rather than an encoding.
ELSEWHERE = {
    "positional_encoding": "posenc.sinusoidal_table(length, d_model)",
    "sinusoidal_position_encoding": "posenc.sinusoidal_table(length, d_model)",
    "positionalencoding": "posenc.sinusoidal_table(length, d_model)",
    "get_alibi_slopes": "posenc.alibi_slopes(n_heads)",
    "m_k": "posenc.shift_matrix(k, d_model)",
    "randomized": "posenc.Positions.randomized(batch, length, max_positions), which suits every encoding",
    "random_positions": "posenc.Positions.randomized(batch, length, max_positions), which suits every encoding",
    "scaled_dot_product_attention": "posenc.attend(q, k, v, encoding, at_q)",
    "multiheadattention": "posenc.Attention(d_model, n_heads, encoding)",
}


def names() -> list[str]:
    """The names that `create` takes."""
    return [entry.name for entry in ENTRIES]


def create(
    name: str, *, d_model: int | None = None, n_heads: int | None = None, d_head: int | None = None,
    n_kv_heads: int | None = None, n_layers: int = 1, max_positions: int = 2048, **options: Any,
) -> PositionalEncoding:  # fmt: skip
    """An encoding by name, with the defaults of its paper.

        create("rope", d_model=512, n_heads=8)      create("rope", d_head=64, layout="half")      create("alibi", n_heads=8)

    Sizes that the encoding does not need are ignored; d_head is d_model / n_heads unless given. `options` are those of the
    encoding's class. Raises ValueError for an unknown name and for a size that is missing or wrong, TypeError for an
    unknown option; each says what is right.
    """
    if name not in BY_NAME:
        raise ValueError(f"unknown encoding {name!r}{hint(name)}; known: {', '.join(names())}")
    sizes: dict[str, int | None] = {
        "d_model": d_model, "n_heads": n_heads, "d_head": d_head, "n_kv_heads": n_kv_heads, "n_layers": n_layers,
        "max_positions": max_positions,
    }  # fmt: skip
    for size, value in sizes.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"{size}: expected a whole number from 1, got {value!r}")
    if d_head is None and d_model is not None and n_heads is not None:
        if d_model % n_heads:
            raise ValueError(f"d_model={d_model} is not a multiple of n_heads={n_heads}; say d_head")
        sizes["d_head"] = d_model // n_heads

    parameters = inspect.signature(BY_NAME[name].load()).parameters
    _check_options(name, parameters, options)
    arguments = {size: value for size, value in sizes.items() if size in parameters and value is not None}
    missing = [p for p, about in parameters.items()
               if about.default is inspect.Parameter.empty and p not in arguments and p not in options]  # fmt: skip
    if missing:
        enough = " or d_model and n_heads" if missing == ["d_head"] else ""
        raise ValueError(f"{name}: needs {' and '.join(missing)}{enough}")
    return BY_NAME[name].load()(**arguments, **options)


def _check_options(name: str, parameters: Any, options: dict[str, Any]) -> None:
    own = [parameter for parameter in parameters if parameter not in SIZES]
    for option in options:
        if option in own:
            continue
        close = difflib.get_close_matches(option, own, n=1)
        others = [entry.name for entry in ENTRIES
                  if option in inspect.signature(entry.load()).parameters and entry.name != name]  # fmt: skip
        meant = (f"; did you mean {close[0]!r}?" if close
                 else f"; it is an option of {', '.join(others)}" if others else "")  # fmt: skip
        takes = f"takes {', '.join(own)}" if own else "takes no options"
        raise TypeError(f"{name}: unknown option {option!r}{meant} ({name} {takes})")


def hint(word: str) -> str:
    """'; did you mean …?' for a word from elsewhere, or nothing."""
    found = look_up(word)
    return f"; did you mean {found}?" if found else ""


def look_up(word: str) -> str | None:
    """Where a name from a paper, another library or the founding notes leads: an expression of this package."""
    folded = _fold(word)
    for elsewhere, place in ELSEWHERE.items():
        if _fold(elsewhere) == folded:
            return place
    known = {_fold(alias): entry.name for entry in ENTRIES
             for alias in (entry.name, entry.class_name, entry.chinese, *entry.also_called)}  # fmt: skip
    close = [folded] if folded in known else difflib.get_close_matches(folded, known, n=1, cutoff=0.75)
    return f'posenc.create("{known[close[0]]}", …)' if close else None


def _fold(word: str) -> str:
    return "".join(character for character in word.lower() if character.isalnum())
