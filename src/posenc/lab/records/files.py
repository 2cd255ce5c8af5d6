"""Files that are complete or absent, and locks that are released when their process ends for any reason.

    write   .NAME.RANDOM.tmp ─► all bytes ─► fsync ─► rename to NAME ─► fsync of the folder

A writer holds a lock on its temporary file. A temporary file without a lock was left by a killed writer, also if several
processes on several machines write to one folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import BinaryIO

TEMPORARY = ".tmp"


def write(path: Path, content: str | bytes) -> None:
    """Writes the file completely or not at all, also if the process or the machine stops."""
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
    """Deletes files with that suffix that no living process holds; none if locks are not supported."""
    for path in folder.glob(f"*{ending}"):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            if _lock(file):
                path.unlink()


def locked(path: Path) -> BinaryIO | None:
    """Opens or creates the file and locks it until it is closed; None while another process holds the lock.

    On systems without such locks every call succeeds: work may then be done twice, but never wrongly.
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
        file.close()  # the previous holder has deleted the file: this one no longer has a name


def _temporary(path: Path) -> tuple[Path, BinaryIO]:
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        if (file := locked(temporary)) is not None:
            return temporary, file


def _lock(file: BinaryIO) -> bool | None:
    """Whether the lock was acquired; None if the system or the file system has no such locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ModuleNotFoundError, OSError):
        return None
    return True


def _keep_the_name(folder: Path) -> None:
    """Writes the rename to disk, if folders can be synchronised."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def named(word: str) -> str:
    """The name of an encoding or a task as a part of a file's name, at most 60 characters."""
    return re.sub(r"[^\w+.]", "_", word)[-60:]
