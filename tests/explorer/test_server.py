"""The server answers valid requests from this machine, and all others with one readable line, never with a 500."""

from __future__ import annotations

import concurrent.futures
import http.client
import itertools
import json
import logging
import math
import random
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

from posenc.explorer import stretch, views
from posenc.explorer.data import Data, pack
from posenc.explorer.server import MOST_JSON
from sampling import one_in

JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def error(self) -> str:
        found = json.loads(self.body)
        assert list(found) in (["error"], ["error", "words"])  # words: in both languages, where Python says so
        assert isinstance(found["error"], str)
        return found["error"]


@contextmanager
def connected(server: str, seconds: float = 10) -> Iterator[socket.socket]:
    host, port = server.removeprefix("http://").split(":")
    with closing(socket.create_connection((host, int(port)), seconds)) as one:
        yield one


def read(one: socket.socket, method: str = "POST") -> Answer:
    response = http.client.HTTPResponse(one, method=method)
    response.begin()
    return Answer(response.status, response.headers, response.read())


def sent(server: str, data: bytes, method: str = "POST") -> Answer:
    with connected(server) as one:
        one.sendall(data)
        return read(one, method)


def ask(server: str, path: str, given: Any = None, headers: dict[str, str] = JSON, method: str = "POST") -> Answer:
    body = given if isinstance(given, bytes) or given is None else json.dumps(given).encode()
    with closing(http.client.HTTPConnection(server.removeprefix("http://"), timeout=20)) as one:
        one.request(method, path, body, headers)
        response = one.getresponse()
        return Answer(response.status, response.headers, response.read())


def get(server: str, path: str, **headers: str) -> Answer:
    return ask(server, path, headers=headers, method="GET")


