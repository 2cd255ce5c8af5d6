"""The benchmarks: the gate comes before any speed, ratios are taken within rounds, nothing is left out or written over."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys

import pytest
import torch
import typer
from bench import __main__ as bench_
from bench import bars, contenders, gate, peers, plan, report, runner, timing, visible, worker
from bench.cpu_contention import Contention
from bench.timing import Measured, Round

import in_process
from posenc.catalogue.choose import costs as choose_costs
from posenc.kernels import machine
from posenc.pictures import costs
from sampling import one_in

NO_PEERS = dict.fromkeys(peers.PEERS, "not asked for")
REQUEST = {"device": "cpu", "threads": 1, "allocator": "stock", "peers": NO_PEERS, "seconds": 1e-3, "most": 3}


def case_of(benchmark, name, **changes):
    found = next(case for case in plan.cases_of(benchmark, tiny=True) if case.name == name)
    return plan.Case(**{**found.as_json(), **changes})


def compare(case, **changes):
    return worker.compare(case, {**REQUEST, **changes}, lambda share: None)


# Rounds and ratios. ---------------------------------------------------------------------------------------------------


def test_a_ratio_is_taken_within_its_round():
    slowness = [1.0, 10.0, 1.0, 10.0, 1.0]
    measured = Measured([Round({"floor": w, "ours": 2 * w}) for w in slowness] + [Round({"floor": 5.0})], 0, False)
    ratio = measured.ratio("ours", "floor")
    assert (ratio.median, ratio.low, ratio.high, ratio.count) == (2.0, 2.0, 2.0, 5)
    assert measured.times("floor").count == 6
    assert measured.ratio("ours", "absent") is None


def test_quartiles():
    found = timing.spread([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (found.low, found.median, found.high) == (2.0, 3.0, 4.0)
    assert timing.spread([]) is None


class Clock:
    """Time passes only when a contender runs."""

    def __init__(self, **taken):
        self.now, self.turns, self.taken = 0.0, [], taken

    def __call__(self):
        return self.now

    def calls(self):
        def call(name):
            self.now += self.taken[name]
            self.turns.append(name)

        return {name: (lambda name=name: call(name)) for name in self.taken}


class Others:
    """Undisturbed or not, reading by reading."""

    def __init__(self, *undisturbed):
        self.readings = [True, *undisturbed]

    def undisturbed(self):
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


def test_contenders_take_turns_and_slow_ones_sit_out():
    clock = Clock(floor=0.01, ours=0.02, slow=2.0, endless=10.0)
    measured = timing.take_turns(clock.calls(), "floor", 1.0, clock=clock, contention=Others(True))
    played = {name: clock.turns.count(name) for name in clock.taken}
    assert played["slow"] == timing.FEWEST
    assert played["endless"] == timing.FEWEST_LONG
    assert 50 <= played["ours"] <= 75
    assert played["floor"] == played["ours"]  # the floor alone keeps nobody going
    assert measured.ratio("ours", "floor").median == pytest.approx(2)
    assert measured.ratio("slow", "ours").count == timing.FEWEST
    opening = [tuple(clock.turns[start : start + 3]) for start in range(8, 17, 3)]
    assert all(sorted(one) == ["floor", "ours", "slow"] for one in opening)
    assert len(set(opening)) > 1  # in changing order


def test_ours_play_as_long_as_anybody():
    clock = Clock(floor=0.001, ours=0.5, quick=0.1)
    timing.take_turns(clock.calls(), "floor", 5.0, always=frozenset({"ours"}), clock=clock, contention=Others(True))
    assert clock.turns.count("ours") == clock.turns.count("quick") == clock.turns.count("floor") >= 50


def test_several_calls_in_a_turn_count_as_one():
    clock = Clock(floor=0.001)
    measured = timing.take_turns(clock.calls(), "floor", 0.5, repeat=10, clock=clock, contention=Others(True))
    assert measured.times("floor").median == pytest.approx(0.001)
    assert len(clock.turns) == 10 * len(measured.rounds)


def test_disturbed_rounds_are_left_out_unless_nearly_all_are():
    clock = Clock(floor=1.0)
    measured = timing.take_turns(clock.calls(), "floor", 5.0, clock=clock, contention=Others(False, True, False, True))
    assert measured.disturbed == 2
    assert not measured.kept
    assert all(one.undisturbed for one in measured.rounds)
    clock = Clock(floor=1.0)
    measured = timing.take_turns(clock.calls(), "floor", 5.0, clock=clock, contention=Others(False, False))
    assert measured.kept
    assert measured.disturbed == len(measured.rounds) == 5 * timing.PATIENCE


def test_contention_is_what_others_took():
    readings = iter([(0.0, 0.0, 0.0), (1.0, 1.05, 1.0), (2.0, 2.3, 2.0), None])
    contention = Contention(lambda: next(readings), cores=2)
    assert contention.undisturbed()  # 0.05 s of others in a second of two cores: 2.5 %
    assert not contention.undisturbed()  # 0.25 s: 12.5 %
    assert contention.undisturbed()  # unknown


# The gate. ------------------------------------------------------------------------------------------------------------


def test_errors_of_the_gate():
    exact = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    assert gate.largest_error(torch.tensor([[1.0, 2.0], [3.0, 4.5]]), exact) == 0.5
    assert gate.largest_error(torch.tensor([[1.0, math.nan], [3.0, 4.0]]), exact) == math.inf
    assert gate.largest_error(torch.zeros(2, 3), exact) == math.inf
    assert gate.judge([exact, exact], [exact, exact], [0.0, 0.0]).passed
    assert not gate.judge([exact], [exact, exact], [0.0, 0.0]).passed  # a result is missing
    assert not gate.judge([exact + 1e-3, exact], [exact, exact], [1e-4, 1e-4]).passed


GREEN = [
    ("rope", "forward", {}),
    ("rope", "forward", {"dtype": "bfloat16"}),
    ("rope", "forward + backward", {}),
    ("rope", "decode", {}),
    ("bias", "ALiBi", {"swept": "length"}),
    ("bias", "ALiBi, packed", {"dtype": "bfloat16"}),
    ("bias", "T5, padded", {}),
    ("bias", "ALiBi, forward + backward", {}),
    ("bias", "T5, forward + backward", {}),
    ("bias", "Shaw", {}),
    ("bias", "Transformer-XL", {}),
    ("table", "sinusoidal table", {}),
    ("visible", "RoPE", {}),
    ("visible", "ALiBi", {}),
    ("visible", "soft cap", {}),
    ("call", "16 keys", {}),
    ("model", "decode, 8 layers after 512", {}),
    ("model", "training, 8 layers, 256 tokens", {}),
    ("attached", "decode after 512", {}),
    ("attached", "prefill of 512", {}),
    ("layer", "decode, 8 heads of 64 after 512, 6 layers", {}),
    ("layer", "prefill, 8 heads of 64, 512 tokens", {}),
    ("layer", "prefill, 32 heads of 128, 128 tokens after 4k", {}),
    ("layer", "training, 8 heads of 64, 512 tokens", {}),
]


@pytest.mark.parametrize(("benchmark", "name", "changes"), one_in(4, GREEN))
def test_every_contender_agrees_with_the_formulas(benchmark, name, changes):
    result = compare(case_of(benchmark, name, **changes))
    assert result["gate"] == "green"
    coarse = 0.05 if changes.get("dtype") == "bfloat16" else 0.1 if benchmark == "table" else 1e-4
    for row in result["rows"]:
        if row["package"] in peers.PEERS:
            assert row["status"] == "not asked for"
            continue
        if row["name"] in ("backend relative", "backend regions", "backend blocks"):
            assert row["status"] == "cannot serve it"
            continue
        assert row["status"] == "measured", row
        assert row["ratio"]["low"] <= row["ratio"]["median"] <= row["ratio"]["high"]
        assert max(row.get("errors", {"": 0.0}).values()) < coarse
        if row["ours"]:
            assert row["errors"].keys() == row["allowed"].keys()
            # All others are peers, or there is the floor only.
            alone = name == "decode" or benchmark in ("visible", "layer", "call", "model", "attached")
            assert row["speedup"] or alone


@pytest.mark.acceptance
def test_a_training_step_agrees_with_fp64():
    result = compare(case_of("step", "training step"))
    assert result["gate"] == "green"
    assert {"rope", "alibi", "t5", "floater"} <= {row["name"] for row in result["rows"] if row["status"] == "measured"}


def off_by_a_little(function):
    def broken(*arguments, **options):
        out = function(*arguments, **options)
        if isinstance(out, tuple):
            return tuple(one * 1.0001 for one in out)
        return out.mul_(1.0001) if options.get("out") is not None else out * 1.0001

    return broken


BROKEN = [
    ("rope", "forward", "posenc.encodings.rope.RoPE.rotate"),
    ("rope", "forward + backward", "posenc.encodings.rope.RoPE._rotate_both"),
    ("bias", "T5, packed", "posenc.attention.attend"),
    ("table", "sinusoidal table", "posenc.encodings.sinusoidal.sinusoidal_table"),
    ("visible", "ALiBi", "posenc.attention.attend"),
    ("call", "16 keys", "posenc.attention.attend"),
    ("layer", "decode, 8 heads of 64 after 512", "posenc.encodings.rope.RoPE._rotate_both"),
    ("step", "training step", "posenc.encodings.rope.RoPE._rotate_both"),
]


@pytest.mark.parametrize(("benchmark", "name", "path"), one_in(2, BROKEN))
def test_a_red_gate_shows_no_speed_of_ours(monkeypatch, benchmark, name, path):
    module, _, attribute = path.rpartition(".")
    owner = pytest.importorskip("posenc.encodings.rope").RoPE if module.endswith("RoPE") else sys.modules.get(module)
    owner = owner or __import__(module, fromlist=["_"])
    monkeypatch.setattr(owner, attribute, off_by_a_little(getattr(owner, attribute)))
    if benchmark == "step":  # where both sides would be broken alike, the fp64 side keeps the right one
        right = compare_truth(case_of(benchmark, name), monkeypatch, owner, attribute)
        monkeypatch.setattr("bench.step.steps", lambda case, device: right)
    result = compare(case_of(benchmark, name))
    assert result["gate"] == "red"
    assert any(row["status"] == "wrong" for row in result["rows"])
    for row in result["rows"]:
        assert ("seconds" in row) == (not row["ours"] and row["status"] == "measured")
        assert not (row["ours"] and {"seconds", "ratio", "speedup", "gb_per_s"} & row.keys())
    done = {"results": [result], "bars": bars.verdicts([result]), "failures": []}
    assert done["bars"] == []
    assert bench_.verdict(done, False, Console()) == 1
    headings, rows = report.table([result])
    shown = next(row for row in rows if row[0] == next(row["name"] for row in result["rows"] if row["status"] == "wrong"))
    assert shown[1] == "wrong"
    assert shown[headings.index("ms")] == report.NOTHING
    assert "allowed" in shown[-1]


def test_one_wrong_way_of_ours_hides_them_all(monkeypatch):
    from posenc.encodings.rope import RoPE

    right = RoPE.rotate

    def broken(self, x, at, side, out=None):
        turned = right(self, x, at, side, out=out)
        return turned if out is None else turned.mul_(1.0001)

    monkeypatch.setattr(RoPE, "rotate", broken)
    result = compare(case_of("rope", "forward"))
    ours = {row["name"]: row for row in result["rows"] if row["ours"]}
    assert ours["posenc, out="]["status"] == "wrong"
    assert ours["posenc"]["status"].startswith("not shown: posenc, ")
    assert not any({"seconds", "ratio", "speedup"} & row.keys() for row in ours.values())


def compare_truth(case, monkeypatch, owner, attribute):
    """The contest of a training step whose exact results were taken before rotate was broken."""
    from bench import step

    broken = getattr(owner, attribute)
    monkeypatch.undo()
    contest = step.steps(case, "cpu")
    exact = contest.truths["rope"]()
    limits = contest.allowed("rope", exact)
    monkeypatch.setattr(owner, attribute, broken)
    rope = [entry for entry in contest.entries if entry.name == "rope"]
    return type(contest)(contest.floor, rope, {"rope": lambda: exact}, lambda name, exact: limits, contest.results)


class Console:
    def print(self, *arguments, **options):
        pass


# Bars. ----------------------------------------------------------------------------------------------------------------


def result_of(case, *rows, **changes):
    setting = {"device": "cpu", "threads": 1, "allocator": "large", "rounds": 5, "disturbed": 0, "disturbed_kept": False}
    return {
        "kind": "time",
        "case": case.as_json(),
        "title": case.title,
        **setting,
        "gate": "green",
        "floor": timed("floor", 1.0),
        "rows": list(rows),
        **changes,
    }


def timed(name, ratio, ours=False, **more):
    spread = {"median": ratio, "low": ratio, "high": ratio, "count": 5}
    seconds = {name: value / 100 for name, value in spread.items()}
    return {
        "name": name,
        "package": "posenc" if ours else "torch",
        "ours": ours,
        "status": "measured",
        "ratio": spread,
        "seconds": seconds,
        "gb_per_s": None,
        "errors": {"": 1e-7},
        **more,
    }


def test_bars_of_ratios():
    case = plan.rope()[0]
    rows = [
        timed("posenc, out=", 1.29, True, speedup={}),
        timed("posenc, in place", 0.96, True, speedup={}),
        timed("posenc", 1.35, True, speedup={}),
    ]
    found = {verdict["bar"].split(": ")[2]: verdict["met"] for verdict in bars.verdicts([result_of(case, *rows)])}
    assert found == {
        "posenc, out= at most 1.3× the floor": True,
        "posenc, in place at most 0.95× the floor": False,
        "posenc at most 1.35× the floor": True,
    }
    assert bars.verdicts([result_of(case, *rows, allocator="stock")]) == []  # the stock allocator has no bars
    assert bars.verdicts([result_of(case, {**rows[0], "status": "wrong"})]) == []
    assert bars.verdicts([result_of(plan.Case(**{**case.as_json(), "swept": "length"}), *rows)]) == []


def test_bars_of_speedups():
    def met(case, **speedup):
        spread = {name.replace("_", " "): {"median": value} for name, value in speedup.items()}
        found = bars.verdicts([result_of(case, timed("posenc", 1.0, True, speedup=spread))])
        return [verdict["met"] for verdict in found if verdict["measure"] == "speedup"]

    table = plan.table()[0]
    assert met(table, one=5.0, another=90.0) == [True]
    assert met(table, one=4.9, another=90.0) == [False]  # the fastest of them counts
    assert met(table) == []
    decode = next(case for case in plan.rope() if case.name == "decode")
    assert met(decode, transformers=5.0) == [True]
    assert met(decode, torchtune=5.0) == []


def test_bars_of_memory():
    case = plan.memory_cases("bias")[2]
    assert case.length == 32768
    allowed = 16 * 2**20 + 64 * 16 * 32768

    def met(extra):
        row = {"name": "posenc", "package": "posenc", "ours": True, "status": "measured", "peak_bytes": 1000 + extra}
        result = result_of(case, row, kind="memory", allocator="stock", floor={"name": "floor", "peak_bytes": 1000})
        return [verdict["met"] for verdict in bars.verdicts([result])]

    assert met(allowed) == [True]
    assert met(allowed + 1) == [False]


def test_every_bar_names_a_comparison_that_is_made():
    cases = {(case.benchmark, case.name, case.dtype) for name in plan.BENCHMARKS for case in plan.cases_of(name)}
    for bar in bars.BARS:
        assert (bar.benchmark, bar.case, bar.dtype) in cases
        case = next(
            one for one in plan.cases_of(bar.benchmark, tiny=True) if (one.name, one.dtype) == (bar.case, bar.dtype)
        )
        names = {entry.name for entry in contenders.build(case, "cpu").entries}
        assert bar.contender in names
        assert not bar.against or bar.against in {*names, "fastest peer"}


def test_a_missed_bar_costs_the_exit_code_only_when_strict():
    done = {"results": [], "failures": [], "bars": [{"met": False}]}
    assert bench_.verdict(done, False, Console()) == 0
    assert bench_.verdict(done, True, Console()) == 1


# Peers. ---------------------------------------------------------------------------------------------------------------


def test_a_peer_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(peers, "version", lambda name: "1.0" if name == "transformers" else None)
    standing = peers.chosen("auto", "cpu")
    assert standing["transformers"] == "1.0"
    assert standing["torchtune"] == "not installed"
    assert standing["flash-attn"] == "needs a GPU"
    assert peers.chosen("auto", "cuda")["flash-attn"] == "not installed"
    with pytest.raises(ValueError, match="torchtune: not installed"):
        peers.chosen("transformers,torchtune", "cpu")
    with pytest.raises(ValueError, match="unknown peer 'torch-tune'"):
        peers.chosen("torch-tune", "cpu")
    assert "torchtune (not installed)" in report.absent({"peers": standing})
    result = compare(case_of("rope", "decode"), peers={**NO_PEERS, "torchtune": "not installed"})
    row = next(row for row in result["rows"] if row["package"] == "torchtune")
    assert row["status"] == "not installed"
    _, rows = report.table([result])
    assert [row["name"], "not installed"] in [shown[:2] for shown in rows]


def test_a_peer_that_breaks_is_said_so(monkeypatch):
    def broken(length, width):
        raise RuntimeError("no such kernel\nand more")

    case = case_of("table", "sinusoidal table")
    monkeypatch.setattr("bench.table._speech_t5", broken)
    result = compare(case, peers={**NO_PEERS, "transformers": "5.23.0"})
    row = next(row for row in result["rows"] if row["name"] == "transformers, SpeechT5")
    assert row["status"] == "failed: RuntimeError: no such kernel"
    assert next(row for row in result["rows"] if row["name"] == "posenc")["status"] == "measured"


# The whole command. ---------------------------------------------------------------------------------------------------


@pytest.mark.acceptance
def test_end_to_end(tmp_path):
    out = tmp_path / "new"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "posenc",
            "bench",
            "table",
            "--scale",
            "tiny",
            "--peers",
            "none",
            "--threads",
            "1",
            "--seconds",
            "0.001",
            "--rounds",
            "2",
            "--json",
            "--out",
            str(out),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said == json.loads((out / "results.json").read_text())
    assert said["complete"]
    assert {"cpu", "cores", "memory_gib", "torch", "kernels", "why_no_kernels", "triton", "date", "libc"} <= said[
        "machine"
    ].keys()
    assert said["peers"] == NO_PEERS
    settings = {(result["case"]["benchmark"], result["allocator"], result["threads"]) for result in said["results"]}
    assert settings == {("table", "large", 1), ("table", "stock", 1)}
    ours = next(row for row in said["results"][0]["rows"] if row["ours"])
    assert ours["seconds"]["low"] <= ours["seconds"]["median"] <= ours["seconds"]["high"]
    assert ours["gb_per_s"] > 0
    assert max(ours["errors"].values()) <= 3.1e-8
    assert "Kernels on the CPU: " in done.stderr
    assert {path.name for path in out.iterdir()} == {"results.json", "results.md", "table.png", "table.svg"}
    assert "| **posenc** |" in (out / "results.md").read_text()
    peaks = [result for result in said["results"] if result["kind"] == "memory"]
    if sys.platform == "linux":
        assert all(row["peak_bytes"] >= 0 for result in peaks for row in result["rows"] if row["status"] == "measured")
        assert any(row["status"] == "measured" for row in peaks[0]["rows"])


def test_errors_are_shown_by_result_for_tables_and_the_largest_otherwise():
    assert report.error([{"errors": {"q": 1e-3, "k": 2e-3}, "status": "measured"}, {"status": "-"}]) == "2.0e-03"
    own = [
        {"errors": {"to 9": 1e-3, "to 99": 2e-3}, "status": "measured"},
        {"errors": {"to 9": 3e-3}, "status": "measured"},
    ]
    assert report.error(own) == "3.0e-03 to 9, 2.0e-03 to 99"
    assert report.error([{"status": "not installed"}]) == report.NOTHING


def test_out_writes_over_nothing(tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    for taken in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(FileExistsError, match="name a new folder"):
            bench_.fresh(taken)
    assert bench_.fresh(tmp_path / "a" / "b").is_dir()


def test_pictures_that_cannot_be_drawn_are_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match="matplotlib"):
        bench_.fresh(tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.fixture
def handlers():
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_an_interruption_keeps_what_is_finished(monkeypatch, tmp_path, capsys):
    case = plan.table(tiny=True)[0]

    def interrupted(job, request):
        yield {"event": "begun", "title": case.title}
        yield {"event": "result", "result": result_of(case, timed("posenc", 2.0, True, speedup={}))}
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "events", interrupted)
    with pytest.raises(typer.Exit) as stopped:
        bench_.command(["table"], peers="none", threads="1", scale="tiny", out=tmp_path / "new", as_json=True)
    assert stopped.value.exit_code == 130
    kept = json.loads((tmp_path / "new" / "results.json").read_text())
    assert len(kept["results"]) == 1
    assert not kept["complete"]
    said = capsys.readouterr()
    assert json.loads(said.out) == kept
    assert "finished results" in said.err


@pytest.mark.acceptance
def test_a_worker_that_dies_is_reported(monkeypatch):
    job = runner.Job("table", "time", "stock", 1, ({"benchmark": "table", "name": "no such case", "extra": 1},))
    found = list(runner.events(job, runner.Request(benchmarks=("table",))))
    assert found[-1]["event"] == "broken"
    assert "extra" in found[-1]["why"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so():
    job = runner.Job("table", "time", "stock", 1, ())
    assert list(runner.events(job, runner.Request(device="cuda")))[-1]["why"].endswith("torch finds no GPU here")


def test_workers_have_the_allocator_and_threads_they_are_named_after(monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "77")
    large = runner.environment(runner.Job("rope", "time", "large", 2, ()))
    stock = runner.environment(runner.Job("rope", "time", "stock", 1, ()))
    assert large["MALLOC_MMAP_THRESHOLD_"] == large["MALLOC_TRIM_THRESHOLD_"] == str(2**30)
    assert "MALLOC_TRIM_THRESHOLD_" not in stock
    assert (large["OMP_NUM_THREADS"], stock["OMP_NUM_THREADS"]) == ("2", "1")


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (["ropes"], "ropes"),
        (["--device", "tpu"], "tpu"),
        (["--threads", "0"], "numbers from 1"),
        (["--peers", "x"], "unknown peer"),
        (["--seconds", "-1"], "positive"),
        (["--scale", "huge"], "huge"),
    ],
)
def test_wrong_use_is_refused_before_anything_runs(words, about):
    arguments = {
        "benchmarks": [],
        "device": "cpu",
        "peers": "none",
        "threads": "",
        "seconds": 1.0,
        "rounds": None,
        "sweep": False,
        "scale": "full",
        "memory": True,
    }
    if words[0].startswith("--"):
        name, value = words[0][2:], words[1]
        arguments[name] = float(value) if name == "seconds" else value
    else:
        arguments["benchmarks"] = words
    with pytest.raises(typer.BadParameter, match=about):
        bench_.checked_request(**arguments)


def test_the_plan_needs_no_torch():
    code = "import sys, bench.runner, bench.report; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_line_about_kernels(monkeypatch):
    monkeypatch.setattr(machine, "kernels", lambda: None)
    monkeypatch.setattr(machine, "instructions", lambda: "neon")
    assert machine.running().startswith("Kernels on the CPU: C++ (neon);")
    assert machine.running("zh").startswith("CPU 内核：C++（neon）；")
    monkeypatch.setattr(machine, "kernels", lambda: "not built")
    assert machine.running().startswith("Kernels on the CPU: plain torch (not built)")
    assert "not built" in machine.running("zh")


def test_growth_is_a_table_and_a_picture(tmp_path):
    cases = [case for case in plan.rope(sweep=True) if case.swept == "length"]
    results = [
        result_of(case, timed("posenc", 2.0, True, speedup={}), {**timed("a", 9.0), "status": "measured"})
        for case in reversed(cases)
    ]
    del results[0]["rows"][1]["ratio"], results[0]["rows"][1]["seconds"]
    results[0]["rows"][1]["status"] = "needs about 9 GiB"
    ((title, headings, rows, ours),) = report.tables(results)
    sizes = [2**n for n in range(4, 16)]
    assert headings == ["tokens", *map(str, sizes), "slope"]
    assert rows[1] == ["posenc", *["20 ms, 2.00×"] * 12, "0.00"]
    assert rows[2] == ["a", *["90 ms, 9.00×"] * 11, "needs about 9 GiB", "0.00"]
    square = [{"seconds": {"median": 1e-6 * size**2}} for size in sizes]
    assert report.slope(sizes, square) == "2.00"
    assert report.slope(sizes, [{"status": "failed"}] * 12) == report.slope(sizes[:1], square[:1]) == "–"
    assert ours == {"posenc"}
    done = {"results": results, "bars": [], "peers": NO_PEERS, "machine": machine.facts()}
    assert report.write(done, tmp_path) == ["results.json", "results.md", "growth.png", "growth.svg"]
    assert title[1:] in (tmp_path / "results.md").read_text()
    ((_, points),) = [line for name, line in report.curves(done)[0].lines.items() if name == "a"]
    assert points == [(size, 90.0) for size in sizes[:-1]]


def test_the_share_of_pairs_that_may_attend():
    def counted(length, pattern):
        own = length // pattern.documents
        seen = [
            (i, j)
            for i in range(length)
            for j in range(i + 1)
            if i // own == j // own and (pattern.left is None or i - j <= pattern.left)
        ]
        return len(seen)

    for pattern in (plan.Pattern(), plan.Pattern(left=3), plan.Pattern(documents=4), plan.Pattern(left=2, documents=2)):
        assert pattern.pairs(16) == counted(16, pattern)
    assert plan.Pattern(documents=4).share(16) == 4 * 10 / 136


def test_a_row_says_its_share_of_the_pairs():
    """Counted in a mask of all pairs, for the patterns as their names have them."""
    case = case_of("visible", "RoPE", length=1024)
    back = torch.arange(1024)[:, None] - torch.arange(1024)
    rows = []
    for entry in visible.build(case).entries:
        seen = back >= 0
        if "window of" in entry.name:
            seen &= back < int(re.search(r"window of (\d+)", entry.name)[1])
        if "documents" in entry.name:
            own = torch.arange(1024) // (1024 // int(entry.name.split()[0]))
            seen &= own[:, None] == own
        assert entry.share == pytest.approx(seen.sum().item() / (1024 * 1025 / 2), rel=1e-12), entry.name
        rows.append(timed(entry.name, 0.5, True, share=entry.share))
    headings, (floor, *shown) = report.table([result_of(case, *rows)])
    assert headings[:3] == ["", "ratio (large, 1 thread)", "share of pairs"]
    assert floor[2] == "1"
    assert {row[0]: row[2] for row in shown}["16 documents"] == "0.063"
    assert "share of pairs" not in report.table([result_of(case, timed("a", 0.5))])[0]


def test_costs_grow_in_a_sweep():
    swept = [case for case in plan.rope(sweep=True) if case.swept == "length"]
    assert [case.length for case in swept] == [2**n for n in range(4, 16)]
    assert {case.swept for case in plan.bias(sweep=True)} == {"", "length", "heads", "batch"}
    first, *others = runner.jobs(runner.Request(threads=(1, 2), sweep=True, benchmarks=("rope",), memory=False))
    assert [job.threads for job in (first, *others)] == [1, 2, 1]
    assert len(first.cases) == len(others[0].cases) > len(others[1].cases)  # the last one: glibc's own settings


# posenc bench ---------------------------------------------------------------------------------------------------------


def test_what_encodings_cost_here(monkeypatch):
    monkeypatch.setattr(costs, "SECONDS", 0.0)
    monkeypatch.setattr(costs, "FEWEST", 2)
    for tokens in ("SHORT", "LONG"):
        monkeypatch.setattr(costs, tokens, 128)
    monkeypatch.setattr(costs, "MEASURED", {name: (how, 128) for name, (how, _) in costs.MEASURED.items()})
    done = in_process.posenc("bench", "rope", "lappe", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["entries"]) == ["rope", "lappe"]
    assert found["conditions"]["sizes"]["d_model"] == costs.D_MODEL
    for row in found["entries"].values():
        assert row.keys() == {"memory", *choose_costs.MEASURES}
        assert all(one.keys() == {"why"} or 0 < one["low"] <= one["median"] <= one["high"] for name, one in row.items()
                   if name != "memory")  # fmt: skip
    shown = in_process.posenc("bench", "nope", "--lang", "zh").stdout
    assert "超出 NoPE 的内存" in " ".join(shown.split())
    assert re.search(r"^ *nope +\d", shown, re.MULTILINE)


def test_a_name_that_is_no_encoding_is_refused_before_anything_is_measured():
    done = in_process.posenc("bench", "rope", "alibee")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown encoding 'alibee'" in " ".join(done.stderr.split())
    assert "1/" not in done.stderr
    assert len(in_process.posenc("bench", "x" * 2000).stderr) < 1000
