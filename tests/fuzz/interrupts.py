"""Interrupts at random moments of fits, each in a process of its own.

``python tests/fuzz/interrupts.py 200 --seed 0`` makes 200 of them.  Each must end with a
KeyboardInterrupt within a second of the signal, leave the estimator and the threads of BLAS as
they were, and the process able to fit; no process may die.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings

#: Seconds within which the KeyboardInterrupt must have come, those after which nobody waits for it
#: any longer, and those until a process is ready, or has fitted once more.
PROMPT, LONGEST, READY = 1.0, 60.0, 600.0
#: The signal comes at most so many seconds after the first fit has begun.
LATEST = 1.5

FAMILIES = {
    "TopPush": {},
    "TopPushK": {"K": 5},
    "TauFPL": {"tau": 0.05},
    "TopMeanK": {"tau": 0.6},
    "PatMat": {"tau": 0.6, "theta": 0.7},
    "PatMatNP": {"tau": 0.05, "theta": 0.7},
    "SVM": {},
}
SOLVERS = [("exact", "rbf"), ("exact", "linear"), ("pairwise", "rbf"), ("primal", "linear")]
SIZES = (300, 5000)
#: name: (class, parameters, samples)
CASES = {
    f"{family} {surrogate} {solver} {kernel} {n}": (
        family,
        {**own, "surrogate": surrogate, "solver": solver, "kernel": kernel, "C": 10.0},
        n,
    )
    for family, own in FAMILIES.items()
    for surrogate in ("hinge", "quadratic_hinge")
    for solver, kernel in SOLVERS
    for n in SIZES
    if (family, solver) != ("SVM", "primal")
}
CASES |= {
    "Grill": ("Grill", {"tau": 0.1}, 300),
    "GrillNP": ("GrillNP", {"tau": 0.1}, 5000),
    "laplacian": ("TauFPL", {"tau": 0.05, "kernel": "laplacian"}, 5000),
    "poly": ("TopPush", {"kernel": "poly"}, 300),
    "nystroem": ("PatMatNP", {"tau": 0.05, "approximation": "nystroem"}, 5000),
    "nystroem primal": ("TopPushK", {"approximation": "nystroem", "solver": "primal"}, 5000),
    "GridSearchCV": ("GridSearchCV", {}, 300),
    "AtTopCV": ("AtTopCV", {}, 300),
    "NeymanPearsonThreshold": ("NeymanPearsonThreshold", {}, 1000),
}


def problem(name: str):
    """The estimator of a case, and its samples."""
    import numpy as np
    from sklearn.model_selection import GridSearchCV

    import attop
    from attop.calibration import NeymanPearsonThreshold
    from attop.model_selection import AtTopCV

    kind, parameters, n = CASES[name]
    grid = {"C": [0.1, 1.0, 10.0, 100.0]}
    if kind == "GridSearchCV":
        estimator = GridSearchCV(attop.TauFPL(tau=0.1, random_state=0), grid, cv=5)
    elif kind == "AtTopCV":
        estimator = AtTopCV(attop.TauFPL(tau=0.1, random_state=0), grid, random_state=0)
    elif kind == "NeymanPearsonThreshold":
        estimator = NeymanPearsonThreshold(attop.TopPush(), fpr=0.1, random_state=0)
    else:
        estimator = getattr(attop, kind)(**parameters, random_state=0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = X @ rng.normal(size=10) + rng.normal(size=n) > 3.0
    return estimator, X, y


def blas_threads() -> list[int]:
    """Threads of each library."""
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info()]


def inside_fit(error: BaseException) -> bool:
    """Whether the error came out of a `fit` of this library."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.name == "fit" and "attop" in frame.filename for frame in frames)


