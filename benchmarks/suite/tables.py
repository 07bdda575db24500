"""Tables in Markdown and in reStructuredText, and how figures are written in them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from suite.results import Row, number


@dataclass(frozen=True)
class Table:
    """A table with a title and a sentence or two on what it shows."""

    title: str
    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


#: The heading of each column, and how to write its cell of a row of results.
Columns = Mapping[str, Callable[[Row], str]]


def table_of(title: str, note: str, columns: Columns, rows: Sequence[Row]) -> Table:
    """A table with a line for each row of results."""
    lines = [[write(row) for write in columns.values()] for row in rows]
    return Table(title, note, list(columns), lines)


def text(name: str) -> Callable[[Row], str]:
    """Writes a column of the results as it is."""
    return lambda row: row.get(name, "")


def figure(name: str, form: Callable[[float], str]) -> Callable[[Row], str]:
    """Writes a column of the results as a number."""
    return lambda row: form(number(row, name))


def to_markdown(table: Table) -> str:
    """The table under a heading."""
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"### {table.title}\n\n{table.note}\n\n{body}\n"


def to_rst(table: Table) -> str:
    """The table under a heading, in a directive of Sphinx."""
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows([table.header, *table.rows])
    body = "\n".join(f"   {line}" for line in content.getvalue().splitlines())
    heading = f"{table.title}\n{'~' * len(table.title)}"
    options = "   :header-rows: 1\n   :class: figures"
    return f"{heading}\n\n{table.note}\n\n.. csv-table::\n{options}\n\n{body}\n"


def digits(value: float, n: int = 3) -> str:
    """A figure with `n` significant digits, and never in scientific notation; '' for nan."""
    if not math.isfinite(value):
        return ""
    if value == 0:
        return "0"
    decimals = max(0, n - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def count(value: float) -> str:
    """A whole number with separators; '' for nan."""
    return f"{value:,.0f}" if math.isfinite(value) else ""


def hundredths(value: float) -> str:
    """A figure that means nothing below a hundredth, such as gigabytes; '' for nan."""
    return f"{value:.2f}" if math.isfinite(value) else ""


def power(value: float) -> str:
    """A small number such as a gap; '' for nan."""
    return f"{value:.0e}".replace("e-0", "e-") if math.isfinite(value) else ""


def plain(value: float) -> str:
    """A parameter such as lambda, as short as can be."""
    return f"{value:g}"


def seconds_or_reason(row: Row | None) -> str:
    """The time of a row, or why there is none."""
    time = number(row, "seconds")
    # What failed, and why, is in the CSV file.
    return digits(time) if math.isfinite(time) else (row or {}).get("status", "").partition(":")[0]


def shape(row: Row) -> str:
    """Size of the training samples of a fit, and the share of positives."""
    share = number(row, "positives") / number(row, "n")
    return f"{count(number(row, 'n'))} x {count(number(row, 'features'))}, {share:.1%} positive"


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The exponent of the power of the size that fits the costs best, by least squares."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
