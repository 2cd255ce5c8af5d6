"""The packages that posenc needs for some things alone, and the extras of pyproject.toml that install them."""

from __future__ import annotations

EXTRAS = {
    "matplotlib": "plots",
    "safetensors": "convert",
    "ray": "ray",
    "transformers": "transformers",
    "anywidget": "notebook",
    **dict.fromkeys(("starlette", "uvicorn"), "explore"),
    **dict.fromkeys(("pydantic", "yaml", "lightning_fabric", "pyarrow", "duckdb", "scipy", "jinja2"), "lab"),
}
"""The extra of each module; where several extras hold it, that of what imports it first."""
PACKAGES = {"yaml": "pyyaml", "lightning_fabric": "lightning-fabric"}
"""What pip calls a module, where that is another name."""


def install(extra: str) -> str:
    """The command that installs an extra. pip finds no posenc by its name alone: no version has been published."""
    return f"pip install '.[{extra}]' in the folder of posenc's sources"


def missing(module: str, extra: str = "", what: str = "this") -> ModuleNotFoundError:
    """The error for a module that is not installed: what needs it, what pip calls it, and the command that installs it."""
    root = module.split(".")[0]
    needed = PACKAGES.get(root, root)
    return ModuleNotFoundError(f"{what} needs {needed}: {install(extra or EXTRAS[root])}", name=module)


def explained(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The same error; for a module of an extra, with the command that installs it, unless the error has said so."""
    name = error.name or ""
    return missing(name) if name.split(".")[0] in EXTRAS and "pip install" not in str(error) else error
