"""When a solver has to stop at the latest."""

from __future__ import annotations

from dataclasses import dataclass, field

from attop.solvers.solution import HistoryRecorder, Status


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
