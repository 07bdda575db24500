"""Kernels that are learnt from samples and labels before the model is: those of a forest.

As a parameter such a kernel is a transformer that knows no samples yet.  In a fit it learns from
the training samples, those of each fold on its own, and samples become what it makes of them: the
problem, its certificate and the model are those of an ordinary kernel on that.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from attop.kernels.base import Kernel
from attop.kernels.matching import Matching


class KernelLearner:
    """What a transformer must have to be taken as a kernel: its leaves are compared."""

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from samples; those of weight 0 do not count."""

    @abstractmethod
    def leaves(self, X: Any) -> NDArray[np.float32]:
        """Whole numbers of samples, as many for each, that are equal where samples meet."""


@dataclass(frozen=True)
class Learnt(Matching):
    """The kernel of a fitted learner, on its leaves.

    Parameters
    ----------
    learner : KernelLearner
        The fitted learner, which nobody changes.
    """

    learner: Any

    name = "learnt"

    def samples(self, X: Any) -> NDArray[np.float32]:
        """The leaves of new samples."""
        return self.learner.leaves(X)


@dataclass(frozen=True)
class ToLearn(Kernel):
    """A kernel that is to be learnt, by a clone of its learner.

    Parameters
    ----------
    learner : KernelLearner
        The learner, which is not fitted itself.
    """

    learner: Any

    name = "to be learnt"
    takes_sparse = True
    approximations = ()
    learns = True

    def values(self, X: Any, Y: Any) -> NoReturn:
        """There are none before it is learnt."""
        raise ValueError("This kernel has no values of samples before it has learnt from some.")

    def learn(
        self, X: Any, positive: NDArray[np.bool_], weights: NDArray[np.float64] | None, rows: Any
    ) -> tuple[Kernel, Any]:
        """The kernel learnt from some `rows`, and the leaves of all samples."""
        given = None if weights is None else weights[rows]
        learner = clone(self.learner).fit(X[rows], positive[rows], given)
        return Learnt(learner), learner.leaves(X)
