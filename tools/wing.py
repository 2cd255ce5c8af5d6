"""The tests of one wing where there is no make: its files are read from the Makefile, as `make test-NAME` reads them.

python tools/wing.py core                 runs them
python tools/wing.py core --list          prints them
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CALL = re.compile(r"\$\((wildcard|addprefix|addsuffix) ([^()$]*)\)")  # an innermost one


def files(wing: str) -> list[str]:
    """Raises ValueError for a name that the Makefile has no WING_ for."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    wings = dict(re.findall(r"^WING_(\w+) *:= *(.*)$", makefile, flags=re.MULTILINE))
    if wing not in wings:
        raise ValueError(f"there is no wing {wing}: choose from {', '.join(wings)}")
    text: str = wings[wing]
    while CALL.search(text):
        text = CALL.sub(_called, text)
    return text.split()


def _called(call: re.Match[str]) -> str:
    name, arguments = call.groups()
    if name == "wildcard":
        found = (path for pattern in arguments.split() for path in ROOT.glob(pattern))
        return " ".join(path.relative_to(ROOT).as_posix() for path in found)
    added, _, words = arguments.partition(",")
    return " ".join(added + word if name == "addprefix" else word + added for word in words.split())


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.exit("tools/wing.py: expected the name of a wing, such as core")
    try:
        named = files(arguments[0])
    except ValueError as error:
        sys.exit(f"tools/wing.py: {error}")
    if arguments[1:] == ["--list"]:
        print(*named)
        return 0
    pytest = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not acceptance"]
    return subprocess.run(
        [*pytest, *arguments[1:], *named], cwd=ROOT, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
