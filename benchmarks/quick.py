"""Every ratio of the suite at small size, in about five minutes, beside those of the last run.

    ATTOP_DATA=folder python benchmarks/quick.py [--only small,linear] [--output out/bench_quick]

A ratio is the time of the peer over ours, so that above 1 we are faster; for the first fit it is
the seconds allowed over those it took, and for a path a third of the separate fits over the path.
Ours and the peer take turns in one process, and the least seconds of each count.  Lines with an
``!`` have lost a fifth or more against the last run on this machine.  All runs are kept in
``history.csv``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from attop import SVM, PatMat, PatMatNP, TauFPL, TopPush
from attop.model_selection import AtTopCV, fit_path
from suite import machine
from suite.cases import INTELEX, LINEAR_SVC, Case, estimator_of, kernel_peers
from suite.data import DATASETS, load, load_test_images
from suite.results import read_rows, write_rows
from suite.tables_data import load_table

#: A fit that takes long is repeated until so many seconds have passed, twice at least.
ENOUGH, MOST = 1.5, 9
#: A loss of more than this is told.
LOST = 0.8
KERNELS = ("TopPush", "TauFPL(0.05)", "PatMatNP(0.05)", "SVM")


class Ratio(NamedTuple):
    """What was compared, the seconds of the peer and ours."""

    name: str
    theirs: float
    ours: float

    @property
    def value(self) -> float:
        return self.theirs / self.ours


def least(*calls: Callable[[], Any]) -> list[float]:
    """The least seconds of each of some calls, which take turns."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(MOST):
        for call, times in zip(calls, seconds, strict=True):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        if len(seconds[0]) > 1 and sum(map(sum, seconds)) > ENOUGH:
            break
    return [min(times) for times in seconds]


def small() -> Iterator[Ratio]:
    """Medians and the least over tables and formulations, for each size."""
    models = [TopPush(), TauFPL(0.05), PatMat(0.05), PatMatNP(0.05), SVM()]
    for n in (100, 300, 1000):
        found = []
        for data in ("breast_cancer", "cardio", "magic_gamma"):
            X, positive = load_table(data, n)
            for C in (1.0, 100.0):
                for surrogate in ("hinge", "quadratic_hinge"):
                    ours = [clone(m).set_params(C=C, surrogate=surrogate) for m in models]
                    calls = [partial(m.fit, X, positive) for m in (SVC(C=C), *ours)]
                    for call in calls:
                        call()  # loads what was compiled
                    theirs, *times = least(*calls)
                    found += [Ratio(f"small {n}", theirs, seconds) for seconds in times]
        middle = sorted(found, key=lambda ratio: ratio.value)[len(found) // 2]
        yield middle._replace(name=f"small {n}, median")
        yield min(found, key=lambda ratio: ratio.value)._replace(name=f"small {n}, least")


def grid() -> Iterator[Ratio]:
    """A search of C and gamma on one table."""
    X, positive = load_table("magic_gamma", 500)
    values = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}
    scoring = {"cv": 5, "scoring": "roc_auc"}
    for model in (TauFPL(0.05), PatMatNP(0.05)):
        searches = [
            GridSearchCV(SVC(), values, **scoring),
            GridSearchCV(model, values, **scoring),
            AtTopCV(model, values, **scoring),
        ]
        searches[2].fit(X[:200], positive[:200])
        theirs, ours, shared = least(*(partial(s.fit, X, positive) for s in searches))
        name = type(model).__name__
        yield Ratio(f"grid, {name}, GridSearchCV", theirs, ours)
        yield Ratio(f"grid, {name}, AtTopCV", theirs, shared)


def against(data: str, n: int, methods: tuple[str, ...], lams: tuple[float, ...], **case: Any):
    """Fits of some methods against the peer on a data set."""
    X, positive = load(data, n)
    linear = case.get("kernel") == "linear"
    peer = LINEAR_SVC if linear else INTELEX
    for lam in lams:
        rival = Case(data, n, peer, lam, **({**case, "tol": 1e-3} if linear else {"tol": 1e-3}))
        cases = [rival, *(Case(data, n, method, lam, **case) for method in methods)]
        models = [estimator_of(each, positive) for each in cases]
        for model in models:
            clone(model).fit(X[: min(n, 3000)], positive[: min(n, 3000)])
        theirs, *ours = least(*(partial(m.fit, X, positive) for m in models))
        surrogate = case.get("surrogate", "")
        for method, seconds in zip(methods, ours, strict=True):
            name = f"{data} {n} {case.get('kernel', 'rbf')} {surrogate} {method}, lambda {lam:g}"
            yield Ratio(" ".join(name.split()), theirs, seconds)


