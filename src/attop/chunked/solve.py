"""Solve a problem whose samples are in chunks, by small problems that say more and more of it.

A random part of the samples gives the first model.  Then, round by round: one pass scores all
samples with the model at hand, which tells its primal value; a second one gathers the samples near
the kinks and adds up the others, each group on one side of all kinks; the small problem of these
gives a lower bound on the optimum, and the next model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from attop.chunked.curved import (
    Bent,
    Mean,
    TopStep,
    as_bent,
    bend,
    dual_of,
    smooth_step,
    step_to_top,
)
from attop.chunked.levels import Levels, Terms, find_levels, is_curved
from attop.chunked.passes import Gathered, Look, Request, gather, merge_gathered, score
from attop.chunked.protocol import Chunks, Vector, added
from attop.chunked.reduced import reduced_problem, sampled_problem
from attop.chunked.rounding import SOME, Rounding, gamma
from attop.kernels import gaussian
from attop.objectives import relative_gap, zero_value
from attop.solvers.limits import Limits
from attop.solvers.protocol import Settings
from attop.solvers.solution import History, Status

#: Models whose kinks divide the samples into groups: the last ones, the best among them.
_MODELS = 8
#: The small problems are solved to this share of the tolerance.
_SHARE = 0.25
#: A step of Newton's method that leads to no better model is halved so often.
_HALVINGS = 3
#: Samples gathered at most, by default: so many or this share, but no more entries of them.
#: (20,000,000 samples of 50 features, gap 1e-3: one round with 335,000 rows; with 100,000 a gap of
#: 7e-3 after four.)
MOST_ROWS, MOST_SHARE, MOST_ENTRIES = 100_000, 0.02, 2**24
#: Rounds in which the gap has to fall to this share.  After that more samples are gathered, this
#: many times as many, and so often.
_IDLE, _LESS, _MORE, _OFTEN = 4, 0.9, 4, 2


class Whole(NamedTuple):
    """The whole problem.

    Attributes
    ----------
    chunks : Chunks
        The samples.
    terms : Terms
        What is minimised.
    centre : ndarray or None
        From where samples are taken.
    rounding : Rounding
        How long sums over samples are, and how large the samples from there.
    totals : (float, float)
        Copies of positives and of negatives.
    """

    chunks: Chunks
    terms: Terms
    centre: Vector | None
    rounding: Rounding
    totals: tuple[float, float]

    @classmethod
    def of(cls, chunks: Chunks, terms: Terms, look: Look, totals: tuple[float, float]) -> Whole:
        """The problem of these chunks, after a look at them."""
        X = look.positives.X
        # Differences from a centre are no longer sparse.
        centre = None if sp.issparse(X) else gaussian.centre(np.concatenate([X, look.negatives.X]))
        longest = look.longest + (0.0 if centre is None else float(np.linalg.norm(centre)))
        longest *= 1.0 + gamma(X.shape[1])
        rounding = Rounding(X.shape[1], look.rows, look.blocks, longest)
        return cls(chunks, terms, centre, rounding, totals)

    def look_at(self, w: Vector) -> Point:
        """A bound on the primal value of a model: passes over the samples and their scores."""
        scored = self.chunks.keep(score, w, self.centre)
        norm2 = float(w @ w) * (1.0 + gamma(len(w)))
        levels = find_levels(scored, self.terms, self.rounding, float(np.sqrt(norm2)))
        return Point(w, levels, (0.5 * norm2 + levels.loss) * (1.0 + SOME))


class Point(NamedTuple):
    """The weights of a model, where the scores stand, and a bound on its primal value."""

    w: Vector
    levels: Levels
    primal: float


class Found(NamedTuple):
    """The model found, and what it is worth.

    Attributes
    ----------
    w : ndarray
        Weights, for samples as they are.
    threshold : float
        The threshold, for samples as they are.
    primal, dual : float
        The primal value, and a lower bound on that of every model.
    status : Status
        How the search ended.
    history : History
        Progress.
    n_rounds : int
        Rounds made.
    """

    w: Vector
    threshold: float
    primal: float
    dual: float
    status: Status
    history: History
    n_rounds: int

    @property
    def gap(self) -> float:
        """Relative gap."""
        return relative_gap(self.primal, self.dual)


def solve(
    whole: Whole,
    look: Look,
    settings: Settings,
    most: int,
    *,
    complete: bool = False,
    foretell: Callable[[], None] = lambda: None,
) -> Found:
    """Minimise, from the samples that a first look has drawn.

    Parameters
    ----------
    whole : Whole
        The problem.
    look : Look
        The samples drawn.
    settings : Settings
        When to stop, and whether to tell.
    most : int
        Samples gathered at most in a round.
    complete : bool
        Whether those drawn are all.
    foretell : callable
        Called before the passes over all samples where no model is better than none on those drawn.
    """
    search = Search(whole, settings, most, Limits(settings.max_iter, settings.max_time))
    totals = None if complete else whole.totals
    sampled = sampled_problem(whole.terms, look.positives, look.negatives, totals, whole.centre)
    answer = sampled.solve(search.within(), whole.rounding)
    if complete:
        search.dual = answer.dual
    elif relative_gap(zero_value(sampled.problem), answer.dual) <= settings.tol:
        foretell()
    return search.run(answer.w)


def _primal(point: Point) -> float:
    return point.primal


@dataclass
class Search:
    """The best model so far and the best bound, and what is known of others."""

    whole: Whole
    settings: Settings
    most: int
    limits: Limits
    best: Point | None = None
    dual: float = -np.inf
    models: list[Point] = field(default_factory=list)
    #: Where losses are smooth: their sums at the best model, and the last step to kinks.
    bent: Bent | None = None
    step: TopStep | None = None
    #: No model: with overlapping classes it may be the best, and others only come near it.
    zero: Point | None = None

    def run(self, w: Vector) -> Found:
        """Rounds, from the model with the weights `w`, until one of them has to be the last."""
        status, best_gap, idle = None, np.inf, 0
        while status is None:
            self._look_at(w)
            self._tell("model")
            status = self._ended()
            if status is not None:
                break
            w = self._curved_round() if self.whole.terms.surrogate.curvature else self._round()
            self.limits.rounds += 1
            self._tell("bound")
            status = self._ended()
            if status is None and self.zero is None:
                self.zero = self.whole.look_at(np.zeros_like(w))
                status = self._ended()
            idle = 0 if self.gap < _LESS * best_gap else idle + 1
            best_gap = min(best_gap, self.gap)
            if status is None and idle >= _IDLE:
                if self.enlarged == _OFTEN:
                    status = Status.STALLED
                self.enlarged, self.most, idle = self.enlarged + 1, _MORE * self.most, 0
        return self._found(status)

    #: How often more samples have been gathered.
    enlarged: int = 0

    @property
    def gap(self) -> float:
        """The relative gap so far."""
        return np.inf if self.best is None else relative_gap(self.model.primal, self.dual)

    @property
    def model(self) -> Point:
        """The model to be returned: the best one, or none if that is no worse."""
        assert self.best is not None
        return self.best if self.zero is None else min(self.zero, self.best, key=_primal)

    def within(self) -> Settings:
        """What small problems have to come to."""
        tol = _SHARE * self.settings.tol
        left = self.limits.seconds_left
        return replace(self.settings, tol=tol, max_iter=-1, max_time=left, verbose=0)

    def _ended(self) -> Status | None:
        return Status.CONVERGED if self.gap <= self.settings.tol else self.limits.reached()

    def _tell(self, what: str) -> None:
        """Record where the search stands, and print it where that is asked for."""
        primal, dual, rounds = self.model.primal, self.dual, self.limits.rounds
        self.limits.recorder.add(rounds, primal, dual, self.gap)
        if self.settings.verbose:
            elapsed = self.limits.recorder.elapsed
            print(
                f"round {rounds}, {what}: primal {primal:.8g}, dual {dual:.8g}, "
                f"gap {self.gap:.2e}, {elapsed:.1f} s",
                flush=True,
            )

    def _look_at(self, w: Vector) -> None:
        """Score all samples, and nearer to the best model those of one that is no better."""
        best, halvings = self.best, _HALVINGS if self.whole.terms.surrogate.curvature else 0
        point = self._add(w)
        while best is not None and point is not self.best and halvings and not self._known():
            halvings -= 1
            point = self._add(0.5 * (point.w + best.w))
        if self.whole.terms.surrogate.curvature:
            self._bend()

    def _add(self, w: Vector) -> Point:
        """One more model; the best one stays the last."""
        point = self.whole.look_at(w)
        if self.best is None or point.primal < self.best.primal:
            self.best = point
            self.models.append(point)
        else:
            self.models.insert(-1, point)
        del self.models[:-_MODELS]
        return point

    def _known(self) -> bool:
        """Whether the gap is small enough as it is."""
        return self.gap <= self.settings.tol

    def _bend(self) -> None:
        """The sums at the best model, and the dual value of their slopes or of the last step."""
        best, step = self.best, self.step
        assert best is not None
        if step is None:
            self.bent = self._sums(best.w, best.levels.threshold, None)
            return
        self.bent = self._sums(step.w, step.threshold, step.mean)
        if best.w is not step.w and self.gap > self.settings.tol:
            self.bent = self._sums(best.w, best.levels.threshold, None)

    def _sums(self, w: Vector, threshold: float, mean: Mean | None) -> Bent:
        whole = self.whole
        bent = as_bent(whole.chunks.reduce(bend, added, w, threshold, whole.terms, whole.centre))
        self.dual = max(self.dual, dual_of(whole.terms, bent, mean, whole.rounding))
        return bent

    def _gather(self) -> Gathered:
        """The samples near the kinks of the best model, and the sums of the others."""
        models, best, terms = self.models, self.best, self.whole.terms
        assert best is not None
        kinks = [[m.levels.threshold + 1.0 for m in models], [m.levels.level for m in models]]
        # Half of each kind for the best model, and the others share the rest.
        shares = [0.25 * self.most / max(1, len(models) - 1)] * (len(models) - 1)
        shares.append(0.5 * self.most - sum(shares))
        widths = [[m.levels.width(role, n) for m, n in zip(models, shares)] for role in (0, 1)]
        W = np.column_stack([m.w for m in models])
        ties = np.array([m.levels.steps[0] for m in models])
        everyone, centre = terms.all_compete, self.whole.centre
        request = Request(W, np.array(kinks), np.array(widths), ties, everyone, centre)
        return self.whole.chunks.reduce(gather, merge_gathered, request)

    def _round(self) -> Vector:
        """The next model, and the bound, of the small problem."""
        answer = reduced_problem(self.whole.terms, self._gather()).solve(
            self.within(), self.whole.rounding
        )
        self.dual = max(self.dual, answer.dual)
        return answer.w

    def _curved_round(self) -> Vector:
        """The next model where the loss is smooth."""
        terms, best = self.whole.terms, self.best
        assert best is not None and self.bent is not None
        if is_curved(terms):
            return smooth_step(terms, self.bent, best.w)
        gathered, rounding = self._gather(), self.whole.rounding
        self.step = step_to_top(terms, self.bent, gathered, self.within(), rounding)
        return self.step.w

    def _found(self, status: Status) -> Found:
        best = self.model
        origin = 0.0 if self.whole.centre is None else float(self.whole.centre @ best.w)
        return Found(
            best.w,
            best.levels.threshold + origin,
            best.primal,
            self.dual,
            status,
            self.limits.recorder.finish(),
            self.limits.rounds,
        )
