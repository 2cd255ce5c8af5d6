"""Serves the page and its numbers on the loopback address of this machine only.

    GET  /              the page
    GET  /page.js       its script
    GET  /stretch.npz   the models that write in the page
    POST /data/NAME     JSON parameters -> a view's arrays (data.py)

Requests name views, never files. Every response other than 200 is {"error": …} with a readable message.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
from typing import Any

import h11
import torch
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from posenc.explorer import stretch, views
from posenc.explorer.data import Data, pack
from posenc.explorer.parameters import Refused
from posenc.support import strict_json
from posenc.support.page_file import POLICY, document, script, starting

MOST_JSON = 2**16
AT_ONCE = 2  # computed at the same time; others wait their turn
PATHS = "/, /page.js, /stretch.npz and /data/NAME"
HEADERS = [
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": POLICY.format(script="'self'", connect="'self'", more="; frame-ancestors 'none'"),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }.items()
]


def configured(port: int, results: Data | None = None) -> uvicorn.Config:
    """The configuration of the server: plain HTTP, no WebSockets, no server header. `results` are what *measured* shows.

    torch uses one thread per answer: answers are small, and several threads would compete with the browser.
    """
    torch.set_num_threads(1)
    return uvicorn.Config(
        application(port, results),
        host="127.0.0.1",
        port=port,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_level="error",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )


def application(port: int, results: Data | None = None) -> ASGIApp:
    """Accepts only the hosts 127.0.0.1 and localhost at this port, against DNS rebinding."""
    turn = asyncio.Semaphore(AT_ONCE)
    given = {"measured": results} if results else {}
    about = {**views.known(), "live": True, "results": results is not None}
    page, code = document(f'{starting(about)}\n<script type="module" src="page.js"></script>'), script("explorer")

    async def index(request: Request) -> Response:
        return HTMLResponse(page)

    async def running(request: Request) -> Response:
        return Response(code, media_type="text/javascript")

    async def models(request: Request) -> Response:
        """The models that write in the page, so that their texts appear as they are written."""
        return _packed(stretch.FILE.read_bytes())

    async def numbers(request: Request) -> Response:
        name = request.path_params["name"]
        parameters = await _json(request)
        async with turn:
            return _packed(await run_in_threadpool(lambda: pack(given.get(name) or views.data(name, parameters))))

    inner = Starlette(
        routes=[
            Route("/", index),
            Route("/page.js", running),
            Route("/stretch.npz", models),
            Route("/data/{name}", numbers, methods=["POST"]),
        ],
        exception_handlers={
            Refused: _refused,
            ValueError: _refused,
            HTTPException: _http,
            ClientDisconnect: _left,
            Exception: _failed,
        },
    )
    inner.router.redirect_slashes = False
    return Loopback(inner, port)


class Loopback:
    """Refuses other hosts and cross-site requests, and adds the headers to every response."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        def sent(wanted: bytes) -> list[str]:
            return [value.decode("latin-1").lower() for name, value in scope["headers"] if name == wanted]

        origins = [f"http://{host}" for host in self.hosts]
        ours = len(sent(b"host")) == 1 and sent(b"host")[0] in self.hosts and all(o in origins for o in sent(b"origin"))
        app = self.app if ours else _error(403, f"this server answers to {' or '.join(self.hosts)} only")
        await app(scope, receive, with_headers)


class Protocol(H11Protocol):
    """Answers malformed HTTP with the same JSON errors."""

    def send_400_response(self, msg: str) -> None:
        answer = _error(400, "this is not HTTP as it should be, or its headers are too long")
        head = [*answer.raw_headers, (b"connection", b"close"), *HEADERS]
        events = h11.Response(status_code=400, headers=head), h11.Data(data=bytes(answer.body)), h11.EndOfMessage()
        with contextlib.suppress(h11.LocalProtocolError):  # a response had already started
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


async def _json(request: Request) -> Any:
    _expect(request, "application/json")
    body = await _body(request, MOST_JSON)
    if body.startswith(codecs.BOM_UTF8):  # files may begin with one, what is sent must not (RFC 8259, section 8.1)
        raise HTTPException(400, "body: begins with a byte order mark; send plain UTF-8")
    try:
        return strict_json.loads(body)
    except ValueError as error:
        raise HTTPException(400, f"body: expected a JSON object of parameters, got none: {error}") from None


def _expect(request: Request, kind: str) -> None:
    got = request.headers.get("content-type", "nothing").split(";")[0].strip().lower()
    if got != kind:
        raise HTTPException(415, f"content-type: expected {kind}, got {got[:60]}")


async def _body(request: Request, most: int) -> bytes:
    """Reads the body up to the limit; refuses at once if the announced length exceeds it."""
    announced = request.headers.get("content-length", "0")
    got = bytearray()
    if len(announced) < 20 and int(announced) <= most:
        async for chunk in request.stream():
            got += chunk
            if len(got) > most:
                break
        else:
            return bytes(got)
    raise HTTPException(413, f"body: expected at most {most} bytes, got more")


def _packed(body: bytes) -> Response:
    return Response(body, media_type="application/octet-stream")


def _error(status: int, message: str, headers: Any = None, **more: Any) -> Response:
    """An error as ASCII JSON, so that any text can be encoded."""
    return Response(json.dumps({"error": message} | more), status, headers, "application/json")


async def _refused(request: Request, error: Exception) -> Response:
    more = {"words": error.words.as_dict()} if isinstance(error, Refused) else {}
    return _error(400, str(error), **more)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {
        404: f"path: expected one of {PATHS}, got {request.url.path[:60]!r}",
        405: f"method: expected {(error.headers or {}).get('Allow')}, got {request.method[:20]}",
    }
    return _error(error.status_code, words.get(error.status_code, str(error.detail)), error.headers)


async def _left(request: Request, error: Exception) -> Response:
    return _error(400, "the request ended before its body")  # to nobody


async def _failed(request: Request, error: Exception) -> Response:
    return _error(500, f"{type(error).__name__}: {error}")
