"""Runs an experiment: its groups through joblib, its results into a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attop.experiments.expansion import Group, expand
from attop.experiments.specification import Experiment
from attop.experiments.store import Store

#: Called now and then with the number of results that are there.
Watcher = Callable[[int], None]
_SECONDS_BETWEEN_LOOKS = 0.5
#: What processes that share a device take of its memory together: each has a context besides.
_OF_DEVICE = 0.95


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes
    ----------
    n_fits : int
        Fits of the experiment.
    n_skipped : int
        How many were done before.
    failures : list of str
        Keys of those that went wrong.
    damaged : list of Path
        Files of results that could not be read, and were made again.
    foreign : list of Path
        Files in the store that are of no experiment, and were left alone.
    """

    n_fits: int
    n_skipped: int
    failures: list[str]
    damaged: list[Path]
    foreign: list[Path]


def run_experiment(
    experiment: Experiment,
    store: Store,
    *,
    n_jobs: int = 1,
    watch: Watcher | None = None,
    dask: str | None = None,
    datasets: Collection[str] | None = None,
    seeds: Collection[int] | None = None,
) -> Outcome:
    """Do what the store does not have of an experiment.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    store : Store
        Where results are written, each as soon as it is there.
    n_jobs : int, default=1
        Groups done at the same time.  Any back end of joblib will do: within
        ``joblib.parallel_config(backend="dask")`` the groups go to the workers of a Dask
        cluster, which must see the folder of the store and of the data under the same path.
    watch : callable, default=None
        Called now and then with the number of results that are there.
    dask : str, default=None
        Address of the scheduler of a Dask cluster whose workers do the groups, rather than `n_jobs`
        processes here.  A worker that dies costs the fit that it was at.
    datasets, seeds : collection, default=None
        Do only the splits of these data sets, by their labels or names, and of these seeds.

    Returns
    -------
    Outcome
        What was done.
    """
    groups = expand(experiment)
    store.write_plan(experiment.name, plan_of(experiment, groups))
    groups = chosen(groups, datasets, seeds)
    foreign = store.clean()
    missing = {
        fit.key for group in groups for fit in group.fits if not store.is_done(fit.key, fit.metrics)
    }
    damaged = [store.result_path(key) for key in sorted(missing) if store.is_damaged(key)]
    n_fits = sum(len(group.fits) for group in groups)
    todo = [group for group in groups if any(fit.key in missing for fit in group.fits)]
    with _watching(store, todo, n_fits - len(missing), missing, watch):
        failed = _run(todo, store, n_jobs, dask)
    return Outcome(n_fits, n_fits - len(missing), failed, damaged, foreign)


def _run(groups: list[Group], store: Store, n_jobs: int, dask: str | None) -> list[str]:
    """Do the groups, here or on a cluster; returns the keys of failures."""
    if dask is not None:
        from attop.dask._experiments import run_groups

        return run_groups(dask, groups, store)
    import joblib

    from attop.experiments.fitting import run_group

    n_processes = min(joblib.effective_n_jobs(n_jobs), max(1, len(groups)))
    share = _OF_DEVICE / n_processes if n_processes > 1 else 1.0
    failures = joblib.Parallel(n_jobs=n_jobs)(
        joblib.delayed(run_group)(group, store, share) for group in groups
    )
    return [key for some in failures for key in some]


def chosen(
    groups: list[Group], datasets: Collection[str] | None, seeds: Collection[int] | None
) -> list[Group]:
    """The groups of some data sets and seeds.

    Raises
    ------
    ValueError
        If the experiment has no such data set or seed.
    """
    for what, wanted, there in (
        ("data set", datasets, [name for group in groups for name in _names(group)]),
        ("seed", seeds, [group.seed for group in groups]),
    ):
        unknown = [one for one in wanted or () if one not in there]
        if unknown:
            known = ", ".join(dict.fromkeys(map(str, there)))
            raise ValueError(f"the experiment has no {what} {unknown[0]!r}, only {known}.")
    return [
        group
        for group in groups
        if (datasets is None or any(name in datasets for name in _names(group)))
        and (seeds is None or group.seed in seeds)
    ]


def _names(group: Group) -> list[str]:
    """What a data set may be called."""
    return [name for name in (group.dataset.label, group.dataset.name) if name]


def plan_of(experiment: Experiment, groups: list[Group]) -> dict[str, Any]:
    """What tables and reports need to know of an experiment."""
    return {
        "name": experiment.name,
        "metrics": experiment.metrics,
        "text": experiment.text,
        "results": [
            {
                "key": fit.key,
                "dataset": group.dataset.label,
                "seed": group.seed,
                "method": method.label,
                "select_by": method.select_by,
            }
            for group in groups
            for method in experiment.methods
            for fit in group.fits
            if fit.method.method == method.method
            and any(fit.parameters == point for point in method.points())
        ],
    }


@contextmanager
def _watching(
    store: Store, groups: list[Group], n_done: int, missing: set[str], watch: Watcher | None
) -> Iterator[None]:
    """Count the results in the store while they come, whoever writes them."""
    if watch is None:
        yield
        return
    ended = threading.Event()
    waiting = {fit.key: fit.metrics for group in groups for fit in group.fits if fit.key in missing}

    def look() -> None:
        count = n_done
        while True:
            for key in [key for key, metrics in waiting.items() if store.is_done(key, metrics)]:
                del waiting[key]
                count += 1
            watch(count)
            if ended.wait(_SECONDS_BETWEEN_LOOKS):
                break

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        watch(n_done + len(missing) - sum(not store.is_done(k, m) for k, m in waiting.items()))
