"""Files of predictions, written chunk by chunk: CSV, TSV, Parquet or npz."""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import typer

from attop.cli._files import written_whole
from attop.datasets.frames import ending

#: Takes the columns of some rows, by their names.
Writer = Callable[[dict[str, Any]], None]
OUTPUT_ENDINGS = (".csv", ".tsv", ".parquet", ".npz")


def check_ending(path: Path) -> None:
    """Raise unless a file of predictions may have this name."""
    if ending(path) not in OUTPUT_ENDINGS:
        raise typer.BadParameter(
            f"{path.name} must end in one of {', '.join(OUTPUT_ENDINGS)}.", param_hint="--output"
        )
    if ending(path) == ".parquet":
        _import_pyarrow()


@contextmanager
def predictions_writer(path: Path | None) -> Iterator[Writer]:
    """What takes the predictions, for a file that appears when all are there, or the screen."""
    if path is None:
        yield _csv_writer(sys.stdout, ",")
        return
    with written_whole(path) as temporary, ExitStack() as stack:
        if ending(path) == ".npz":
            yield from _npz_writer(temporary)
        elif ending(path) == ".parquet":
            yield from _parquet_writer(temporary)
        else:
            opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
            file = opener(temporary, "wt", encoding="utf-8", newline="")
            yield _csv_writer(stack.enter_context(file), "\t" if ending(path) == ".tsv" else ",")


def _csv_writer(file: IO[str], delimiter: str) -> Writer:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    begun = False

    def write(columns: dict[str, Any]) -> None:
        nonlocal begun
        if not begun:
            writer.writerow(columns)
            begun = True
        writer.writerows(zip(*(np.asarray(column).tolist() for column in columns.values())))

    return write


def _parquet_writer(path: Path) -> Iterator[Writer]:
    pa, pq = _import_pyarrow()
    with ExitStack() as stack:
        writer: Any = None

        def write(columns: dict[str, Any]) -> None:
            nonlocal writer
            table = pa.table(columns)
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(path, table.schema))
            writer.write_table(table.cast(writer.schema))

        yield write


def _npz_writer(path: Path) -> Iterator[Writer]:
    """Write arrays, which must wait for the last row; scores take little room."""
    parts: list[dict[str, Any]] = []
    yield parts.append
    arrays: dict[str, Any] = {
        name: np.concatenate([np.asarray(p[name]) for p in parts]) for name in parts[0]
    }
    # Texts as texts: arrays of objects could only be read by running what they hold.
    plain: dict[str, Any] = {
        k: v.astype(str) if v.dtype.kind == "O" else v for k, v in arrays.items()
    }
    with path.open("wb") as file:
        np.savez_compressed(file, **plain)


def _import_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            'To write Parquet, install pyarrow: pip install "attop[experiments]".'
        ) from error
    return pa, pq
