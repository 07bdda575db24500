"""Fits on a cluster of this machine: size, workers and agreement with local fits.

    ATTOP_DATA=folder python benchmarks/bench_dask.py [--only agreement,growth,workers] ...

`growth` and `workers`: samples with 50 features in single precision, a share of 2 % positive, made
chunk by chunk on the disk, read through the map of a file, fitted by two workers (or as many as it
says) with 1.5 GB each.  `seconds` is all of `fit`, `peak` the largest memory of a worker's process,
and `passes` are those that read the samples.  `agreement`: every formulation and surrogate on made
and real data in chunks of many kinds; `excess` is by how much the certified interval of the optimum
misses that of the local fit, and has to be 0.
"""

from __future__ import annotations

import argparse
import shutil
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from attop import classifiers
from attop.formulations import FORMULATIONS
from attop.model_selection._parameters import with_parameters
from attop.surrogates import SURROGATES
from suite import data, machine
from suite.results import Row, write_rows
from suite.tables import (
    Table,
    count,
    digits,
    figure,
    hundredths,
    plain,
    power,
    slope,
    table_of,
    text,
    to_markdown,
)

NAME = "dask"
SIZES = (1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)
FEATURES, CHUNK, MEMORY, POSITIVE = 50, 250_000, "1500MB", 0.02
#: The methods of `growth`, with their surrogate.
#: (Not TauFPL(0.01), whose optimum is w = 0 there.)
GROWING = (("PatMatNP", {"tau": 0.01}, "hinge"), ("PatMatNP", {"tau": 0.01}, "quadratic_hinge"))
LAMBDA, TOL = 1e-3, 1e-3
#: Parameters of the formulations where all of them are fitted.
PARAMETERS = {
    "TopPush": {}, "TopPushK": {"K": 10}, "TauFPL": {"tau": 0.05}, "TopMeanK": {"tau": 0.6},
    "PatMat": {"tau": 0.6}, "PatMatNP": {"tau": 0.05}, "SVM": {},
}  # fmt: skip
SETS = ("made", "a9a", "w8a", "covertype")


def main() -> None:
    options = read_options()
    try:
        import attop.dask  # noqa: F401
    except ImportError as error:
        print(f"Nothing is measured: {error}")
        return
    warnings.simplefilter("ignore")
    options.output.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    identity = machine.identity()
    for kind in options.only:
        for row in KINDS[kind](options):
            rows.append({k: str(v) for k, v in row.items()} | {"kind": kind} | identity)
            print("  ".join(f"{name}={value}" for name, value in rows[-1].items()), flush=True)
            write_rows(options.output / f"{NAME}.csv", rows)
    markdown = "\n".join(to_markdown(table) for table in tables(rows))
    (options.output / f"{NAME}.md").write_text(markdown, encoding="utf-8")
    print(markdown)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("out/bench"))
    parser.add_argument("--resume", action="store_true", help="accepted, but all is measured")
    names = {"type": lambda text: text.split(",")}
    parser.add_argument("--only", default=list(KINDS), **names)
    parser.add_argument("--sizes", default=SIZES, type=lambda text: [*map(int, text.split(","))])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", default=list(SETS), **names)
    parser.add_argument("--n", type=int, default=5000, help="samples of each set of agreement")
    parser.add_argument("--folder", type=Path, default=Path("out/dask"), help="of the samples")
    parser.add_argument("--keep", action="store_true", help="leave the samples on the disk")
    parser.add_argument("--surrogates", default=list(SURROGATES), **names)
    parser.add_argument("--make-only", action="store_true", help="samples, and nothing else")
    return parser.parse_args()


