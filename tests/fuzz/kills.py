"""Workers of a cluster killed at random moments of an experiment, and of fits.

``python tests/fuzz/kills.py --experiment 10 --fit 5 --seed 0`` kills ten workers during one run of
``attop run --dask`` and five during each of the fits.  Scheduler and workers are processes of their
own, started by Dask's commands.  No result may be missing or another one than without kills, and
a fit must end with the optimum or with an error that says what happened.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from clusters import Cluster, environment, until

#: What differs between two runs of the same experiment, wherever it stands in a result.
TIMES = ("seconds", "time", "host", "stats", "history")
#: Methods that the fits of take turns, with their parameters.
FITS = {
    "TauFPL": {"tau": 0.05},
    "SVM": {"surrogate": "quadratic_hinge"},
    "PatMat": {"tau": 0.4},
    "TopPush": {},
}
EXPERIMENT = """
name = "killed"
seeds = {seeds}
metrics = ["roc_auc", "tpr_at_fpr_0.01"]
datasets = ["Ionosphere"]
[[methods]]
method = "TauFPL"
tau = 0.2
grid = {{lambda = [1e-4, 1e-3, 1e-2, 1e-1]}}
[[methods]]
method = "TopPushK"
K = 3
grid = {{lambda = [1e-4, 1e-3, 1e-2, 1e-1]}}
"""


class Killer:
    """Kills workers at random moments, until so many have died or the context ends."""

    def __init__(self, cluster: Cluster, count: int, pause: float, rng: random.Random):
        self.cluster, self.count, self.pause, self.rng = cluster, count, pause, rng
        self.kills = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while self.kills < self.count and not self._ended.wait(self.rng.uniform(0.0, self.pause)):
            self.cluster.kill(self.rng)
            self.kills += 1


def results_of(store: Path) -> dict[str, object]:
    """The results of a store, by their files, without what every run has its own of."""
    found = {}
    for path in sorted(store.rglob("*.json")):
        found[str(path.relative_to(store))] = _timeless(json.loads(path.read_text()))
    return found


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if not any(t in k for t in TIMES)}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def experiment(cluster: Cluster, folder: Path, count: int, seeds: int, rng: random.Random) -> str:
    """Run an experiment while workers die; what went wrong, if anything."""
    path = folder / "killed.toml"
    path.write_text(EXPERIMENT.format(seeds=list(range(seeds))))
    command = [
        sys.executable,
        "-c",
        "from attop.cli import main; main()",
        "run",
        str(path),
        "--store",
    ]
    plain = subprocess.run(
        [*command, str(folder / "plain")], env=environment(), capture_output=True, text=True
    )
    if plain.returncode:
        return f"it fails without kills: {plain.stdout}{plain.stderr}"
    expected = results_of(folder / "plain")
    kills, runs = 0, 0
    while kills < count:  # it may be over before
        killed, runs = folder / f"killed{runs}", runs + 1
        with subprocess.Popen(
            [*command, str(killed), "--dask", cluster.address],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ) as process:  # fmt: skip
            # The plan comes first.
            until(lambda: len([*killed.rglob("*.json")]) > 1 or process.poll() is not None)  # noqa: B023
            with Killer(cluster, count - kills, 0.5, rng) as killer:
                out = process.communicate()[0]
        kills += killer.kills
        print(f"experiment: {killer.kills} kills, exit status {process.returncode}", flush=True)
        if process.returncode:
            return out
        got = results_of(killed)
        if expected.keys() != got.keys():
            return f"results are missing, or too many: {expected.keys() ^ got.keys()}"
        other = [name for name in expected if expected[name] != got[name]]
        if other:
            return f"other results: {other}, such as {expected[other[0]]}, {got[other[0]]}"
    return ""


def block(number: int, pause: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples and labels, which take their time to be read."""
    time.sleep(pause)
    rng = np.random.default_rng(number)
    y = rng.random(2000) < 0.2
    X = rng.normal(size=(2000, 8))
    X[y] += 0.8
    return X, y.astype(int)


def lazy_samples(pause: float, blocks: int = 20):
    """All samples, to be read anew in every pass."""
    import dask.array as da
    from dask import delayed

    parts = [delayed(block, pure=False)(number, pause) for number in range(blocks)]
    X = [da.from_delayed(part[0], (2000, 8), np.float64) for part in parts]
    y = [da.from_delayed(part[1], (2000,), np.int64) for part in parts]
    return da.concatenate(X), da.concatenate(y)


def fit(
    cluster: Cluster, name: str, count: int, pause: float, rng: random.Random, blocks: int = 20
) -> str:
    """Fit while workers die; what went wrong, if anything."""
    import attop.dask

    kind = getattr(attop.dask, f"Dask{name}")
    settings = {"C": 0.01, "client": cluster.client, "most_rows": 100 * blocks, "tol": 1e-3}
    calm = kind(**FITS[name], **settings).fit(*lazy_samples(0.0, blocks))
    kills = 0
    while kills < count:  # it may be over before
        model, outcome = kind(**FITS[name], **settings), ""
        with Killer(cluster, count - kills, 2.0, rng) as killer:
            try:
                model.fit(*lazy_samples(pause, blocks))
            except RuntimeError as error:
                outcome = str(error)
        kills += killer.kills
        print(f"{name}: {killer.kills} kills, {outcome or model.status_.name.lower()}", flush=True)
        if outcome:
            return "" if "Workers died again and again" in outcome else outcome
        least = max(m.objective_ * (1.0 - m.dual_gap_) for m in (calm, model))
        if max(calm.objective_, model.objective_) > least * (1.0 + 2e-3):
            return f"{model.objective_} instead of {calm.objective_}"
        if model.status_ is not calm.status_:
            return f"{model.status_} instead of {calm.status_}"
    return ""


def main() -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", type=int, default=10, help="kills during the experiment")
    parser.add_argument("--fit", type=int, default=5, help="kills during each fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=120, help="splits of the experiment")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds to read a chunk")
    parser.add_argument("--methods", default=",".join(FITS), help="those of the fits")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = random.Random(options.seed)
    failures = 0
    with TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        outcomes = {}
        if options.experiment:
            outcomes["experiment"] = experiment(
                cluster, Path(folder), options.experiment, options.seeds, rng
            )
        for name in options.methods.split(",") if options.fit else []:
            outcomes[name] = fit(cluster, name, options.fit, options.pause, rng)
        for name, wrong in outcomes.items():
            if wrong:
                failures += 1
                print(f"{name}: {wrong}", flush=True)
        print(f"{cluster.kills} kills, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
