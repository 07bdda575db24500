"""What every solver returns: a point, a status that explains itself, a history, what it took."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from attop.objectives import Certificate


class Status(Enum):
    """How a fit ended.  ``str(status)`` is a sentence for people."""

    CONVERGED = "the certified duality gap is within the tolerance"
    MAX_ITER = "stopped at max_iter before the duality gap reached the tolerance"
    MAX_TIME = "stopped at max_time before the duality gap reached the tolerance"
    STALLED = "no step of this solver improves the dual, but the duality gap is still too large"
    PRECISION = "the gap is as small as the arithmetic of the kernel columns allows"
    UNBOUNDED = "not separable: with C=inf no model puts every positive above the threshold"
    NOT_PSD = "the kernel is not positive semi-definite, so the problem is not convex"
    NO_CERTIFICATE = "the problem is not convex: no certificate of optimality exists"

    def __str__(self) -> str:
        return self.value

    # A saved model knows its status by the name: the sentence may be worded anew.
    def __reduce__(self) -> tuple[type[Status], tuple[str]]:
        return Status, (self.name,)

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        return cls.__members__.get(str(value))


class History(NamedTuple):
    """Progress of a fit, one entry per look at the gap.

    ``gap`` is relative, as the solver saw it; the certified one is the estimator's
    ``dual_gap_``.
    """

    time: NDArray[np.float64]
    step: NDArray[np.int64]
    primal: NDArray[np.float64]
    dual: NDArray[np.float64]
    gap: NDArray[np.float64]


@dataclass
class HistoryRecorder:
    """Collects `History` entries while a solver runs."""

    started: float = field(default_factory=time.perf_counter)
    rows: list[tuple[float, int, float, float, float]] = field(default_factory=list)

    @property
    def elapsed(self) -> float:
        """Seconds since the solver began."""
        return time.perf_counter() - self.started

    def add(self, step: int, primal: float, dual: float, gap: float) -> None:
        """Record one look at the objective."""
        self.rows.append((self.elapsed, step, primal, dual, gap))

    def finish(self) -> History:
        """The entries as arrays."""
        table = np.array(self.rows, dtype=np.float64).reshape(-1, 5)
        return History(table[:, 0], table[:, 1].astype(np.int64), *table[:, 2:].T)


#: The keys of `Outcome.stats`, the same for every solver, and what they count.
STATS = {
    "columns": "kernel columns computed, those of a part of the samples counted as that part",
    "steps": "moves of a pair of dual variables (exact, pairwise) or of the weights (primal)",
    "support": "dual variables that are not zero",
    "seconds_start": "seconds until the starting point was there",
    "seconds_subsample": "how many of these went into the solution of a subsample",
    "seconds_rounds": "seconds of the rounds or steps, those behind the starting point included",
    "seconds_certificate": "seconds of the certificate",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a solver ended and what it took, whatever it has found.

    Attributes
    ----------
    status : Status
        How the solver ended, in its own view; a certificate has the last word.
    history : History
        Progress.
    n_iter : int
        Iterations (rounds of the exact solver, steps of the others).
    stats : dict
        A number for each key of `STATS`, 0 where the solver does not give one.
    """

    status: Status
    history: History
    n_iter: int
    stats: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        complete = dict.fromkeys(STATS, 0.0) | self.stats
        object.__setattr__(self, "stats", complete)  # as the class is frozen


@dataclass(frozen=True, kw_only=True)
class Solution(Outcome):
    """Dual variables and how they were found.

    Attributes
    ----------
    alpha, beta : ndarray of float64
        Dual variables of the positives and of the competitors.
    certificate : Certificate
        The referee's view of `alpha` and `beta`, from `attop.objectives.certify`.
    scores : ndarray of shape (n_samples,), optional
        Scores of all rows of the kernel matrix, as precise as the solver keeps them; rows
        that are no part of the problem are scored too.
    status, history, n_iter, stats
        As in `Outcome`.
    """

    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    certificate: Certificate
    scores: NDArray[np.float64] | None = None


@dataclass(frozen=True, kw_only=True)
class QuantileSolution(Outcome):
    """The best weights found of a problem without a dual, and how.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        The weights ``w``.
    objective : float
        Value at `coef`.
    threshold : float
        The quantile of the scores of `coef`.
    start_objectives : ndarray of shape (n_starts,)
        Value at each start.
    status, history, n_iter, stats
        As in `Outcome`; the history has the best value so far along the steps of all starts, but
        no dual value and no gap.
    """

    coef: NDArray[np.float64]
    objective: float
    threshold: float
    start_objectives: NDArray[np.float64]
