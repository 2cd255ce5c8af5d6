"""One trial: train a model on a task, score it at every length.

    batch ─► Σ loss / targets ─► gradients ─► clip ─► AdamW

All arms of a seed see the same rows in the same order and start from the same shared weights. The learning rate warms up
and decays linearly. Lightning Fabric handles precision and devices.
"""

from __future__ import annotations

import copy
import logging
import math
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import posenc
from posenc.encodings.rope import RoPE
from posenc.lab.experiment import Precision, Trial
from posenc.lab.experiment.change import DROP, Change, Then
from posenc.lab.records import learning_curve
from posenc.lab.records.record import SAME_TARGETS, Record, Rows
from posenc.lab.tasks.task import IGNORE, Task
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial.attention_profile import Profile
from posenc.lab.trial.kept_weights import KeptWeights, rows_of
from posenc.lab.trial.model import Transformer, seed_of
from posenc.lab.trial.optimiser import groups, schedule
from posenc.lab.trial.placed import Placed
from posenc.lab.trial.rope_rescaling import changed, wearing
from posenc.lab.trial.scoring import add_scored, loss_at, score_draws, score_last_window, score_lengths, scores

if TYPE_CHECKING:
    from lightning_fabric import Fabric

logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # suppresses banners

Report = Callable[[float], None]
TRAINING = 0.9  # share of a trial's progress; the rest is scoring
POINTS = 20  # points of the training curve
FOLLOWED = 32  # held-out rows whose loss at the longest length is recorded during training
CAUSAL_ONLY = "causal only"


@dataclass(frozen=True)
class Hardware:
    """The hardware of a trial: "cpu" or "cuda"."""

    device: str = "cpu"

    def fabric(self, precision: Precision) -> Fabric:
        with warnings.catch_warnings():  # imported here, so that reading results does not wait for it
            warnings.simplefilter("ignore")
            from lightning_fabric import Fabric
            from lightning_fabric.plugins.environments.lightning import LightningEnvironment
        fabric = Fabric(
            accelerator="cpu" if self.device == "cpu" else "cuda",
            devices=1,
            precision=precision,
            plugins=[LightningEnvironment()],  # SLURM, MPI and torchrun are not detected: a trial has one process
        )
        fabric.launch()
        return fabric


def ignore(_: float) -> None:
    pass


def run_trial(
    trial: Trial, text: Corpus | None, hardware: Hardware = Hardware(), report: Report = ignore, weights: Path | None = None
) -> Record:
    """Runs the trial and returns its record. `report` takes the share done.

    `weights` is a folder that keeps trained weights. A trial whose weights are there is scored and not trained again.

    Raises ValueError for a task that needs a text and has none, for `after` without frequencies to change, and for missing
    hardware. Errors of an encoding are passed on.
    """
    if trial.task.reads_text and text is None:
        raise ValueError(f"text: the task {trial.task.name} reads one, got None")
    kept = None
    if weights is not None:
        digest = "" if text is None else text.sha256
        kept = KeptWeights.of(weights, trial.weights_key(digest), trial.key(digest))
    return Run(trial, text, hardware, report, kept).record()


