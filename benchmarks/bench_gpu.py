"""Fits on a GPU: images, a split of the paper, a matrix that does not fit, a search.

    ATTOP_DATA=folder python benchmarks/bench_gpu.py [--only fits,split,blocks,search]

All in one process, since a GPU takes seconds to wake up.  Every time is that of `fit`, from samples
in memory to the certificate: checks, transfer, kernel matrix and all; compiled code is loaded, and
the GPU awake.  `cold` is the first fit of a case, `seconds` the least of all.  A split is the 48
fits of the experiments of the paper (`paper-exact`), which share a kernel matrix and start from
each other.  The search is that of table 2 of TorchKM's paper: 50 values of C by ten folds, on made
samples with 1,000 features; TorchKM takes its turn where it is installed.
"""

from __future__ import annotations

import argparse
import time
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from attop import SVM, TauFPL, pipeline
from attop.experiments.methods import build
from attop.kernels.device.arrays import find_device
from attop.model_selection import AtTopCV
from attop.model_selection._parameters import with_parameters
from attop.model_selection._shared import SharedFits
from attop.model_selection._starts import walking_order
from suite import data
from suite.cases import METHODS
from suite.results import Row, write_rows
from suite.tables import Table, count, digits, figure, plain, power, table_of, text, to_markdown

NAME = "gpu"
SETS = ("mnist", "cifar10")
LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 0.0)
QUADRATIC = ("TopPush", "TauFPL(0.05)", "PatMatNP(0.05)")
#: Folds, values of C, features, and sizes of the search.
FOLDS, VALUES, FEATURES, SIZES = 10, 50, 1000, (10_000, 20_000)
#: Samples and features of the matrix that does not fit, and the most seconds of the CPU on it.
MANY, FEW, PATIENCE = 200_000, 100, 120.0


def main() -> None:
    options = read_options()
    try:
        find_device(options.device)
    except (ImportError, RuntimeError) as error:
        print(f"Nothing is measured: {error}")
        return
    warnings.simplefilter("ignore")
    options.output.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for kind in options.only:
        for row in KINDS[kind](options):
            rows.append({name: str(value) for name, value in row.items()} | {"kind": kind})
            print("  ".join(f"{name}={value}" for name, value in rows[-1].items()), flush=True)
            write_rows(options.output / f"{NAME}.csv", rows)
    text = "\n".join(to_markdown(table) for table in tables(rows))
    (options.output / f"{NAME}.md").write_text(text, encoding="utf-8")
    print(text)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("out/bench"))
    parser.add_argument("--resume", action="store_true", help="accepted, but all is measured")
    parser.add_argument("--device", default="cuda")
    names = {"type": lambda text: text.split(",")}
    parser.add_argument("--only", default=list(KINDS), **names)
    parser.add_argument("--data", default=list(SETS), **names)
    parser.add_argument("--methods", default=list(METHODS), **names)
    parser.add_argument("--sizes", default=SIZES, type=lambda text: [*map(int, text.split(","))])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="most seconds of a fit")
    return parser.parse_args()


def samples_of(name: str) -> tuple[Any, Any, float]:
    """Samples, labels and gamma; all of CIFAR10 where its file is there."""
    path = data.folder() / "cifar10.npz"
    if name == "cifar10" and path.exists():
        with np.load(path) as archive:
            X, y = archive["x_train"][:37_500], archive["y_train"][:37_500]
        return X.reshape(len(X), -1).astype(np.float32) / 255, np.ravel(y) == 1, 1 / 3072
    found = data.DATASETS[name]
    X, positive = data.load(name, found.n)
    return X, positive, found.gamma


def awake(model: Any, X: Any, y: Any) -> None:
    """Load compiled code and the libraries of the GPU by a fit of some samples."""
    for surrogate in ("hinge", "quadratic_hinge"):
        clone(model).set_params(surrogate=surrogate, C=1.0, max_time=60.0).fit(X[:5000], y[:5000])


