"""A page as HTML: one script, the bounds of every parameter, and a content security policy that blocks all else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOMS = Path(__file__).parents[1]
POLICY = (  # of the explorer; `ALONE` is that of a page that starts no workers
    "default-src 'none'; script-src {script} 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'{more}"
)
ALONE = (
    "default-src 'none'; script-src {script}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)


@cache
def script(room: str) -> str:
    """The built page.js of a folder of posenc, a module. Raises FileNotFoundError if it is not built."""
    file = ROOMS / room / "page.js"
    if not file.is_file():
        raise FileNotFoundError(f"{file.name} is not built: npm --prefix web ci && npm --prefix web run build")
    return file.read_text("utf-8")


def inline(code: str) -> str:
    """The script with `</script` and the like escaped, so that it can be placed between script tags."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", code, flags=re.IGNORECASE)


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def starting(about: dict[str, Any]) -> str:
    """The script element of the data that the page starts with."""
    data = json.dumps(about, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="posenc-about">{data}</script>'


def document(running: str, policy: str = "", title: str = "posenc") -> str:
    """The HTML page. `running` are its script elements."""
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n' if policy else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{meta}<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
</head>
<body>
<noscript>This page needs JavaScript. 此页需要 JavaScript。</noscript>
{running}
</body>
</html>
"""
