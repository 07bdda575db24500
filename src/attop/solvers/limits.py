"""When a solver has to stop at the latest."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from attop.solvers.solution import HistoryRecorder, Status

#: Dual values so many times the primal one of zero are no rounding: the kernel is indefinite.
TOO_MUCH = 1.01
#: A fit ends where so many rounds, costly ones counted several times, have brought less than this
#: share of what is missing.
WINDOW, HARDLY = 25, 0.03


@dataclass
class Limits:
    """When to stop at the latest.

    Attributes
    ----------
    max_iter : int
        Bound on `rounds`, -1 for none.
    max_time : float or None
        Bound on the seconds since these limits were made.
    recorder : HistoryRecorder
        Its clock is the one that counts.
    rounds : int
        Rounds, or steps, made so far.
    ahead, ending : float
        Seconds that the next round and, after the last one, the certificate will take.
    """

    max_iter: int
    max_time: float | None
    recorder: HistoryRecorder = field(default_factory=HistoryRecorder)
    rounds: int = 0
    ahead: float = 0.0
    ending: float = 0.0

    def reached(self) -> Status | None:
        """Which limit has been reached, if any."""
        if 0 <= self.max_iter <= self.rounds:
            return Status.MAX_ITER
        return Status.MAX_TIME if self.out_of_time(self.ahead) else None

    def out_of_time(self, ahead: float = 0.0) -> bool:
        """Whether `ahead` seconds more, and the ending, would be too many."""
        if self.max_time is None:
            return False
        return self.recorder.elapsed + ahead + self.ending >= self.max_time

    @property
    def seconds_left(self) -> float | None:
        """Time until the limit, None where there is none: the limit of a solver within another."""
        return None if self.max_time is None else max(0.0, self.max_time - self.recorder.elapsed)


#: For a solver within another that may take its time.
UNLIMITED = Limits(-1, None)


@dataclass
class Progress:
    """Notices that the end is not getting any nearer, however long one waits."""

    looks: int = 0
    primal: float = np.inf
    before: tuple[float, float] = (np.inf, -np.inf)

    def ended(self, primal: float, dual: float, cost: int = 1) -> bool:
        """Whether the last rounds, up to one of this `cost`, brought next to nothing."""
        self.looks += cost
        self.primal = min(primal, self.primal)
        if self.looks < WINDOW:
            return False
        self.looks = 0
        gained, missing = dual - self.before[1], abs(dual)
        if np.isfinite(self.primal):  # with C infinite it may not be, as yet
            gained += self.before[0] - self.primal
            missing = self.primal - dual
        self.before = self.primal, max(dual, self.before[1])
        # A primal value below a dual one is rounding, or a kernel that is not definite.
        return bool(gained < HARDLY * missing or missing <= 0.0)