def timed(model: Any, X: Any, y: Any, repeats: int) -> Row:
    """The seconds of some fits, and what the last one found."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - began)
    return {
        "cold": seconds[0],
        "seconds": min(seconds),
        "certificate": model.stats_["seconds_certificate"],
        "gap": model.dual_gap_,
        "support": len(model.support_),
        "status": model.status_.name.lower(),
    }


def fits(options: argparse.Namespace) -> Iterator[Row]:
    """Single fits on images."""
    for name in options.data:
        X, y, gamma = samples_of(name)
        shared = {"gamma": gamma, "device": options.device, "max_time": options.limit}
        for method, prototype in ((name, METHODS[name]) for name in options.methods):
            model = clone(prototype).set_params(**shared)
            awake(model, X, y)
            surrogates = ("hinge", "quadratic_hinge") if method in QUADRATIC else ("hinge",)
            for surrogate in surrogates:
                for lam in LAMBDAS:
                    if lam == 0.0 and surrogate != "hinge":
                        continue  # a hard margin has no losses
                    fit = with_parameters(model, {"lambda": lam}, int(np.sum(y)))
                    fit.set_params(surrogate=surrogate)
                    about = {"data": name, "n": len(y), "method": method, "surrogate": surrogate}
                    yield about | {"lam": lam} | timed(fit, X, y, options.repeats)


def split(options: argparse.Namespace) -> Iterator[Row]:
    """The 48 fits of a split of the paper, on one kernel matrix."""
    preset = resources.files("attop.experiments") / "presets" / "paper-exact.toml"
    methods = tomllib.loads(preset.read_text())["methods"]
    for name in options.data:
        X, y, gamma = samples_of(name)
        kernel = {"name": "rbf", "gamma": gamma}
        solver = {"tol": 1e-4, "device": options.device, "max_time": options.limit}
        models = []
        for method in methods:
            fixed = {k: v for k, v in method.items() if k not in ("method", "grid")}
            ((parameter, values),) = method["grid"].items()
            for value in values:
                parameters = fixed | {parameter: value}
                n = {"n_positives": float(np.sum(y)), "n_samples": float(len(y))}
                models.append(build(method["method"], parameters, kernel, solver, **n))
        for model in models:
            awake(model, X, y)
        began = time.perf_counter()
        prepared = pipeline.prepare(models[0], X, y)
        problems = [pipeline.problem_of(model, prepared) for model in models]
        slowest, gaps = 0.0, []
        with SharedFits(prepared.gram, 1e-4, 1000.0) as shared:
            for i in walking_order(problems):
                start = time.perf_counter()
                shared.fit(models[i], prepared, problems[i])
                taken = time.perf_counter() - start
                slowest = max(slowest, taken)
                gaps.append(models[i].dual_gap_)
        yield {
            "data": name,
            "n": len(y),
            "fits": len(models),
            "seconds": time.perf_counter() - began,
            "slowest": slowest,
            "gap": max(gaps),
            "certified": int(np.sum(np.array(gaps) <= 1e-4)),
        }


def blocks(options: argparse.Namespace) -> Iterator[Row]:
    """A kernel matrix of 160 GB."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((MANY, FEW), dtype=np.float32)
    scores = X @ rng.standard_normal(FEW).astype(np.float32) / 10 + rng.standard_normal(MANY)
    y = scores > np.quantile(scores, 0.95)
    for device, limit in ((options.device, options.limit), (None, PATIENCE)):
        model = TauFPL(0.05, gamma=1 / FEW, device=device, max_time=limit, verbose=0)
        model = with_parameters(model, {"lambda": 1e-3}, int(np.sum(y)))
        awake(model, X, y)
        about = {"data": "made", "n": MANY, "method": "TauFPL(0.05)", "lam": 1e-3}
        yield about | {"device": device or "cpu"} | timed(model, X, y, 1)


