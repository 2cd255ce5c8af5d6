"""The page as HTML: one script, the bounds of every parameter, and a content security policy that blocks all else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("page.js")
POLICY = (
    "default-src 'none'; script-src {script} 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'{more}"
)


@cache
def script() -> str:
    """The page's script, a module; imported in a notebook it is the widget. Raises FileNotFoundError if it is not built."""
    if not PAGE.is_file():
        raise FileNotFoundError(f"{PAGE.name} is not built: npm --prefix web ci && npm --prefix web run build")
    return PAGE.read_text("utf-8")


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def starting(about: dict[str, Any]) -> str:
    """The script element of the data that the page starts with."""
    data = json.dumps(about, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="posenc-about">{data}</script>'


def document(running: str, policy: str = "") -> str:
    """The HTML page. `running` are its script elements."""
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n' if policy else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{meta}<title>posenc</title>
<link rel="icon" href="data:,">
</head>
<body>
<noscript>posenc explore needs JavaScript. posenc explore 需要 JavaScript。</noscript>
{running}
</body>
</html>
"""
