"""Runs the server in a thread of this process, for pictures, measurements and tests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from posenc.explorer.data import Data
from posenc.explorer.server import configured


@contextmanager
def serving(results: Data | None = None) -> Iterator[str]:
    """Runs the server on a free port while the block runs; yields its address without a trailing slash."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        server = uvicorn.Server(configured(port, results))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(10)
