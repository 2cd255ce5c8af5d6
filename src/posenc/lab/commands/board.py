"""`posenc lab board`: one page of the scores in folders of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posenc.terminal.interruption import interruptible


def command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER…", help="Folders of posenc lab submit, or of posenc lab run.")
    ],
    out: Annotated[Path, typer.Option(help="The page in English; the Chinese one is beside it, NAME.zh-CN.md.")] = Path(
        "board.md"
    ),
) -> None:
    """Write one page, in English and Chinese, of what the encodings in these folders scored.

    Every file of a folder that posenc lab submit has written is compared with the hash in its record. A changed, lost or
    added one is named, and nothing is written.

    Examples:  posenc lab board submitted/* results/chains --out docs/board.md
    """
    with interruptible("nothing was written"):
        from posenc.lab.records import files
        from posenc.lab.report import board

        chinese = out.with_name(f"{out.stem}.zh-CN{out.suffix}")
        for path in (out, chinese):
            if path.exists() and not board.is_board(path):
                raise FileExistsError(f"--out {path}: exists, and is no board of posenc's; give another name")
        entries = [board.read(folder) for folder in folders]
        files.write(out, board.page(entries, "en"))
        files.write(chinese, board.page(entries, "zh"))
    typer.echo(f"{out}, {chinese}")
