"""The `posenc` command; says what to install where the command line's own packages are absent."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from posenc.cli import run
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"posenc: the command line needs {error.name}: pip install 'posenc[cli]'")
    run()


if __name__ == "__main__":
    main()