class Run:
    """`record()` runs the whole trial, `losses()` yields the loss of each step, `score()` scores the model as it is."""

    def __init__(
        self,
        trial: Trial,
        text: Corpus | None,
        hardware: Hardware = Hardware(),
        report: Report = ignore,
        kept: KeptWeights | None = None,
    ) -> None:
        self.trial, self.text, self.report, self.kept = trial, text, report, kept
        self.arm = trial.arm
        self.task, self.steps, self.rows_a_step = plan(trial)
        self.fabric = hardware.fabric(trial.precision)
        task = self.task
        self.model = new_model(trial).to(self.fabric.device)
        for name in ("after", "then"):
            if getattr(trial, name) and type(self.model.encoding(0)) is not RoPE:
                raise ValueError(f"{name}: only RoPE has frequencies to change, got {trial.encoding}")
        self.rows, self.profile = Rows(), Profile(task, text, self.steps) if task.shows_attention else None
        self.tokens, self.stepped, self.scored = 0, 0, 0.0
        self.trained_as = dict[str, str]()
        self.trained_on = dict[str, dict[str, Any]]()

    def record(self) -> Record:
        failed, cannot, begun = None, dict[str, str](), time.perf_counter()
        training, scoring = 0.0, begun
        if not self.task.causal and "causal_only" in self.model.encoding(0).traits:
            cannot = {str(length): CAUSAL_ONLY for length in self.task.lengths}
        else:
            if (seconds := self.recall()) is None:
                failed = self.train()
                training = time.perf_counter() - begun
                if self.kept is not None and failed is None:
                    self.kept.keep(self.model.state_dict(), self.rows, self.tokens, training)
            else:
                training, self.stepped = seconds, self.steps
            scoring = time.perf_counter()
            if failed is None:
                with self.fabric.autocast():
                    cannot = self.score()
        self.report(1.0)
        times = {"training": training, "scoring": time.perf_counter() - scoring}
        return Record(self.about(failed, cannot, times), self.rows.table())

    def recall(self) -> float | None:
        """Loads kept weights and what was recorded in their training. Returns the seconds it took, None without weights."""
        if self.kept is None or (kept := self.kept.load()) is None:
            return None
        if self.arm.dropped:
            self.model.drop_positions()
        self.model.load_state_dict(kept["weights"])
        for row in rows_of(kept["rows"]):
            self.rows.add(**row)
        self.tokens = kept["tokens"]
        if kept["key"] != self.kept.key:
            self.trained_as = {"trained_as": kept["key"]}
        seconds: float = kept["seconds"]
        return seconds

    def train(self) -> str | None:
        """Trains in place. Returns the reason if training ended early, else None."""
        since, every = list[float](), max(1, self.steps // POINTS)
        self.watch(0)
        for step, loss in enumerate(self.losses(), start=1):
            if not math.isfinite(loss):
                return f"the loss became NaN or infinite at step {step}; lower learning_rate"
            since.append(loss)
            if step % every == 0 or step == self.steps:
                self.rows.add("curve", sum(since) / len(since), step=step)
                since.clear()
                self.follow(step)
            self.watch(step)
            self.progress()
        return None

    def progress(self) -> None:
        """Reports the share done: of all steps, those after a change among them, and of scoring."""
        steps = self.steps + sum(then.steps for then in self.trial.then)
        self.report(TRAINING * self.stepped / steps + (1 - TRAINING) * self.scored)

    def follow(self, step: int) -> None:
        """Records the loss at the longest length in the last fifth of the steps."""
        length = max(self.task.lengths)
        if not self.task.follows_far or step < self.steps * (1 - learning_curve.LAST):
            return
        with self.fabric.autocast():
            bits = loss_at(self.model, self.arm, self.task, length, self.text, FOLLOWED)
        if bits is not None:
            self.rows.add("far", bits, step=step, length=length)
        self.model.train()

    def watch(self, step: int) -> None:
        if self.profile is not None and step in self.profile.steps:
            with self.fabric.autocast():
                self.profile.look(self.model, step, self.rows)
            self.model.train()

    def losses(self) -> Iterator[float]:
        """Takes one training step per iteration and yields its loss in bits per target."""
        phases = self.arm.phases(self.steps)
        return self.steps_of(self.model, self.task, self.rows_a_step, phases, self.trial.training.learning_rate)

    def steps_of(
        self, model: Transformer, task: Task, rows: int, phases: list[tuple[int, int]], rate: float, name: str = ""
    ) -> Iterator[float]:
        """The same for a model and a task. Other `name`s draw other rows."""
        training, seed = self.trial.training, self.trial.seed
        data = torch.Generator().manual_seed(seed_of(f"data{name}", seed))
        places = torch.Generator().manual_seed(seed_of(f"positions{name}", seed))
        optimizer: Any = torch.optim.AdamW(groups(model, training.weight_decay), betas=training.betas, fused=True)
        objective, optimizer = self.fabric.setup(Objective(model), optimizer, _reapply_compile=False)
        model.train()
        for step, (begin, end) in ((step, phase) for phase in phases for step in range(*phase)):
            if step == begin > 0:
                model.drop_positions()
            for group in optimizer.param_groups:
                group["lr"] = rate * schedule(step - begin, end - begin, training.warmup)
            batch = task.training_batch(rows, data, self.text)
            at = self.arm.training_positions(task, batch.tokens, places)
            n_targets = max(1, int((batch.targets != IGNORE).sum()))
            loss = objective(Placed(batch.tokens, batch.targets, at, self.fabric.device)) * (1 / n_targets)
            optimizer.zero_grad()
            self.fabric.backward(loss)
            self.fabric.clip_gradients(objective, optimizer, max_norm=training.clip, error_if_nonfinite=False)
            optimizer.step()
            self.tokens += batch.tokens.numel()
            self.stepped += 1
            yield loss.item() / math.log(2)

    def score(self) -> dict[str, str]:
        def report(share: float) -> None:
            self.scored = share
            self.progress()

        cannot = score_lengths(self.model, self.arm, self.task, self.text, self.rows, report)
        score_draws(self.model, self.arm, self.task, self.text, self.rows, self.trial.draws, cannot)
        if len(cannot) < len(self.task.lengths):
            score_last_window(self.model, self.arm, self.task, self.text, self.rows, self.trial.draws)
        self.score_changes()
        for then in self.trial.then:
            self.train_on(then)
        return cannot

    def train_on(self, then: Then) -> None:
        """Trains a copy of the model on after a change, and scores it at every length."""
        begun, before, every = time.perf_counter(), self.tokens, max(1, then.steps // POINTS)
        model, losses = self.losses_after(then)
        bits, since = math.nan, list[float]()
        for step, bits in enumerate(losses, start=1):
            since.append(bits)
            if step % every == 0 or step == then.steps:
                self.rows.add("then", sum(since) / len(since), step=step, change=then.word)
                since.clear()
            self.progress()
        about: dict[str, Any] = {"tokens": self.tokens - before, "seconds": time.perf_counter() - begun}
        self.tokens = before
        if math.isfinite(bits):
            about["bits"] = bits
            for length in self.task.lengths:
                batch = self.task.scored(length, self.text)
                result = scores(model, batch.tokens, batch.targets)
                if result.finite:
                    add_scored(self.rows, self.task, [result], batch, mode=SAME_TARGETS, length=length, change=then.word)
            score_last_window(model, self.arm, self.task, self.text, self.rows, change=then.word)
        self.trained_on[then.word] = about

    def losses_after(self, then: Then) -> tuple[Transformer, Iterator[float]]:
        """A changed copy of the model, and its steps of training: each iteration takes one and yields its loss."""
        model, trained, change = copy.deepcopy(self.model), self.task.tokens(self.task.length), then.change
        task = self.task.model_copy(update={"length": then.length})
        longer = task.tokens(then.length)
        if change == DROP:
            model.drop_positions()
        else:
            rope, parsed = model.encoding(0), Change.parse(change)
            assert isinstance(rope, RoPE)
            model.encodings = nn.ModuleList([changed(rope, parsed.method, parsed.factor_at(longer / trained), trained)])
        rows, rate = max(1, round(self.rows_a_step * trained / longer)), then.learning_rate
        rate = self.trial.training.learning_rate if rate is None else rate
        return model, self.steps_of(model, task, rows, [(0, then.steps)], rate, f" {then.word}")

    def score_changes(self) -> None:
        """Scores the model with changed RoPE frequencies, at every length where the factor is not 1.

        Cut to the trained length it is the model as trained, unless the factor is the same at every length.
        """
        rope, trained = self.model.encoding(0), self.task.tokens(self.task.length)
        changes = [(word, Change.parse(word)) for word in self.trial.after]
        for length in self.task.lengths:
            factors = {word: change.factor_at(self.task.tokens(length) / trained) for word, change in changes}
            if all(factor == 1 for factor in factors.values()):
                continue
            batch = self.task.scored(length, self.text)
            for word, change in changes:
                if factors[word] == 1:
                    continue
                assert isinstance(rope, RoPE)
                with wearing(self.model, changed(rope, change.method, factors[word], trained)):
                    result = scores(self.model, batch.tokens, batch.targets)
                    if length == self.task.length:
                        score_last_window(self.model, self.arm, self.task, self.text, self.rows, change=word)
                if result.finite:
                    add_scored(self.rows, self.task, [result], batch, mode=SAME_TARGETS, length=length, change=word)

    def about(self, failed: str | None, cannot: dict[str, str], seconds: dict[str, float]) -> dict[str, Any]:
        return {
            "format": 1,
            "trial": self.trial.model_dump(mode="json"),
            "seconds": seconds,
            "trained_tokens": self.tokens,
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "encoding_parameters": self.model.encoding_parameters(),
            "failed": failed,
            "cannot": cannot,
            "chance": {str(length): self.task.chance(length) for length in self.task.lengths},
            "baseline": self.task.baseline(self.text),
            "machine": machine(self.fabric.device),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            **self.trained_as,
            **({"then": self.trained_on} if self.trained_on else {}),
        }


class Objective(nn.Module):
    """The sum of the losses of a batch, in nats; a module, as Lightning Fabric sets it up."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Placed) -> Tensor:
        hidden = self.model.hidden(batch.tokens, self.model.prepare(batch.at))
        logits = self.model.logits(batch.at_targets(hidden))
        return F.cross_entropy(logits.float(), batch.targets, reduction="sum")


def new_model(trial: Trial) -> Transformer:
    """Learned tables have the positions that are seen in training."""
    arm, (task, _, _) = trial.arm, plan(trial)
    seen = arm.trained_positions(task)
    return Transformer(arm, trial.size, vocabulary=task.vocabulary, causal=task.causal, positions=seen, seed=trial.seed)


def plan(trial: Trial) -> tuple[Task, int, int]:
    """Task, steps and rows per step. An oracle trains at the longest length, with equal tokens per step and in total."""
    task, steps, rows = trial.task, trial.training.steps, trial.training.rows
    if not trial.oracle:
        return task, steps, rows
    there = task.model_copy(update={"length": max(task.lengths)})
    tokens, longer = rows * task.tokens(task.length), there.tokens(there.length)
    fewer = max(1, round(tokens / longer))
    return there, max(1, round(steps * tokens / (fewer * longer))), fewer


def machine(device: torch.device) -> dict[str, Any]:
    environment = {
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "posenc": posenc.__version__,
        "python": platform.python_version(),
        "platform": platform.system(),
        "device": str(device.type),
    }
    return environment | ({"gpu": torch.cuda.get_device_name(device)} if device.type == "cuda" else {})
