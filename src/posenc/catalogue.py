"""Every encoding by name. Its entry stands at the end of its own file in `posenc/encodings`; reading it needs no torch.

`names()` lists them, `create(name, ...)` builds one from sizes alone, `look_up(word)` leads there from other names.
"""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.bilingual import Words
from posenc.checked import checked
from posenc.entry import Entry

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding


HERE = Path(__file__).with_name("encodings")


@checked
def entries_in(folder: Path = HERE) -> tuple[Entry, ...]:
    """The entries that the files of a folder end with, in the order of the catalogue.

    The text after `ENTRY = ` is evaluated by itself, so that torch is not imported. Raises ValueError, naming the file, for
    an entry that is not the last statement of its file or does not bear the file's name.
    """
    found = []
    for file in folder.glob("*.py"):
        _, marked, written = file.read_text(encoding="utf-8").partition("\nENTRY = ")
        if not marked:
            continue
        try:
            entry = eval(written, {"Entry": Entry, "Words": Words})
        except (SyntaxError, NameError, TypeError) as error:
            raise ValueError(
                f"{file}: expected ENTRY = Entry(…) with literal arguments as its last statement: {error}"
            ) from error
        if entry.name != file.stem:
            raise ValueError(f"{file}: ENTRY has the name {entry.name!r}, expected that of its file, {file.stem!r}")
        found.append(entry)
    return tuple(sorted(found, key=lambda entry: entry.order))


ENTRIES = entries_in()
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
    if not isinstance(name, str):
        raise TypeError(f"name: expected a name such as 'rope', got {name!r}")
    _entry(name)
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


def _entry(name: str) -> Entry:
    if name not in BY_NAME:
        raise ValueError(f"name: unknown encoding {name!r}{hint(name)}; known: {', '.join(names())}")
    return BY_NAME[name]


@checked
def arguments_of(name: str) -> set[str]:
    """The sizes and options that an encoding's class takes."""
    return set(inspect.signature(_entry(name).load()).parameters)


@checked
def directed(name: str, causal: bool) -> dict[str, bool]:
    """The options that make an encoding causal or bidirectional: {} unless it has `bidirectional` among its own."""
    return {"bidirectional": not causal} if "bidirectional" in arguments_of(name) else {}


def _check_options(name: str, parameters: Any, options: dict[str, Any]) -> None:
    own = [parameter for parameter in parameters if parameter not in SIZES]
    for option in options:
        if option in own:
            continue
        close = difflib.get_close_matches(option, own, n=1)
        others = [other for other in names() if other != name and option in arguments_of(other)]
        meant = f"; did you mean {close[0]!r}?" if close else f"; it is an option of {', '.join(others)}" if others else ""
        takes = f"takes {', '.join(own)}" if own else "takes no options"
        raise TypeError(f"{name}: unknown option {option!r}{meant} ({name} {takes})")


@checked
def hint(word: str) -> str:
    """'; did you mean …?' for a word from elsewhere, or nothing."""
    found = look_up(word)
    return f"; did you mean {found}?" if found else ""


@checked
def look_up(word: str) -> str | None:
    """Where a name from a paper, another library or the founding notes leads: an expression of this package."""
    for elsewhere, place in ELSEWHERE.items():
        if _fold(elsewhere) == _fold(word):
            return place
    entry = entry_of(word)
    return f'posenc.create("{entry.name}", …)' if entry else None


@checked
def entry_of(word: str) -> Entry | None:
    """The encoding that goes by a word, exactly or nearly, here or elsewhere."""
    known = {
        _fold(alias): entry
        for entry in ENTRIES
        for alias in (entry.name, entry.class_name, *entry.title, *entry.also_called)
    }
    folded = _fold(word)
    close = [folded] if folded in known else difflib.get_close_matches(folded, known, n=1, cutoff=0.75)
    return known[close[0]] if close else None


def _fold(word: str) -> str:
    return "".join(character for character in word.lower() if character.isalnum())
