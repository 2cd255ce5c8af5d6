"""Old names of modules and of their public names: they work until version 0.3 and warn with the new name.

    import posenc.module            DeprecationWarning: posenc.module is now posenc.attention_module …
    posenc.laws.Finding             DeprecationWarning: posenc.laws.Finding is now posenc.laws.LawResult …

Each release that renames something adds a line here; version 0.3 deletes the lines of 0.2.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any

REMOVED_IN = "0.3"

# Modules renamed in 0.2.
MODULES = {
    "posenc.claims": "posenc.learn.claims",
    "posenc.walk": "posenc.learn.walk",
    "posenc.notes": "posenc.learn.notes",
    "posenc.module": "posenc.attention_module",
    "posenc.hidden": "posenc.content_dependent",
    "posenc.reading": "posenc.coordinates",
    "posenc.words": "posenc.bilingual",
    "posenc.eager": "posenc.kernels.fast_path",
    "posenc.phasors": "posenc.kernels.sin_cos",
    "posenc.angles": "posenc.kernels.sin_cos",
    "posenc.rotation": "posenc.kernels.rotation",
    "posenc.distance_attention": "posenc.backends.toeplitz.attention",
    "posenc.relative_attention": "posenc.backends.relative.attention",
    "posenc.explorer.recognition": "posenc.recognition",
    "posenc.kernels.triton_rotate": "posenc.kernels.rotation.triton_rotation",
}
# Names renamed in 0.2, in modules that stay: (module, old name) to new name.
NAMES: dict[tuple[str, str], str] = {
    ("posenc.dialects", "Finding"): "Remark",
    ("posenc.lab.experiment", "read"): "read_experiment",
    ("posenc.laws", "Finding"): "LawResult",
    ("posenc.learn.claims", "Finding"): "Evidence",
}


def warn_renamed(old: str, new: str, stacklevel: int) -> None:
    """The warning that every old name gives. `stacklevel` counts frames from the caller of this function, from 1."""
    text = f"{old} is now {new}; the old name works until posenc {REMOVED_IN}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def renamed(module: str, name: str) -> Any:
    """For a module's `__getattr__`: what the old name of the module means today. Raises AttributeError for other names."""
    if (module, name) not in NAMES:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new = NAMES[module, name]
    warn_renamed(f"{module}.{name}", f"{module}.{new}", stacklevel=3)  # renamed, the module's __getattr__, the caller
    return getattr(importlib.import_module(module), new)


class _OldModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module by its old name, after all other finders have failed."""

    def __init__(self) -> None:
        self.specs: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if _today(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        new = _today(spec.name)
        assert new is not None
        warn_renamed(spec.name, new, stacklevel=2)  # Python leaves out the frames of importlib
        found = importlib.import_module(new)
        self.specs[spec.name] = found.__spec__
        return found

    def exec_module(self, module: types.ModuleType) -> None:
        """The module ran under its new name; importing it under the old one has changed its `__spec__`."""
        assert module.__spec__ is not None
        module.__spec__ = self.specs.pop(module.__spec__.name)


def _today(fullname: str) -> str | None:
    """The new name of a renamed module, or of a module inside a renamed package."""
    for old, new in MODULES.items():
        if fullname == old or fullname.startswith(f"{old}."):
            return new + fullname.removeprefix(old)
    return None


def install() -> None:
    """Called once by `import posenc`; costs nothing until an import fails."""
    if not any(isinstance(finder, _OldModules) for finder in sys.meta_path):
        sys.meta_path.append(_OldModules())
