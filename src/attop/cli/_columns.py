"""What the columns of a table are: numbers, categories, neither; and their values for a model."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attop._words import listed, suggestion

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: Categories of a column that get a feature of their own; the rarer ones share one.
MOST_CATEGORIES = 100
#: A column of words is no category where more than half of its rows differ, and this many.
_FEW_WORDS = 20
#: Share of numbers, or of dates, in a column of words from which it must have been meant for one.
_MOSTLY = 0.9
_DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T\s]+\d{1,2}:\d{2}.*)?\s*"
)
_IDENTIFIER = re.compile(r"(.*_)?(id|key|uuid|index)", re.IGNORECASE)


@dataclass(frozen=True)
class Columns:
    """Features of a model, by their names in the table, and the column carried through.

    Attributes
    ----------
    numbers, categories : list of str
        The features.
    id : str or None
        Column that names a sample.
    missing : list of str
        Words that stand for a missing value.
    """

    numbers: list[str]
    categories: list[str]
    id: str | None = None
    missing: list[str] = field(default_factory=list)

    @property
    def features(self) -> list[str]:
        """All features, as the model wants them."""
        return [*self.numbers, *self.categories]

    def as_dict(self) -> dict[str, Any]:
        """The columns as plain values, for the file of a model; ``Columns(**...)`` reads them."""
        return asdict(self)


def check_columns(names: Sequence[str], wanted: dict[str, Sequence[str]], file: str) -> None:
    """Raise unless the columns that options name are there; suggest the nearest."""
    for option, columns in wanted.items():
        for column in columns:
            if column not in names:
                raise ValueError(
                    f"{option} must name a column of {file}. Got {column!r} instead. "
                    f"{suggestion(column, names)}"
                )


def sort_columns(
    frame: DataFrame, categorical: Sequence[str], file: str
) -> tuple[list[str], list[str], list[str]]:
    """Columns of numbers, columns of categories, and what to tell the user about them.

    Raises
    ------
    ValueError
        If a column is neither; it says what to do.
    """
    numbers, categories, notes = [], [], []
    for name, column in frame.items():
        values = column.dropna()
        if not len(values):
            notes.append(f"Column {name!r} has no values and is left out.")
        elif name in categorical:
            categories.append(name)
        elif column.dtype.kind in "iuf":
            numbers.append(name)
            if _may_identify(name, values):
                notes.append(
                    f"Column {name!r} has another integer in every row: if it only names the "
                    f"samples, add --id {name}."
                )
        else:
            _check_words(name, values, file)
            categories.append(name)
    many = [name for name in categories if frame[name].nunique() > MOST_CATEGORIES]
    if many:
        notes.append(
            f"{listed(many)} has more than {MOST_CATEGORIES} different values; the rarer ones "
            "count as one."
        )
    return numbers, categories, notes


def _may_identify(name: str, values: Series) -> bool:
    distinct = values.dtype.kind in "iu" and len(values) > _FEW_WORDS and values.is_unique
    in_order = values.is_monotonic_increasing or values.is_monotonic_decreasing
    return bool(distinct and (in_order or _IDENTIFIER.fullmatch(name)))


def _check_words(name: str, values: Series, file: str) -> None:
    """Raise unless a column that holds no numbers is one of categories."""
    kind, first = values.dtype.kind, values.iloc[0]
    text = values.astype(str)
    dates = kind in "mM" or isinstance(first, datetime.date | datetime.timedelta)
    if dates or text.str.fullmatch(_DATE).mean() >= _MOSTLY:
        raise ValueError(
            f"Column {name!r} of {file} holds dates, which are no features as they are. Make "
            "numbers of them first (days since an event, the month, the weekday), or leave the "
            f"column out with --ignore {name}."
        )
    if kind not in "bOSUT" or not isinstance(first, str | bool | np.bool_ | int | float):
        raise ValueError(
            f"Column {name!r} of {file} holds {type(first).__name__} objects, neither numbers nor "
            f"words. Leave it out with --ignore {name}."
        )
    odd = text[_as_numbers(text).isna()]
    if 0 < len(odd) <= (1 - _MOSTLY) * len(text):
        raise ValueError(
            f"Column {name!r} of {file} holds numbers, and {len(odd)} times something else: "
            f"{listed(odd.unique().tolist())}. If that means a missing value, add --missing "
            f"{odd.iloc[0]!r}; if the numbers are codes, add --categorical {name}."
        )
    n_different = text.nunique()
    if n_different > max(_FEW_WORDS, len(text) // 2):
        raise ValueError(
            f"Column {name!r} of {file} has {n_different:,} different words in {len(text):,} rows, "
            f"from which nothing can be learned. If it names the samples, add --id {name}; else "
            f"leave it out with --ignore {name}."
        )


def feature_frame(frame: DataFrame, columns: Columns, file: str, first_row: int = 1) -> DataFrame:
    """The features of some rows, as a model takes them: floats, and words as objects.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    columns : Columns
        Which columns are what.
    file : str
        Name of the file, for errors.
    first_row : int, default=1
        Number of the first row in the file, for errors.
    """
    import pandas as pd

    values: dict[str, Any] = {
        name: _floats(frame[name], name, file, first_row) for name in columns.numbers
    }
    values |= {name: as_words(frame[name]) for name in columns.categories}
    return pd.DataFrame(values, columns=columns.features)


def _floats(column: Series, name: str, file: str, first_row: int) -> NDArray[np.float64]:
    numbers = column if column.dtype.kind in "iuf" else _as_numbers(column)
    floats: NDArray[np.float64] = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(np.isinf(floats) | (np.isnan(floats) & column.notna().to_numpy()))
    if len(wrong):
        raise ValueError(
            f"Column {name!r} of {file} must hold finite numbers. "
            f"Got '{column.iloc[wrong[0]]}' in row {first_row + wrong[0]} instead."
        )
    return floats


def _as_numbers(column: Series) -> Series:
    """Numbers that words spell, NaN for the others."""
    import pandas as pd

    return pd.to_numeric(column, errors="coerce")


def as_words(column: Series) -> NDArray[np.object_]:
    """Values as words, NaN where there is none; 1 and 1.0 are the same word."""
    values = column.to_numpy(dtype=object, na_value=np.nan)
    if column.dtype.kind == "f":
        whole = [v == v and float(v).is_integer() for v in values]
        values = np.where(whole, column.fillna(0).astype(np.int64).astype(object), values)
    gaps = column.isna().to_numpy()
    words = np.array([value if gap else str(value) for value, gap in zip(values, gaps)], object)
    words[gaps] = np.nan
    return words
