"""What the catalogue says of one encoding: its names, its kind, what it needs, who uses it, where it comes from.

Every file of `posenc/encodings` that `posenc.create` can name ends with `ENTRY = Entry(…)`. Importing this module does not
import torch.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from posenc.bilingual import Language, Words

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding

Kind = Literal["none", "added", "relative", "biased", "rotated", "contextual"]
Need = Literal["parameters", "hidden_states", "causal"]

# In the order in which the catalogue lists them.
KINDS: dict[Kind, Words] = {
    "none": Words("no encoding", "无位置编码"),
    "added": Words("a vector for each position, added to the embedding", "每个位置一个向量，加到词向量上"),
    "relative": Words("vectors for each distance", "每个距离一个或几个向量"),
    "biased": Words("a number for each distance, added to the score", "每个距离一个数，加到注意力分数上"),
    "rotated": Words("a rotation of queries and keys", "旋转查询和键"),
    "contextual": Words("positions computed from the content", "由内容算出的位置"),
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One encoding of the catalogue.

    name         what `posenc.create` takes; the name of its file
    class_name   its class in that file
    title        its name in texts
    kind         how position enters; the catalogue is grouped by it
    published    year and month of the first version of the paper, "2017-06"
    formula      one line of plain text
    also_called  names in other libraries and papers: hints that lead here, not aliases
    used_by      models, the best known first
    source       paper and section
    idea         two or three sentences
    needs        parameters: it learns some; hidden_states: it reads them; causal: no option makes it bidirectional
    per_layer    the paper gives each layer its own parameters
    small        options of an example whose tables fit on a page
    example      lines of Python that its page shows after the common example
    """

    name: str
    class_name: str
    title: Words
    kind: Kind
    published: str
    formula: str
    also_called: tuple[str, ...]
    used_by: tuple[str | Words, ...]
    source: str
    idea: Words
    needs: tuple[Need, ...] = ()
    per_layer: bool = False
    small: dict[str, int] = field(default_factory=dict)
    example: str = ""

    @property
    def order(self) -> tuple[int, bool, str, str]:
        """Where the catalogue lists it: by kind; within a kind those without parameters first, then by date."""
        return list(KINDS).index(self.kind), "parameters" in self.needs, self.published, self.name

    @property
    def label(self) -> Words:
        """For menus: the Chinese one begins with the English name too."""
        return Words(self.title.en, f"{self.title.en} {self.title.zh.removeprefix(self.title.en).strip()}")

    def users(self, language: Language = "en") -> list[str]:
        return [user.read(language) if isinstance(user, Words) else user for user in self.used_by]

    def load(self) -> type[PositionalEncoding]:
        """The class; imports torch."""
        module = importlib.import_module(f"posenc.encodings.{self.name}")
        loaded: type[PositionalEncoding] = getattr(module, self.class_name)
        return loaded
