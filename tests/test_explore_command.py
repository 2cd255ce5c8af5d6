"""posenc explore: the address it prints, how it ends, the file it writes, and what it says about bad input."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from posenc import cli
from posenc.catalogue.lookup import ENTRIES
from posenc.explorer import views
from posenc.explorer.commands import explore as explore_
from posenc.explorer.links import address
from posenc.explorer.parameters import Refused, parse


def words(text: str) -> str:
    """Without the frame that typer draws around an error."""
    return " ".join(text.replace("│", " ").split())


def explore(capsys, monkeypatch, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors, in this process."""
    monkeypatch.setattr(sys, "argv", ["posenc", "explore", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    code = 0
    try:
        cli.run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    out, err = capsys.readouterr()
    return code, out, words(err)


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "posenc", "explore", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def status(port: int) -> int:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as one:
        one.request("GET", "/")
        return one.getresponse().status


@contextlib.contextmanager
def taken(port: int = 0) -> Iterator[int]:
    """A port that somebody uses: this test, or whoever was there before."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            one.listen()
        yield port or one.getsockname()[1]


# Serving


def test_it_serves_on_the_next_free_port_until_ctrl_c():
    with taken(explore_.PORT), started("--no-browser") as process:
        line = process.stdout.readline()
        address = re.match(r"http://127\.0\.0\.1:(\d+)/ .*Ctrl-C", line)
        assert address, line
        port = int(address.group(1))
        assert explore_.PORT < port < explore_.PORT + 50
        assert status(port) == 200
        with socket.create_connection(("127.0.0.1", port)) as idle:
            idle.sendall(b"GET / HTTP/1.1\r\nHost:")  # somebody is still in the middle of a request
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
        with socket.socket() as again:  # the port is free
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))


@pytest.mark.acceptance
def test_a_port_of_ones_own_choice_and_one_in_use(capsys, monkeypatch):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with started("--no-browser", "--port", str(port)) as process:
        assert process.stdout.readline().startswith(f"http://127.0.0.1:{port}/ ")
        assert status(port) == 200
        code, out, err = explore(capsys, monkeypatch, "--no-browser", "--port", str(port))
        assert (code, out) == (1, "")
        assert err == f"posenc: port {port} is in use or not allowed; say another with --port"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def test_two_that_start_at_once_get_different_ports():
    first, one = explore_._listening(None)
    second, other = explore_._listening(None)
    with one, other:
        assert first != second
        with pytest.raises(OSError, match=f"port {first} is in use"):
            explore_._listening(first)


def test_no_port_is_free(monkeypatch):
    with taken() as port:
        monkeypatch.setattr(explore_, "PORT", port)
        monkeypatch.setattr(explore_, "range", lambda start, end: range(start, start + 1), raising=False)
        with pytest.raises(OSError, match=f"ports {port} to {port + 49} are in use"):
            explore_._listening(None)


@pytest.mark.parametrize(("no_browser", "opened"), [(False, True), (True, False)])
def test_the_browser_is_opened_once_it_answers(monkeypatch, capsys, no_browser, opened):
    heard = []

    def browser(address: str) -> None:
        heard.append((address, status(int(address.split(":")[2].strip("/")))))
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(explore_.webbrowser, "open", browser)
    if no_browser:
        monkeypatch.setattr(explore_, "echo", lambda text: os.kill(os.getpid(), signal.SIGINT))
    explore_._serve(None, no_browser)
    assert [code for _, code in heard] == ([200] if opened else [])


# Writing


PAGE = "<!doctype html>位置\n"


@pytest.fixture
def quick(monkeypatch) -> None:
    """What is written is tested in explorer/test_page_file.py; here nothing is computed."""
    import posenc.explorer.export

    def exported(advance, address) -> str:
        advance(1, 1)
        return PAGE

    monkeypatch.setattr(posenc.explorer.export, "exported", exported)


@pytest.mark.usefixtures("quick")
def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path, capsys, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("mine")
    code, _, err = explore(capsys, monkeypatch, "--export", str(path))
    assert code == 2
    assert "exists; --force replaces it" in err
    assert path.read_text() == "mine"
    code, out, err = explore(capsys, monkeypatch, "--export", str(path), "--force")
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote {path}")
    assert path.read_text("utf-16") == PAGE


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("name", "more", "said"),
    [("page", (), "should end in .html"), ("page.js", (), "should end in .html"),
     ("no/page.html", (), "there is no folder"),
     ("folder.html", ("--force",), "exists; --force replaces it"), ("page.html", ("--port", "9000"), "serves nothing"),
     ("page.html", ("--no-browser",), "serves nothing")],
)  # fmt: skip
def test_what_cannot_be_written_is_said_before_anything_is_computed(tmp_path, capsys, monkeypatch, name, more, said):
    (tmp_path / "folder.html").mkdir()
    code, out, err = explore(capsys, monkeypatch, "--export", str(tmp_path / name), *more)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == ["folder.html"]


def test_a_mistake_in_the_middle_leaves_what_was_there(tmp_path, capsys, monkeypatch):
    import posenc.explorer.export

    def broken(advance, address) -> str:
        raise ValueError("a view has no numbers")

    monkeypatch.setattr(posenc.explorer.export, "exported", broken)
    path = tmp_path / "page.html"
    path.write_text("mine")
    code, _, err = explore(capsys, monkeypatch, "--export", str(path), "--force")
    assert (code, err) == (1, "posenc: a view has no numbers")
    assert [one.read_text() for one in Path(tmp_path).iterdir()] == ["mine"]


# What it says


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--port", "80"), "'--port'"), (("--port", "70000"), "'--port'"),
     (("--port", "x"), "'--port'"),
     (("--force",), "is for --export"), (("--no-borwser",), "No such option"),
     (("table", "bias"), "unexpected extra argument"),
     (("tabel",), "is no view, encoding, row of the notes or folder of results"),
     (("order", "--position", "3"), "no single position")],
)  # fmt: skip
def test_bad_arguments(capsys, monkeypatch, arguments, said):
    code, out, err = explore(capsys, monkeypatch, *arguments)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("rope", 7), "rotary_pair?m=7"),
        (("alibi", 3), "bias?method=alibi&i=3"),
        (("table?length=5", 2), "table?length=5&p=2"),
        (("kerple",), "compare?first=nope&second=kerple"),
        (("swin",), "encoding?name=swin"),
        ((), ""),
    ],
)
def test_a_view_or_an_encoding_has_an_address(arguments, wanted):
    assert address(*arguments) == wanted


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tabel",), "'tabel' is no view, encoding, row of the notes or folder of results"),
        (("order", 3), "order shows no single position; these do: binary, table"),
        (("", 3), "the start page shows no single position"),
    ],
)
def test_what_has_no_address_is_refused(arguments, said):
    with pytest.raises(Refused, match=said):
        address(*arguments)


def test_every_encoding_has_an_address():
    for entry in ENTRIES:
        view, _, query = address(entry.name).partition("?")
        given = dict(part.split("=") for part in query.split("&") if part)
        assert parse(views.view(view).Parameters, given), entry.name
        assert (view == "encoding") == (not entry.in_a_row), entry.name


def test_help_has_examples(capsys, monkeypatch):
    code, out, _ = explore(capsys, monkeypatch, "--help")
    assert code == 0
    for line in (
        "posenc explore --port 9000 --no-browser",
        "posenc explore --export posenc.html",
        "nothing leaves this machine",
    ):
        assert line in words(out)


@pytest.mark.acceptance  # test_base_install.py tries it without all of them
@pytest.mark.parametrize("missing", ["uvicorn", "starlette"])
def test_without_its_packages_it_says_what_to_install(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from posenc.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "explore", "--no-browser"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"posenc: this needs {missing}: pip install '.[explore]' in the folder of posenc's sources\n"