@contextmanager
def cluster_of(n_workers: int) -> Iterator[Any]:
    """A client of workers in processes of their own, which may be held up for a while."""
    import dask
    from distributed import Client, LocalCluster

    patient = {
        "distributed.comm.timeouts.connect": "600s",
        "distributed.comm.timeouts.tcp": "600s",
        "distributed.scheduler.worker-ttl": "1 hour",
    }
    with (
        dask.config.set(patient),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=MEMORY,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def made_block(number: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples of two clouds that overlap."""
    rng = np.random.default_rng([1, number])
    X = rng.standard_normal((n, FEATURES), dtype=np.float32)
    y = rng.random(n) < POSITIVE
    X[y] += np.linspace(0.0, 0.6, FEATURES, dtype=np.float32)
    return X, y


def made_files(folder: Path, n: int) -> list[Path]:
    """The files of `n` samples, made where they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(-(-n // CHUNK)):
        path = folder / f"{number}.npy"
        paths.append(path)
        if not (folder / f"y{number}.npy").exists():
            X, y = made_block(number, CHUNK)
            np.save(path, X)
            np.save(folder / f"y{number}.npy", y)
    return paths


def mapped(path: str, n: int) -> np.ndarray:
    """The first rows of a file, read as they are used."""
    return np.load(path, mmap_mode="r")[:n]


def lazy_files(paths: Sequence[Path], n: int) -> tuple[Any, Any]:
    """Arrays of Dask whose blocks are files."""
    import dask.array as da
    from dask import delayed

    read, X, y = delayed(mapped, pure=True), [], []
    for number, path in enumerate(paths):
        rows = min(CHUNK, n - number * CHUNK)
        labels = path.with_name(f"y{path.name}")
        X.append(da.from_delayed(read(str(path), rows), (rows, FEATURES), np.float32))
        y.append(da.from_delayed(read(str(labels), rows), (rows,), np.bool_))
    return da.concatenate(X), da.concatenate(y)


def peak_gigabytes() -> float:
    """The largest memory of this process so far that is its own, and with the maps of files."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1e6


def fit_files(options: argparse.Namespace, n: int, n_workers: int, case: tuple) -> Row:
    """A fit of files."""
    import attop.dask
    from attop.dask import _chunks

    method, own, surrogate = case
    X, y = lazy_files(made_files(options.folder, n), n)
    calls: list[Any] = []
    plain = _chunks.DaskChunks._results

    def counted(self: Any, function: Any, arguments: Any) -> Any:
        calls.append((self, function))
        return plain(self, function, arguments)

    with cluster_of(n_workers) as client:
        model = getattr(attop.dask, f"Dask{method}")(
            **own, surrogate=surrogate, tol=TOL, C=1.0 / (LAMBDA * POSITIVE * n), client=client
        )
        few = CHUNK // 5
        model.fit(X[:few].rechunk((few // 4, -1)), y[:few].rechunk(few // 4))  # code is loaded
        _chunks.DaskChunks._results = counted
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
        _chunks.DaskChunks._results = plain
        peak = max(client.run(peak_gigabytes).values())
    passes = [function.__name__ for _, function in calls]
    return {
        "n": n, "workers": n_workers, "method": method, "surrogate": surrogate,
        "seconds": seconds, "gap": model.dual_gap_, "peak_gb": peak,
        "passes": sum(name in ("look", "score", "gather", "bend") for name in passes),
        "of_scores": sum(name not in ("look", "score", "gather", "bend") for name in passes),
        "rounds": model.n_iter_, "status": model.status_.name.lower(),
    }  # fmt: skip


def growth(options: argparse.Namespace) -> Iterator[Row]:
    """The same problem on more and more samples."""
    for n in options.sizes:
        for case in GROWING:
            if case[2] in options.surrogates:
                if options.make_only:
                    made_files(options.folder, n)
                    continue
                yield fit_files(options, n, options.workers, case)
    if not options.keep:
        shutil.rmtree(options.folder)


def workers(options: argparse.Namespace) -> Iterator[Row]:
    """The smallest size with one worker, and with two."""
    for n_workers in (1, 2):
        yield fit_files(options, min(options.sizes), n_workers, GROWING[0])
    if not options.keep:
        shutil.rmtree(options.folder)


def samples_of(name: str, n: int) -> tuple[Any, np.ndarray]:
    """A set of samples by its name."""
    if name == "made":
        X, y = made_block(0, n)
        return X, y
    return data.load(name, n)


def cuts_of(kind: str, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, list[int]]:
    """An order of the samples, and the sizes of chunks."""
    n, order = len(y), np.arange(len(y))
    if kind == "equal":
        return order, [n // 4] * 3 + [n - 3 * (n // 4)]
    if kind == "unequal, some empty":
        cuts = np.sort(rng.integers(0, n, 6))
        return order, [0, *np.diff(np.concatenate([[0], cuts, [n]])).tolist(), 0]
    return np.argsort(y, kind="stable"), [n // 3, n // 3, n - 2 * (n // 3)]  # negatives first


def lazy(X: Any, y: np.ndarray, sizes: Sequence[int]) -> tuple[Any, Any]:
    """Arrays of Dask with blocks of these sizes."""
    import dask.array as da
    from dask import delayed

    ends = np.concatenate([[0], np.cumsum(sizes)])
    meta = sp.csr_matrix((0, 0), dtype=X.dtype) if sp.issparse(X) else None
    blocks = [
        da.from_delayed(delayed(X[a:b]), (b - a, X.shape[1]), X.dtype, meta)
        for a, b in pairwise(ends)
    ]
    return da.concatenate(blocks), da.from_array(y, chunks=(tuple(sizes),))


CHUNKINGS = ("equal", "unequal, some empty", "negatives first")


def agreement(options: argparse.Namespace) -> Iterator[Row]:
    """Every formulation and surrogate against its local fit."""
    import attop.dask

    rng = np.random.default_rng(0)
    with cluster_of(options.workers):
        for name in options.data:
            X, y = samples_of(name, options.n)
            for number, (method, surrogate) in enumerate(
                (m, s) for m in FORMULATIONS for s in options.surrogates
            ):
                own = PARAMETERS[method] | {"surrogate": surrogate}
                here = getattr(classifiers, method)(**own, kernel="linear", tol=1e-6)
                here = with_parameters(here, {"lambda": LAMBDA}, int(np.sum(y))).fit(X, y)
                kind = CHUNKINGS[number % len(CHUNKINGS)]
                order, sizes = cuts_of(kind, y, rng)
                there = getattr(attop.dask, f"Dask{method}")(
                    **own, C=here.C, tol=1e-4, most_rows=max(200, options.n // 4)
                )
                began = time.perf_counter()
                there.fit(*lazy(X[order], y[order], sizes))
                least, most = here.objective_ * (1.0 - here.dual_gap_), here.objective_
                low = there.objective_ - there.dual_gap_ * abs(there.objective_)
                rounding = 1e-12 * most
                excess = max(0.0, low - most - rounding, least - there.objective_ - rounding)
                yield {
                    "data": name, "n": len(y), "features": X.shape[1], "method": method,
                    "surrogate": surrogate, "chunks": kind, "gap": there.dual_gap_,
                    "difference": (there.objective_ - here.objective_) / most,
                    "excess": excess / most, "seconds": time.perf_counter() - began,
                    "status": there.status_.name.lower(),
                }  # fmt: skip


KINDS = {"agreement": agreement, "growth": growth, "workers": workers}
SIZED = {
    "n": figure("n", count), "workers": figure("workers", plain), "method": text("method"),
    "surrogate": text("surrogate"), "seconds": figure("seconds", digits),
    "gap": figure("gap", power), "peak GB": figure("peak_gb", hundredths),
    "passes": figure("passes", plain), "rounds": figure("rounds", plain), "ended": text("status"),
}  # fmt: skip
COLUMNS = {
    "agreement": {
        "data": text("data"), "n": figure("n", count), "method": text("method"),
        "surrogate": text("surrogate"), "chunks": text("chunks"), "gap": figure("gap", power),
        "objective over local": figure("difference", lambda x: f"{x:.0e}"),
        "excess": figure("excess", plain), "ended": text("status"),
    },
    "growth": SIZED,
    "workers": SIZED,
}  # fmt: skip
TITLES = {
    "agreement": ("On a cluster and here", "Certified intervals of the optimum have to meet."),
    "growth": ("Fits of samples on the disk", f"{FEATURES} features, lambda {LAMBDA:g}."),
    "workers": ("Workers", "The same fit with one and with two."),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """A table for each kind of case."""
    found = []
    for kind, columns in COLUMNS.items():
        some = [row for row in rows if row["kind"] == kind]
        title, note = TITLES[kind]
        if kind == "growth":
            note += "".join(_exponent(some, surrogate) for surrogate in SURROGATES)
        if some:
            found.append(table_of(title, note, columns, some))
    return found


def _exponent(rows: Sequence[Row], surrogate: str) -> str:
    some = [row for row in rows if row["surrogate"] == surrogate]
    p = slope([float(row["n"]) for row in some], [float(row["seconds"]) for row in some])
    return f" Time grows with n to the {p:.2f} ({surrogate})." if np.isfinite(p) else ""


if __name__ == "__main__":
    main()
