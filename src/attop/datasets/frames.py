"""Tables by pandas, whole or in chunks: CSV, TSV and Parquet, with errors that name the file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

#: Endings of tables; those of texts also with that of a compression.
TABLE_ENDINGS = (".csv", ".tsv", ".parquet")


def uncompressed(path: Path) -> Path:
    """The name without that of the compression."""
    return path.with_suffix("") if path.suffix.lower() in (".gz", ".bz2") else path


def ending(path: Path) -> str:
    """The ending that tells the kind of file."""
    return uncompressed(path).suffix.lower()


def column_names(path: Path) -> list[str]:
    """Names of the columns of a table."""
    pd = _pandas(path)
    if ending(path) == ".parquet":
        with _read_errors(path):
            return list(_parquet_file(path).schema_arrow.names)
    with _read_errors(path):
        return [str(name) for name in pd.read_csv(path, nrows=0, **_csv_options(path)).columns]


def read_frame(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    words: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> DataFrame:
    """Read a table.

    Parameters
    ----------
    path : Path
        Its file.
    columns : sequence of str, default=None
        Columns to read; all by default.
    words : sequence of str, default=()
        Columns that a text file is to give as they are written, not as numbers.
    missing : sequence of str, default=()
        Further words of a text file that stand for a missing value.

    Returns
    -------
    DataFrame
        Its columns have texts for names.
    """
    pd = _pandas(path)
    if ending(path) == ".parquet":
        with _read_errors(path):
            file = _parquet_file(path)
            frame = file.read(columns=columns and list(columns)).to_pandas()
    else:
        with _read_errors(path):
            frame = pd.read_csv(path, **_csv_options(path, columns, words, missing))
    frame.columns = [str(name) for name in frame.columns]
    return frame


def frame_chunks(
    path: Path,
    n_rows: int,
    *,
    columns: Sequence[str],
    words: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> Iterator[DataFrame]:
    """The rows of a table, so many at a time; the parameters are those of `read_frame`."""
    pd = _pandas(path)
    if ending(path) == ".parquet":
        with _read_errors(path):
            file = _parquet_file(path)
            for batch in file.iter_batches(n_rows, columns=list(columns)):
                yield batch.to_pandas()
            if not file.metadata.num_rows:  # no batch at all, where a text gives an empty chunk
                yield file.read(columns=list(columns)).to_pandas()
        return
    with _read_errors(path):
        options = _csv_options(path, columns, words, missing)
        with pd.read_csv(path, chunksize=n_rows, **options) as chunks:
            yield from chunks


def _csv_options(
    path: Path,
    columns: Sequence[str] | None = None,
    words: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> dict[str, Any]:
    options: dict[str, Any] = {"sep": "\t" if ending(path) == ".tsv" else _separator(path)}
    if columns is not None:
        options["usecols"] = list(columns)
    if words:
        options["dtype"] = dict.fromkeys(words, str)
    if missing:
        options["na_values"] = list(missing)
    return options


def _separator(path: Path) -> str:
    """A comma, or the semicolon of spreadsheets in countries with decimal commas."""
    opener = {".gz": gzip.open, ".bz2": None}.get(path.suffix.lower(), open)
    if opener is None:
        return ","
    with opener(path, "rb") as file:
        header = file.readline(100_000)
    return ";" if b";" in header and b"," not in header else ","


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn what readers raise for each kind of damage into an error that names the file."""
    import pandas as pd

    try:
        yield
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{path.name} is not a table: {error}") from error
    except (EOFError, UnicodeDecodeError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(f"{path} is truncated or not of the kind its name says: {error}") from error
    except Exception as error:
        if type(error).__module__.startswith("pyarrow"):
            raise OSError(f"{path} is truncated or not a Parquet file: {error}") from error
        raise


def _pandas(path: Path) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f'To read {path.name}, install pandas: pip install "attop[experiments]".'
        ) from error
    return pd


def _parquet_file(path: Path) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(
            f'To read {path.name}, install pyarrow: pip install "attop[experiments]".'
        ) from error
    return ParquetFile(path)
