"""``attop datasets``: the data sets known by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from attop.datasets.registry import DatasetInfo, Part


def datasets(
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of the data; ATTOP_DATA or a cache by default."),
    ] = None,
) -> None:
    """List the data sets known by name, with the sizes and positive rates of the paper."""
    from attop.datasets import DATASETS, data_folder
    from attop.datasets.loading import where

    places = {name: where(name, folder) for name in DATASETS}
    console = Console()
    console.print(datasets_table(list(DATASETS.values()), places))
    console.print(
        f"Folder of the data: {data_folder(folder)} (ATTOP_DATA or --folder names another).",
        markup=False,
        soft_wrap=True,
    )
    for name, place in places.items():
        if place is not None:
            console.print(f"{name} is here: {place}", markup=False, soft_wrap=True)


def datasets_table(infos: list[DatasetInfo], places: dict[str, str | None]) -> Table:
    """The data sets as a table: samples and share of positives of each part."""
    table = Table()
    table.add_column("data set", no_wrap=True)
    table.add_column("positive")
    for heading in ("features", "train", "valid.", "test"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("here", no_wrap=True)
    for info in infos:
        table.add_row(
            info.name,
            info.positive,
            " x ".join(map(str, info.shape)),
            *(_cell(part) for part in (info.train, info.validation, info.test)),
            f"{info.megabytes} MB" if places[info.name] is None else "yes",
        )
    table.caption = "samples and share of positives; here: yes, or the size of the download"
    return table


def _cell(part: Part | None) -> str:
    """Samples and, below, the share of positives."""
    if part is None:
        return "-"
    return f"{part.n_samples:,}\n{100 * part.positive_rate:.1f} %"