def search(options: argparse.Namespace) -> Iterator[Row]:
    """Ten folds and 50 values of C, as TorchKM has them."""
    for n in options.sizes:
        X, y = clusters(n)
        pairs = np.random.default_rng(0).integers(0, n, (2, n // 2))
        squares = np.sum((X[pairs[0]] - X[pairs[1]]) ** 2, axis=1)
        sigma = float(np.mean(1.0 / np.quantile(squares[squares > 0.0], [0.9, 0.5, 0.1])))
        lambdas = np.logspace(3, -3, VALUES)
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
        # Their kernel is exp(-2 sigma |x - x'|^2), their objective lambda |w|^2 + mean loss.
        model = SVM(gamma=2.0 * sigma, device=options.device)
        grid = {"C": list(1.0 / (2.0 * n * lambdas))}
        awake(model, X, y)
        began = time.perf_counter()
        found = AtTopCV(model, grid, cv=folds, scoring="roc_auc").fit(X, y)
        seconds = time.perf_counter() - began
        gaps = [found.cv_results_[f"split{i}_dual_gap"] for i in range(FOLDS)]
        about = {"n": n, "method": "AtTopCV(SVM)", "seconds": seconds}
        yield about | {"gap": float(np.max(gaps)), "median": float(np.median(gaps))}
        yield from search_of_torchkm(X, y, sigma, lambdas, folds, options.device)


def search_of_torchkm(X, y, sigma, lambdas, folds, device) -> Iterator[Row]:
    """The same by TorchKM, and the largest certified gap of its models on all samples."""
    try:
        torch, kernels = import_module("torch"), import_module("torchkm.functions")
        machine = import_module("torchkm.cvksvm").cvksvm
    except ImportError:
        return
    number_of = np.zeros(len(y), dtype=np.int64)
    for i, (_, test) in enumerate(folds, start=1):
        number_of[test] = i
    labels = torch.as_tensor(np.where(y, 1.0, -1.0))
    began = time.perf_counter()
    matrix = kernels.rbf_kernel(torch.as_tensor(X).double().to(device), sigma)
    theirs = machine(
        Kmat=matrix, y=labels, nlam=len(lambdas), ulam=torch.as_tensor(lambdas),
        foldid=torch.as_tensor(number_of), nfolds=FOLDS, eps=1e-5, maxit=100_000,
        gamma=1e-8, is_exact=0, device=device,
    )  # fmt: skip
    theirs.fit()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    found = theirs.alpmat.cpu().numpy()
    gaps = []
    entries = matrix.double()
    for column, lam in zip(found.T, lambdas, strict=True):
        alpha = torch.as_tensor(column[1:]).to(device)
        scores = entries @ alpha
        losses = torch.clamp(1.0 - labels.to(device) * (scores + float(column[0])), min=0.0)
        value = float(lam * (alpha @ scores) + losses.mean()) / (2.0 * lam)
        C = 1.0 / (2.0 * len(y) * lam)
        best = SVM(C=C, gamma=2.0 * sigma, device=device, tol=1e-5).fit(X, y)
        gaps.append((value - best.objective_ * (1.0 - best.dual_gap_)) / value)
    about = {"n": len(y), "method": "TorchKM", "seconds": seconds}
    yield about | {"gap": max(gaps), "median": float(np.median(gaps))}


def clusters(n: int) -> tuple[Any, Any]:
    """Two classes of five clusters each, standardised: the samples of TorchKM's examples."""
    rng = np.random.default_rng(42)
    means = rng.standard_normal((10, FEATURES))
    means[:5, : FEATURES // 2] += 2.0
    means[5:, FEATURES // 2 :] += 2.0
    y = rng.random(n) < 0.5
    X = 3.0 * rng.standard_normal((n, FEATURES)) + means[rng.integers(0, 5, n) + 5 * y]
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32), y


KINDS = {"fits": fits, "split": split, "blocks": blocks, "search": search}
COLUMNS = {
    "fits": {
        "data": text("data"), "method": text("method"), "loss": text("surrogate"),
        "lambda": figure("lam", power), "cold (s)": figure("cold", digits),
        "seconds": figure("seconds", digits), "certificate (s)": figure("certificate", digits),
        "gap": figure("gap", power), "support vectors": figure("support", count),
    },
    "split": {
        "data": text("data"), "n": figure("n", count), "fits": figure("fits", plain),
        "certified": figure("certified", plain), "seconds": figure("seconds", digits),
        "slowest (s)": figure("slowest", digits),
    },
    "blocks": {
        "device": text("device"), "n": figure("n", count), "method": text("method"),
        "seconds": figure("seconds", digits), "gap": figure("gap", power),
        "support vectors": figure("support", count), "ended": text("status"),
    },
    "search": {
        "n": figure("n", count), "search": text("method"), "seconds": figure("seconds", digits),
        "largest gap": figure("gap", power),
        "median gap": figure("median", power),
    },
}  # fmt: skip
TITLES = {
    "fits": ("Fits on a GPU", "From samples in memory to the certificate."),
    "split": ("A split of the paper", "Fits on one kernel matrix, each from the nearest one."),
    "blocks": ("A matrix of 160 GB", "Columns by blocks."),
    "search": ("A search", "50 values of C, ten folds, 1,000 features."),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """A table for each kind of case."""
    chosen = {kind: [row for row in rows if row["kind"] == kind] for kind in COLUMNS}
    return [table_of(*TITLES[kind], COLUMNS[kind], some) for kind, some in chosen.items() if some]


if __name__ == "__main__":
    main()
