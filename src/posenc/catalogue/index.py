"""From a word that people use to entries: names, aliases, models, papers and authors, in English and Chinese.

A word that stands in the index whole is known. One that is near a word of the index, or a part of one, is a guess.
rapidfuzz is imported when a word is looked for that is not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from posenc.catalogue.entry import Entry
from posenc.catalogue.methods import Method, groups
from posenc.support.data_files import read

Role = Literal["name", "model", "type", "code", "paper", "topic"]
ROLES: tuple[Role, ...] = get_args(Role)
USERS: tuple[Role, ...] = ("model", "type")
WHOLE: tuple[Role, ...] = ("type", "code")
"""Roles of words that are typed as they are: no part of them is known, and they are no guess."""

# What says nothing here, since everything is a positional encoding; and words of one meaning.
EMPTY = re.compile("the|a|an|of|and|for|with|by|in|to|is|it|pos(ition(al)?)?|pe|encod(e|er|ing)|decoder|emb(ed(ding)?)?")
EMPTY_ZH = re.compile("位置|编码|嵌入|的")
SAME = {
    "rotary": "rope",
    "rotation": "rope",
    "learnable": "learned",
    "trainable": "learned",
    "sinusoid": "sinusoidal",
    "二维": "2d",
    "三维": "3d",
    "图像": "image",
    "视频": "video",
    "缩放": "scaling",
}
HAN = "\u3400-\u9fff"
PARTS = re.compile(rf"\d+d(?![a-z])|\d+|[a-z+]+|[{HAN}]+")
ARXIV = re.compile(r"\d{4}\.\d{5}")

NEAR = 0.83
"""The least likeness of a guess in spelling: rotery is near rotary, bert is not near beit, nor flash attention PaTH's."""
WORSE = 0.1
"""How much less like the word other guesses may be than the best one."""
LIMIT = 3
LONGEST = 200
"""Characters of the longest word that is looked for; titles of papers have up to 133."""
LAST = 100
"""Added to the place of a model that uses an entry in part: Qwen (the first), before it had another."""
VERSION = re.compile(
    r"(?<=[\u3400-\u9fff])[\d.]+$|[-_ ](\d[\d.x]*[bmk]|tiny|mini|small|medium|base|large|huge"
    r"|x+l|dev|schnell|instruct|chat|hf|it|(un)?cased)(?![a-z0-9]).*",
    re.IGNORECASE | re.DOTALL,
)
"""What follows a model's name in the name of a repository: -7B-Instruct of Qwen2.5-7B-Instruct, 3 of 千问3."""
TIMM = {
    r"vit_.*_rope_mixed_ape": ("rope_mixed", "vit"),
    r"vit_.*_rope_mixed": ("rope_mixed",),
    r"vit_.*_rope_ape": ("axial_rope", "vit"),
    r"vit_.*_rope": ("axial_rope",),
    r"vit_.*_dinov3": ("dinov3_rope",),
}
"""What models of timm have whose names begin as that of a ViT with a learned grid; the first that fits counts."""
ANY = re.compile(r"[\s_-]*transformers?$", re.IGNORECASE)
"""What says nothing of a guess: Point Transformer is not nearly Swin Transformer."""


class Term(NamedTuple):
    """One word of the index.

    entry    where it leads
    written  as it is written
    role     a name of the entry, a model that uses it, a model type of `posenc inspect`, a class or function of another
             library that computes it, its paper or authors, or what its users do with it
    group    the number of the method's group: those that models use are first
    place    in the list that it is from: the best known is first
    """

    entry: Entry
    written: str
    role: Role
    group: int
    place: int = 0

    @property
    def order(self) -> tuple[object, ...]:
        """Of terms that fit alike, the lowest is first: an encoding before a way to number tokens."""
        return self.entry.kind == "positions", self.group, self.place, *self.entry.order


class Found(NamedTuple):
    """An entry that a word may mean. `term` is what it fits; `guess`: it is near it, or a part of it."""

    entry: Entry
    term: Term
    guess: bool


@lru_cache(2**14)
def fold(word: str) -> str:
    """Its letters, digits and +, in lower case: RoPE-2D and rope2d are one."""
    return "".join(character for character in word.lower() if character.isalnum() or character == "+")


@cache
def spaced(word: str) -> str:
    """In lower case, with one space for what separates: p-RoPE is another word than PRoPE."""
    return re.sub(r"[\s_\-]+", " ", word.lower()).strip()


