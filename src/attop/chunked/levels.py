"""Threshold and losses of scores that nobody holds all of.

Scores between two kinks of a threshold enter it by their number, sum and sum of squares only: bins
of scores stand for their members *exactly*, as long as the kink is not inside.  The bin that has
the kink is divided until its scores are few, and these are then collected, as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.chunked.passes import Scored
from attop.chunked.protocol import Chunks, Vector, added
from attop.families.base import Family
from attop.problem import Problem
from attop.surrogates import Surrogate

#: So many scores are collected, and into so many parts a bin is divided.
_FEW, _PARTS = 4096, 512
#: Divisions at most: a range of doubles is divided to its ends in fewer.
_MOST = 12


class Terms(NamedTuple):
    """What is minimised: ``|w|^2 / 2`` and the losses.

    Attributes
    ----------
    C : float
        Weight of the loss.
    surrogate : Surrogate
        The surrogate.
    family : Family
        The threshold.
    all_compete : bool
        Whether positives are competitors, too.
    """

    C: float
    surrogate: Surrogate
    family: Family
    all_compete: bool

    def problem(self, positive_weights: Vector, competitor_weights: Vector) -> Problem:
        """The problem with these weights, every dual variable on a row of its own."""
        rows = np.arange(len(positive_weights) + len(competitor_weights))
        weights = np.concatenate([positive_weights, competitor_weights])
        return Problem(rows, len(positive_weights), self.C, self.surrogate, self.family, weights)


class Levels(NamedTuple):
    """Where the scores of a model stand.

    Attributes
    ----------
    threshold : float
        The threshold.
    level : float
        The score from which on competitors matter.
    loss : float
        All of the primal value but ``|w|^2 / 2``.
    mass : float
        Sum of the slopes of the losses, C times copies: by how much an error of all scores
        changes the value at most.
    distances : ndarray of shape (2, n)
        How many positives, and competitors, are within each of `steps` of their kink.
    steps : ndarray
        Distances.
    """

    threshold: float
    level: float
    loss: float
    mass: float
    distances: NDArray[np.float64]
    steps: Vector

    def width(self, role: int, most: float) -> float:
        """The largest distance within which at most so many scores are; -1 if there is none."""
        fitting = np.flatnonzero(self.distances[role] <= most)
        return float(self.steps[fitting[-1]]) if len(fitting) else -1.0


def find_levels(scored: Chunks, terms: Terms) -> Levels:
    """The threshold of the scores, exact up to rounding, and the losses."""
    low, high = scored.reduce(_extremes, _merge_extremes, terms.all_compete)
    threshold, level = _threshold(scored, terms, low, high)
    reach = max(float(np.max(high) - np.min(low)), 1e-300) + 2.0
    steps = reach * np.geomspace(1e-9, 1.0, 181)
    sums = scored.reduce(_losses, added, terms, threshold, level, steps)
    return Levels(threshold, level, float(sums[0]), float(sums[1]), np.array(sums[2:]), steps)


#: Scores of bins, and their weights, by role and edges.
Known = dict[tuple[int, float, float], tuple[Vector, Vector]]


class _Bins(NamedTuple):
    """Scores between edges: their number, copies, and moments from the lower edge."""

    rows: Vector
    copies: Vector
    first: Vector
    second: Vector


def _extremes(scored: Scored, all_compete: bool) -> tuple[Vector, Vector]:
    """Least and largest scores of positives and of competitors."""
    parts = scored.scores[scored.positive], scored.scores[_competes(scored, all_compete)]
    low = np.array([np.min(part, initial=np.inf) for part in parts])
    return low, np.array([np.max(part, initial=-np.inf) for part in parts])


def _merge_extremes(parts: list[tuple[Vector, Vector]]) -> tuple[Vector, Vector]:
    low = np.min([part[0] for part in parts], axis=0)
    return low, np.max([part[1] for part in parts], axis=0)


def _competes(scored: Scored, all_compete: bool) -> NDArray[np.bool_]:
    return np.ones_like(scored.positive) if all_compete else ~scored.positive


def _threshold(scored: Chunks, terms: Terms, low: Vector, high: Vector) -> tuple[float, float]:
    """The threshold and the level, by bins whose parts with a kink are resolved."""
    bins = _Binned(scored, terms, [np.array([low[role], high[role]]) for role in (0, 1)], {})
    t = level = 0.0
    for _ in range(_MOST):
        t, level = bins.levels()
        kinks = {1: level} | ({0: t + 1.0} if terms.family.free_threshold else {})
        moved = [bins.resolve(role, kink) for role, kink in kinks.items()]
        if not any(moved):
            return t, level
    # A bin with a kink inside stands for scores that may be higher: no value could rest on that.
    raise ArithmeticError("The threshold could not be told from the bins of the scores.")


@dataclass
class _Binned:
    """Bins of the scores of positives and of competitors, some of them with all their scores."""

    scored: Chunks
    terms: Terms
    edges: list[Vector]
    known: Known
    bins: tuple[_Bins, _Bins] | None = None

    def levels(self) -> tuple[float, float]:
        """Threshold and level of the scores that stand for those in the bins."""
        terms = self.terms
        if self.bins is None:
            found = self.scored.reduce(_count, added, *self.edges, terms.all_compete)
            self.bins = _Bins(*found[:4]), _Bins(*found[4:])
        (positives, positive_weights), (competitors, weights) = (
            _points(self.bins[role], self.edges[role], terms.surrogate, self.known, role)
            for role in (0, 1)
        )
        problem, family = terms.problem(positive_weights, weights), terms.family
        t = family.threshold(problem, competitors, weights, positives)
        return float(t), float(family.level(problem, competitors, weights, t))

    def resolve(self, role: int, kink: float) -> bool:
        """Collect the scores around a kink or, of many, divide their bin; False if it is done."""
        edges = self.edges[role]
        place = int(np.searchsorted(edges, kink))
        if self.bins is None or not 0 < place < len(edges):
            return False  # beyond all scores, or at the least of them
        begin, end = float(edges[place - 1]), float(edges[place])
        inside = np.linspace(begin, end, _PARTS + 1)[1:-1]
        inside = inside[(inside > begin) & (inside < end)]
        if (role, begin, end) in self.known or len(inside) == 0:
            return False
        if self.bins[role].rows[place] <= _FEW:
            ends, everyone = (begin, end), self.terms.all_compete
            found = self.scored.reduce(_collect, _join, role, ends, everyone)
            self.known[role, begin, end] = found
        else:
            self.edges[role], self.bins = np.union1d(edges, inside), None
        return True


def _count(
    scored: Scored, of_positives: Vector, of_competitors: Vector, all_compete: bool
) -> tuple[Vector, ...]:
    """The bins of both: up to the first edge, from each to the next, and above the last."""
    sums: list[Vector] = []
    roles = scored.positive, _competes(scored, all_compete)
    for there, edges in zip(roles, (of_positives, of_competitors), strict=True):
        scores, copies = scored.scores[there], scored.copies[there]
        place: NDArray[np.intp] = np.searchsorted(edges, scores)
        size = len(edges) + 1
        rest = scores - edges[np.maximum(place, 1) - 1]
        terms: tuple[Vector, ...] = (np.ones(len(rest)), copies, copies * rest, copies * rest**2)
        sums += [np.bincount(place, term, size).astype(np.float64) for term in terms]
    return tuple(sums)


def _points(
    bins: _Bins,
    edges: Vector,
    surrogate: Surrogate,
    known: Known,
    role: int,
) -> tuple[Vector, Vector]:
    """Few scores, with weights, that stand for all those in the bins."""
    there = np.flatnonzero(bins.copies > 0.0)
    values: list[Vector] = []
    weights: list[Vector] = []
    for place in map(int, there):
        ends = (role, float(edges[place - 1]), float(edges[place])) if place else (role, 0.0, 0.0)
        if place and ends in known:
            values.append(known[ends][0])
            weights.append(known[ends][1])
            continue
        copies, begin = bins.copies[place], edges[max(place - 1, 0)]
        mean = bins.first[place] / copies
        spread = max(bins.second[place] / copies - mean**2, 0.0) if surrogate.curvature else 0.0
        if spread <= 0.0 or mean <= 0.0:
            values.append(np.array([begin + mean]))
            weights.append(np.array([copies]))
        else:  # two scores, one of them the lower edge, with the same mean and variance
            share = spread / (spread + mean**2)
            values.append(np.array([begin, begin + mean + spread / mean]))
            weights.append(copies * np.array([share, 1.0 - share]))
    return np.concatenate(values), np.concatenate(weights)


def _collect(
    scored: Scored, role: int, ends: tuple[float, float], all_compete: bool
) -> tuple[Vector, Vector]:
    """The scores above the one end and up to the other."""
    there = _competes(scored, all_compete) if role else scored.positive
    there = there & (scored.scores > ends[0]) & (scored.scores <= ends[1])
    return scored.scores[there], scored.copies[there]


def _join(parts: list[tuple[Vector, Vector]]) -> tuple[Vector, Vector]:
    return np.concatenate([part[0] for part in parts]), np.concatenate([p[1] for p in parts])


def _losses(
    scored: Scored, terms: Terms, threshold: float, level: float, steps: Vector
) -> tuple[float, float, Vector, Vector]:
    """Losses, their slopes, and how many scores are how far from their kinks."""
    of_positives, positive_weights = scored.scores[scored.positive], scored.copies[scored.positive]
    competes = _competes(scored, terms.all_compete)
    competitors, weights = scored.scores[competes], scored.copies[competes]
    x, surrogate = threshold - of_positives, terms.surrogate
    loss = terms.C * float(positive_weights @ surrogate.value(x))
    problem = terms.problem(positive_weights, weights)
    loss += terms.family.value(problem, competitors, weights, threshold)
    mass = terms.C * float(positive_weights @ surrogate.slope(x))
    distances = (
        np.abs(of_positives - threshold - 1.0),
        np.abs(competitors - level),
    )
    counts = [
        np.cumsum(np.bincount(np.searchsorted(steps, d), minlength=len(steps) + 1))[:-1]
        for d in distances
    ]
    return loss, mass, counts[0].astype(np.float64), counts[1].astype(np.float64)
