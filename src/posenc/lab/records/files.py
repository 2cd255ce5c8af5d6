"""Files that are whole or absent, and locks that end with the process that holds them, however it ends.

    write   .NAME.RANDOM.tmp ─► all bytes ─► fsync ─► rename to NAME ─► fsync of the folder

A writer holds a lock on its temporary file. So what nobody holds is left over from one that was killed, even where
several processes, on several machines, write to one folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import BinaryIO

TEMPORARY = ".tmp"


def write(path: Path, content: str | bytes) -> None:
    """All of it or nothing, whenever the process or the machine stops."""
    temporary, file = _temporary(path)
    try:
        with file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _keep_the_name(path.parent)


def remove_leftovers(folder: Path, ending: str = TEMPORARY) -> None:
    """Deletes the files of that ending that no living process holds; none where that cannot be known."""
    for path in folder.glob(f"*{ending}"):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            if _lock(file):
                path.unlink()


def locked(path: Path) -> BinaryIO | None:
    """The file, made where there is none, held by this process until it is closed; None while another holds it.

    Where the system has no such locks every call gets one: work may then be done twice, never wrongly.
    """
    while True:
        file = path.open("ab")
        try:
            if _lock(file) is False:
                file.close()
                return None
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except FileNotFoundError:
            pass
        except BaseException:
            file.close()
            raise
        file.close()  # whoever held it before has deleted it in the meantime: this is a file without a name


def _temporary(path: Path) -> tuple[Path, BinaryIO]:
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        if (file := locked(temporary)) is not None:
            return temporary, file


def _lock(file: BinaryIO) -> bool | None:
    """Whether it was got; None where the system or the file system has no such locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ModuleNotFoundError, OSError):
        return None
    return True


def _keep_the_name(folder: Path) -> None:
    """The rename itself on the disk, where folders can be synchronised."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
