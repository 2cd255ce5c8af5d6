"""Every encoding by name. Its facts stand at the head of its page in `posenc/encodings`; reading them needs no torch.

`names()` lists them, `create(name, ...)` builds one from sizes alone, `positions_by(name, ...)` numbers tokens in one of
the ways that have a name, `look_up(word)` leads there from other names.
"""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.catalogue.arguments import right_name
from posenc.catalogue.entry import PACKAGE, ROOM, ROOMS, Entry
from posenc.catalogue.facts import entry_in, refuse_python
from posenc.catalogue.index import USERS, Found, Term, attention_free, called, fold, search, terms
from posenc.catalogue.methods import NOT_YET, Method, groups
from posenc.support.checked import checked
from posenc.support.checks import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from posenc.encoding import PositionalEncoding
    from posenc.positions import Positions


@checked
def entries_in(folder: Path = PACKAGE) -> tuple[Entry, ...]:
    """The entries of the pages in posenc's folder, in the order of the catalogue. The pages stand in ROOM and ROOMS.

    Raises ValueError, naming the file, for a page whose facts are wrong or that stands in another kind's room, and for a
    Python file that has no page but an ENTRY, which was the way to tell the facts before.
    """
    entries = []
    for room in (ROOM, *ROOMS.values()):
        files = set(folder.joinpath(*room.split(".")[1:]).glob("*.*"))
        for file in files:
            if file.suffix == ".py" and file.with_suffix(".md") not in files:
                refuse_python(file)
            if file.suffix != ".md" or file.stem.endswith(".zh"):
                continue
            entry = entry_in(file)
            if (right := ROOMS.get(entry.kind, ROOM)) != room:
                raise ValueError(f"{file}: kind: expected this page in {right}, where those of kind {entry.kind!r} stand")
            entries.append(entry)
    return tuple(sorted(entries, key=lambda entry: entry.order))


ENTRIES = entries_in()
BY_NAME = {entry.name: entry for entry in ENTRIES}
METHODS = {entry.class_name: entry for entry in ENTRIES if not entry.builder}
"""The entry of each class that has one of its own: what another entry builds of that class is a setting of it."""
SIZES = ("d_model", "d_head", "n_heads", "n_kv_heads", "n_layers", "max_positions")

FOUNDATION = ("nope", "sinusoidal", "learned", "floater", "shaw", "transformer_xl", "alibi", "t5", "rope", "xpos", "cope")
"""The encodings of the founding notes, in the catalogue's order: what is compared, drawn and exported unless others are
asked for. It stays as it is when encodings are added."""

# Words that mean a function or a builder here rather than an encoding.
ELSEWHERE = {
    "positional_encoding": "posenc.sinusoidal_table(length, d_model)",
    "sinusoidal_position_encoding": "posenc.sinusoidal_table(length, d_model)",
    "positionalencoding": "posenc.sinusoidal_table(length, d_model)",
    "get_alibi_slopes": "posenc.alibi_slopes(n_heads)",
    "m_k": "posenc.shift_matrix(k, d_model)",
    "scaled_dot_product_attention": "posenc.attend(q, k, v, encoding, at_q)",
    "multiheadattention": "posenc.Attention(d_model, n_heads, encoding)",
    "flash_attention": "posenc.attend(q, k, v, encoding, at_q)",
    "sliding_window_attention": "posenc.attend(q, k, v, encoding, at_q, window=…)",
    "alibi_slopes": "posenc.alibi_slopes(n_heads)",
}


def setting_of(entry: Entry) -> Entry | None:
    """The method of which an entry is a setting, as `partial` is one of `rope`; None for a method."""
    return METHODS.get(entry.class_name) if entry.builder else None


def names() -> list[str]:
    """The names that `create` takes."""
    return [entry.name for entry in ENTRIES if entry.kind != "positions"]


def position_names() -> list[str]:
    """The names that `positions_by` takes."""
    return [entry.name for entry in ENTRIES if entry.kind == "positions"]


@checked
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
    _entry(name)
    sizes: dict[str, int | None] = {
        "d_model": d_model,
        "n_heads": n_heads,
        "d_head": d_head,
        "n_kv_heads": n_kv_heads,
        "n_layers": n_layers,
        "max_positions": max_positions,
    }
    if d_head is None and d_model is not None and n_heads is not None:
        if d_model % n_heads:
            raise ValueError(f"d_model={d_model} is not a multiple of n_heads={n_heads}; say d_head")
        sizes["d_head"] = d_model // n_heads

    maker = BY_NAME[name].maker()
    parameters = inspect.signature(maker).parameters
    _check_options(name, parameters, options)
    arguments = {size: value for size, value in sizes.items() if size in parameters and value is not None} | options
    missing = _missing(parameters, arguments)
    if missing:
        enough = " or d_model and n_heads" if missing == ["d_head"] else ""
        raise ValueError(f"{name}: needs {' and '.join(missing)}{enough}")
    encoding: PositionalEncoding = maker(**arguments)
    return encoding


@checked
def positions_by(name: str, **arguments: Any) -> Positions:
    """Positions by the name of a way to number tokens, with the defaults of its paper.

        positions_by("randomized", batch=8, length=128, max_positions=2048)      positions_by("grid", height=14, width=14)

    `arguments` are those of its function, which its page lists. Raises ValueError for an unknown name and for what is
    missing, TypeError for an unknown argument; each says what is right.
    """
    if name not in position_names():
        known = ", ".join(position_names())
        raise ValueError(f"name: unknown way to number tokens {shown(name)}{hint(name)}; known: {known}")
    maker: Callable[..., Positions] = BY_NAME[name].maker()
    parameters = inspect.signature(maker).parameters
    for argument in arguments:
        if argument not in parameters:
            meant = right_name(argument, parameters)
            raise TypeError(f"{name}: unknown argument {shown(argument)}{meant} ({name} takes {', '.join(parameters)})")
    if missing := _missing(parameters, arguments):
        raise ValueError(f"{name}: needs {' and '.join(missing)}")
    return maker(**arguments)