def linear() -> Iterator[Ratio]:
    """Sparse and dense linear models."""
    methods = ("TopPush", "TauFPL(0.05)", "PatMatNP(0.05)", "SVM")
    for data, n in (("w8a", 49_749), ("a9a", 32_561), ("text", 10_000), ("celeba", 50_000)):
        for surrogate in ("hinge", "quadratic_hinge"):
            case = {"kernel": "linear", "tol": 1e-3, "surrogate": surrogate}
            yield from against(data, n, methods, (1e-3,), **case)


def kernel() -> Iterator[Ratio]:
    """Images with few and with many free variables, and sparse samples."""
    yield from against("mnist", 10_000, KERNELS, (1e-3, 1e-5))
    yield from against("cifar10", 4000, KERNELS, (1e-3, 1e-5))
    yield from against("mnist", 10_000, KERNELS[:3], (1e-3,), surrogate="quadratic_hinge")
    yield from against("mnist", 4000, ("PatMatNP(0.05)",), (1e-1,))
    yield from against("w8a", 8000, KERNELS[:3], (1e-3,))


def predict() -> Iterator[Ratio]:
    """Scores of new samples, for each sample and support vector."""
    X, positive = load("mnist", 10_000)
    test = load_test_images("mnist", 5000)
    models = [
        estimator_of(Case("mnist", 10_000, method, 1e-3, tol=1e-3), positive).fit(X, positive)
        for method in (INTELEX, "TauFPL(0.05)")
    ]
    times = least(*(partial(m.decision_function, test) for m in models))
    each = [s / len(model.support_) for s, model in zip(times, models, strict=True)]
    yield Ratio("predict", *each)


def path() -> Iterator[Ratio]:
    """Ten values of C in a path, against a third of the separate fits."""
    X, positive = load("mnist", 4000)
    model = PatMatNP(0.05, gamma=DATASETS["mnist"].gamma)
    values = np.geomspace(0.1, 100.0, 10)
    fit_path(model, X[:3000], positive[:3000], "C", values[-2:])
    separate, together = least(
        lambda: [clone(model).set_params(C=C).fit(X, positive) for C in values],
        lambda: fit_path(model, X, positive, "C", values),
    )
    yield Ratio("path", separate / 3.0, together)


FIRST = """
import time, warnings, numpy as np
import attop
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(300, 5))
y = X[:, 0] + X[:, 1] ** 2 > 1.5
for name in {names}:
    began = time.perf_counter()
    getattr(attop, name)().fit(X, y)
    print(name, time.perf_counter() - began)
"""


def first() -> Iterator[Ratio]:
    """The first fit after an installation, of one estimator and of all."""
    for names, allowed in (["TauFPL"], 5.0), (["TopPush", "TauFPL", "PatMatNP", "SVM"], 12.0):
        with tempfile.TemporaryDirectory() as cache:
            code = FIRST.format(names=names)
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            answer = subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, check=True
            )
        seconds = [float(line.split()[1]) for line in answer.stdout.decode().splitlines()]
        yield Ratio(f"first fit of {len(names)}", allowed, sum(seconds))


PARTS = {part.__name__: part for part in (small, grid, linear, kernel, predict, path, first)}


def main() -> None:
    options = read_options()
    warnings.simplefilter("ignore")  # some optima are w = 0, and say so
    if not kernel_peers(skip_sklearn=True):
        options.only = [name for name in options.only if name not in ("kernel", "predict")]
    options.output.mkdir(parents=True, exist_ok=True)
    history = options.output / "history.csv"
    known, began = read_rows(history), time.perf_counter()
    who, when = machine.identity(), time.strftime("%Y-%m-%d %H:%M")
    before = {row["name"]: float(row["ratio"]) for row in known if row["machine"] == who["machine"]}
    for name in options.only:
        for ratio in PARTS[name]():
            print(line(ratio, before.get(ratio.name)), flush=True)
            figures = {"ratio": ratio.value, "theirs": ratio.theirs, "ours": ratio.ours}
            row = {"when": when, "name": ratio.name, **figures, **who}
            known.append({key: str(value) for key, value in row.items()})
    write_rows(history, known)
    print(f"{history} written, {(time.perf_counter() - began) / 60:.1f} minutes")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--output", type=Path, default=Path("out/bench_quick"))
    options = parser.parse_args()
    unknown = {*options.only} - {*PARTS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return options


def line(ratio: Ratio, before: float | None) -> str:
    """A ratio, its seconds, and what it was."""
    text = f"{ratio.name:58s} {ratio.value:7.2f}   {ratio.theirs:9.4f} s : {ratio.ours:9.4f} s"
    if before is None:
        return text
    return f"{text}   was {before:.2f}{'  !' if ratio.value < LOST * before else ''}"


if __name__ == "__main__":
    main()