def unpacked(body: bytes) -> dict[str, np.ndarray]:
    """Written from the description of the format, without code of posenc."""
    assert body[:8] == b"posenc\x01\x00"
    (length,) = struct.unpack("<I", body[8:12])
    start = -(-(12 + length) // 8) * 8
    kinds = {"float64": "<f8", "int32": "<i4"}
    return {
        one["name"]: np.frombuffer(
            body, kinds[one["dtype"]], one["bytes"] // np.dtype(one["dtype"]).itemsize, start + one["start"]
        ).reshape(one["shape"])
        for one in json.loads(body[12 : 12 + length])["arrays"]
    }


def right(server: str, length: int = 5) -> None:
    """The server still gives the right numbers."""
    answer = ask(server, "/data/table", {"length": length, "d_model": 4, "base": 100})
    wanted = [[(math.sin, math.cos)[c % 2](p * 100 ** (-2 * (c // 2) / 4)) for c in range(4)] for p in range(length)]
    assert answer.status == 200
    np.testing.assert_allclose(unpacked(answer.body)["table"], wanted, atol=1e-12)


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """The server's output on the terminal."""
    heard: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: heard.append(f"{record.getMessage()} {record.exc_info}")
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    yield heard
    for logger in loggers:
        logger.removeHandler(handler)


# What it answers


def test_the_page_its_script_and_numbers(server):
    page = get(server, "/")
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b'<script type="module" src="page.js">' in page.body
    script = get(server, "/page.js")
    assert (script.status, script.headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    assert len(script.body) > 1000
    assert get(server, "/stretch.npz").body == stretch.FILE.read_bytes()
    head = ask(server, "/", headers={}, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    right(server)


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", {}),
        ("GET", "/page.js", {}),
        ("GET", "/stretch.npz", {}),
        ("POST", "/data/table", JSON),
        ("GET", "/no", {}),
        ("POST", "/data/no", JSON),
        ("POST", "/", JSON),
        ("POST", "/data/table", {}),
        ("GET", "/", {"Host": "evil.example"}),
        ("GET", "/", {"Origin": "http://evil.example"}),
    ],
)
def test_every_answer_has_every_header(server, method, path, headers):
    answer = ask(server, path, {} if method == "POST" else None, headers, method)
    assert {name: answer.headers.get_all(name) for name in HEADERS} == {name: [value] for name, value in HEADERS.items()}
    (policy,) = answer.headers.get_all("Content-Security-Policy")
    rules = dict(one.split(" ", 1) for one in policy.split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": "'self' 'wasm-unsafe-eval'",
        "worker-src": "blob:",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["Server"] is None
    assert answer.headers["Access-Control-Allow-Origin"] is None
    if answer.status != 200:
        assert answer.headers["Content-Type"] == "application/json"
        assert len(answer.error) < 500


def test_a_mistake_of_ours_is_a_500_in_words_with_every_header(server, monkeypatch, complaints):
    def broken(asked: Any) -> Data:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(views.view("table"), "data", broken)
    answer = ask(server, "/data/table", {})
    assert (answer.status, answer.error) == (500, "RuntimeError: a mistake")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    until = time.monotonic() + 60
    while not complaints and time.monotonic() < until:
        time.sleep(0.01)
    assert len(complaints) == 1  # with its traceback, in the terminal


def test_a_refusal_in_words_that_no_encoding_has_is_still_one(server, monkeypatch):
    def refusing(asked: Any) -> Data:
        raise ValueError("not \ud800")

    monkeypatch.setattr(views.view("table"), "data", refusing)
    answer = ask(server, "/data/table", {})
    assert (answer.status, answer.error) == (400, "not \ud800")


def test_what_is_not_http_is_told_so_with_every_header(server):
    answer = sent(server, b"HELLO\r\n\r\n")
    assert (answer.status, answer.headers["Connection"]) == (400, "close")
    assert "not HTTP" in answer.error
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS


# To whom


def test_only_this_machine_by_its_names(server):
    port = server.rsplit(":", 1)[1]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
        assert sent(server, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()).status == 200
    others = [
        "",
        "127.0.0.1",
        "localhost",
        f"127.0.0.1:{int(port) + 1}",
        "127.0.0.1:80",
        f"evil.example:{port}",
        f"[::1]:{port}",
        f"127.0.0.1.evil.example:{port}",
        f"localhost.evil.example:{port}",
        f"0.0.0.0:{port}",
        f"127.1:{port}",
        f"2130706433:{port}",
        f"0x7f.0.0.1:{port}",
        f"127.0.0.1:0{port}",
        f"localhost.:{port}",
        f"evil@127.0.0.1:{port}",
        f"127.0.0.1:{port}@evil.example",
        f"127.0.0.1:{port}, evil.example",
        f"127.0.0.1:{port}/",
        f"127.0.0.1:{port}#",
        f"http://127.0.0.1:{port}",
        "::1",
        "localhost:http",
        f"127.0.0.1.nip.io:{port}",
        f"[::ffff:127.0.0.1]:{port}",
    ]
    for host in others:
        answer = sent(server, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert answer.status in (400, 403), host
        assert b"<html" not in answer.body
    for lines in (
        "GET / HTTP/1.0",
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}",
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example",
        "GET / HTTP/1.1",
        f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: evil.example",
        f"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:{port}",
    ):
        assert sent(server, f"{lines}\r\n\r\n".encode()).status in (400, 403, 404), lines
    assert "127.0.0.1" in get(server, "/", Host="evil.example").error


def test_only_to_its_own_page(server):
    port = server.rsplit(":", 1)[1]
    for origin in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
        assert ask(server, "/data/table", {"length": 2}, {**JSON, "Origin": origin}).status == 200
    for origin in (
        "null",
        "",
        "http://evil.example",
        f"https://127.0.0.1:{port}",
        "http://127.0.0.1",
        f"127.0.0.1:{port}",
        "file://",
        f"http://127.0.0.1:{int(port) + 1}",
        f"http://127.0.0.1:{port}.evil.example",
        "chrome-extension://abc",
    ):
        for answer in (
            ask(server, "/data/table", {}, {**JSON, "Origin": origin}),
            ask(
                server, "/data/table", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}, method="OPTIONS"
            ),
        ):
            assert answer.status == 403, origin
            assert answer.headers["Access-Control-Allow-Origin"] is None
    # What a page elsewhere can send without being asked first: forms and plain texts.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert ask(server, "/data/table", {}, {"Content-Type": kind}).status == 415


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/data/../page.js",
        "/data/..%2f..%2fetc%2fpasswd",
        "/page.js/../../x",
        "/data/table/",
        "/data/",
        "/data",
        "//",
        "/./",
        "/index.html",
        "/page.js%00",
        "/PAGE.JS",
        "/widget.js",
        "/page/page.js",
        "/%ff%fe",
        "/data/table%2f..",
        "/data/" + "x" * 5000,
        "/" + "a/" * 5000,
        "*",
        "http://127.0.0.1/",
        "page.js",
        "/?/../x.py/..",
        "/\\..\\..",
        "/%252e%252e/",
    ],
)
def test_no_path_is_a_file(server, path):
    for method in ("GET", "POST"):
        answer = sent(
            server, f"{method} {path} HTTP/1.1\r\nHost: {server[7:]}\r\nContent-Length: 0\r\n\r\n".encode(), method
        )
        if path.startswith("/?"):  # a question is no path
            assert answer.status == (200 if method == "GET" else 405)
        else:
            assert answer.status in (400, 404, 405, 415), (method, path)


# Limits


def test_large_bodies_are_refused(server):
    assert ask(server, "/data/table", b" " * (MOST_JSON - 2) + b"{}", JSON).status == 200
    answer = ask(server, "/data/table", b" " * (MOST_JSON - 1) + b"{}", JSON)
    assert (answer.status, str(MOST_JSON) in answer.error) == (413, True)
    right(server)


def test_lengths_that_lie(server):
    start = f"POST /data/table HTTP/1.1\r\nHost: {server[7:]}\r\nContent-Type: application/json\r\n".encode()
    for length in (b"65537", b"1000000000000", b"9" * 19):
        assert sent(server, start + b"Content-Length: " + length + b"\r\n\r\n{}").status == 413  # before it waits for more
    for length in (b"9" * 25, b"-1", b"2.0", b"0x2", b"two", b"", b"2, 3", b"+2", b"2\r\nContent-Length: 3"):
        assert sent(server, start + b"Content-Length: " + length + b"\r\n\r\n{}").status == 400, length
    assert sent(server, start + b"Content-Length: 1\r\n\r\n{}").status == 400  # "{" is no JSON
    with connected(server) as one:  # less than was said, then gone
        one.sendall(start + b"Content-Length: 500\r\n\r\n{}")
    right(server)


def test_endless_chunks_end(server):
    size = 2**12
    with connected(server) as one:
        one.sendall(
            f"POST /data/table HTTP/1.1\r\nHost: {server[7:]}\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(MOST_JSON // size + 1):
            one.sendall(b"%x\r\n%s\r\n" % (size, b" " * size))
        assert read(one).status == 413
    bad = [
        b"zz\r\nabc\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}XX0\r\n\r\n",
        b"f" * 40 + b"\r\n{}",
        b"2;" + b"x" * 70_000,
    ]
    for body in bad:
        head = f"POST /data/table HTTP/1.1\r\nHost: {server[7:]}\r\nContent-Type: application/json\r\n"
        assert sent(server, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + body).status == 400
    right(server)


def test_what_is_left_of_a_refused_body_is_no_request(server):
    hidden = f"GET /page.js HTTP/1.1\r\nHost: {server[7:]}\r\n\r\n".encode()
    head = f"POST /data/table HTTP/1.1\r\nHost: {server[7:]}\r\nContent-Length: {len(hidden)}\r\n\r\n".encode()
    with connected(server) as one:
        one.sendall(head + hidden + f"GET /no HTTP/1.1\r\nHost: {server[7:]}\r\n\r\n".encode())
        heard = b""
        while heard.count(b"}") < 2 and (more := one.recv(65536)):
            heard += more
    assert re.findall(rb"HTTP/1.1 (\d+)", heard) == [b"415", b"404"]


# What it says


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "expected a JSON object"),
        (b"{", "JSON"),
        (b"\xff\xfe{}", "UTF-8"),
        (b"{}x", "JSON"),
        (b"[]", "object"),
        (b"null", "object"),
        (b"3", "got 3"),
        (b'{"length": NaN}', "NaN"),
        (b'{"base": Infinity}', "Infinity"),
        (b'{"base": -Infinity}', "-Infinity"),
        (b'{"base": 1e999}', "holds 1e999, which is beyond float64"),
        (b'{"base": 1%s}' % (b"0" * 400), "holds a number of 401 digits"),
        (b'{"length": 1%s}' % (b"0" * 5000), "digits"),
        (b'{"length": 1%s}' % (b"0" * 30), "length: Input should be less than or equal to 1024, got 1000"),
        (b'{"length": 5, "length": 6}', "'length' occurs twice"),
        (b"[" * 60_000, "deep"),
        (b'{"a":' * 10_000, "deep"),
        (b'{"length": %s5%s}' % (b"[" * 20, b"]" * 20), "length: Input should be a valid integer, got [["),
        (b'{"length": %s5%s}' % (b"[" * 500, b"]" * 500), "nested deeper than 32 levels"),
        (b'{"length": "5"}', "length: Input should be a valid integer, got '5'"),
        (b'{"length": true}', "got True"),
        (b'{"length": 5.5}', "5.5"),
        (b'{"length": 0}', "length: Input should be greater than or equal to 1, got 0"),
        (b'{"layout": "no"}', "layout: expected one of interleaved, sin_cos, cos_sin, got 'no'"),
        (b'{"layout": "%s"}' % (b"x" * 60_000), "layout"),
        (b'{"lenght": 5}', "'lenght': is not a parameter of this view; it takes length, d_model"),
        (b'{"\\ud800": 5}', "ud800"),
        (b'{"layout": "\\ud800"}', "ud800"),
        (b'{"layout": "\xe4\xbd\xa0"}', "\u4f60"),
        (b'{"%s": 5}' % (b"x" * 60_000), "is not a parameter"),
        (b"\x00" * 100, "JSON"),
        (b'{"length": 5, "d_model": 0, "base": 0}', "base: Input"),
    ],
)
def test_what_is_not_understood_is_said(server, body, words):
    answer = ask(server, "/data/table", body)
    assert answer.status == 400
    assert words in answer.error
    assert len(answer.error) < 700


@pytest.mark.parametrize("given", ["rop", "x" * 60_000])
def test_no_refusal_of_a_choice_prints_a_long_list(given):
    """Of every view and every parameter with choices."""
    choices = [
        (view, name) for view, schema in views.schemas().items() for name, about in schema.items() if "choices" in about
    ]
    assert ("order", "encoding") in choices
    for view, name in choices:
        with pytest.raises(views.Refused, match=f"^{name}: expected one of") as refused:
            views.data(view, {name: given})
        assert len(str(refused.value)) < 180, (view, name)
    with pytest.raises(views.Refused, match="such as rope, got 'rop'"):
        views.data("encoding", {"name": "rop"})


def test_views_paths_and_methods_that_there_are_none_of(server):
    assert "view: expected one of 2" in ask(server, "/data/no", {}).error
    assert "__init__" in ask(server, "/data/__init__", {}).error
    assert ask(server, "/data/os", {}).status == 400
    assert "expected one of /, /page.js" in get(server, "/no").error
    answer = get(server, "/data/table")
    assert (answer.status, answer.headers["Allow"], answer.error) == (405, "POST", "method: expected POST, got GET")
    for method, path in itertools.product(("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HACK"), ("/", "/data/table")):
        assert ask(server, path, headers={}, method=method).status == 405
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "x" * 24,
        "Sec-WebSocket-Version": "13",
    }
    assert get(server, "/data/table", **upgrade).status == 405


def test_depth_is_refused_wherever_it_begins_to_hurt(server):
    for depth in range(900, 1000, 3):
        answer = ask(server, "/data/table", b'{"length": %s5%s}' % (b"[" * depth, b"]" * depth))
        assert (answer.status, "length" in answer.error or "deep" in answer.error) == (400, True), depth


NOT = {
    "integer": ["5", 5.5, True, None, [], {}, "", 10**30, -(10**30), [5]],
    "number": ["5", True, None, [], {}, 1e300, -1e300, 10**299, "nan"],
    "boolean": [1, 0, "true", None, []],
    "choice": ["no", "", 0, None, [], True, "x" * 5000],
    "string": [5, None, [], True, {}],
}


SLOW = pytest.param("stretch", marks=pytest.mark.acceptance)  # a model writes a text for every value


@pytest.mark.parametrize("name", [*one_in(6, (name for name in views.NAMES if name != "stretch")), SLOW])
def test_every_parameter_at_and_beyond_its_bounds(server, name):
    schema = views.schemas()[name]
    for parameter, about in schema.items():
        inside, outside = [], list(NOT[about["kind"]])
        if about["kind"] in ("integer", "number"):
            assert {"from", "to"} <= set(about), f"{parameter} has no bounds"
            low, high = about["from"], about["to"]
            inside += [low, high]
            outside += (
                [low - 1, high + 1]
                if about["kind"] == "integer"
                else [low - abs(low) * 1e-9 - 1e-9, high * (1 + 1e-9) + 1e-9]
            )
        elif about["kind"] == "choice":
            inside += about["choices"]
        elif about["kind"] == "boolean":
            inside += [True, False]
        else:
            longest = about["longest"]
            outside += ["x" * (longest + 1)]
            inside += [
                "",
                "x",
                "x" * longest,
                "\x00",
                "\u4f60 " * (longest // 4),
                "[" * longest,
                "NaN",
                "9" * longest,
                '{"a": NaN}',
                "<script>",
                "-1",
                "1e999",
                " " * longest,
                '"\\ud800"',
                "\ud800",
                '{"model_type": "\udfff"}'[:longest],
                "{" + '"a":{' * (longest // 6),
                "\u202e",
            ]
        for value in inside:
            answer = ask(server, f"/data/{name}", {parameter: value})
            assert answer.status in (200, 400), (parameter, value, answer.body[:300])
            if answer.status == 200:
                assert sum(array.size for array in unpacked(answer.body).values()) <= 2_000_000
            else:
                assert len(answer.error) > 10
        for value in outside:
            answer = ask(server, f"/data/{name}", {parameter: value})
            assert answer.status == 400, (parameter, value)
            assert answer.error.startswith(f"{parameter}: "), answer.error
    ends = [{p: about[end] for p, about in schema.items() if end in about} for end in ("from", "to")]
    draw = random.Random(0)
    for _ in range(4):
        ends.append(
            {
                p: {
                    "integer": lambda a=a: draw.randint(a["from"], min(a["to"], 4 * a["default"] + 2)),
                    "number": lambda a=a: draw.uniform(a["from"], a["to"]),
                    "boolean": lambda: draw.random() < 0.5,
                    "choice": lambda a=a: draw.choice(a["choices"]),
                    "string": lambda a=a: a["default"],
                }[a["kind"]]()
                for p, a in schema.items()
            }
        )
    for given in ends:
        began = time.process_time()
        answer = ask(server, f"/data/{name}", given)
        assert answer.status in (200, 400), (given, answer.body[:300])
        assert time.process_time() - began < 8, given


# Much, malformed, slow


def hostile(server: str, count: int) -> Iterator[bytes]:
    """Invalid requests, the same in every run; each must be refused."""
    draw = random.Random(20170612)
    host = server[7:].encode()
    methods = [
        b"GET",
        b"POST",
        b"PUT",
        b"DELETE",
        b"CONNECT",
        b"TRACE",
        b"get",
        b"X" * 300,
        b"",
        b"G\x00T",
        "\u4f60".encode(),
    ]
    paths = [
        b"/%2e%2e/x",
        b"/../../etc/passwd",
        b"/data",
        b"/data/%00",
        b"/page.js/../data/table",
        b"/" + b"%41" * 900,
        b"/a/b",
        b"/\xff",
    ]
    kinds = [b"text/plain", b"application/xml", b"application/json-seq", b"", b"x" * 900, b"application/json\x00", b"\xff"]
    bodies = [
        b"[]",
        b"nul",
        b"{",
        b'{"a": 1}',
        b'{"length": -5}',
        b'{"length": 1e5}',
        b'{"base": NaN}',
        b'{"d_model": []}',
        b"\xff\x00",
        b"[" * 50_000,
        b'{"length": 7, "length": 7}',
        b'{"length":' * 4000,
        b'"' + b"x" * 60_000 + b'"',
        b"1" * 60_000,
        b'{"dtype": "int8"}',
        b"\xef\xbb\xbf{}",
        b'{"__class__": 1}',
        b'{"length": {"$ref": "x"}}',
        b'{"layout": ["sin_cos"]}',
        b"{'length': 5}",
        b'{"length": 05}',
    ]
    hosts = [b"evil.example", b"127.0.0.1", b"", b"[::1]", b"\xff", b"a" * 3000, host + b".evil"]
    origins = [b"null", b"http://evil", b"\xff"]
    hello = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"SSH-2.0-x\r\n\r\n",
        b"\r\n" * 30_000,
        b"\x00" * 99,
    ]
    json_type = b"application/json"

    def garbage(most: int) -> bytes:
        return draw.randbytes(draw.randint(1, most))

    def post(body: bytes, path: bytes = b"/data/table", kind: bytes = json_type, more: bytes = b"") -> bytes:
        head = b"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n" % (path, host, kind)
        return head + (more or b"Content-Length: %d\r\n" % len(body)) + b"\r\n" + body

    def with_header(line: bytes) -> bytes:
        return post(b"{}", more=b"Content-Length: 2\r\n%s\r\n" % line)

    def chunked(body: bytes, how: bytes = b"chunked") -> bytes:
        return post(body + b"\r\n\r\n", more=b"Transfer-Encoding: %s\r\n" % how)

    def broken_json() -> bytes:
        text = bytearray(
            json.dumps({"length": draw.randint(1, 9), "base": draw.random() + 2, "layout": "sin_cos"}).encode()
        )
        for _ in range(draw.randint(1, 4)):
            text[draw.randrange(len(text))] = draw.choice(b'\x00\xff{}[]",:\\x')
        return bytes(text) + b"}"

    kinds_of_request = [
        lambda: post(draw.choice(bodies)),
        lambda: post(broken_json()),
        lambda: post(garbage(300)),
        lambda: post(b" " * draw.randint(MOST_JSON, 3 * MOST_JSON)),
        lambda: post(b"{}", kind=draw.choice(kinds)),
        lambda: post(b"{}", b"/data/" + draw.choice([b"no", b"os", b"..", b"__init__", b"%ff", b"table%20"])),
        lambda: post(b"{}", draw.choice(paths)),
        lambda: post(garbage(3000), b"/upload/" + draw.choice([b"table", b"no", b"%ff"]), b"application/octet-stream"),
        lambda: with_header(b"Origin: " + draw.choice(origins)),
        lambda: with_header(b"Host: " + host),
        lambda: with_header(b"Content-Length: %d" % draw.randint(3, 10**9)),
        lambda: with_header(b"X: " + b"y" * draw.randint(300_000, 500_000)),
        lambda: with_header(draw.choice([b"no colon", b": x", b"A\x00: b", b"A : b"])),
        lambda: chunked(garbage(99), draw.choice([b"gzip", b"chunked, chunked"])),
        lambda: chunked(draw.choice([b"g", b"-1\r\n", b"1\r\n{XX", b"1 \x00\r\n", b"f" * 21])),
        lambda: b"%s %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (draw.choice(methods), draw.choice(paths), host),
        lambda: b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % draw.choice(hosts),
        lambda: b"GET / HTTP/%s\r\nHost: %s\r\n\r\n" % (draw.choice([b"1.2.3", b"2", b"", b"x", b"-1"]), host),
        lambda: draw.choice(hello),
        lambda: garbage(2000) + b"\r\n\r\n",
        lambda: garbage(100_000),
    ]
    for index in range(count):
        yield kinds_of_request[index % len(kinds_of_request)]()


def test_a_thousand_malformed_requests(server, complaints):
    resource = pytest.importorskip("resource")
    right(server)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    heard: Counter[int] = Counter()
    for request in hostile(server, 1000):
        with connected(server) as one:
            try:
                one.sendall(request)
                if b"HTTP/1.1\r\n" not in request:  # it might wait for the rest
                    one.shutdown(socket.SHUT_WR)
                answer = read(one)
            except (ConnectionError, http.client.RemoteDisconnected):
                heard[0] += 1
                continue
            assert 400 <= answer.status < 500, (answer, request[:500])
            assert answer.error
            heard[answer.status] += 1
    assert heard.total() == 1000
    assert heard[0] < 200, "closed without a word"
    assert {400, 403, 404, 413, 415} <= set(heard)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000, f"{grown} kB more than before"
    assert complaints == []
    right(server)


def test_who_leaves_in_the_middle_is_not_complained_about(server, complaints):
    for _ in range(20):
        with connected(server) as one:
            head = f"POST /data/table HTTP/1.1\r\nHost: {server[7:]}\r\nContent-Type: application/json\r\n"
            one.sendall(f"{head}Content-Length: 900\r\n\r\n{{".encode())
    right(server)
    assert complaints == []


@pytest.mark.acceptance
def test_two_hundred_at_once_are_all_answered_right(server):
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        for done in [pool.submit(right, server, length) for length in range(1, 201)]:
            done.result()


def test_requests_that_never_end_hold_up_nobody(server):
    head = f"POST /data/table HTTP/1.1\r\nHost: {server[7:]}\r\nContent-Type: application/json\r\n"
    halves = [
        b"",
        b"G",
        head.encode(),
        f"{head}Content-Length: 50\r\n\r\n{{".encode(),
        f"{head}Transfer-Encoding: chunked\r\n\r\n5".encode(),
    ]
    with connected(server) as first:
        port = first.getpeername()[1]
        waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        for one, half in zip(waiting, itertools.cycle(halves), strict=False):
            one.sendall(half)
        right(server)
        waiting[3].sendall(b" " * 48 + b"}")  # whoever does end is still answered
        assert read(waiting[3]).status == 200
        for one in waiting:
            one.close()
    right(server)


# How numbers travel


def test_numbers_arrive_as_they_are():
    arrays = {
        "reals": np.array([[0.1, -0.0, np.nan], [np.inf, -np.inf, 1e-320]]),
        "wholes": np.array([2**31 - 1, -(2**31) + 1]),
        "truth": [True, False],
        "large": np.array([2**40, -(2**53)]),
        "half": np.array([0.1], dtype=np.float16),
        "none": np.zeros((0, 3)),
        "turned": np.eye(3)[:, ::-1].T,
    }
    body = pack(Data(arrays, "x = 1"))
    found = unpacked(body)
    assert list(found) == list(arrays)
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], np.asarray(values))
    assert {name: array.dtype.name for name, array in found.items()} == {
        "reals": "float64",
        "wholes": "int32",
        "truth": "int32",
        "large": "float64",
        "half": "float64",
        "none": "float64",
        "turned": "float64",
    }
    assert np.signbit(found["reals"][0, 1])


@pytest.mark.parametrize(
    ("arrays", "facts"),
    [
        ({"x": np.zeros(2**21 + 1)}, {}),
        ({"x": [1j]}, {}),
        ({"x": ["a"]}, {}),
        ({"x": [2**63 - 1]}, {}),
        ({"x": [None]}, {}),
        ({}, {"x": math.nan}),
        ({}, {"x": {1, 2}}),
        ({"x": [[1], [1, 2]]}, {}),
    ],
)
def test_what_cannot_travel_is_refused(arrays, facts):
    with pytest.raises((ValueError, TypeError)):
        pack(Data(arrays, "", facts))
