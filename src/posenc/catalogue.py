"""Every encoding by name: what it is called elsewhere, who uses it, where it comes from. Needs no torch to read.

`names()` lists them, `create(name, ...)` builds one from sizes alone, `look_up(word)` leads there from other names.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from posenc.bilingual import Words

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
    idea: Words

    def load(self) -> type[PositionalEncoding]:
        """The class; imports torch."""
        loaded: type[PositionalEncoding] = getattr(
            importlib.import_module(f"posenc.encodings.{self.name}"), self.class_name
        )
        return loaded


ENTRIES = (
    Entry(
        "nope",
        "NoPE",
        "无位置编码",
        "q·k/√d",
        ("none", "no_position", "no positional encoding", "无位置编码"),
        ("SmolLM3 and Llama 4 (every fourth layer)", "Jamba", "Kimi-Linear"),
        "Haviv et al. 2022, arXiv 2203.16634; Kazemnejad et al. 2023, arXiv 2305.19466, section 3",
        Words(
            "Nothing tells one position from another; without a mask the output only follows the words around. "
            "A causal mask still leaks order: each token sees a different number of others, which deeper layers can use.",
            "没有任何信号区分位置；不加掩码时，词怎么换位，输出就跟着怎么换位。"
            "因果掩码仍会透露顺序：每个词看到的词数不同，更深的层可以利用这一点。",
        ),
    ),
    Entry(
        "sinusoidal",
        "Sinusoidal",
        "正弦位置编码",
        "x + [sin pω, cos pω]",
        (
            "positional_encoding",
            "sinusoidal_position_encoding",
            "positionalEncoding",
            "PositionalEncoding1D",
            "sin_cos",
            "sine",
            "absolute",
            "fixed",
            "正弦位置编码",
            "三角函数位置编码",
            "绝对位置编码",
        ),
        ("the original Transformer", "Marian", "Whisper (encoder)", "M2M100"),
        "Vaswani et al. 2017, arXiv 1706.03762, section 3.5",
        Words(
            "Every position gets a fixed vector of sines and cosines, from fast to slow, added to the embedding once. "
            "Moving on by k positions is one fixed rotation of that vector, whatever the position.",
            "每个位置对应一个由快到慢的正弦、余弦组成的固定向量，在输入处与词向量相加一次。"
            "向后移动 k 个位置，等于把这个向量乘以同一个旋转矩阵，与所在位置无关。",
        ),
    ),
    Entry(
        "learned",
        "Learned",
        "可学习位置编码",
        "x + table[p]",
        (
            "LearnablePositionalEncoding",
            "learnable",
            "trainable",
            "embedding",
            "position_embeddings",
            "wpe",
            "absolute_learned",
            "可学习位置编码",
            "可训练位置编码",
        ),
        ("BERT", "GPT-2", "OPT", "ViT"),
        "Gehring et al. 2017, arXiv 1705.03122, section 3.2; Devlin et al. 2018, arXiv 1810.04805",
        Words(
            "Every position has a row of a table, trained like word embeddings and added to them. "
            "There is nothing beyond the last row: a longer text is an error, not a guess.",
            "每个位置在表中有一行，像词向量一样训练，并与词向量相加。"
            "表的最后一行之后什么都没有：更长的文本会报错，而不是瞎猜。",
        ),
    ),
    Entry(
        "floater",
        "FLOATER",
        "连续动力系统位置编码",
        "x + p(0) + ∫h(τ, p)dτ",
        ("flow", "ode", "neural_ode", "continuous", "递归位置编码", "动态系统位置编码"),
        ("research: WMT translation and RoBERTa fine-tuning by its authors",),
        "Liu et al. 2020, arXiv 2003.09229, section 3",
        Words(
            "Position is time: a small network says how the position vector moves, and a solver follows its path. "
            "Every layer adds its own path, and the path goes on past the trained length without new parameters.",
            "把位置看作时间：一个小网络给出位置向量如何变化，由求解器沿路径积分。"
            "每一层加上自己的路径；超过训练长度后路径继续延伸，不需要新参数。",
        ),
    ),
    Entry(
        "shaw",
        "Shaw",
        "相对位置编码",
        "q·(k + a[j-i]), v + a'[j-i]",
        ("relative", "relative_key", "relative_position", "RelativePositionalEncoding", "相对位置编码"),
        ("Music Transformer", "Wav2Vec2-BERT and SeamlessM4T v2 (keys only)", "VITS"),
        "Shaw et al. 2018, arXiv 1803.02155, section 3",
        Words(
            "Every distance up to a limit has a learned vector that joins the key, and another that joins the value. "
            "Further away counts as the limit, so any length can be asked for.",
            "上限以内的每个相对距离各有一个学到的向量加到键上参与打分，另有一个加到值上。"
            "更远的距离一律按上限计算，因此任意长度都有定义。",
        ),
    ),
    Entry(
        "transformer_xl",
        "TransformerXL",
        "Transformer-XL 相对位置编码",
        "(q+u)·k + (q+v)·W_R R[i-j]",
        ("xl", "transfo_xl", "txl", "relative_xl", "rel_pos", "XLNet"),
        ("Transformer-XL", "XLNet", "Conformer"),
        "Dai et al. 2019, arXiv 1901.02860, section 3.3",
        Words(
            "The score splits into four: content with content, content with distance, and a general taste for each. "
            "Distances are sinusoids passed through a learned matrix, so none is out of the table.",
            "注意力分数分为四项：内容对内容、内容对距离，以及对内容和对距离各自的总体偏好。"
            "距离用正弦编码再乘以学到的矩阵，因此不存在查表越界的距离。",
        ),
    ),
    Entry(
        "t5",
        "T5",
        "T5 相对位置偏置",
        "q·k + b[bucket(i-j)]",
        ("relative_attention_bias", "t5_bias", "bucket", "RelativePositionBias", "relative_bias", "相对位置偏置"),
        ("T5", "mT5", "UMT5", "LongT5", "Switch"),
        "Raffel et al. 2020, arXiv 1910.10683, section 2.1",
        Words(
            "Each head learns one number per bucket of distance and adds it to the score. "
            "Near distances have buckets of their own; far ones share wider and wider buckets.",
            "每个头为每个距离桶学一个数，直接加到注意力分数上。近处每个距离独占一桶，远处的距离共用越来越宽的桶。",
        ),
    ),
    Entry(
        "alibi",
        "ALiBi",
        "线性偏置注意力",
        "q·k - m|i-j|",
        ("linear_bias", "attention_with_linear_biases", "linear_biases", "AlibiPositionalBias", "线性偏置"),
        ("BLOOM", "MPT", "Falcon-RW"),
        "Press et al. 2021, arXiv 2108.12409, section 3",
        Words(
            "The score falls in a straight line with distance, each head with its own slope and nothing to learn. "
            "Steep heads look near, flat heads look far; beyond the trained length the same lines simply go on.",
            "注意力分数随距离直线下降，每个头斜率不同，没有需要学习的参数。"
            "斜率大的头看近处，斜率小的头看远处；超过训练长度后，直线照样延伸。",
        ),
    ),
    Entry(
        "rope",
        "RoPE",
        "旋转位置编码",
        "R(p)q · R(p')k",
        (
            "rotary",
            "RotaryPositionalEmbedding",
            "RotaryEmbedding",
            "rotary_embedding",
            "rotary_position_embedding",
            "roformer",
            "apply_rotary_pos_emb",
            "rotate_half",
            "旋转位置编码",
            "旋转式位置编码",
        ),
        ("LLaMA", "Qwen", "Mistral", "GPT-NeoX", "GPT-J"),
        "Su et al. 2021, arXiv 2104.09864, section 3.2",
        Words(
            "Queries and keys turn by an angle that grows with their position, each pair of channels at its own speed. "
            "Their product then depends on the difference of the two positions only.",
            "查询和键按位置旋转，每一对通道有自己的转速。于是二者的点积只取决于位置之差。",
        ),
    ),
    Entry(
        "xpos",
        "XPos",
        "可外推旋转位置编码",
        "R(p)q ζ^(p/s) · R(p')k ζ^(-p'/s)",
        ("x_pos", "XPOS", "extrapolatable", "lex", "length_extrapolatable"),
        ("LeX Transformer", "RetNet"),
        "Sun et al. 2022, arXiv 2212.10554, section 2.2",
        Words(
            "RoPE with a decay: fast pairs of channels fade with distance, so far tokens are heard less sharply. "
            "It grows towards later keys, so it is for causal attention, and a largest position keeps numbers finite.",
            "在旋转之上加入衰减：转得快的通道随距离变弱，远处的词听得不那么清楚。"
            "朝后面的键它会增长，所以只用于因果注意力；位置有上限，以免数值溢出。",
        ),
    ),
    Entry(
        "cope",
        "CoPE",
        "上下文位置编码",
        "q·k + q·e[Σ σ(q·k)]",
        ("contextual", "contextual_position_encoding", "ContextualPositionEncoding", "上下文位置编码"),
        ("research: language modelling and counting by its authors",),
        "Golovneva et al. 2024, arXiv 2405.18719, section 4",
        Words(
            "Positions are counted, not numbered: a gate made from query and key decides which tokens count. "
            "So a head can look for the third sentence or the last verb rather than the token twelve places back.",
            "位置是数出来的，不是编号：由查询和键算出的门决定哪些词计数。"
            "因此一个头可以找第三个句子或上一个动词，而不只是往前第十二个词。",
        ),
    ),
)
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
    name: str,
    *,
    d_model: int | None = None,
    n_heads: int | None = None,
    d_head: int | None = None,
    n_kv_heads: int | None = None,
    n_layers: int = 1,
    max_positions: int = 2048,
    **options: Any,
) -> PositionalEncoding:
    """An encoding by name, with the defaults of its paper.

        create("rope", d_model=512, n_heads=8)      create("rope", d_head=64, layout="half")      create("alibi", n_heads=8)

    Sizes that the encoding does not need are ignored; d_head is d_model / n_heads unless given. `options` are those of the
    encoding's class. Raises ValueError for an unknown name and for a size that is missing or wrong, TypeError for an
    unknown option; each says what is right.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: expected a name such as 'rope', got {name!r}")
    if name not in BY_NAME:
        raise ValueError(f"unknown encoding {name!r}{hint(name)}; known: {', '.join(names())}")
    sizes: dict[str, int | None] = {
        "d_model": d_model,
        "n_heads": n_heads,
        "d_head": d_head,
        "n_kv_heads": n_kv_heads,
        "n_layers": n_layers,
        "max_positions": max_positions,
    }
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
    missing = [
        p
        for p, about in parameters.items()
        if about.default is inspect.Parameter.empty and p not in arguments and p not in options
    ]
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
        others = [
            entry.name for entry in ENTRIES if option in inspect.signature(entry.load()).parameters and entry.name != name
        ]
        meant = f"; did you mean {close[0]!r}?" if close else f"; it is an option of {', '.join(others)}" if others else ""
        takes = f"takes {', '.join(own)}" if own else "takes no options"
        raise TypeError(f"{name}: unknown option {option!r}{meant} ({name} {takes})")


def hint(word: str) -> str:
    """'; did you mean …?' for a word from elsewhere, or nothing."""
    found = look_up(word)
    return f"; did you mean {found}?" if found else ""


def look_up(word: str) -> str | None:
    """Where a name from a paper, another library or the founding notes leads: an expression of this package."""
    for elsewhere, place in ELSEWHERE.items():
        if _fold(elsewhere) == _fold(word):
            return place
    entry = entry_of(word)
    return f'posenc.create("{entry.name}", …)' if entry else None


def entry_of(word: str) -> Entry | None:
    """The encoding that goes by a word, exactly or nearly, here or elsewhere."""
    known = {
        _fold(alias): entry
        for entry in ENTRIES
        for alias in (entry.name, entry.class_name, entry.chinese, *entry.also_called)
    }
    folded = _fold(word)
    close = [folded] if folded in known else difflib.get_close_matches(folded, known, n=1, cutoff=0.75)
    return known[close[0]] if close else None


def _fold(word: str) -> str:
    return "".join(character for character in word.lower() if character.isalnum())
