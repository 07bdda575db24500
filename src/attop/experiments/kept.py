"""Results as a table that is kept: read from stores and from tables made earlier.

Such a table has all that a comparison needs, so that it is a store for the next one: seeds that are
run later, or elsewhere, are added to it by naming both.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from attop.experiments.results import Results
from attop.experiments.tables import RESULT_COLUMNS

#: What says which result it is.
PLACE = ["dataset", "seed", "method"]
#: What is known of it besides its metrics.
_ABOUT = [*PLACE, "n_train", "seconds"]
#: Digits of the metrics: shares of at most millions of samples.
_FORMAT = "%.9g"


class KeptResults(NamedTuple):
    """The best fit of each method on each split.

    Attributes
    ----------
    fits : DataFrame
        A row for each, with the columns ``dataset``, ``seed``, ``method``, ``n_train`` (NaN for all
        training samples), ``seconds`` (of the processor where they are known) and the metrics.
    """

    fits: Any

    @property
    def metrics(self) -> list[str]:
        """The metrics."""
        return [name for name in self.fits.columns if name not in _ABOUT]

    def table(self) -> Any:
        """A row for each number, as `attop.experiments.tables` wants them."""
        long = self.fits.melt(PLACE, self.metrics, var_name="metric")
        return long[list(RESULT_COLUMNS)]

    def write(self, path: Path) -> None:
        """All of it as a CSV file."""
        self.fits.to_csv(path, index=False, float_format=_FORMAT)


def merged(sources: Iterable[KeptResults]) -> KeptResults:
    """All results in one; of those that are in several the last is taken."""
    import pandas as pd

    fits = pd.concat([source.fits for source in sources], ignore_index=True)
    fits = fits.drop_duplicates(PLACE, keep="last")
    order = {label: i for i, label in enumerate(dict.fromkeys(fits["method"]))}
    fits = fits.sort_values(
        ["n_train", *PLACE], key=lambda one: one.map(order) if one.name == "method" else one
    )
    return KeptResults(fits.reset_index(drop=True))


def kept_of_store(results: Results) -> KeptResults:
    """The results of an experiment in a store."""
    import pandas as pd

    rows = [
        {
            "dataset": record["data"],
            "seed": record["seed"],
            "method": record["label"],
            "n_train": record["dataset"]["n_train"],
            "seconds": record.get("processor_seconds") or record["seconds"],
            **{metric: record["test"].get(metric) for metric in results.metrics},
        }
        for record in results.best()
    ]
    kept = pd.DataFrame(rows, columns=[*_ABOUT, *results.metrics])
    return KeptResults(kept.astype(dict.fromkeys([*_ABOUT[-2:], *results.metrics], float)))


def kept_of_table(path: Path) -> KeptResults:
    """The results in a CSV file.

    Raises
    ------
    ValueError
        If it is no table of results.
    """
    import pandas as pd

    try:
        fits = pd.read_csv(path)
    except (OSError, ValueError) as error:  # those of pandas are ValueErrors
        raise ValueError(f"{path} cannot be read: {error}") from None
    missing = [name for name in _ABOUT if name not in fits.columns]
    if missing:
        raise ValueError(
            f"{path} must have the columns {_ABOUT}, as attop compare --keep writes them. "
            f"Got {list(fits.columns)} instead."
        )
    return KeptResults(fits)
