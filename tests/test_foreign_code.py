"""A user's code cannot end posenc without a word: every way to end or to stop Python is a failure with a clear line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import foreign_code
import in_process
import posenc
from lab_sweeps import experiment
from posenc.checking.laws import report
from posenc.checking.loading import load
from posenc.lab.engines.engine import finish
from posenc.lab.experiment import read_experiment
from posenc.lab.trial.training import Hardware
from posenc.support.apart import NoVerdict, told
from sampling import one_in, only

ENDS = {
    "an exit": ("import sys; sys.exit(0)", "ends Python with sys.exit(0)"),
    "an exit with a text": ("import sys; sys.exit('enough')", "ends Python with sys.exit(enough)"),
    "an exit without a code": ("raise SystemExit", "ends Python with sys.exit()"),
    "quit": ("quit()", "ends Python with sys.exit()"),
    "an exit past Python": ("import os; os._exit(0)", "ends its process with exit code 0"),
    "an exit past Python with a code": ("import os; os._exit(7)", "ends its process with exit code 7"),
    "an exit at once in a thread": (
        "import os, threading; threading.Thread(target=os._exit, args=(0,)).start(); threading.Event().wait()",
        "ends its process with exit code 0",
    ),
    "Ctrl-C that nobody pressed": ("raise KeyboardInterrupt", "raises KeyboardInterrupt"),
    "the end of a generator": ("raise GeneratorExit('x')", "raises GeneratorExit: x"),
    "an exception of its own": ("class Mine(BaseException): pass\nraise Mine('a\\nb')", "raises Mine: a"),
    "a crash": ("import ctypes; ctypes.string_at(0)", "ends its process with signal SIGSEGV"),
    "a kill": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ends its process with signal SIGKILL"),
    "an abort": ("import os; os.abort()", "ends its process with signal SIGABRT"),
    "closed pipes": ("import os; os.closerange(3, 99)", "ends its process with exit code 1"),
    "an endless loop": ("while True: pass", "gives no answer within 1 s"),
    "a long sleep": ("import time; time.sleep(600)", "gives no answer within 1 s"),
    "an endless loop that catches all": (
        "while True:\n try:\n  import time; time.sleep(9)\n except BaseException: pass",
        "gives no answer within 1 s",
    ),
    "a child that keeps the pipe": (
        "import os, time\nif os.fork(): os._exit(3)\ntime.sleep(5)",
        "ends its process with exit",
    ),
}


@pytest.mark.parametrize("case", one_in(2, ENDS))
def test_no_end_goes_unnoticed(case: str) -> None:
    code, how = ENDS[case]
    news = told(foreign_code.running, code, limit=1.0)
    assert next(news) == 1
    with pytest.raises(NoVerdict, match=r".") as caught:
        next(news)
    assert str(caught.value).startswith(how)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "code",
    [
        "said = 'as usual'",
        "print('a line'); said = 'as usual'",
        "import os; os.write(1, b'bytes'); said = 'as usual'",
        "import threading; threading.Thread(target=threading.Event().wait).start(); said = 'as usual'",
        "import atexit, time; atexit.register(time.sleep, 3600); said = 'as usual'",
        "import signal; signal.raise_signal(signal.SIGINT); said = 'as usual'",
        "import sys; said = 'as usual' if not sys.stdin.read() else ''",
    ],
)
def test_what_the_code_does_besides_is_left_alone(code: str) -> None:
    assert list(told(foreign_code.running, code)) == [1, "as usual", 2]


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("raise ValueError('a line')", ValueError, "a line"),
        ("'é'.encode('ascii')", ValueError, "'ascii' codec can't encode"),
        ("raise TypeError('a line')", TypeError, "a line"),
        ("open('absent')", OSError, "No such file or directory: 'absent'"),
        ("import absent_module", ModuleNotFoundError, "No module named 'absent_module'"),
        ("{}['absent']", RuntimeError, "KeyError: 'absent'"),
        ("class Mine(Exception): pass\nraise Mine(Mine)", RuntimeError, "Mine: "),
        ("raise MemoryError", MemoryError, "MemoryError"),
    ],
)
def test_an_error_is_raised_here(code: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=r".") as caught:
        list(told(foreign_code.running, code))
    assert not isinstance(caught.value, NoVerdict)
    assert said in str(caught.value)
    assert kind is not ModuleNotFoundError or getattr(caught.value, "name", "") == "absent_module"


def test_the_process_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """Also where that is killed, and where the code hangs."""
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}} '); time.sleep(600)"
    ask = f"from posenc.support.apart import told; import foreign_code; list(told(foreign_code.running, {code!r}))"
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    parent = subprocess.Popen([sys.executable, "-c", ask], env=here)
    try:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.05)
        child = int((tmp_path / "pid").read_text())
    finally:
        parent.kill()
        parent.wait()
    for _ in range(200):
        if not alive(child):
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("it outlived its parent")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# posenc check ---------------------------------------------------------------------------------------------------------


def sampled(cases: dict[str, tuple[str, str]], *sample: str) -> list[Any]:
    """The sample, for make test; make acceptance tries the others: each starts a process of several seconds."""
    return [name if name in sample else pytest.param(name, marks=pytest.mark.acceptance) for name in cases]


RIGHT = """
import torch

