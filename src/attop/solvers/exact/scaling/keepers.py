"""Who keeps the scores of all samples: the full keeper, and what every keeper does.

The loop works on the scores of a `State`, and the keeper sees to it that they are right where the
loop looks.  `FullScores` has all of them right at all times, which costs a kernel column of full
length for every variable that moves.  `attop.solvers.exact.scaling.bounded_scores.BoundedScores`
has bounds in the place of those that cannot matter.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from attop._scores import Scores
from attop.kernels.errors import Tally
from attop.objectives import Certificate
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling import start as starts
from attop.solvers.exact.scaling.parts import Part


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

    def correct(self, certificate: Certificate) -> None:
        """See `ScoreKeeper`."""
        take_over(self.state, certificate)

    def bounds(self, exact: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `ScoreKeeper`."""
        errors = self.state.store.errors
        assert errors is not None
        self.state.sum_anew()
        return self.state.scores, errors.bounds(self.state.tally)


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
