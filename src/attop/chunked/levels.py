"""Threshold and losses of scores that nobody holds all of.

Scores between two kinks of a threshold enter it by their number, sum and sum of squares only: bins
of scores stand for their members *exactly*, as long as the kink is not inside.  The bin that has
the kink is divided until its scores are few, and these are then collected, as numbers.

That finds the threshold; a last pass proves that it is no less than that of the scores, and adds up
the losses at it, all with what rounding may have changed (:doc:`/theory/chunked`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.chunked.passes import Scored
from attop.chunked.protocol import Chunks, Vector, added
from attop.chunked.rounding import SOME, Rounding
from attop.families.base import Family
from attop.problem import Problem
from attop.surrogates import Surrogate

#: So many scores are collected, and into so many parts a bin is divided.
_FEW, _PARTS = 4096, 512
#: A proof of the threshold allows it this many times as much more, and so often.
_MORE, _OFTEN = 16.0, 64


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


def is_curved(terms: Terms) -> bool:
    """Whether the losses of competitors are, of which the threshold is made."""
    betas = terms.problem(np.ones(1), np.ones(1)).betas
    return betas.norm_price > 0.0 or betas.curvature > 0.0


class Levels(NamedTuple):
    """Where the scores of a model stand.

    Attributes
    ----------
    threshold : float
        The threshold.
    level : float
        The score from which on competitors matter.
    loss : float
        All of the primal value but ``|w|^2 / 2``, with what rounding may hide; infinite where the
        threshold could not be proved.
    distances : ndarray of shape (2, n)
        How many positives, and competitors, are within each of `steps` of their kink.
    steps : ndarray
        Distances.
    """

    threshold: float
    level: float
    loss: float
    distances: NDArray[np.float64]
    steps: Vector

    def width(self, role: int, most: float) -> float:
        """The largest distance within which at most so many scores are; -1 if there is none."""
        fitting = np.flatnonzero(self.distances[role] <= most)
        return float(self.steps[fitting[-1]]) if len(fitting) else -1.0


def find_levels(scored: Chunks, terms: Terms, rounding: Rounding, length: float) -> Levels:
    """The threshold of the scores, and the losses, for weights of this length."""
    low, high = scored.reduce(_extremes, _merge_extremes, terms.all_compete)
    threshold, level = _threshold(scored, terms, low, high)
    reach = max(float(np.max(high) - np.min(low)), 1e-300) + 2.0
    steps = reach * np.geomspace(1e-9, 1.0, 181)
    off, size = rounding.of_score(length), float(np.max(np.abs([low, high])))
    scale = terms.problem(np.ones(1), np.ones(1)).betas.linear  # of a quantile: 1 / theta
    least = SOME * (abs(threshold) + size + scale + 1.0)
    more = 0.0 if terms.family.free_threshold else 8.0 * rounding.of_losses * (reach + scale)
    family, nobody = terms.family, np.zeros(0)
    loss = np.inf
    for _ in range(_OFTEN):
        more += 0.0 if family.free_threshold else 4.0 * least
        lower = threshold + more - least
        request = _Request(threshold, level, lower, more, off, least, steps)
        found = _Sums(*scored.reduce(_losses, added, terms, request))
        limit = family.exceeding(nobody, nobody, terms.surrogate, lower, level)[1]
        if found.exceeding * (1.0 + 2.0 * rounding.of_losses) <= limit:
            loss = found.loss * (1.0 + 2.0 * rounding.of_losses)
            break
        more *= _MORE
    distances = np.array([found.positives, found.competitors])
    return Levels(threshold, level, loss, distances, steps)


class _Request(NamedTuple):
    """What the last pass needs.

    Attributes
    ----------
    threshold, level : float
        Those that were found.
    lower : float
        What the threshold is proved not to exceed.
    more : float
        How much more the threshold may be.
    off : float
        By how much a score may be off.
    least : float
        By how much differences of a score and the threshold may be.
    steps : ndarray
        Distances.
    """

    threshold: float
    level: float
    lower: float
    more: float
    off: float
    least: float
    steps: Vector


class _Sums(NamedTuple):
    """Losses, the sum that proves the threshold, and how many are how far from kinks."""

    loss: float
    exceeding: float
    positives: Vector
    competitors: Vector


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
    edges = [np.union1d(between(low[role], high[role]), [low[role], high[role]]) for role in (0, 1)]
    bins = _Binned(scored, terms, edges, {})
    while True:  # each turn divides a bin, down to neighbouring doubles, or makes it known
        t, level = bins.levels()
        kinks = {1: level} | ({0: t + 1.0} if terms.family.free_threshold else {})
        moved = [bins.resolve(role, kink) for role, kink in kinks.items()]
        if not any(moved):
            return t, level


def between(begin: float, end: float) -> Vector:
    """Numbers that divide an interval into parts as long, and into parts with as many doubles.

    The first ones serve most scores; the others make an end, whatever the scores are, after eight
    divisions, since there are fewer than ``_PARTS ** 8`` doubles.
    """
    even = np.linspace(0.5 * begin, 0.5 * end, _PARTS + 1)[1:-1] * 2.0  # their length may overflow
    first, last = (_place(x) for x in (begin, end))
    places = [first + (last - first) * i // _PARTS for i in range(1, _PARTS)]
    inside = np.union1d(even, [_double(place) for place in places])
    return inside[(inside > begin) & (inside < end)]


def _place(x: float) -> int:
    """Place of a double among all, in their order."""
    bits = int(np.float64(x).view(np.int64))
    return bits if bits >= 0 else -(2**63) - bits


def _double(place: int) -> float:
    bits = place if place >= 0 else -(2**63) - place
    return float(np.int64(bits).view(np.float64))


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
            _points(self.bins[role], self.edges[role], is_curved(terms), self.known, role)
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
        inside = between(begin, end)
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
    curved: bool,
    known: Known,
    role: int,
) -> tuple[Vector, Vector]:
    """Few scores, with weights, that stand for all those in the bins.

    They are in their bin, too: a kink at one of them is to be looked for there.
    """
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
        spread = max(bins.second[place] / copies - mean**2, 0.0) if curved else 0.0
        if spread <= 0.0 or mean <= 0.0:
            points, shares = np.array([begin + mean]), np.ones(1)
        else:  # two scores, one of them the lower edge, with the same mean and variance
            points = np.array([begin, begin + mean + spread / mean])
            shares = np.array([spread, mean**2]) / (spread + mean**2)
        if 0 < place < len(edges):
            points = np.clip(points, np.nextafter(begin, np.inf), edges[place])
        values.append(points)
        weights.append(copies * shares)
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


def _losses(scored: Scored, terms: Terms, request: _Request) -> tuple[Any, ...]:
    """Upper bounds of the losses of a chunk, but for the rounding of their sum, and the rest.

    Losses do not fall with the threshold, nor with the score of a competitor.
    """
    of_positives, positive_weights = scored.scores[scored.positive], scored.copies[scored.positive]
    competes = _competes(scored, terms.all_compete)
    competitors, weights = scored.scores[competes], scored.copies[competes]
    family, surrogate = terms.family, terms.surrogate
    t, off, least = request.threshold, request.off, request.least
    # The score and, where it is made of scores, the threshold may be off.
    shift = request.more + (1.0 if family.free_threshold else 2.0) * off + least
    loss = terms.C * float(positive_weights @ surrogate.value(t - of_positives + shift))
    problem = terms.problem(positive_weights, weights)
    loss += family.value(problem, competitors + (off + least), weights, t)
    exceeding, _ = family.exceeding(competitors, weights, surrogate, request.lower, request.level)
    steps = request.steps
    counts = [
        np.cumsum(np.bincount(np.searchsorted(steps, d), minlength=len(steps) + 1))[:-1]
        for d in (np.abs(of_positives - t - 1.0), np.abs(competitors - request.level))
    ]
    return loss, exceeding, *(count.astype(np.float64) for count in counts)
