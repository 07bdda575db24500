"""Rows of results in a CSV file that grows as a program runs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, str]


class Results:
    """The rows of one program on this machine, kept in a CSV file.

    Rows of the same machine, threads and version stay when a program starts again; others
    move to a file ``*.previous.csv`` beside, so that no table mixes them.

    Parameters
    ----------
    path : Path
        The CSV file.
    identity : mapping
        Columns that say where rows come from (`suite.machine.identity`).
    """

    def __init__(self, path: Path, identity: Mapping[str, str]) -> None:
        self.path, self.identity = path, dict(identity)
        path.parent.mkdir(parents=True, exist_ok=True)
        found = read_rows(path)
        self.rows = [row for row in found if _agrees(row, self.identity)]
        if len(self.rows) < len(found):
            path.replace(path.with_suffix(".previous.csv"))
            write_rows(path, self.rows)

    def find(self, key: Mapping[str, Any]) -> Row | None:
        """The row of a case, where it has been measured."""
        return next((row for row in self.rows if _agrees(row, key)), None)

    def add(self, key: Mapping[str, Any], figures: Mapping[str, Any]) -> Row:
        """Write the row of a case, in the place of an earlier one."""
        row = {name: str(value) for name, value in {**key, **figures, **self.identity}.items()}
        earlier = self.find(key)
        if earlier is None:
            self.rows.append(row)
        else:
            self.rows[self.rows.index(earlier)] = row
        write_rows(self.path, self.rows)
        return row


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file, none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a CSV file with every column that occurs; an interruption leaves the old one."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(path)


def number(row: Mapping[str, str] | None, name: str) -> float:
    """A figure of a row, nan where there is none."""
    text = (row or {}).get(name, "")
    return float(text) if text else float("nan")


def _agrees(row: Mapping[str, str], key: Mapping[str, Any]) -> bool:
    return all(row.get(name) == str(value) for name, value in key.items())
