"""Runs trials as tasks of a Ray cluster, one core (or device) each. Trials of a lost machine are run again on another.

The cluster is the one at `address` or RAY_ADDRESS, else one that runs on this machine, else a cluster of this machine
alone, which is started and ended with the sweep. posenc must be installed on every machine of the cluster.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.engines.engine import Context, Event, finish_elsewhere, line
from posenc.support.extras import missing

if TYPE_CHECKING:
    from posenc.lab.experiment import Trial

RETRIES = 3  # retries of a trial whose process or machine was lost
LOOK_AGAIN, PATIENCE = 1.0, 5.0  # seconds


class Ray:
    """Runs `workers` trials at a time; None: as many as the cluster has cores, or devices."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ModuleNotFoundError:
            raise missing("ray", what="--engine ray") from None
        self._ray: Any = ray
        self._asked, self._kind, self._mine = workers, "CPU", not ray.is_initialized()
        if self._mine:
            if address is not None:
                _reach(address)
            try:
                ray.init(address=address or "auto", log_to_driver=False)
            except ConnectionError:
                if address is not None:
                    raise
                ray.init(address="local", _node_ip_address="127.0.0.1", include_dashboard=False, log_to_driver=False)

    @property
    def workers(self) -> int:
        return self._asked or max(1, int(self._ray.cluster_resources().get(self._kind, 0)))

    def run(self, trials: Sequence[Trial], context: Context) -> Generator[Event, None, None]:
        ray, devices = self._ray, int(context.hardware.device != "cpu")
        self._kind = "GPU" if devices else "CPU"
        task = ray.remote(num_cpus=1, num_gpus=devices, max_retries=RETRIES)(finish_elsewhere)
        text = None if context.text is None else ray.put(context.text)
        waiting, running = list(enumerate(trials))[::-1], dict[Any, int]()
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    number, trial = waiting.pop()
                    if context.reserve(number):
                        expected = context.provenance[number]
                        running[task.remote(trial, text, context.hardware, context.train, expected)] = number
                for done in ray.wait(list(running), timeout=LOOK_AGAIN)[0] if running else ():
                    yield self._end(running.pop(done), done)
                for number in running.values():
                    yield Event(number, 0.0)
        finally:
            for left in running:
                ray.cancel(left, force=True)

    def close(self) -> None:
        if self._mine:
            self._ray.shutdown()

    def _end(self, number: int, done: Any) -> Event:
        try:
            return Event(number, 1.0, value=self._ray.get(done))
        except self._ray.exceptions.RayTaskError as error:
            return Event(number, 1.0, failure=line(error.cause))
        except self._ray.exceptions.RayError as error:
            return Event(number, 1.0, failure=line(error))


def _reach(address: str) -> None:
    """Raises ValueError if nothing listens at the address; Ray would try for two minutes and then end the process."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except (OSError, ValueError) as error:
        raise ValueError(f"--address: expected HOST:PORT of a running Ray cluster, got {address!r}: {error}") from None
