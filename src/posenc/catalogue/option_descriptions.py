"""What each size and option of an entry means, in English and Chinese.

The English stands in the docstring of what the entry makes, a line for each option:

    factor           s: the length wanted over the trained one
    height, width    of the image, in patches

The Chinese stands in the entry's Chinese page; for descriptions that several entries share, in SHARED. What has no Chinese
is told in English.
"""

from __future__ import annotations

import inspect
import re

from posenc.catalogue.entry import Entry
from posenc.support.languages import Words

LINE = re.compile(r"(\w+(?:, \w+)*)  +(\S.*)")
SHARED = {
    "channels of a head": "每个头的通道数",
    "channels of a head, even": "每个头的通道数，偶数",
    "channels of a head, a multiple of 4": "每个头的通道数，4 的倍数",
    "channels of a head, d_model / n_heads if left out": "每个头的通道数；省略时为 d_model / n_heads",
    "query heads": "查询头数",
    "channels": "通道数",
    "channels of the hidden states that go into the projections": "进入投影的隐藏状态的通道数",
    "of the frequencies": "频率的底数",
    "of the trained frequencies": "训练时频率的底数",
    "which channels make a pair": "哪些通道成对",
    'which channels make a pair; models on the hub have "half"': '哪些通道成对；公开的模型多用 "half"',
    "tokens of a row": "每行的词数",
    "rows": "行数",
    "patches of the image": "图像的图块数（高与宽）",
    "of the image, in patches": "图像的高与宽，以图块计",
    "of the window, in patches": "窗口的高与宽，以图块计",
    "the trained length, in positions": "训练长度，以位置计",
    "s: the length wanted over the trained one": "s：目标长度与训练长度之比",
    "layers of the model": "模型的层数",
    "the source of the random numbers; torch's own if left out": "随机数的来源；省略时用 torch 自己的",
    "as in TransformerXL": "与 TransformerXL 相同",
    "channels of the table and query heads": "表的通道数与查询头数",
    "other frequencies, as RoPE takes them": "别的频率，与 RoPE 的参数相同",
    "those of RoPE; frequencies bring the axes of images along": "与 RoPE 相同；频率自带图像的坐标轴",
}
"""What docstrings of several entries say alike, and its Chinese."""


def options_of(entry: Entry) -> dict[str, Words]:
    """Every size and option in the order of the signature, and what it means. Imports torch.

    Raises ValueError, naming the entry and the option, for one that its docstring does not describe.
    """
    maker = entry.maker()
    texts = described(inspect.getdoc(maker) or "")
    options = {}
    for name in inspect.signature(maker).parameters:
        if name not in texts:
            raise ValueError(f"{entry.name}: the docstring of {maker.__name__} has no line for {name!r}")
        options[name] = Words(texts[name], entry.page.options.get(name) or SHARED.get(texts[name], texts[name]))
    return options


def described(docstring: str) -> dict[str, str]:
    """The options that a docstring describes: lines of a name, or names, two spaces or more and a text, which may go on."""
    texts = dict[str, str]()
    current: list[str] = []
    for line in docstring.splitlines():
        if match := LINE.fullmatch(line):
            current = match[1].split(", ")
            texts |= dict.fromkeys(current, match[2].strip())
        elif line.startswith("    ") and current:
            texts |= {name: f"{texts[name]} {line.strip()}" for name in current}
        else:
            current = []
    return texts
