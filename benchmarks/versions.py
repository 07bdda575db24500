"""Fits on MNIST by this version of the library and by another one, taking turns.

    ATTOP_DATA=folder python benchmarks/versions.py OTHER [--rounds 4] [--n 45000]

OTHER is the interpreter of an environment with the other version: a worktree of its commit and
``pip install`` into an environment of its own.  Both keep a process that has the samples; fits
take turns, and the least seconds of each count, as a quiet machine would show them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

METHODS = {
    "TopPush": {},
    "TopPushK": {"K": 10},
    "TauFPL": {"tau": 0.05},
    "PatMatNP(0.01)": {"tau": 0.01},
    "PatMatNP(0.05)": {"tau": 0.05},
}
LAMBDAS = (1e-3, 1e-5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", help="the other interpreter")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--n", type=int, default=45_000)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        answer(options.n)
        return
    if options.other is None:
        parser.error("name the interpreter of the other version")
    pairs = [Fits(sys.executable, options.n), Fits(options.other, options.n)]
    print(f"{'fit':32s} {'this, s':>8s} {'other, s':>9s} {'this : other':>13s}")
    for lam in LAMBDAS:
        for name in METHODS:
            times = [[fits.seconds(name, lam) for fits in pairs] for _ in range(options.rounds)]
            this, other = (min(column) for column in zip(*times, strict=True))
            print(
                f"{name:20s} {f'lambda {lam:g}':11s} {this:8.2f} {other:9.2f} {this / other:13.2f}"
            )


class Fits:
    """A process with one version of the library, which fits what it is told."""

    def __init__(self, python: str, n: int) -> None:
        command = [python, str(Path(__file__).resolve()), "--child", "--n", str(n)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, name: str, lam: float) -> float:
        """The seconds of a fit, which must have converged."""
        assert self.process.stdin and self.process.stdout
        print(name, lam, file=self.process.stdin, flush=True)
        seconds, status = self.process.stdout.readline().split(maxsplit=1)
        if "CONVERGED" not in status:
            raise RuntimeError(f"{name}, lambda {lam:g}: {status}")
        return float(seconds)


def answer(n: int) -> None:
    """Fit what is asked for by lines of standard input: a method and its lambda."""
    import numpy as np

    import attop

    X, positive = samples(n)
    estimators = {name: getattr(attop, name.split("(")[0]) for name in METHODS}
    attop.TauFPL(C=1.0, kernel="rbf").fit(X[:5000], positive[:5000])  # compiled code is loaded
    for line in sys.stdin:
        name, lam = line.split()
        C = 1.0 / (float(lam) * np.count_nonzero(positive))
        model = estimators[name](
            C=C, kernel="rbf", gamma=1.0 / X.shape[1], tol=1e-4, random_state=0, **METHODS[name]
        )
        began = time.perf_counter()
        model.fit(X, positive)
        print(time.perf_counter() - began, repr(model.status_), flush=True)


def samples(n: int):
    """The first samples of MNIST in single precision, and which of them are the digit 1."""
    import numpy as np

    with np.load(Path(os.environ["ATTOP_DATA"]) / "mnist.npz") as file:
        X, y = file["x_train"][:n], file["y_train"][:n]
    return X.reshape(len(X), -1).astype(np.float32) / 255.0, y == 1


if __name__ == "__main__":
    main()
