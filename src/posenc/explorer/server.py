"""The page and its numbers on this machine's loopback, for nobody else.

    GET  /              the page
    GET  /page.js       its script
    POST /data/NAME     JSON parameters -> a view's arrays (data.py)
    POST /upload/NAME   a file's bytes -> the same, for views that read one

Requests name views, never files. Every answer that is not 200 is {"error": …} in words for people.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import posenc
from posenc.explorer import views
from posenc.explorer.data import pack
from posenc.explorer.page_file import POLICY, document, script
from posenc.explorer.parameters import Refused

MOST_JSON = 2**16
MOST_UPLOADED = 2**24
AT_ONCE = 2  # computed at the same time; others wait their turn
HEADERS = {
    "content-security-policy": POLICY.format(script="'self'", connect="'self'", more="; frame-ancestors 'none'"),
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
}  # fmt: skip


def application(port: int) -> Starlette:
    """Answers to 127.0.0.1 and localhost at this port only, so that no other site reaches it through a name of its own."""
    turn = asyncio.Semaphore(AT_ONCE)
    about = {"version": posenc.__version__, "schemas": views.schemas(), "live": True}
    page = document(about, '<script src="page.js"></script>')

    async def index(request: Request) -> Response:
        return HTMLResponse(page)

    async def code(request: Request) -> Response:
        return Response(script("page"), media_type="text/javascript")

    async def numbers(request: Request) -> Response:
        given = await _json(request)
        name = request.path_params["name"]
        async with turn:
            return _packed(await run_in_threadpool(lambda: pack(views.data(name, given))))

    async def upload(request: Request) -> Response:
        name = request.path_params["name"]
        _expect(request, "application/octet-stream")
        contents = await _body(request, MOST_UPLOADED)
        async with turn:
            return _packed(await run_in_threadpool(lambda: pack(views.uploaded(name, contents))))

    return Starlette(
        routes=[Route("/", index), Route("/page.js", code), Route("/data/{name}", numbers, methods=["POST"]),
                Route("/upload/{name}", upload, methods=["POST"])],
        middleware=[Middleware(Loopback, port=port)],
        exception_handlers={Refused: _refused, ValueError: _refused, HTTPException: _http, Exception: _failed},
    )  # fmt: skip


class Loopback:
    """Refuses other hosts and other sites' requests, and puts the headers on every answer."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        given = [
            (name, value.decode("latin-1").lower()) for name, value in scope["headers"] if name in (b"host", b"origin")
        ]
        hosts = [value for name, value in given if name == b"host"]
        origins = [value for name, value in given if name == b"origin"]
        if (
            len(hosts) != 1
            or hosts[0] not in self.hosts
            or any(o.removeprefix("http://") not in self.hosts for o in origins)
        ):
            here = " or ".join(sorted(self.hosts))
            await _error(403, f"this server answers to {here} only")(scope, receive, with_headers)
        else:
            await self.app(scope, receive, with_headers)


async def _json(request: Request) -> Any:
    _expect(request, "application/json")
    body = await _body(request, MOST_JSON)
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"body: expected JSON, {error or 'nested too deeply'}") from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _expect(request: Request, kind: str) -> None:
    got = request.headers.get("content-type", "nothing").split(";")[0].strip().lower()
    if got != kind:
        raise HTTPException(415, f"content-type: expected {kind}, got {got[:60]}")


async def _body(request: Request, most: int) -> bytes:
    """Stops reading at the limit."""
    got = bytearray()
    async for chunk in _chunks(request):
        got += chunk
        if len(got) > most:
            raise HTTPException(413, f"body: at most {most} bytes are read")
    return bytes(got)


def _chunks(request: Request) -> AsyncIterator[bytes]:
    return request.stream()


def _packed(body: bytes) -> Response:
    return Response(body, media_type="application/octet-stream")


def _error(status: int, words: str) -> JSONResponse:
    return JSONResponse({"error": words}, status_code=status)


async def _refused(request: Request, error: Exception) -> Response:
    return _error(400, str(error))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, str(error.detail))


async def _failed(request: Request, error: Exception) -> Response:
    return _error(500, f"{type(error).__name__}: {error}")
