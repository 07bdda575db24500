"""Gather the results of all programs into one page that names the machine.

    python benchmarks/report.py [--output out/bench] [--docs docs/_benchmarks]

Writes ``report.md`` into the folder of the results.  With ``--docs`` it also writes the tables
and the plot for the documentation into that folder.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

import bench_budget
import bench_dask
import bench_grid
import bench_kernel
import bench_linear
import bench_nystroem
import bench_path
import bench_predict
import bench_scaling
import bench_small
from suite.results import Row, read_rows
from suite.tables import Table, digits, to_markdown, to_rst

PROGRAMS = (
    bench_small,
    bench_grid,
    bench_kernel,
    bench_scaling,
    bench_budget,
    bench_predict,
    bench_linear,
    bench_path,
    bench_nystroem,
    bench_dask,
)

#: Columns whose figures are times of a peer over ours.
RATIOS = ("times as fast", "ratio, median", "least", "LinearSVC / it", "GridSearchCV, ratio")
RATIOS += ("AtTopCV, ratio",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench"))
    parser.add_argument("--docs", type=Path, help="folder of the documentation to write to")
    options = parser.parse_args()
    tables = gather(options.output)
    if len(tables) < 2:
        raise SystemExit(f"There are no results in {options.output}.")
    page = options.output / "report.md"
    page.write_text(markdown(tables, options.output), encoding="utf-8")
    print(f"{page} written: {len(tables) - 1} tables")
    if options.docs:
        write_docs(tables, options.output, options.docs)
        print(f"{options.docs} written")


def gather(folder: Path) -> list[Table]:
    """The table of the machine, and those of every program that has results."""
    machine = [[row[""], row["value"]] for row in read_rows(folder / "machine.csv")]
    rows = {program: read_rows(folder / f"{program.NAME}.csv") for program in PROGRAMS}
    note = origin_of([row for found in rows.values() for row in found])
    first = Table("Machine", note, ["part", "value"], machine)
    others = [table for program in PROGRAMS for table in program.tables(rows[program])]
    return [first, *ratios_of(others), *others]


def ratios_of(tables: Sequence[Table]) -> list[Table]:
    """One table of all ratios, losses first."""
    found = []
    for table in tables:
        for name in set(RATIOS) & set(table.header):
            place = list(table.header).index(name)
            cells = [row[place].replace(",", "") for row in table.rows]
            values = [float(cell) for cell in cells if cell]
            if values:
                found.append((min(values), statistics.median(values), table.title, name))
    if not found:
        return []
    lines = [
        [title, name, digits(middle), digits(least)] for least, middle, title, name in sorted(found)
    ]
    note = "Time of a peer over ours, above 1 where we are faster; the worst first."
    return [Table("All ratios", note, ["table", "ratio", "median", "least"], lines)]


def origin_of(rows: list[Row]) -> str:
    """Says whether all rows come from the same machine, threads and version."""
    parts = ("machine", "threads", "version")
    found = sorted({", ".join(row.get(part, "unknown") for part in parts) for row in rows})
    if len(found) <= 1:
        return "Figures of all tables belong to this machine and these versions."
    return f"Figures come from different runs (machine, threads, attop): {'; '.join(found)}."


def markdown(tables: list[Table], folder: Path) -> str:
    """The page, with the plot after the table of the same figures."""
    parts = ["# Benchmarks\n"]
    for table in tables:
        parts.append(to_markdown(table))
        if table.title == bench_scaling.TITLE and (folder / bench_scaling.PLOT).exists():
            parts.append(f"![{bench_scaling.TITLE}]({bench_scaling.PLOT})\n")
    return "\n".join(parts)


def write_docs(tables: list[Table], folder: Path, docs: Path) -> None:
    """The same for Sphinx: a file that a page includes, and the plot."""
    docs.mkdir(parents=True, exist_ok=True)
    parts = [".. Written by benchmarks/report.py --docs; changes by hand will be lost.\n"]
    for table in tables:
        parts.append(to_rst(table))
        if table.title == bench_scaling.TITLE and (folder / bench_scaling.PLOT).exists():
            shutil.copy(folder / bench_scaling.PLOT, docs)
            # From the root of the sources: the page that includes this lies elsewhere.
            parts.append(
                f".. figure:: /{docs.name}/{bench_scaling.PLOT}\n"
                "   :alt: Seconds of a fit against the number of samples, logarithmic axes\n"
            )
    (docs / "tables.inc").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
