"""Progress of a sweep: a live table in a terminal, otherwise one line per finished trial.

task            done   running                      last
language_model  7/18   rope s0 43%  alibi s1 12%    t5 s0: 2.84
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from posenc.terminal.progress import clock

if TYPE_CHECKING:
    from rich.console import Console

    from posenc.lab.experiment import Experiment, Trial
    from posenc.lab.run.sweep import Update

Tell = Callable[["Update"], None]
AT_MOST = 4  # running trials shown for a task


@contextmanager
def shown(experiment: Experiment, console: Console, called: str = "posenc lab") -> Iterator[Tell]:
    state = State(experiment)
    if not console.is_terminal:

        def say(update: Update) -> None:
            if line := state.line(update):
                console.print(f"{called}: {line}", soft_wrap=True, markup=False)

        yield say
        return
    from rich.live import Live

    with Live(console=console, transient=True, get_renderable=state.table, refresh_per_second=4) as live:

        def show(update: Update) -> None:
            line = state.line(update)
            if line and (update.what in ("failed", "note") or (update.line and update.what == "done")):
                live.console.print(f"{called}: {line}", soft_wrap=True, markup=False)

        yield show


class State:
    """The state of the sweep, updated by every message."""

    def __init__(self, experiment: Experiment) -> None:
        self.total, self.done, self.reused = 0, 0, 0
        self.left: float | None = None
        self.tasks = [plan.task.name for plan in experiment.tasks]
        self.wanted, self.ended = dict.fromkeys(self.tasks, 0), dict.fromkeys(self.tasks, 0)
        for trial in (*experiment.tuning(), *experiment.trials()):
            self.wanted[trial.task.name] += 1
        self.running: dict[Trial, float] = {}
        self.last: dict[str, str] = {}
        self.stage = ""
        self.began = False

    def line(self, update: Update) -> str:
        """Applies the update. Returns the line to print, or an empty string."""
        self.done, self.total, self.left = update.done, update.total, update.left
        trial, name = update.trial, str(update.trial)
        if update.what == "running":
            assert trial is not None
            self.running[trial], self.stage = update.share, ""
            return self.beginning()
        if update.what == "measuring":
            return self.once(f"measuring {update.line}")
        if update.what == "note":
            return update.line or ""
        if update.what == "elsewhere":
            return self.once(f"{name}: another sweep runs it")
        assert trial is not None
        self.running.pop(trial, None)
        self.ended[trial.task.name] += 1
        if update.what == "found":
            self.reused += 1
            return ""
        outcome = f"{'failed' if update.what == 'failed' else 'diverged'}: {update.line}" if update.line else scored(update)
        self.last[trial.task.name] = f"{short(trial)}{outcome and ': ' + outcome}"
        return f"{self.done} of {self.total}  {name}{outcome and ': ' + outcome}" + f"  {self.clock()}".rstrip()

    def beginning(self) -> str:
        """The first line: how many trials were found."""
        if self.began:
            return ""
        self.began = True
        return f"{self.reused} of {self.total} trials found, {self.total - self.reused} to run"

    def once(self, what: str) -> str:
        repeated, self.stage = self.stage == what, what
        return "" if repeated else what

    def clock(self) -> str:
        return "" if self.left is None else clock(self.left)

    def table(self) -> Any:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=self.caption(), caption_justify="left")
        for heading in ("task", "done", "running", "last"):
            table.add_column(
                heading,
                justify="right" if heading == "done" else "left",
                no_wrap=heading != "running",
                min_width={"running": 26, "last": 20}.get(heading),
            )
        for task in self.tasks:
            now = [(trial, share) for trial, share in self.running.items() if trial.task.name == task]
            running = "  ".join(f"{short(trial)} {share:.0%}" for trial, share in now[:AT_MOST])
            more = f"  +{len(now) - AT_MOST}" if len(now) > AT_MOST else ""
            table.add_row(
                Text(task), f"{self.ended[task]}/{self.wanted[task]}", Text(running + more), Text(self.last.get(task, ""))
            )
        return table

    def caption(self) -> str:
        stage = self.stage if self.stage.startswith("measuring ") else f"{self.done} of {self.total} trials"
        return f"{stage}  {self.clock()}".rstrip()


def short(trial: Trial) -> str:
    """rope s0; rope tuning, rate 0.002."""
    name = str(trial).removeprefix(f"{trial.task.name} ")
    return name.replace(" seed ", " s")


def scored(update: Update) -> str:
    """The score at the trained length, as text."""
    return "" if update.score is None else f"{update.score:.2f}"
