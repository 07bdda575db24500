"""From an experiment to its fits: what each depends on, and which of them share a kernel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from attop.experiments.data import DatasetSpec
from attop.experiments.methods import CLASSIFIERS, METHODS, shares_columns
from attop.experiments.specification import Experiment, MethodSpec


@dataclass(frozen=True)
class Fit:
    """One classifier on the training samples of one split.

    Attributes
    ----------
    dataset : DatasetSpec
        The data set.
    seed : int
        Seed of its split, and of what a solver draws.
    method : MethodSpec
        The method.
    parameters : dict
        Its parameters, the grid point among them.
    kernel, solver : dict
        As the experiment says.
    metrics : tuple of str
        What to measure: the metrics of the experiment, and the one that chooses.
    """

    dataset: DatasetSpec
    seed: int
    method: MethodSpec
    parameters: dict[str, Any]
    kernel: dict[str, Any]
    solver: dict[str, Any]
    metrics: tuple[str, ...]

    @property
    def key(self) -> str:
        """Hash of all that the result depends on; labels and metrics are no part of it.

        Nor is the device: an optimum is the same wherever it is found, so that a run begun on one
        machine goes on on another.
        """
        method = self.method.method
        solver = {name: value for name, value in self.solver.items() if name != "device"}
        return digest(
            {
                "dataset": self.dataset.identity(),
                "seed": self.seed,
                "method": method,
                "parameters": self.parameters,
                # Only our own methods have our solvers, and imported ones have own kernels.
                "kernel": self.kernel if method in METHODS else {},
                "solver": solver if method in CLASSIFIERS else {},
            }
        )

    @property
    def shares(self) -> bool:
        """Whether the fit shares kernel columns and starts with others of its group."""
        return shares_columns(self.method.method, self.solver)


@dataclass(frozen=True)
class Group:
    """The fits on one split: they share its samples and their kernel.

    Attributes
    ----------
    dataset, seed
        The split.
    fits : list of Fit
        Fits to be done.
    """

    dataset: DatasetSpec
    seed: int
    fits: list[Fit]


def digest(content: Any) -> str:
    """Hash of something that JSON can tell."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def expand(experiment: Experiment) -> list[Group]:
    """All fits of an experiment, by split.

    Where two methods of different names come to the same fit, it is done once.
    """
    groups = []
    for dataset in experiment.datasets:
        for seed in experiment.seeds:
            fits: dict[str, Fit] = {}
            for method in experiment.methods:
                metrics = (*experiment.metrics, method.select_by)
                for point in method.points():
                    fit = Fit(
                        dataset, seed, method, point, experiment.kernel, experiment.solver, metrics
                    )
                    known = fits.setdefault(fit.key, fit)
                    both = tuple(dict.fromkeys((*known.metrics, *metrics)))
                    fits[fit.key] = replace(known, metrics=both)
            groups.append(Group(dataset, seed, list(fits.values())))
    return groups
