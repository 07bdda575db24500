"""``attop run``: an experiment from its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from attop.cli._results import say_damaged

StoreOption = Annotated[
    Path, typer.Option(help="Folder of the results; made if missing.", file_okay=False)
]


def run(
    experiment: Annotated[
        str, typer.Argument(help="TOML file, or a preset: quick, paper, paper-exact.")
    ],
    store: StoreOption = Path("attop-results"),
    jobs: Annotated[
        int, typer.Option(help="Splits worked on at the same time; -1 for all processors.")
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Scheduler of a Dask cluster that does the work, such as tcp://10.0.0.1:8786; "
            "its workers must see the folder of the results under the same path.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where kernels are computed, whatever the experiment says: cpu, cuda or the like "
            "of cuda:1. With --jobs several splits share it, and its memory, at the same time."
        ),
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Only these data sets of the experiment: MNIST,SVHN2."),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Only these seeds of it: 1,2,3.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what it takes: fits, hours and memory, from results in the store or "
            "from fits on some samples.",
        ),
    ] = False,
) -> None:
    """Run an experiment; what is done already is skipped, so that it can be interrupted.

    Every result is written as soon as it is there.  A run that was killed goes on where it
    was when it is started again, and ends with the same results.
    """
    from attop.experiments.runner import run_experiment
    from attop.experiments.specification import load_experiment

    try:
        specification = load_experiment(experiment)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="EXPERIMENT") from None
    if device is not None:
        specification = _on_device(specification, device)
    part: dict[str, Any] = {"datasets": _names(datasets), "seeds": _numbers(seeds)}
    console = Console()
    if dry_run:
        _estimate(console, specification, store, jobs, part)
        return
    _announce(console, specification, store, jobs, part)
    with _progress(console, specification.name, _count(specification, part)) as watch:
        outcome = run_experiment(
            specification, _folder(store, dask), n_jobs=jobs, watch=watch, dask=dask, **part
        )
    console.print(
        f"{outcome.n_fits} fits in {store}, {outcome.n_skipped} of them done before. "
        f"See them with: attop report --store {store}",
        markup=False,
        soft_wrap=True,
    )
    say_damaged(outcome.damaged, "it was made again")
    if outcome.foreign:
        names = ", ".join(str(path) for path in outcome.foreign)
        console.print(f"Not of attop, and left alone: {names}", markup=False, soft_wrap=True)
    if outcome.failures:
        console.print(f"{len(outcome.failures)} fits failed; the report tells why.", soft_wrap=True)
        raise typer.Exit(code=1)


def _estimate(
    console: Console, specification: Any, store: Path, jobs: int, part: dict[str, Any]
) -> None:
    """Show what every data set takes, and all of them."""
    import joblib
    from rich.table import Table

    from attop.experiments.estimate import estimates, summary
    from attop.experiments.store import Store

    with console.status("Fitting some of the samples ..."):
        found = estimates(_groups(specification, part), Store(store), calibrate=True)
    table = Table("data set", "fits", "done", "training samples", "one by one", "memory", "from")
    for one in found:
        table.add_row(*one.row())
    console.print(table)
    console.print(summary(found, joblib.effective_n_jobs(jobs)), markup=False, soft_wrap=True)


def _announce(
    console: Console, specification: Any, store: Path, jobs: int, part: dict[str, Any]
) -> None:
    """Before a run goes on, what is left of it, by the times of what is there."""
    import joblib

    from attop.experiments.estimate import estimates, summary
    from attop.experiments.store import Store

    if not Store(store).plan_names():
        return
    found = estimates(_groups(specification, part), Store(store), calibrate=False)
    if any(0 < one.n_done < one.n_fits for one in found):
        console.print(summary(found, joblib.effective_n_jobs(jobs)), markup=False, soft_wrap=True)


def _folder(store: Path, dask: str | None) -> Any:
    """The store, under a path that workers elsewhere understand."""
    from attop.experiments.store import Store

    return Store(store if dask is None else store.resolve())


def _on_device(specification: Any, device: str) -> Any:
    """The experiment with its kernels computed there; an error where there is no such device."""
    from attop.kernels.device.arrays import NAMES, find_device

    try:
        if not NAMES.fullmatch(device):
            raise ValueError(f"must be cpu, cuda or the like of cuda:1. Got {device!r} instead.")
        find_device(device)
    except (ImportError, RuntimeError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--device") from None
    return replace(specification, solver={**specification.solver, "device": device})


def _names(listed: str | None) -> list[str] | None:
    return None if listed is None else [name.strip() for name in listed.split(",")]


def _numbers(listed: str | None) -> list[int] | None:
    try:
        return None if listed is None else [int(number) for number in listed.split(",")]
    except ValueError:
        message = f"must be numbers, separated by commas. Got {listed!r} instead."
        raise typer.BadParameter(message, param_hint="--seeds") from None


def _groups(specification: Any, part: dict[str, Any]) -> Any:
    from attop.experiments.expansion import expand
    from attop.experiments.runner import chosen

    try:
        return chosen(expand(specification), **part)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--datasets or --seeds") from None


def _count(specification: Any, part: dict[str, Any]) -> int:
    return sum(len(group.fits) for group in _groups(specification, part))


@contextmanager
def _progress(console: Console, name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time that is left; what it yields is told the number of results."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # Results come in bursts: the speed is that of several minutes.
    with Progress(*columns, console=console, speed_estimate_period=600.0) as progress:
        task = progress.add_task(name, total=total)
        yield lambda count: progress.update(task, completed=count)