@cache
def meaning(word: str) -> frozenset[str]:
    """Its parts without what says nothing: {"2d", "rope"} of rotary2d and of 2-D rotary embeddings."""
    word = re.sub(r"(?<=[a-z]{3})(?=[A-Z])", " ", word).lower()
    parts = PARTS.findall(re.sub(r"(\d)[ -]d\b", r"\1d", word))
    singular = (re.sub(r"(?<=[a-z]{3}[^su])s$", "", part) for part in parts)
    told = (EMPTY_ZH.sub("", part) for part in singular if not EMPTY.fullmatch(part))
    return frozenset(SAME.get(part, part) for part in told if part)


@cache
def papers() -> dict[str, str]:
    """The titles of papers, by their arXiv numbers."""
    return _table("papers.json")


@cache
def words() -> dict[str, dict[str, list[str]]]:
    """Of an entry: `models`, `people`, `topics` and `code` that it does not say itself, `types` of models that use it."""
    written = read(Path(__file__).with_name("words.toml"))
    types, models, classes = (_table(file) for file in ("models.json", "diffusion.json", "classes.json"))
    types = {name: found for name, found in types.items() if name}
    return {
        name: (known := written.get(name, {}))
        | {
            "types": types.get(name, []),
            "models": [*known.get("models", ()), *models.get(name, ())],
            "code": [*known.get("code", ()), *classes.get(name, ())],
        }
        for name in (*written, *types, *models, *classes)
    }


@cache
def attention_free() -> frozenset[str]:
    """The folded types of models whose readers find no attention: in models.json they are under no name."""
    return frozenset(map(fold, _table("models.json")[""]))