class Victim:
    """An estimator that is fitted, for others to interrupt.

    The first fit, which loads what is compiled, is over when it is made.
    """

    def __init__(self, name: str) -> None:
        from sklearn.base import clone

        warnings.simplefilter("ignore")
        # Processes of a background job inherit that interrupts are ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.estimator, self.X, self.y = problem(name)
        first = clone(self.estimator)
        if getattr(first, "solver", "") == "pairwise":
            first.set_params(max_iter=200)  # all of its steps would take long
        first.fit(self.X, self.y)
        self.fitted = {k: v for k, v in vars(first).items() if k not in first.get_params()}
        self.threads = blas_threads()

    def fit_until_interrupted(self, ready=lambda: None) -> float:
        """Fit again and again; when the interrupt came.  Raises what must not be."""
        from sklearn.base import clone

        # Every other estimator has been fitted before.
        models = [clone(self.estimator), clone(self.estimator)]
        models[0].__dict__.update(self.fitted)
        befores = [dict(vars(model)) for model in models]
        try:
            ready()
            while True:
                for model, before in zip(models, befores, strict=True):
                    clone(self.estimator).fit(self.X, self.y)
                    model.fit(self.X, self.y)
                    model.__dict__ = dict(before)
        except KeyboardInterrupt as error:
            came = time.monotonic()
            # Those of scikit-learn begin to change before their fit is over.
            if type(models[0]).__module__.startswith("attop") and inside_fit(error):
                for model, before in zip(models, befores, strict=True):
                    after = vars(model)
                    same = after.keys() == before.keys()
                    if not same or any(after[name] is not before[name] for name in before):
                        raise AssertionError("the estimator has changed") from error
        if blas_threads() != self.threads:
            raise AssertionError("the threads of BLAS are not what they were")
        return came


def victim(name: str) -> None:
    """The process that is interrupted."""
    one = Victim(name)
    came = one.fit_until_interrupted(lambda: print("go", flush=True))
    print("KeyboardInterrupt", came, flush=True)
    again, X, y = problem(name)
    if getattr(again, "solver", "") == "pairwise":
        again.set_params(max_iter=200)
    again.fit(X, y)
    print("fits", flush=True)


def interrupt(name: str, delay: float) -> tuple[str, float]:
    """Interrupt a fresh process: what went wrong, if anything, and the seconds it took."""
    command = [sys.executable, "-X", "faulthandler", __file__, "--victim", name]
    # Without a buffer: lines that come together are read one by one, and none is lost in between.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None

    def rest(timeout: float | None = None) -> tuple[str, str]:
        out, err = process.communicate(timeout=timeout)
        return out.decode(), err.decode()

    if not select.select([process.stdout], [], [], READY)[0]:
        process.kill()
        return "never ready", 0.0
    if process.stdout.readline() != b"go\n":
        return "no start\n" + rest()[1], 0.0
    time.sleep(delay)
    sent = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    if not select.select([process.stdout], [], [], LONGEST)[0]:
        process.kill()
        return "hangs\n" + rest()[1], LONGEST
    first = process.stdout.readline().decode()
    try:
        out, err = rest(READY)
    except subprocess.TimeoutExpired:
        process.kill()
        return "does not fit again\n" + rest()[1], LONGEST
    if not first.startswith("KeyboardInterrupt "):
        return f"exit status {process.returncode}\n{first}{out}\n{err}", 0.0
    took = float(first.split()[1]) - sent
    if process.returncode != 0 or out != "fits\n":
        return f"exit status {process.returncode} after the interrupt\n{out}\n{err}", took
    if "ignored" in err:  # an exception where nobody could receive it
        return err, took
    return "" if took <= PROMPT else f"took {took:.2f} s", took


def main() -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--victim", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.victim:
        victim(options.victim)
        return 0
    rng = random.Random(options.seed)
    names = [name for name in CASES if options.only in name]
    drawn = [names[i % len(names)] for i in range(-(-options.count // len(names)) * len(names))]
    rng.shuffle(drawn)
    failures, slowest = 0, 0.0
    for name in drawn[: options.count]:
        delay = rng.uniform(0.0, LATEST)
        wrong, took = interrupt(name, delay)
        slowest = max(slowest, took)
        if wrong:
            failures += 1
            print(f"{name}, interrupted after {delay:.4f} s: {wrong}", flush=True)
    print(f"{options.count} interrupts, {failures} failures, the slowest took {slowest:.2f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
