"""The table of a search, as `GridSearchCV` has it, with the certificates beside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from attop.model_selection._folds import Candidate, FoldFit


def results_table(candidates: list[Candidate], fits: list[FoldFit], n_folds: int) -> dict[str, Any]:
    """Arrays with one entry per candidate.

    Parameters
    ----------
    candidates : list of Candidate
        What was fitted.
    fits : list of FoldFit
        One for each candidate and fold, in any order.
    n_folds : int
        Number of folds.

    Returns
    -------
    dict
        See `AtTopCV.cv_results_`.
    """
    score, seconds, gap = (np.full((len(candidates), n_folds), np.nan) for _ in range(3))
    status = np.empty((len(candidates), n_folds), dtype=object)
    columns = np.zeros(len(candidates), dtype=np.int64)
    for fit in fits:
        at = fit.candidate, fit.fold
        score[at], seconds[at], gap[at], status[at] = fit.score, fit.seconds, fit.gap, fit.status
        columns[fit.candidate] += fit.columns
    mean = score.mean(axis=1)
    names = {id(c.estimator): _name(c) for c in {id(c.estimator): c for c in candidates}.values()}
    table: dict[str, Any] = {
        "mean_fit_time": seconds.mean(axis=1),
        "std_fit_time": seconds.std(axis=1),
        "estimator": np.array([names[id(c.estimator)] for c in candidates], dtype=object),
        **_parameter_columns(candidates),
        "params": [candidate.parameters for candidate in candidates],
        **{f"split{i}_test_score": score[:, i] for i in range(n_folds)},
        "mean_test_score": mean,
        "std_test_score": score.std(axis=1),
        "rank_test_score": _ranks(mean),
        **{f"split{i}_dual_gap": gap[:, i] for i in range(n_folds)},
        "max_dual_gap": gap.max(axis=1),
        **{f"split{i}_status": status[:, i] for i in range(n_folds)},
        "n_columns": columns,
    }
    return table


def _name(candidate: Candidate) -> str:
    """The estimator as it is written, on one line."""
    return " ".join(repr(candidate.estimator).split())


def _parameter_columns(candidates: list[Candidate]) -> dict[str, np.ma.MaskedArray]:
    """Values of each parameter, masked where a candidate does not vary it."""
    names = dict.fromkeys(name for candidate in candidates for name in candidate.parameters)
    table = {}
    for name in names:
        column = np.ma.MaskedArray(np.empty(len(candidates)), mask=True, dtype=object)
        for i, candidate in enumerate(candidates):
            if name in candidate.parameters:
                column[i] = candidate.parameters[name]
        table[f"param_{name}"] = column
    return table


def _ranks(mean: NDArray[np.float64]) -> NDArray[np.int32]:
    """1 for the best; candidates without a score come last."""
    worst = np.nanmin(mean) - 1.0 if np.isfinite(mean).any() else 0.0
    return rankdata(-np.where(np.isnan(mean), worst, mean), method="min").astype(np.int32)
