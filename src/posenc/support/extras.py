"""The packages that posenc needs for some things alone, and the extras of pyproject.toml that install them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

EXTRAS = {
    "matplotlib": "plots",
    "safetensors": "convert",
    "ray": "ray",
    "transformers": "transformers",
    "anywidget": "notebook",
    **dict.fromkeys(("starlette", "uvicorn"), "explore"),
    **dict.fromkeys(("pydantic", "yaml", "lightning_fabric", "pyarrow", "duckdb", "scipy"), "lab"),
}
"""The extra of each module; where several extras hold it, that of what imports it first."""
PACKAGES = {"yaml": "pyyaml", "lightning_fabric": "lightning-fabric"}
"""What pip calls a module, where that is another name."""


SOURCES = Path(__file__).parents[3]
"""The folder of posenc's sources, where it is a checkout that runs."""


def install(extra: str) -> str:
    """The command that installs an extra: by its name in a checkout, its packages where a wheel is installed.

    pip finds no posenc by its name alone: no version has been published.
    """
    if (SOURCES / "pyproject.toml").is_file():
        return f"pip install '.[{extra}]' in the folder of posenc's sources"
    return f"pip install {' '.join(_packages(extra))}"


def _packages(extra: str) -> Iterator[str]:
    """What the extra needs, each quoted as every shell reads it, from the wheel's metadata."""
    for line in metadata.requires("posenc") or ():
        requirement, _, condition = line.partition(";")
        if f"extra == '{extra}'" in condition:
            yield f'"{requirement.strip()}"'


def missing(module: str, extra: str = "", what: str = "this") -> ModuleNotFoundError:
    """The error for a module that is not installed: what needs it, what pip calls it, and the command that installs it."""
    root = module.split(".")[0]
    needed = PACKAGES.get(root, root)
    return ModuleNotFoundError(f"{what} needs {needed}: {install(extra or EXTRAS[root])}", name=module)


def explained(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The same error; for a module of an extra, with the command that installs it, unless the error has said so."""
    name = error.name or ""
    return missing(name) if name.split(".")[0] in EXTRAS and "pip install" not in str(error) else error
