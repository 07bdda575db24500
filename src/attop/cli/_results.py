"""The results that commands show, and a word on those that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from attop.experiments.results import Results


def open_results(store: Path, experiment: str | None) -> Results:
    """The results of an experiment; files that are damaged are named on the error output."""
    from attop.experiments.results import Results
    from attop.experiments.store import Store

    results = Results(Store(store), experiment)
    say_damaged(results.damaged, "attop run makes it again")
    return results


def say_damaged(paths: list[Path], what: str) -> None:
    """Name files that cannot be read, and say what becomes of them."""
    console = Console(stderr=True)
    for path in paths:
        console.print(f"{path} is damaged; {what}.", markup=False, highlight=False, soft_wrap=True)
