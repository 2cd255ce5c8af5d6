"""One encoding of the catalogue: its names, its kind, what it needs, who uses it.

The facts of an entry stand at the head of its page, NAME.md in `posenc/encodings` or one of its rooms: see facts. The texts
for readers follow below them: see page. Importing this module does not import torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from posenc.catalogue.page import Page, read
from posenc.catalogue.say import say
from posenc.support.languages import Language, Words

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding

Kind = Literal["none", "added", "relative", "biased", "rotated", "contextual", "scaled", "tempered", "preset", "positions"]
Need = Literal["parameters", "hidden_states", "causal", "wide_output"]
Domain = Literal["text", "image", "audio", "graph", "events"]
"""Events have a time, as recommenders read them."""

# In the order in which the catalogue lists them.
KINDS: dict[Kind, Words] = {
    "none": say("no encoding"),
    "added": say("a vector for each position, added to the embedding"),
    "relative": say("vectors for each distance"),
    "biased": say("a number for each distance, added to the score"),
    "rotated": say("a rotation of queries and keys"),
    "contextual": say("positions computed from the content"),
    "scaled": say("RoPE with frequencies that reach further"),
    "tempered": say("a number that multiplies queries, beside another encoding"),
    "preset": say("parts put together as a model has them"),
    "positions": say("a way to number the tokens, for every encoding"),
}
SHORT: dict[Kind, Words] = {
    "none": say("none"),
    "added": say("added"),
    "relative": say("relative vectors"),
    "biased": say("biased"),
    "rotated": say("rotated"),
    "contextual": say("contextual"),
    "scaled": say("scalings of RoPE"),
    "tempered": say("temperatures"),
    "preset": say("presets of models"),
    "positions": say("positions"),
}
"""One or two words for each kind: headings of the site."""

PACKAGE = Path(__file__).parents[1]
ROOM = "posenc.encodings"
ROOMS: dict[Kind, str] = {
    "scaled": "posenc.encodings.scalings",
    "tempered": "posenc.encodings.temperatures",
    "preset": "posenc.encodings.presets",
    "positions": "posenc.encodings.positions",
}
"""The package in which the pages of a kind stand; those of all other kinds stand in ROOM."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One encoding of the catalogue, or one way to number tokens.

    name         what `posenc.create`, or `posenc.positions_by`, takes; the name of its file
    class_name   the class of what is made, which its file defines or imports
    file         where it is made, below posenc/encodings, "bases/window_bias.py"; left out: NAME.py beside the page
    builder      the function of its file that makes it; left out: its class does
    title        its name in English texts, the title of its page
    kind         how position enters; the catalogue is grouped by it
    published    year and month of the first version of the paper, "2017-06"
    formula      one line of plain text
    also_called  names in other libraries and papers: hints that lead here, not aliases
    used_by      models, the best known first
    needs        parameters: it learns some; hidden_states: it reads them; causal: no option makes it bidirectional;
                 wide_output: attention has more heads than queries, and its output projection as many
    axes         coordinates of a token that it reads, or makes, as it is by default: 2 for images
    per_layer    the paper gives each layer its own parameters
    by_length    a fresh one is for requests within the trained length: examples take at_length(n)
    small        options of an example whose tables fit on a page
    arguments    Python, for about `length` tokens: of a way to number tokens what it needs beside sizes; of an encoding
                 that changes far distances, options under which some of these tokens are far, for measuring its cost
    positions    Python of the positions that it reads, made of `batch` and `length`, or of the `height` and `width` of an
                 image, and of the `encoding` where they carry pairs; its example, picture, costs and tests make positions
                 by nothing else
    both_ways    attention of its example is not causal: patches, nodes and cameras have no order
    domains      what it is for; left out: text and audio if it reads one coordinate, images if it reads more
    """

    name: str
    class_name: str
    title: str
    kind: Kind
    published: str
    formula: str
    also_called: tuple[str, ...] = ()
    used_by: tuple[str, ...]
    file: str = ""
    builder: str = ""
    needs: tuple[Need, ...] = ()
    axes: int = 1
    per_layer: bool = False
    by_length: bool = False
    small: dict[str, int] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    positions: str = "posenc.Positions.arange(batch, length)"
    both_ways: bool = False
    domains: tuple[Domain, ...] = ()

    @property
    def order(self) -> tuple[int, bool, str, str]:
        """Where the catalogue lists it: by kind; within a kind those without parameters first, then by date."""
        return list(KINDS).index(self.kind), "parameters" in self.needs, self.published, self.name

    @property
    def label(self) -> Words:
        """For menus: the Chinese one begins with the English name too."""
        return Words(self.title, f"{self.title} {self.page.title.zh.removeprefix(self.title).strip()}".strip())

    @cached_property
    def of_image(self) -> bool:
        """Whether its positions are made for the patches of one image."""
        return "height" in compile(self.positions, self.name, "eval").co_names

    @cached_property
    def of_pairs(self) -> bool:
        """Whether its positions carry a value of each pair of tokens, which coordinates do not say."""
        return "encoding" in compile(self.positions, self.name, "eval").co_names

    def users(self, language: Language = "en") -> list[str]:
        translated = self.page.used_by if language == "zh" else {}
        return [translated.get(user, user) for user in self.used_by]

    @property
    def not_in_a_row(self) -> Words | None:
        """Why it does not act in one layer on words in a row without a model's hidden states; None where it does."""
        if self.kind == "positions":
            return say("it numbers tokens and is no encoding")
        if self.kind == "preset":
            return say("it has an encoding for each layer")
        if self.axes != 1:
            return say("it reads {axes} coordinates of a token, and words in a row have one", axes=self.axes)
        if self.of_pairs:
            return say("it reads a value of each pair of tokens, and words in a row have none")
        if "hidden_states" in self.needs:
            return say("it reads a model's hidden states")
        if "wide_output" in self.needs:
            return say("its output has more heads than the model")
        return None

    @property
    def in_a_row(self) -> bool:
        """Whether it can be drawn: one layer, words in a row, no hidden states."""
        return self.not_in_a_row is None

    @property
    def module(self) -> str:
        """The module that makes it."""
        if self.file:
            return f"{ROOM}.{self.file.removesuffix('.py').replace('/', '.')}"
        return f"{ROOMS.get(self.kind, ROOM)}.{self.name}"

    @property
    def page_file(self) -> Path:
        """NAME.md in the room of its kind."""
        return PACKAGE.joinpath(*ROOMS.get(self.kind, ROOM).split(".")[1:], f"{self.name}.md")

    @cached_property
    def page(self) -> Page:
        """Its texts in both languages, read when they are first asked for."""
        return read(self.page_file)

    def load(self) -> type[PositionalEncoding]:
        """The class of what is made; imports torch."""
        loaded: type[PositionalEncoding] = getattr(importlib.import_module(self.module), self.class_name)
        return loaded

    def maker(self) -> Callable[..., Any]:
        """What makes it of its sizes and options: its builder, or its class. Imports torch."""
        made_by: Callable[..., Any] = getattr(importlib.import_module(self.module), self.builder or self.class_name)
        return made_by
