"""posenc show: what it prints, what it writes, and what it says about bad input."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from posenc.pictures.commands import show as show_
from posenc.pictures.plots.style import DIVERGING
from posenc.pictures.plots.views import VIEWS, methods_of, views_of
from sampling import WITHOUT_STATES, foundation_first

PNG = b"\x89PNG"


def show(*arguments: str, **environment: str):
    app = typer.Typer()
    app.command()(show_.command)
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "NO_COLOR": "1", **environment})


def words(text: str) -> str:
    """Without the frame that typer draws around an error."""
    return " ".join(text.replace("│", " ").split())


def posenc_show(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "posenc", "show", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1", **environment},
    )


# What it prints


@pytest.mark.parametrize("method", foundation_first(WITHOUT_STATES))
def test_every_encoding_has_a_picture_to_start_with(method):
    shown = show(method)
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) > 8
    described = json.loads(show(method, "--json").stdout)
    assert (described["method"], described["what"]) == (method, views_of(method)[0])
    assert shown.stdout.splitlines()[0] == described["title"]


def test_the_first_pictures():
    expected = {
        "nope": "order",
        "sinusoidal": "heatmap",
        "learned": "heatmap",
        "floater": "heatmap",
        "shaw": "bias",
        "transformer_xl": "bias",
        "t5": "bias",
        "alibi": "bias",
        "rope": "heatmap",
        "xpos": "heatmap",
        "cope": "bias",
    }
    assert {method: views_of(method)[0] for method in expected} == expected
    assert all(views_of(method) for method in WITHOUT_STATES)


def test_the_numbers_of_the_heat_map():
    shown = json.loads(show("sinusoidal", "--d-model", "8", "--length", "3", "--json").stdout)
    values = shown["panels"][0]["values"]
    expected = [0.9093, -0.4161, 0.1987, 0.9801, 0.0200, 0.9998, 0.0020, 1.0000]  # the notes' position 2
    assert [round(value, 4) for value in values[2]] == expected
    assert (shown["length"], shown["d_model"], shown["rows"], shown["columns"]) == (3, 8, "position", "channel")


def test_base_and_odd_widths_reach_the_table():
    shown = json.loads(show("sinusoidal", "--d-model", "4", "--length", "3", "--base", "100", "--json").stdout)
    assert [[round(v, 4) for v in row] for row in shown["panels"][0]["values"]] == [
        [0, 1, 0, 1],
        [0.8415, 0.5403, 0.0998, 0.9950],
        [0.9093, -0.4161, 0.1987, 0.9801],
    ]
    odd = json.loads(show("sinusoidal", "--d-model", "7", "--length", "2", "--json").stdout)
    assert len(odd["panels"][0]["values"][1]) == 7


def test_what_is_masked_is_null():
    values = json.loads(show("t5", "--length", "3", "--json").stdout)["panels"][0]["values"]
    assert [[value is None for value in row] for row in values] == [
        [False, True, True],
        [False, False, True],
        [False, False, False],
    ]


def test_heads_of_an_encoding_that_rotates_share_the_width():
    assert "d_head = 128" in json.loads(show("rope", "--what", "decay", "--json").stdout)["title"]
    halved = json.loads(show("rope", "--what", "decay", "--d-model", "128", "--n-heads", "2", "--json").stdout)
    assert "d_head = 64" in halved["title"]
    assert [mark["text"] for mark in halved["marks"]][1] == "ones: first rise 5 → 6"
    assert len(json.loads(show("alibi", "--n-heads", "3", "--json").stdout)["panels"]) == 3


def test_the_shift_goes_as_far_as_asked():
    matrix = json.loads(show("sinusoidal", "--what", "shift", "--lag", "0.5", "--json").stdout)["panels"][0]["values"]
    assert matrix[0][1] == pytest.approx(math.sin(0.5))
    assert matrix[1][0] == pytest.approx(-math.sin(0.5))


def test_the_same_command_prints_the_same_numbers():
    for method in ("learned", "floater", "transformer_xl"):
        assert show(method, "--json").stdout == show(method, "--json").stdout


def test_it_says_which_parameters_are_shown():
    ideas = {
        (method, what): json.loads(show(method, "--what", what, "--json").stdout)["idea"][1]
        for method, what in (("learned", "heatmap"), ("t5", "bias"), ("alibi", "bias"), ("transformer_xl", "wavelengths"))
    }
    assert ideas["learned", "heatmap"].endswith("Untrained: its parameters are as they start.")
    assert ideas["t5", "bias"].endswith("Untrained: its parameters are drawn from N(0, 0.5²).")
    assert "Untrained" not in ideas["alibi", "bias"] + ideas["transformer_xl", "wavelengths"]


def test_what_starts_at_zero_is_drawn_anew():
    values = json.loads(show("cope", "--length", "4", "--json").stdout)["panels"][0]["values"]
    assert abs(values[3][0]) > 1e-3


def test_a_pipe_gets_letters_and_a_terminal_gets_colours():
    assert "▀" not in show("sinusoidal").stdout
    assert "= −1   - −0.5   · 0   + 0.5   # 1" in show("sinusoidal").stdout
    coloured = posenc_show("sinusoidal", "--length", "4", FORCE_COLOR="1", COLORTERM="truecolor", TERM="xterm-256color")
    red = ";".join(str(int(DIVERGING[-1][n : n + 2], 16)) for n in (1, 3, 5))
    assert f"38;2;{red}" in coloured.stdout
    assert coloured.returncode == 0
    plain = show("sinusoidal", "--length", "4")
    assert "\x1b" not in plain.stdout
    assert plain.exit_code == 0


@pytest.mark.parametrize("method", ["sinusoidal", "rope", "alibi", "nope"])
@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"NO_COLOR": "1", "TERM": "dumb"}, {"NO_COLOR": "", "TERM": "dumb"}])
def test_a_terminal_without_colours_gets_letters(method, plain):
    """Half blocks that all have the colour of the text would show one grey area."""
    terminal = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": "80"}
    shown = show(method, "--length", "12", **{**terminal, **plain}).stdout
    shown = re.sub(r"\x1b\[[0-9;]*m", "", shown)  # bold and dim stay
    assert "▀" not in shown
    piped = show(method, "--length", "12", COLUMNS="80").stdout
    assert shown == piped


@pytest.mark.parametrize(
    ("method", "what", "words"),
    [
        ("hope", "wavelengths", "23 more never turn"),
        ("proportional", "wavelengths", "more never turn"),
        ("decoupled_rope", "waves", "channel 86: pair 0, ω = 1"),
        ("convolutional", "decay", "adds nothing to zeros"),
    ],
)
def test_what_never_turns_has_no_place_in_a_picture(method, what, words):
    """An infinite wavelength, a channel that is not turned and the similarity of rows of zeros were tracebacks."""
    shown = show(method, "--what", what)
    assert shown.exit_code == (2 if method == "convolutional" else 0), shown.exception
    assert words in " ".join((shown.stdout + shown.stderr).split())


@pytest.mark.parametrize("width", [40, 80, 120])
def test_it_fits_the_terminal(width):
    for method in ("rope", "alibi", "nope"):
        lines = show(method, COLUMNS=str(width)).stdout.splitlines()
        assert max(map(len, lines)) <= width


def test_the_help_names_every_picture():
    help_text = show_.command.__doc__
    listed = help_text.split("[bold]--what[/bold] ")[1].split(";")[0].split("·")
    assert sorted(name.strip() for name in listed) == sorted(VIEWS)
    for line in help_text.splitlines():
        if line.strip().startswith("posenc show"):
            _, _, *arguments = line.split()
            if "--out" not in arguments:
                assert show(*arguments).exit_code == 0


# What it writes


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_picture_goes_to_the_file_asked_for(tmp_path, suffix):
    out = tmp_path / f"图 1{suffix}"
    shown = show("rope", "--what", "decay", "--out", str(out))
    assert shown.exit_code == 0
    assert shown.stdout == f"wrote {out}\n"
    assert out.read_bytes().startswith({".png": PNG, ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix])
    assert list(tmp_path.iterdir()) == [out]  # nothing else is left
    assert out.stat().st_mode & 0o777 == 0o666 & ~_umask()


def test_a_file_that_is_there_stays_until_forced(tmp_path):
    out = tmp_path / "x.png"
    out.write_text("precious")
    refused = posenc_show("alibi", "--out", str(out))
    assert (refused.returncode, out.read_text()) == (1, "precious")
    assert refused.stderr == f"posenc: --out {out}: exists; --force replaces it\n"
    assert show("alibi", "--out", str(out), "--force").exit_code == 0
    assert out.read_bytes().startswith(PNG)


def test_numbers_and_a_picture_at_once(tmp_path):
    shown = show("alibi", "--out", str(tmp_path / "x.svg"), "--json")
    assert json.loads(shown.stdout)["kind"] == "matrices"  # the word about the file goes to stderr
    assert shown.stderr == f"wrote {tmp_path / 'x.svg'}\n"


def test_a_drawing_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    out = tmp_path / "x.png"
    out.write_text("precious")

    def fail(picture, path):
        path.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr("posenc.pictures.plots.figures.save", fail)
    show("alibi", "--out", str(out), "--force")
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(("where", "why"), [("missing/x.png", "there is no folder"), ("folder.png", "is a folder")])
def test_places_that_cannot_be_written(tmp_path, where, why):
    (tmp_path / "folder.png").mkdir()
    refused = posenc_show("alibi", "--force", "--out", str(tmp_path / where))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"posenc: --out {tmp_path / where}: {why}")
    assert refused.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(**where):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    refused = show("alibi", "--out", str(tmp_path / "x.png"))
    assert isinstance(refused.exception, OSError)  # which posenc prints as one line, with exit code 1
    assert str(refused.exception) == f"--out {tmp_path / 'x.png'}: cannot write in {tmp_path}: Permission denied"


# What it refuses


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rotary"], "unknown encoding 'rotary'; did you mean posenc.create(\"rope\", …)?; posenc list --all shows"),
        (["旋转位置编码"], 'did you mean posenc.create("rope", …)?'),
        (["rope", "--what", "bias"], f"'bias' does not suit rope; it is for {', '.join(methods_of('bias'))}. rope"),
        (["rope", "--what", "picture"], "'picture' is no picture. rope has heatmap, waves, clock, wavelengths, angles"),
        (["rope", "--what", "Heatmap"], "'Heatmap' is no picture"),
        (["rope", "--length", "-3"], "--length"),
        (["rope", "--length", "0"], "--length"),
        (["rope", "--length", "2.5"], "--length"),
        (["rope", "--n-heads", "0"], "--n-heads"),
        (["sinusoidal", "--length", "100000000"], "length: heatmap is drawn up to 65536, got 100000000"),
        (["sinusoidal", "--length", "60000", "--d-model", "600"], "a picture of 36000000 entries is too large"),
        (["alibi", "--n-heads", "64", "--length", "1000"], "a picture of 64000000 entries is too large"),
        (["sinusoidal", "--d-model", "100000"], "--d-model"),
        (["rope", "--base", "nan"], "expected a positive number such as 10000, got nan"),
        (["rope", "--base", "-1"], "expected a positive number such as 10000, got -1"),
        (["rope", "--base", "inf"], "expected a positive number such as 10000, got inf"),
        (["rope", "--base", "5e-324"], "5e-324 is out of range"),
        (["alibi", "--base", "100"], "alibi: unknown option 'base'"),
        (["rope", "--d-model", "7"], "d_head: expected an even number"),
        (["sinusoidal", "--what", "decay", "--d-model", "7"], "d: expected an even width, got 7"),
        (["alibi", "--d-model", "64", "--n-heads", "3"], "d_model=64 is not a multiple of n_heads=3"),
        (["sinusoidal", "--lag", "3"], "expected a finite number together with --what shift, got 3"),
        (["sinusoidal", "--what", "shift", "--lag", "nan"], "expected a finite number together with --what shift, got nan"),
        (["sinusoidal", "--what", "path", "--length", "1"], "needs two positions and two channels"),
        (["nope", "--length", "1"], "at least two words to re-order, got 1"),
        (["rope", "--out", "x.jpg"], "x.jpg: expected a name that ends in .png, .svg, .pdf"),
        (["rope", "--out", "x"], "x: expected a name that ends in .png, .svg, .pdf"),
        ([], "Missing argument"),
    ],
)
def test_wrong_use_is_one_error_with_exit_code_2(arguments, message):
    refused = show(*arguments)
    assert refused.exit_code == 2
    assert message in words(refused.stderr)
    assert not refused.stdout
    assert "Traceback" not in refused.stderr


def test_the_process_says_the_same():
    refused = posenc_show("rotary")
    assert refused.returncode == 2
    assert "unknown encoding 'rotary'" in words(refused.stderr)
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("method", foundation_first(WITHOUT_STATES))
@pytest.mark.parametrize("length", ["1", "2"])
def test_the_smallest_lengths(method, length):
    for view in views_of(method):
        shown = show(method, "--what", view, "--length", length)
        assert shown.exit_code in (0, 2), shown.exception
        assert "Traceback" not in shown.stderr


def test_refusals_before_torch_is_loaded():
    code = (
        "import sys\nfrom posenc.pictures.commands import show\nimport typer\n"
        "try:\n    show.command('rotary')\nexcept typer.BadParameter:\n    print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_every_view_suits_somebody():
    assert all(methods_of(view) for view in VIEWS)
    assert set(methods_of("bias")) >= {"shaw", "transformer_xl", "t5", "alibi", "cope"}
    assert not set(methods_of("bias")) & {"nope", "sinusoidal", "learned", "floater", "rope", "xpos"}
    assert methods_of("shift")[0] == "sinusoidal"
    assert methods_of("order") == WITHOUT_STATES


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_heat_map_moves_in_a_terminal(monkeypatch):
    """Row after row is drawn over the picture before, at the speed that is asked for."""
    slept: list[float] = []
    monkeypatch.setattr(show_, "time", SimpleNamespace(sleep=slept.append))
    shown = show("sinusoidal", "--play", "--length", "6", "--speed", "20", FORCE_COLOR="1", TERM="xterm-256color")
    assert shown.exit_code == 0
    assert shown.stdout.count("\x1b[2K") >= 5  # it goes back up to draw again
    assert slept == [1 / 20] * 6
