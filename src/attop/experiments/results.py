"""What an experiment came to: every fit, and the best of each method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attop._words import suggestion
from attop.experiments.store import Record, Store

#: Where results are kept if the user does not say.
DEFAULT_STORE = "attop-results"


class Results:
    """The results of one experiment in a store.

    Parameters
    ----------
    store : Store
        The store.
    name : str, default=None
        Name of the experiment; by default the one that was run last.

    Attributes
    ----------
    name : str
        Name of the experiment.
    metrics : list of str
        Its metrics.
    text : str
        Its file.
    n_planned : int
        Fits that it is made of.
    records : list of dict
        Its results, each with the labels of its data set and method.
    damaged : list of Path
        Files of results that cannot be read.

    Raises
    ------
    FileNotFoundError
        If there are no results.
    """

    def __init__(self, store: Store, name: str | None = None) -> None:
        names = store.plan_names()
        torn = "".join(f" {path} is damaged." for path in store.damaged_plans())
        if not names:
            raise FileNotFoundError(
                f"There are no results in {store.folder}.{torn} Make some with: attop run quick"
            )
        plan = store.read_plan(names[-1] if name is None else name)
        if plan is None:
            raise FileNotFoundError(
                f"There is no experiment {name!r} in {store.folder}.{torn} "
                f"{suggestion(name, names)}"
            )
        self.name: str = plan["name"]
        self.metrics: list[str] = plan["metrics"]
        self.text: str = plan["text"]
        self.n_planned = len(plan["results"])
        self.records: list[Record] = []
        self.damaged: list[Path] = []
        for entry in plan["results"]:
            record = store.read(entry["key"])
            if record is not None:
                labels = {"label": entry["method"], "data": entry["dataset"]}
                self.records.append({**record, **labels, **_without(entry, ("method", "dataset"))})
            elif store.is_damaged(entry["key"]):
                self.damaged.append(store.result_path(entry["key"]))

    @property
    def failures(self) -> list[Record]:
        """Fits that went wrong."""
        return [record for record in self.records if record["error"]]

    @property
    def uncertified(self) -> list[Record]:
        """Fits that ended without a certificate of optimality, though their kind has one."""
        good = ("CONVERGED", "NO_CERTIFICATE", "", "FAILED")
        return [record for record in self.records if record["status"] not in good]

    def best(self) -> list[Record]:
        """For each data set, seed and method the fit with the best validation score.

        As in the paper each method is judged by the metric it is made for.  Of equal ones
        the first of the grid is taken; a fit that gives all samples the same score cannot
        be chosen.
        """
        chosen: dict[tuple[str, int, str], Any] = {}
        for record in self.records:
            score = _validation_score(record)
            place = (record["data"], record["seed"], record["label"])
            known = chosen.get(place)
            if score is not None and (known is None or score > _validation_score(known)):
                chosen[place] = record
        return list(chosen.values())

    def table(self) -> list[dict[str, Any]]:
        """Test metrics of the best fits, as `attop.experiments.tables` wants them."""
        return [
            {
                "dataset": record["data"],
                "method": record["label"],
                "seed": record["seed"],
                "metric": metric,
                "value": float("nan") if value is None else value,
            }
            for record in self.best()
            for metric, value in record["test"].items()
            if metric in self.metrics
        ]


def _without(entry: Record, keys: tuple[str, ...]) -> Record:
    return {key: value for key, value in entry.items() if key not in keys}


def _validation_score(record: Record) -> Any:
    """What chooses among the fits of a method; 0 where there are no validation samples."""
    if "sizes" in record and not record["sizes"]["valid"][0]:  # failures have none
        return 0.0
    return record["validation"].get(record["select_by"])