def rotate(x, positions):
    frequencies = 10000.0 ** (-torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
    angles = (positions.float()[..., None] * frequencies)[:, None]
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
"""


def within(code: str) -> str:
    """RIGHT with a statement where the function begins."""
    return RIGHT.replace("positions):\n", f"positions):\n    {code}\n")


CHECKED = {
    "an exit at import": ("import sys; sys.exit(0)", "ends Python with sys.exit(0), while it is loaded"),
    "an exit past Python at import": ("import os; os._exit(0)", "ends its process with exit code 0, while it is loaded"),
    "hangs at import": ("while True: pass", "gives no answer within 3 s, while it is loaded"),
    "an exit": (within("import sys; sys.exit(0)"), "ends Python with sys.exit(0), at its first call"),
    "an exit past Python": (within("import os; os._exit(0)"), "ends its process with exit code 0, at its first call"),
    "hangs": (within("while True: pass"), "gives no answer within 3 s, at its first call"),
    "an exit far away": (
        within("import sys; positions.max() < 3000 or sys.exit(0)"),
        "ends Python with sys.exit(0), at its first call",
    ),
    "an exit past Python in a law": (
        within("import os; x.dtype == torch.float32 or os._exit(0)"),
        "ends its process with exit code 0, at tokens_of_16_bits_lose_16_bits_only",
    ),
}


@pytest.mark.parametrize("case", sampled(CHECKED, "hangs"))
def test_check_says_how_the_code_ended(case: str, tmp_path: Path) -> None:
    code, said = CHECKED[case]
    (tmp_path / "mine.py").write_text(code)
    done = in_process.posenc("check", "mine.py", "--timeout", "3", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"posenc: mine.py: the code {said}\n")


def test_an_exit_in_a_law_breaks_it(tmp_path: Path) -> None:
    code = within("import sys; x.dtype == torch.float32 or sys.exit(0)")
    (tmp_path / "mine.py").write_text("print('loaded')\n" + code)
    done = in_process.posenc("check", "mine.py", "--json", cwd=tmp_path)
    assert done.returncode == 1
    found = json.loads(done.stdout)  # what the file prints is not in it
    failed = {one["law"]: one["detail"] for one in found["results"] if one["verdict"] == "failed"}
    assert failed["tokens_of_16_bits_lose_16_bits_only"] == "raises SystemExit: 0"
    names: dict[str, object] = {}
    exec(code, names)
    mine = posenc.check(rotate=names["rotate"], laws=["tokens_of_16_bits_lose_16_bits_only"])  # type: ignore[arg-type]
    assert mine["tokens_of_16_bits_lose_16_bits_only"].detail == "raises SystemExit: 0"


def test_in_this_process_the_callable_is_unusable() -> None:
    with pytest.raises(posenc.checking.Unusable, match="the callable ends Python: SystemExit: 3"):
        posenc.check(rotate=lambda x, positions: sys.exit(3))

    def interrupted(x: object, positions: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # that was somebody
        posenc.check(rotate=interrupted)


def test_a_call_that_ends_a_thread_is_seen(tmp_path: Path) -> None:
    """A thread ends by sys.exit() without a word."""
    code = within("import sys, threading; threading.current_thread() is threading.main_thread() or sys.exit(0)")
    (tmp_path / "of_threads.py").write_text(code)
    _, rotate = load(str(tmp_path / "of_threads.py"), None)
    found = posenc.check(rotate=rotate, laws=["calls_at_once_do_not_matter"])
    assert found["calls_at_once_do_not_matter"].detail == "two calls at once: SystemExit: 0"


def test_the_laws_of_an_encoding_are_broken_by_an_exit() -> None:
    class Ending(posenc.PositionalEncoding):
        def embed(self, x: object, at: object) -> object:
            sys.exit(0)

    found = report(Ending(), laws=["locality"])
    assert [(one.verdict, one.detail) for one in found] == [("failed", "raises SystemExit: 0")]


# posenc lab -----------------------------------------------------------------------------------------------------------

MINE = """
import posenc

class Mine(posenc.PositionalEncoding):
    def __init__(self):
        super().__init__()
        {made}

    def embed(self, x, at):
        {called}
        return x
"""
ADDED = {
    "an exit past Python at import": ("import os; os._exit(0)", "ends its process with exit code 0"),
    "hangs at import": ("while True: pass", "gives no answer within 3 s"),
    "an exit when it is made": (MINE.format(made="raise SystemExit", called=""), "ends Python with sys.exit()"),
    "an exit when it is called": (MINE.format(made="", called="import sys; sys.exit(0)"), "ends Python with sys.exit(0)"),
    "an exit past Python when it is called": (
        MINE.format(made="", called="import os; os._exit(0)"),
        "ends its process with exit code 0",
    ),
}


@pytest.mark.parametrize("case", sampled(ADDED, "an exit past Python when it is called"))
def test_lab_add_says_how_the_code_ended(case: str, tmp_path: Path) -> None:
    code, said = ADDED[case]
    (tmp_path / "mine.py").write_text(code)
    done = in_process.posenc("lab", "add", "mine.py:Mine", "--timeout", "3", cwd=tmp_path)
    line = f"posenc: mine.py:Mine: the file {said}, before the first law; it must only define the class. It is not added\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


@pytest.mark.acceptance
def test_lab_add_names_the_law_before(tmp_path: Path) -> None:
    """It hangs where its tokens are float64: laws that were tried by then are printed."""
    (tmp_path / "mine.py").write_text(MINE.format(made="", called="while x.dtype.itemsize == 8: pass"))
    done = in_process.posenc("lab", "add", "mine.py:Mine", "--timeout", "15", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("✓ ")
    last = done.stdout.splitlines()[-1].split(" ")[1].rstrip(":")
    assert f"the file gives no answer within 15 s, after the law {last}; it must" in done.stderr


EXPERIMENT = """
name: n
about: {en: a, zh: b}
encodings: [rope, mine.py:Mine]
seeds: 1
size: {d_model: 16, n_heads: 2, n_layers: 1}
tasks: [{task: {name: copy, length: 4, lengths: [4], held_out: 4}, training: {steps: 2, rows: 2}}]
"""


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "case", only(["an exit", "an exit past Python", "Ctrl-C that nobody pressed"], "an exit past Python")
)
def test_an_experiment_with_a_file_that_ends_python_is_not_begun(case: str, tmp_path: Path) -> None:
    code, how = ENDS[case]
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    said = f"mine.py:Mine: the file {how}; it must only define the class"
    with pytest.raises(ValueError, match=r".") as refused:
        read_experiment(str(tmp_path / "e.yaml"))
    assert str(refused.value) == f"{tmp_path / 'e.yaml'}: {said}"
    if case == "an exit past Python":
        run = in_process.posenc("lab", "run", "e.yaml", "--out", "out", cwd=tmp_path)
        assert (run.returncode, run.stdout, run.stderr) == (1, "", f"posenc: e.yaml: {said}\n")
        compared = in_process.posenc("compare", "--encodings", "rope,mine.py:Mine", "--out", "out", cwd=tmp_path)
        assert compared.returncode == 2
        assert how in " ".join(compared.stderr.replace("│", " ").split())
        assert not (tmp_path / "out").exists()


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("called", "said"),
    [
        pytest.param("import sys; sys.exit(0)", "it ends Python with sys.exit(0)", marks=pytest.mark.acceptance),
        ("import os; os._exit(0)", "its process ended: exit code 0"),
    ],
)
def test_a_sweep_goes_on_without_the_trial_that_ends_python(called: str, said: str, tmp_path: Path) -> None:
    """Its measurements run the same code, and are made or not; the report is written."""
    (tmp_path / "mine.py").write_text(MINE.format(made="", called=called))
    (tmp_path / "e.yaml").write_text(EXPERIMENT + "properties: true\n")
    done = in_process.posenc("lab", "run", "e.yaml", "--out", "out", "--workers", "1", cwd=tmp_path)
    assert done.returncode == 1
    assert said in " ".join(done.stderr.split())
    assert "exact properties could not be measured" in " ".join(done.stderr.split())
    assert (tmp_path / "out" / "report" / "index.html").is_file()


def test_every_engine_turns_an_exit_into_an_error() -> None:
    (trial, *_) = experiment().trials()

    def ending(*_: object) -> None:
        sys.exit(4)

    with pytest.raises(RuntimeError, match=r"it ends Python with sys\.exit\(4\)"):
        finish(trial, None, Hardware(), ending, lambda share: None)  # type: ignore[arg-type]


def test_the_limit_is_shown() -> None:
    for words in (["check"], ["lab", "add"]):
        shown = " ".join(in_process.posenc(*words, "--help").stdout.replace("│", " ").split())
        assert "--timeout" in shown
        assert "[default: 300.0]" in shown
