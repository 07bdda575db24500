"""``attop diagram``: critical difference diagrams."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from attop.cli._files import ForceOption, check_output
from attop.cli._results import open_results
from attop.cli.table import ExperimentOption

#: The command's own folder, in which it renews its files.
_DEFAULT = Path("out")


class Test(StrEnum):
    """Post-hoc tests."""

    nemenyi = "nemenyi"
    wilcoxon_holm = "wilcoxon-holm"


class Format(StrEnum):
    """Formats of a diagram."""

    svg = "svg"
    png = "png"
    pdf = "pdf"


def diagram(
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("attop-results"),
    experiment: ExperimentOption = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric; may be given several times; all by default.")
    ] = None,
    test: Annotated[Test, typer.Option(help="The post-hoc test.")] = Test.nemenyi,
    alpha: Annotated[float, typer.Option(help="Level of significance.")] = 0.05,
    format: Annotated[Format, typer.Option(help="Format of the files.")] = Format.svg,
    output: Annotated[
        Path, typer.Option(help="Folder for the diagrams.", file_okay=False)
    ] = _DEFAULT,
    force: ForceOption = False,
) -> None:
    """Draw critical difference diagrams, a file for each metric.

    Every data set and seed counts as one comparison, as in the paper.
    """
    from attop.experiments.figures import draw_diagram
    from attop.experiments.store import file_name

    results = open_results(store, experiment)
    rows = results.table()
    output.mkdir(parents=True, exist_ok=True)
    console = Console()
    for name in metric or results.metrics:
        path = output / f"{file_name(results.name)}_{name}.{format.value}"
        check_output(path, "--output", force=force or output == _DEFAULT)
        try:
            figure = draw_diagram(rows, name, test=test.value, alpha=alpha)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--metric") from None
        figure.savefig(path, dpi=150)
        console.print(f"{name}: {path}", markup=False, soft_wrap=True)
