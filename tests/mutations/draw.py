"""Which mutants are judged: a share of every room drawn by a seed, and those named by hand.

Every mutant has a number, the hash of the seed, its file's name and its own name; a room takes the smallest numbers. So a
change to one function changes the draw in that function only, and reformatting changes nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import cpp_mutants, python_mutants

SOURCE = Path(__file__).resolve().parents[2] / "src" / "posenc"
SEED = 12


@dataclass(frozen=True)
class Room:
    """Files that belong together, and how many mutants of theirs are judged, `per_file` of one file at most."""

    name: str
    files: tuple[str, ...]  # patterns below src/posenc; a file belongs to the first room that has it
    share: int
    per_file: int


ROOMS = (
    Room("Triton", ("kernels/**/*triton*.py",), 10, 7),
    Room("C++", ("kernels/**/*.cpp", "attention/backends/**/*.cpp"), 16, 6),
    Room("frequencies", ("frequencies/*.py",), 10, 3),
    Room("encodings", ("encodings/*.py", "encodings/bases/*.py", "encodings/of_families/*.py"), 28, 1),
    Room("backends", ("attention/backends/**/*.py", "kernels/**/*.py"), 18, 4),
    Room("core", ("*.py", "attention/*.py", "support/*.py"), 18, 3),
)
# Files that compute nothing with positions.
APART = (
    "__init__.py",
    "__main__.py",
    "support/apart.py",
    "support/languages.py",
    "support/lazy.py",
    "support/shapes.py",
    "cli.py",
)


@dataclass(frozen=True)
class Mutant:
    room: str
    file: str  # below src/posenc
    kind: str
    name: str
    line: int
    make: Callable[[str], str | None]  # of the file's text, the mutant's; None where it does not apply

    @property
    def key(self) -> str:
        return f"{self.file}: {self.name}"

    @property
    def language(self) -> str:
        return "C++" if self.file.endswith(".cpp") else "Triton" if "triton" in self.file else "Python"

    def source(self) -> str:
        """The mutated file. Raises ValueError where the mutant does not apply."""
        made = self.make((SOURCE / self.file).read_text(encoding="utf-8"))
        if made is None:
            raise ValueError(f"{self.key}: not found once in the file")
        return made


def drawn(seed: int = SEED, among: str = "") -> list[Mutant]:
    """The mutants of every room whose name has `among` in it, in an order that does not depend on where files lie."""
    return [mutant for room in ROOMS if among in room.name for mutant in _of_room(room, seed)]


def named() -> list[Mutant]:
    """The mutants named by hand."""
    return [_by_hand(*one) for one in BY_HAND]


def candidates(room: Room) -> Iterator[Mutant]:
    """Every mutant of a room."""
    for path in files(room):
        text, file = path.read_text(encoding="utf-8"), path.relative_to(SOURCE).as_posix()
        if path.suffix == ".cpp":
            for of_cpp in cpp_mutants.mutants(text):
                yield Mutant(room.name, file, of_cpp.kind, of_cpp.name, 0, _cpp(of_cpp))
        else:
            for one in python_mutants.mutants(text):
                yield Mutant(room.name, file, one.kind, one.name, one.line, _python(one))


def files(room: Room) -> list[Path]:
    earlier = {path for other in ROOMS[: ROOMS.index(room)] for pattern in other.files for path in SOURCE.glob(pattern)}
    return [
        path
        for pattern in room.files
        for path in sorted(SOURCE.glob(pattern))
        if path not in earlier and path.relative_to(SOURCE).as_posix() not in APART
    ]


def _of_room(room: Room, seed: int) -> list[Mutant]:
    """The smallest numbers; one per function and no more than a quarter of a kind, so that nothing takes all."""
    chosen: list[Mutant] = []
    of_file: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    functions = set()
    for mutant in sorted(candidates(room), key=lambda one: number(one, seed)):
        function = mutant.file, mutant.name.partition(": ")[0], mutant.kind if room.name in ("C++", "Triton") else ""
        room_left = of_file[mutant.file] < room.per_file and of_kind[mutant.kind] < max(room.share // 4, 2)
        if len(chosen) < room.share and room_left and function not in functions:
            chosen.append(mutant)
            of_file[mutant.file] += 1
            of_kind[mutant.kind] += 1
            functions.add(function)
    return chosen


def number(mutant: Mutant, seed: int) -> str:
    return hashlib.sha256(f"{seed} {Path(mutant.file).name} {mutant.name}".encode()).hexdigest()


def _python(mutant: python_mutants.PythonMutant) -> Callable[[str], str | None]:
    return lambda text: python_mutants.mutated(text, mutant)


def _cpp(mutant: cpp_mutants.CppMutant) -> Callable[[str], str | None]:
    return lambda text: cpp_mutants.mutated(text, mutant)


# By hand: mistakes that went unnoticed once. (what it breaks, function, syntax, what it becomes); in C++ there is no
# function. The file is wherever that syntax stands, so that moving a function breaks nothing here.

BY_HAND = [
    (
        "positions that go on in coordinates alone count as consecutive",
        "_goes_on",
        "(after.coords[:, 0] - before.coords[:, -1] == 1) & (after.order[:, 0] - before.order[:, -1] == 1)",
        "after.coords[:, 0] - before.coords[:, -1] == 1",
    ),
    (
        "positions that go on in one row count as consecutive in all",
        "_goes_on",
        "(counted & (after.document[:, 0] == before.document[:, -1])).all()",
        "(counted & (after.document[:, 0] == before.document[:, -1])).any()",
    ),
    (
        "decode does not turn values",
        "Attention.decode",
        "self.encoding.rotate(self._split(self.value(x)), at, 'value')",
        "self._split(self.value(x))",
    ),
    (
        "decode ignores impl",
        "Attention.decode",
        "attend_rotated(q, *cache.read(), self.encoding, at, cache.at, impl=impl, **options)",
        "attend_rotated(q, *cache.read(), self.encoding, at, cache.at, **options)",
    ),
    (
        "forward ignores impl",
        "Attention.forward",
        "attend(q, k, v, self.encoding, at, at_source, causal=causal, impl=impl, **options)",
        "attend(q, k, v, self.encoding, at, at_source, causal=causal, **options)",
    ),
    (
        "a magnitude of cos and sin below one is dropped",
        "RoPE.tables",
        "(scale := self.frequencies.cos_sin_scale) != 1",
        "(scale := self.frequencies.cos_sin_scale) > 1",
    ),
    (
        "short inputs at real positions are taken for whole ones",
        "attend",
        "call.in_one_row() and at_q.coords.dtype == torch.int64 and is_small(q, k, v)",
        "call.in_one_row() and is_small(q, k, v)",
    ),
    (
        "a run of positions starts in fp32",
        "",
        "const double start = static_cast<double>(of.starts[row] + first);",
        "const double start = static_cast<float>(of.starts[row] + first);",
    ),
    (
        "a bias of -inf that hides every key leaves a softmax of nothing",
        "scores_of",
        'seen & (logits != float("-inf"))',
        "seen",
    ),
    (
        "a mask of -inf that hides every key leaves a softmax of nothing",
        "allowed",
        "options.mask != -torch.inf",
        "torch.ones_like(options.mask, dtype=torch.bool)",
    ),
    ("a factor between padding and a token overflows", "factor", "between.clamp(max=0)", "between"),
    ("no tokens are taken for documents", "Positions.from_mask", '"document" if mask.shape[1] else None', '"document"'),
    (
        "values of one channel are broadcast to the vectors added to them",
        "check_added",
        "added.shape[-1] != v.shape[-1]",
        "added.shape[-1] < v.shape[-1]",
    ),
]


def _by_hand(breaks: str, scope: str, before: str, after: str) -> Mutant:
    def make(text: str) -> str | None:
        return python_mutants.rewritten(text, scope, before, after) if scope else cpp_mutants.rewritten(text, before, after)

    suffix = ".py" if scope else ".cpp"
    for room in ROOMS:
        for path in files(room):
            if path.suffix == suffix and make(path.read_text(encoding="utf-8")) is not None:
                return Mutant("by hand", path.relative_to(SOURCE).as_posix(), "by hand", breaks, 0, make)
    raise ValueError(f"by hand: {breaks}: {before!r} stands once in no file")
