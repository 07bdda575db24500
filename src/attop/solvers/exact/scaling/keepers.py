"""Who keeps the scores of all samples: the full keeper, and what every keeper does.

The loop works on the scores of a `State`, and the keeper sees to it that they are right where the
loop looks.  `FullScores` has all of them right at all times, which costs a kernel column of full
length for every variable that moves.  `attop.solvers.exact.scaling.bounded_scores.BoundedScores`
has bounds in the place of those that cannot matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from attop import objectives
from attop._scores import Scores
from attop.kernels.columns import ColumnStore
from attop.kernels.errors import Tally
from attop.kernels.refined import refined_sums
from attop.objectives import Certificate
from attop.problem import Problem
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling import start as starts
from attop.solvers.exact.scaling.parts import Part

#: A pass over stored entries that refines scores takes as long as to compute as many entries of so
#: many features in double precision; and by how much bounds must be better to be worth a change.
_PASS, _BETTER = 200.0, 0.5


class ScoreKeeper(Protocol):
    """What the loop asks of whoever keeps the scores of its state.

    Attributes
    ----------
    n_entries : int
        Kernel entries computed besides those of the store's columns.
    """

    n_entries: int

    @property
    def knows_all(self) -> bool:
        """Whether the scores of all samples are right."""

    def scores_by(self, part: Part, small: State) -> NDArray[np.float64]:
        """Scores of all samples by the model of a subsample, roughly."""

    def follow(self, part: Part, small: State) -> None:
        """Take the state where its part went."""

    def know(self, rows: NDArray[np.intp]) -> None:
        """Have the scores of these samples right."""

    def settle(self) -> None:
        """Have the scores of all samples right."""

    def balance(self) -> None:
        """Make the sums of alphas and betas equal to the last bits, and all else feasible."""

    def refine(self) -> bool:
        """Have the scores of all samples more precise, where rounding may hide what matters."""

    def correct(self, certificate: Certificate) -> None:
        """Take over the exact scores of a certificate."""

    def bounds(self, exact: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The scores with proved bounds on their errors, as the certificate takes them."""


class FullScores:
    """Keeps the scores of all samples right."""

    n_entries = 0
    knows_all = True

    def __init__(self, state: State) -> None:
        self.state = state

    def scores_by(self, part: Part, small: State) -> NDArray[np.float64]:
        """See `ScoreKeeper`."""
        return starts.scores_by(part, small, self.state)

    def follow(self, part: Part, small: State) -> None:
        """See `ScoreKeeper`."""
        self.state.follow(part, small)

    def know(self, rows: NDArray[np.intp]) -> None:
        """Nothing to do."""

    def settle(self) -> None:
        """Nothing to do."""

    def balance(self) -> None:
        """See `ScoreKeeper`."""
        starts.mend(self.state)
        self.state.balance()

    def refine(self) -> bool:
        """See `ScoreKeeper`."""
        return refine(self.state)

    def correct(self, certificate: Certificate) -> None:
        """See `ScoreKeeper`."""
        take_over(self.state, certificate)

    def bounds(self, exact: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `ScoreKeeper`."""
        errors = self.state.store.errors
        assert errors is not None
        self.refine()
        self.state.sum_anew()
        return self.state.scores, errors.bounds(self.state.tally)


def refine(state: State) -> bool:
    """Scores from the columns at hand, less the errors that these have in common.

    False where nothing was changed: where rounding leaves few samples in doubt, whose scores are
    computed once more for the certificate, or where scores could not be made much better.
    """
    store, errors = state.store, state.store.errors
    if not isinstance(store, ColumnStore) or errors is None:
        return False
    coefficients, bounds = state.coefficients(), errors.bounds(state.tally)
    support = np.flatnonzero(coefficients)
    doubtful = (
        Borders.of(state.problem, state.scores).distance(
            kinds_of(state.problem, store.n_samples), state.scores
        )
        <= 2.0 * bounds
    )
    doubtful[support] = False
    costs = np.count_nonzero(doubtful) * store.source.work > _PASS * store.n_samples
    if not costs or not store.cached(support).all():
        return False
    found = refined_sums(store, support, coefficients[support])
    if found is None or not float(np.max(found[1])) < _BETTER * float(np.min(bounds)):
        return False
    state.scores[:], state.tally = found[0], Tally(extra=float(np.max(found[1])))
    return True


def take_over(state: State, certificate: Certificate) -> None:
    """Put the exact scores into the state; the others are corrected by their common shift."""
    rows, errors = certificate.rows, state.store.errors
    if len(rows) == 0:
        return
    offset = float(np.median(certificate.scores - state.scores[rows]))
    state.scores += offset
    state.scores[rows] = certificate.scores
    if errors is not None:  # the shift is no better than the scores that tell it
        state.tally += Tally(extra=float(np.max(errors.bounds(state.tally)[rows])))


def kinds_of(problem: Problem, n_samples: int) -> NDArray[np.bool_]:
    """Which of the samples are competitors, and which are positives."""
    kinds = np.zeros((2, n_samples), dtype=bool)
    kinds[0, problem.competitors] = kinds[1, problem.positives] = True
    return kinds


class Borders(NamedTuple):
    """Where scores begin to matter.

    Attributes
    ----------
    lowest : float
        Competitors below this do not matter to the threshold.
    highest : float
        Positives above this have no loss.
    """

    lowest: float
    highest: float

    @classmethod
    def of(cls, problem: Problem, scores: NDArray[np.float64]) -> Borders:
        """The borders at the given scores."""
        t = objectives.threshold(problem, scores)
        competing, weights = scores[problem.competitors], problem.competitor_weights
        return cls(problem.family.level(problem, competing, weights, t), 1.0 + t)

    def distance(self, kinds: Any, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far samples are from where they matter; negative where they do.

        `kinds` tells which of them are competitors, and which are positives.
        """
        competing = np.where(kinds[0], self.lowest - scores, np.inf)
        return np.where(kinds[1], np.minimum(competing, scores - self.highest), competing)