def _table(file: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return loaded


def called(entry: Entry) -> tuple[str, ...]:
    """What an entry is called: its name, its own class, its titles and aliases."""
    own_class = () if entry.builder else (entry.class_name,)
    return (entry.name, *own_class, entry.title, *entry.page.title.both(), *entry.also_called)


def terms(entries: Iterable[Entry], methods: Iterable[tuple[int, Method, Entry]]) -> list[Term]:
    """The whole index. `methods` are those of the literature that have an entry, each with the number of its group."""
    entries = list(entries)
    names = {fold(word) for entry in entries for word in called(entry)}
    best = dict[str, int]()
    terms_of_entries = list[Term]()
    for group, method, entry in methods:
        best[entry.name] = min(best.get(entry.name, group), group)
        terms_of_entries += [Term(entry, word, "name", group) for word in (method.title, *method.also)]
    for entry in entries:
        group = best.get(entry.name, len(groups()))
        terms_of_entries += [Term(entry, word, "name", group) for word in called(entry)]
        for written in dict.fromkeys((*entry.users("en"), *entry.users("zh"))):
            place = (entry.users("en") if written in entry.users("en") else entry.users("zh")).index(written)
            model, qualified, _ = re.split(r" *([(（].*|$)", written, maxsplit=1)
            terms_of_entries.append(
                Term(
                    entry,
                    model,
                    "topic" if re.search("[:：]| by | 的", written) else "model",
                    group,
                    place + LAST * bool(qualified),
                )
            )
        terms_of_entries += [Term(entry, word, "paper", group, place) for place, word in enumerate(_of_paper(entry, names))]
    return terms_of_entries + _of_words({entry.name: entry for entry in entries})


def _of_words(entries: Mapping[str, Entry]) -> list[Term]:
    """The terms of words.toml and of the generated tables beside it; entries of a topic are in the order of the file."""
    terms_of_words = list[Term]()
    for place, (name, of_entry) in enumerate(words().items()):
        if name not in entries:
            continue
        terms_of_words += [Term(entries[name], word, "model", 0, place) for word in of_entry.get("models", ())]
        terms_of_words += [Term(entries[name], word, "type", 0, place) for word in of_entry["types"]]
        terms_of_words += [Term(entries[name], word, "code", 0, place) for word in of_entry["code"]]
        terms_of_words += [Term(entries[name], word, "paper", 0) for word in of_entry.get("people", ())]
        terms_of_words += [Term(entries[name], word, "topic", 0, place) for word in of_entry.get("topics", ())]
    return terms_of_words


def _of_paper(entry: Entry, names: set[str]) -> Iterator[str]:
    """The authors, numbers and titles of the papers that its page cites. YaRN's title is for yarn, not for ntk."""
    names_of_entry = {fold(word) for word in called(entry)}
    for number in ARXIV.findall(entry.page.source):
        yield number
        title = papers().get(number, "")
        if title and fold(title.partition(":")[0]) not in names - names_of_entry:
            yield from dict.fromkeys((title, title.partition(":")[0]))
    for authors in re.findall(r"([A-Z][\w-]+(?: and [A-Z][\w-]+)?)(?: et al\.)? \d{4}", entry.page.source):
        yield from authors.split(" and ")


def bare(word: str) -> str:
    """A word without `ANY`, unless nothing else is there."""
    return ANY.sub("", word) or word


def search(word: str, index: list[Term]) -> tuple[Found, ...]:
    """At most three entries that a word may mean, the best first: known ones, else guesses, else none."""
    if len(word) > LONGEST:
        return ()
    number = ARXIV.search(word)
    word = number[0] if number else word
    if not fold(word):
        return ()
    for name, meant in TIMM.items():
        if re.match(name, word.rpartition("/")[2]):
            return tuple(Found(term.entry, term, guess=False) for one in meant for term in _known(one, index)[:1])
    known = _known(word, index) or _known(VERSION.sub("", word.rpartition("/")[2]), index)
    best: dict[str, Term] = {}
    for term in known or _near(word, index):
        best.setdefault(term.entry.name, term)
    return tuple(Found(term.entry, term, guess=not known) for term in list(best.values())[:LIMIT])


def _known(word: str, index: list[Term]) -> list[Term]:
    """The terms that are the word: the more exactly, the earlier; then names before models before papers.

    A type's parts do not count: audio is not pe_audio_encoder.
    """
    folded, parts = fold(word), meaning(word)
    near = (term for term in index if fold(term.written) == folded or meaning(term.written) == parts)
    matches = [
        (max(alike, term.role == "type"), term)
        for term in near
        if term.role != "topic"
        and (alike := _alike(word, term.written)) is not None
        and (alike < 2 or term.role not in WHOLE)
    ]
    return [term for _, term in sorted(matches, key=lambda pair: (pair[0], ROLES.index(pair[1].role), *pair[1].order))]


def _near(word: str, index: list[Term]) -> list[Term]:
    """The terms that are like the word, the likest first."""
    word = bare(word) if meaning(bare(word)) else word
    matches = [(likeness, term) for term in index if (likeness := _likeness(word, term)) > 0]
    least = max((likeness for likeness, _ in matches), default=0.0) - WORSE
    matches = [pair for pair in matches if pair[0] > least]
    return [term for _, term in sorted(matches, key=lambda pair: (-pair[0], *pair[1].order))]


def _alike(word: str, written: str) -> int | None:
    """0: the same word; 1: but for what separates its parts; 2: of the same parts; None: another word."""
    if spaced(word) == spaced(written):
        return 0
    if fold(word) == fold(written):
        return 1
    return 2 if meaning(word) and meaning(word) == meaning(written) else None


def _likeness(word: str, term: Term) -> float:
    """Above 0 for a guess, at most 1: by spelling, or by parts, all of which stand in the term. No type is guessed."""
    from rapidfuzz import fuzz

    if term.role == "topic" and _alike(word, term.written) is not None:
        return 1.0
    if term.role in WHOLE:
        return 0.0
    likeness = 0.0
    lengths = len(fold(word)), len(fold(term.written))
    if term.role in ("name", "model") and min(lengths) > 2 and abs(lengths[0] - lengths[1]) < 3:
        spelt = min(fuzz.ratio(*map(fold, pair)) for pair in ((word, term.written), (bare(word), bare(term.written)))) / 100
        likeness = spelt if spelt >= NEAR else 0.0
    if term.role == "paper" and fold(word.rpartition(" ")[2]) == fold(term.written) != fold(word):
        likeness = 0.5  # Ofir Press
    parts, known = meaning(word), meaning(term.written)
    telling = [part for part in parts if len(part) > 2 or re.match(f"[{HAN}]{{2}}", part)]
    if telling and len(telling) == len(parts) and all(_stands_in(part, known) for part in parts):
        share = sum(map(len, parts)) / sum(map(len, known))
        likeness = max(likeness, 0.5 + 0.1 * min(share, 1) + 0.1 * max(0, 2 - term.group))
    return likeness


def _stands_in(part: str, known: frozenset[str]) -> bool:
    from rapidfuzz import fuzz

    if part in known:
        return True
    if re.match(f"[{HAN}]", part):
        return any(part in other for other in known)
    return len(part) > 5 and any(fuzz.ratio(part, other) >= 85 for other in known)
