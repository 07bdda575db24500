"""A cluster as users start one: scheduler and workers by Dask's own commands, each a process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

#: A process that says nothing for so long is given up, no sooner: a busy machine may hold it up.
PATIENCE = "600s"
SETTINGS = {
    "distributed.comm.timeouts.connect": PATIENCE,
    "distributed.comm.timeouts.tcp": PATIENCE,
    "distributed.scheduler.worker-ttl": PATIENCE,
}
#: Seconds until a cluster, or a worker in the place of another, is there.
READY = 300.0


def environment() -> dict[str, str]:
    """The environment of the processes."""
    named = {
        f"DASK_{k.replace('.', '__').replace('-', '_').upper()}": SETTINGS[k] for k in SETTINGS
    }
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **named}


class Cluster:
    """A scheduler and workers on this machine, until the end of the context.

    Parameters
    ----------
    folder : Path
        Where they write.
    n_workers : int
        Workers, each with a nanny that starts another in the place of one that has died.
    memory : str
        Limit of the memory of each.
    """

    def __init__(self, folder: Path, n_workers: int = 2, memory: str = "2GB"):
        self.folder, self.n_workers, self.memory = Path(folder), n_workers, memory
        self.kills = 0
        self._processes: list[subprocess.Popen] = []

    def __enter__(self) -> Self:
        import dask
        from distributed import Client

        self._settings = dask.config.set(SETTINGS)
        file = self.folder / "scheduler.json"
        shared = ["--scheduler-file", str(file), "--no-dashboard"]
        self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--idle-timeout", "600s", *shared
        )
        one = ["--death-timeout", "600", "--nthreads", "1", "--memory-limit", self.memory]
        many = ["--nworkers", str(self.n_workers), "--local-directory", str(self.folder)]
        self._start("worker", *shared, *one, *many)
        until(file.exists)
        self.client = Client(scheduler_file=str(file), timeout=READY)
        self.client.wait_for_workers(self.n_workers, timeout=READY)
        return self

    def __exit__(self, *error: object) -> None:
        self.client.close()
        self._settings.__exit__(None, None, None)
        for process in reversed(self._processes):  # the workers first
            process.terminate()
            try:
                process.wait(15.0)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return self.client.scheduler.address

    def workers(self) -> dict[str, int]:
        """The numbers of the workers' processes by their addresses."""
        found = self.client.run(os.getpid, on_error="ignore")
        return {address: pid for address, pid in found.items() if isinstance(pid, int)}

    def kill(self, rng: random.Random) -> None:
        """Kill a worker, once there are as many as there were."""
        until(lambda: len(self.client.scheduler_info(n_workers=-1)["workers"]) == self.n_workers)
        processes = sorted(self.workers().values())
        if processes:
            os.kill(rng.choice(processes), signal.SIGKILL)
            self.kills += 1

    def _start(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *command],
                env=environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)


def until(holds, patience: float = READY) -> None:
    """Wait until something holds."""
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)
