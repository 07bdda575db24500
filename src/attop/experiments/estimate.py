"""What an experiment will take, before it is run: fits, hours and memory of each data set.

Times come from results where the store has some of the data set; otherwise from all fits of its
first split on a part of the training samples, two parts of different size telling how times grow.
These fits have a budget: what is not reached is taken to be as the data sets before it.
"""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attop.experiments.data import split
from attop.experiments.expansion import Fit, Group
from attop.experiments.fitting import run_group
from attop.experiments.store import Store

#: Training samples of the two parts, and the least and the largest power by which times may grow
#: with their number: kernel matrices cannot grow faster.  Small parts seem to grow more slowly than
#: what follows.  (Processor seconds of the 48 fits of a split of the paper with 1,000, 2,000, 4,000
#: and 8,000 samples, less those with 200: MNIST 2.1, 4.0, 7.6, 17.9; CIFAR10 6.8, 13, 31.)
PARTS = (1000, 2000)
POWERS = (1.25, 2.0)
#: Samples of fits that tell what it takes whatever their number; the first ones may compile.
FIRST = 200
#: Seconds after which no more fits are begun for an estimate.
BUDGET = 60.0


@dataclass(frozen=True)
class Estimate:
    """What is left to be done of one data set.

    Attributes
    ----------
    dataset : str
        Its name.
    n_fits, n_done : int
        Fits of the experiment, and those that are there.
    n_train : int
        Training samples.
    seconds : float
        What the missing ones will take one split after the other; NaN where nothing is known.
    source : str
        Where that is from.
    memory : float
        Gigabytes that a split takes at most.
    calibrated : bool
        Whether the time is from fits on a part of its samples.
    """

    dataset: str
    n_fits: int
    n_done: int
    n_train: int
    seconds: float
    source: str
    memory: float
    calibrated: bool = False

    def row(self) -> list[str]:
        """As it is shown."""
        hours = "-" if math.isnan(self.seconds) else _duration(self.seconds)
        numbers = [f"{self.n_fits:,}", f"{self.n_done:,}", f"{self.n_train:,}"]
        return [self.dataset, *numbers, hours, f"{self.memory:.1f} GB", self.source]


def estimates(
    groups: list[Group], store: Store, *, calibrate: bool, budget: float = BUDGET
) -> list[Estimate]:
    """Estimates for every data set.

    Parameters
    ----------
    groups : list of Group
        The fits of the experiment, or of a part of it.
    store : Store
        Where its results will be, and where those of earlier runs are.
    calibrate : bool
        Whether to do fits on a part of the samples where there are no results of a data set.
    budget : float, default=60.0
        Seconds after which no more of these are begun; those of the first data set always are.

    Returns
    -------
    list of Estimate
        One for each data set.
    """
    by_name: dict[str, list[Group]] = {}
    for group in groups:
        by_name.setdefault(group.dataset.label, []).append(group)
    until = time.monotonic() + budget
    found: list[Estimate] = []
    for name, some in by_name.items():
        measured = [one for one in found if one.calibrated]
        found.append(_estimate(name, some, store, calibrate, until, measured))
    return found


def total_seconds(found: list[Estimate], n_jobs: int) -> float:
    """What is left of all of them with so many splits at a time; NaN where nothing is known."""
    return sum(one.seconds for one in found) / max(1, n_jobs)


def summary(found: list[Estimate], n_jobs: int) -> str:
    """One sentence for all data sets."""
    missing = sum(one.n_fits - one.n_done for one in found)
    total = total_seconds(found, n_jobs)
    memory = max((one.memory for one in found), default=0.0) * max(1, n_jobs)
    time_left = "unknown" if math.isnan(total) else f"about {_duration(total)}"
    jobs = f" with {n_jobs} splits at a time" if n_jobs > 1 else ""
    return f"{missing:,} fits to do{jobs}: {time_left}, up to {memory:.1f} GB of memory."


def _estimate(
    name: str,
    groups: list[Group],
    store: Store,
    calibrate: bool,
    until: float,
    measured: list[Estimate],
) -> Estimate:
    """That of one data set; after `until` as those of the others that were `measured`."""
    fits = [fit for group in groups for fit in group.fits]
    done = [fit for fit in fits if store.is_done(fit.key, fit.metrics)]
    parts = split(groups[0].dataset, groups[0].seed)
    n_train = int(parts.X_train.shape[0])
    n_missing, calibrated = len(fits) - len(done), False
    seconds, source = 0.0, "all there"
    if n_missing and done:
        seconds, source = n_missing * _recorded(done, store), f"{len(done):,} results"
    elif n_missing and calibrate and measured and time.monotonic() > until:
        shares = [one.seconds / (one.n_fits * one.n_train) for one in measured]
        seconds, source = float(np.mean(shares)) * n_missing * n_train, "as those above"
    elif n_missing and calibrate:
        seconds, source = _by_parts(groups[0], n_train, until)
        seconds, calibrated = seconds * n_missing / len(groups[0].fits), True
    elif n_missing:
        seconds, source = math.nan, "no results yet"
    memory = _memory(groups[0], parts)
    return Estimate(name, len(fits), len(done), n_train, seconds, source, memory, calibrated)


def _recorded(done: list[Fit], store: Store) -> float:
    """The mean time of a fit that is there."""
    records = [store.read(fit.key) for fit in done]
    return float(np.mean([record["seconds"] for record in records if record is not None]))


def _by_parts(group: Group, n_train: int, until: float) -> tuple[float, str]:
    """What the whole group will take, by what it takes on parts of the training samples.

    Reading and scoring the data takes the same time for all of them; what is more grows.
    """
    first, *sizes = sorted({min(size, n_train) for size in (FIRST, *PARTS)})
    _timed(group, first)  # it may compile, or read the data for the first time
    fixed, taken = _timed(group, first), {}
    for size in sizes:
        if time.monotonic() > until:
            break
        taken[size] = max(_timed(group, size) - fixed, 0.0)
    if not taken:
        return fixed * max(1.0, n_train / first), f"fits on {first:,}"
    *smaller, largest = taken
    power = POWERS[0]
    if smaller and taken[smaller[-1]] > 0.0 < taken[largest]:
        power = math.log(taken[largest] / taken[smaller[-1]]) / math.log(largest / smaller[-1])
        power = min(max(power, POWERS[0]), POWERS[1])
    seconds = fixed + taken[largest] * (n_train / largest) ** power
    return seconds, f"fits on {largest:,}, power {power:.2f}"


def _timed(group: Group, n_train: int) -> float:
    """Seconds of all fits of a group on a part of its training samples."""
    dataset = replace(group.dataset, n_train=n_train)
    fits = [replace(fit, dataset=dataset) for fit in group.fits]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run_group(Group(dataset, group.seed, fits), Store(folder))
        return time.perf_counter() - began


def _memory(group: Group, parts: Any) -> float:
    """Gigabytes of the samples, twice, and of the kernel entries that are kept."""
    n, n_score = parts.X_train.shape[0], parts.X_valid.shape[0] + parts.X_test.shape[0]
    per_sample = _bytes_of(parts.X_train) / n
    cache = float(group.fits[0].solver.get("cache_size", 1000)) * 2**20
    columns = min(cache, 4.0 * n * n) * (1.0 + 1.0 / 6.0)  # and entries for certificates
    scoring = 8.0 * n * n_score if 8.0 * n * n_score <= cache else 0.0
    return float((2.0 * per_sample * (n + n_score) + columns + scoring) / 1e9)


def _bytes_of(X: Any) -> float:
    """Bytes of samples, dense or sparse."""
    import scipy.sparse as sp

    return float(X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes)


def _duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