def _missing(parameters: Mapping[str, inspect.Parameter], arguments: Mapping[str, Any]) -> list[str]:
    return [name for name, p in parameters.items() if p.default is inspect.Parameter.empty and name not in arguments]


def _entry(name: str) -> Entry:
    if name not in names():
        raise ValueError(f"name: unknown encoding {shown(name)}{hint(name)}; posenc list --all shows all names")
    return BY_NAME[name]


@checked
def arguments_of(name: str) -> set[str]:
    """The sizes and options that an encoding's class, or builder, takes."""
    return set(inspect.signature(_entry(name).maker()).parameters)


@checked
def directed(name: str, causal: bool) -> dict[str, bool]:
    """The options that make an encoding causal or bidirectional: {} unless it has `bidirectional` among its own."""
    return {"bidirectional": not causal} if "bidirectional" in arguments_of(name) else {}


def _check_options(name: str, parameters: Any, options: dict[str, Any]) -> None:
    known = [parameter for parameter in parameters if parameter not in SIZES]
    for option in options:
        if option in known:
            continue
        others = [other for other in names() if other != name and option in arguments_of(other)]
        others.sort(key=lambda other: -len(BY_NAME[other].used_by))
        named = f"{', '.join(others[:3])} and others" if len(others) > 3 else ", ".join(others)
        elsewhere = f"; it is an option of {named}" if others else ""
        meant = right_name(option, parameters) or elsewhere or right_name(option, SIZES)
        takes = f"takes {', '.join(known)}" if known else "takes no options"
        raise TypeError(f"{name}: unknown option {shown(option)}{meant} ({name} {takes})")


@checked
def hint(word: str) -> str:
    """'; did you mean …?' for a word from elsewhere, at most three guesses, that a known method is not here, or nothing."""
    missing = missing_method(word)
    if missing is not None:
        instead = (missing.instead or NOT_YET).en
        return f"; that is {missing.title} ({missing.source}): {instead}"
    if place := _elsewhere(word):
        return f"; did you mean {place}?"
    matches = find(word)
    if without_positions(word):
        return f"; {word} has no attention, and so no positional encoding"
    if not matches:
        return ""
    if matches[0].guess:
        return f"; a guess: {' or '.join(_call(match.entry) for match in matches)}"
    instead = f" ({matches[0].term.written} uses it)" if matches[0].term.role in USERS else ""
    others = "".join(f"; {method.title} ({method.source}) is another" for method in namesakes(word, matches[0].entry))
    return f"; did you mean {_call(matches[0].entry)}?{instead}{others}"


@checked
def find(word: str) -> tuple[Found, ...]:
    """At most three entries that a word may mean, the best first; none for a method that has no entry, nor a guess for a
    word that means something else here."""
    if missing_method(word) is not None:
        return ()
    matches = search(word, every_term())
    return () if matches and matches[0].guess and (_elsewhere(word) or without_positions(word)) else matches


@checked
def without_positions(word: str) -> bool:
    """Whether a word is a model without attention, such as Mamba or a convolutional network, by what its reader says."""
    return fold(word) in attention_free()


@checked
def missing_method(word: str) -> Method | None:
    """The method of the literature that a word names exactly and that has no entry; None for all other words."""
    if fold(word) in _called():
        return None
    for _, methods in groups().values():
        for method in methods:
            meant = {fold(word_known) for word_known in (method.title, method.entry, *method.also)}
            if fold(word) in meant - {""} and entry_for(method) is None:
                return method
    return None


@checked
def namesakes(word: str, entry: Entry) -> tuple[Method, ...]:
    """The methods of the literature, other than this entry, that have this name as well: "HoPE, hyperbolic" of HoPE."""
    every = (method for _, methods in groups().values() for method in methods)
    named = (method for method in every if "," in method.title and fold(method.title.partition(",")[0]) == fold(word))
    return tuple(method for method in named if entry_for(method) != entry)


@checked
def entry_for(method: Method) -> Entry | None:
    """The entry of a method of the literature: the one of that name, or one that is called by its title."""
    return BY_NAME.get(method.entry) or _called().get(fold(method.title))


@checked
def look_up(word: str) -> str | None:
    """Where a name from a paper, another library or the founding notes leads: an expression of this package."""
    if place := _elsewhere(word):
        return place
    entry = entry_of(word)
    return None if entry is None else _call(entry)


@checked
def entry_of(word: str) -> Entry | None:
    """The entry that a word means, or most nearly means: the first of `find`."""
    matches = find(word)
    return matches[0].entry if matches else None


def _elsewhere(word: str) -> str | None:
    return next((place for elsewhere, place in ELSEWHERE.items() if fold(elsewhere) == fold(word)), None)


def _call(entry: Entry) -> str:
    return f'posenc.{"positions_by" if entry.kind == "positions" else "create"}("{entry.name}", …)'


@cache
def every_term() -> list[Term]:
    """The index that `find` looks words up in; the site's search is given the same. Do not change it in place."""
    every = [(group, method) for group, (_, methods) in enumerate(groups().values()) for method in methods]
    return terms(ENTRIES, [(group, method, entry) for group, method in every if (entry := entry_for(method)) is not None])


@cache
def _called() -> dict[str, Entry]:
    """Every folded name, class, title and alias, and its entry."""
    return {fold(word): entry for entry in ENTRIES for word in called(entry)}
