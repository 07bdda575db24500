"""What the library and its solvers expect of each other."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from attop.solvers.solution import Outcome

if TYPE_CHECKING:
    from attop.kernels.functions import Gram


@dataclass(frozen=True)
class Settings:
    """How precise and how costly a solution may be; the same for every solver.

    ``solve(problem, gram, start=start, **vars(settings))`` hands them over.

    Attributes
    ----------
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Most iterations, -1 for no limit.
    max_time : float or None
        Most seconds, None for no limit.
    cache_bytes : int
        Memory for kernel columns.
    random_state : int, RandomState or None
        What draws at random.
    verbose : int
        Whether to report the progress.
    """

    tol: float = 1e-4
    max_iter: int = -1
    max_time: float | None = None
    cache_bytes: int = 1000 * 2**20
    random_state: Any = None
    verbose: int = 0

    def since(self, began: float) -> Settings:
        """The same with what is left of `max_time`, if that counts from the moment `began`.

        Moments are those of `time.perf_counter`.
        """
        if self.max_time is None:
            return self
        return replace(self, max_time=max(0.0, self.max_time - (time.perf_counter() - began)))


class Solver(Protocol):
    """A function that solves one kind of problem.

    Options of its own follow as further keywords, with defaults.  `attop.solvers.limits.Limits`
    tells it when to stop, `attop.solvers.solution.STATS` what to count.
    """

    def __call__(
        self,
        problem: Any,
        gram: Gram,
        *,
        tol: float = ...,
        max_iter: int = ...,
        max_time: float | None = ...,
        cache_bytes: int = ...,
        start: Any = ...,
        random_state: Any = ...,
        verbose: int = ...,
    ) -> Outcome:
        """Solve `problem` on the kernel matrix `gram`.

        Parameters
        ----------
        problem : Problem or QuantileProblem
            What to solve.
        gram : Gram
            Its kernel matrix.
        tol, max_iter, max_time, cache_bytes, random_state, verbose
            As in `Settings`.
        start : (alpha, beta) or ndarray, optional
            Where to begin: dual variables, or weights where there is no dual.

        Returns
        -------
        Solution or QuantileSolution
            With the certificate of `attop.objectives.certify` where there is a dual.
        """
        ...


if TYPE_CHECKING:  # for the type checker to compare them with the protocol
    from attop.solvers import exact, pairwise, primal

    _SOLVERS: tuple[Solver, ...] = (
        exact.solve,
        pairwise.solve,
        primal.solve,
        primal.solve_quantile,
    )
