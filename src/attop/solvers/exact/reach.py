"""Scores of all samples from few kernel columns: what has changed may be out of their reach.

The point differs from a combination of the columns at hand, the anchor, by a function whose
values on the active part are known.  Interpolation from some samples of the part, the
reference, tells its values elsewhere, and by Cauchy and Schwarz its error at the sample j is
at most ``|difference| |phi_j|``, both without their parts in the span of the reference.
Samples that cannot come to the threshold within this bound need no kernel entries at all;
the scores of the others are computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from attop import objectives
from attop.kernels.columns import ColumnStore
from attop.problem import Problem
from attop.solvers.exact import parts
from attop.solvers.exact import start as starts
from attop.solvers.exact.state import State

#: Sizes of the reference that are considered, and how many of it come from columns at hand.
SIZES, AT_HAND = (64, 128, 256, 512, 1024), 256
#: Largest error of the scores to begin with, where fewer columns give them.
NEARLY = 0.2
#: Samples on which a reference is tried before it is used for all.
TRIED = 512
#: Added to the diagonal of the reference's kernel matrix, relative to it; the bound stays one.
RIDGE = 1e-4
#: A pass over a kernel entry takes as long as the product of so many features.
PASS = 80
#: Computing all columns is preferred unless something else costs less than this share of it.
WORTHWHILE = 0.6
#: Entries of single samples take so many times as long as those of columns.
SCATTERED = 1.5
#: With fewer columns to compute than this no reference is looked for.
FEW = 512
#: A reference whose bound exceeds the distance from the threshold so many times is no use.
HOPELESS = 8.0
#: With a larger share of all samples in doubt another reference is looked for.
MANY = 1 / 8
#: Coefficients this close to each other, relative to the largest, are the same.
ROUNDING = 1e-13
#: Rows of the kernel matrix that are solved for at once.
TILE = 1024


class Anchor:
    """A sum of columns at hand that comes near to a wanted one.

    Attributes
    ----------
    counted : ndarray of shape (n_samples,)
        Coefficient of each column in the sum.
    sums : ndarray of shape (n_samples,)
        The sum.
    """

    def __init__(self, store: ColumnStore) -> None:
        self.store = store
        self.counted, self.sums = np.zeros(store.n_samples), np.zeros(store.n_samples)

    def approach(self, wanted: NDArray[np.float64], keep: NDArray[np.bool_] | None = None) -> None:
        """Come as near to the wanted coefficients as the columns at hand can.

        With `keep` go there: columns that are missing are computed, and some are kept.
        """
        rows, rest = self.missing(wanted)
        at_hand = self.store.cached(rows)
        self.store.add_product(rows[at_hand], rest[at_hand], self.sums)
        if keep is None:
            rows = rows[at_hand]
        else:
            for kept in (True, False):
                some = ~at_hand & (keep[rows] == kept)
                self.store.add_product(rows[some], rest[some], self.sums, keep=kept)
        self.counted[rows] = wanted[rows]

    def missing(self, wanted: NDArray[np.float64]):
        """The columns that are missing, and their weights."""
        return _nonzero(wanted - self.counted, wanted)


def _nonzero(rest: NDArray[np.float64], wanted: NDArray[np.float64]):
    """Where `rest` is more than rounding, and what it is there."""
    rows = np.flatnonzero(np.abs(rest) > ROUNDING * np.max(np.abs(wanted)))
    return rows, rest[rows]


class Difference(NamedTuple):
    """What the point has beyond the anchor.

    Attributes
    ----------
    rows, weights : ndarray
        Its samples and their coefficients.
    values : ndarray of shape (n_samples,)
        Its values, right for the samples that are known.
    norm2, slack : float
        Its squared norm, and a bound on the rounding of that.
    """

    rows: NDArray[np.intp]
    weights: NDArray[np.float64]
    values: NDArray[np.float64]
    norm2: float
    slack: float

    def interpolated(self, factor, reference) -> tuple[NDArray[np.float64], float]:
        """Coordinates of its interpolant, and the norm of what that leaves."""
        coordinates = solve_triangular(factor, self.values[reference], lower=True)
        left = self.norm2 - float(np.dot(coordinates, coordinates))
        return coordinates, float(np.sqrt(max(left, 0.0) + self.slack))


class Reach:
    """Lets a state follow its parts, with exact scores wherever they can matter.

    Parameters
    ----------
    state : State
        The whole, at zero, with a store of columns of a positive definite kernel.

    Attributes
    ----------
    doubt : ndarray of shape (n_samples,)
        Bound on the error of the state's scores, rounding aside.
    n_entries : int
        Kernel entries computed besides those of the store's columns.
    """

    def __init__(self, state: State) -> None:
        assert isinstance(state.store, ColumnStore)
        self.state, self.store = state, state.store
        n = self.store.n_samples
        # Members of the group move with the cap together: their columns are summed once.
        self.group, self.others = Anchor(self.store), Anchor(self.store)
        self.known = np.ones(n, dtype=bool)
        self.doubt = np.zeros(n)
        self.reference, self.factor = np.empty(0, dtype=np.intp), np.empty((0, 0))
        self.spread: NDArray[np.float64] | None = None
        self.n_entries = 0
        self._rng = np.random.default_rng(0)

    @staticmethod
    def applies_to(state: State) -> bool:
        """Whether the kernel is definite, as the bound needs, and the point is not rescaled."""
        definite = isinstance(state.store, ColumnStore) and state.store.source.definite
        return definite and bool(np.isfinite(state.problem.C))

    def follow(self, part: parts.Part, small: State) -> None:
        """Go where the part went: its scores are taken over, others bounded or computed."""
        self.state.adopt(part, small)
        self.known[:] = False
        self.known[part.rows] = True
        self._approach()
        self.know(self.reference)  # some may have left the part
        difference = self._difference()
        few = self.spread is None and len(difference.rows) < FEW
        if few or not self.known[difference.rows].all():
            self._complete()
            return
        near = Borders.of(part.problem, small.scores)
        if self.spread is None or not self._decide(difference, near):
            if self._refer(difference, near):
                self._decide(self._difference(), near, at_any_price=True)
            else:
                self._complete()

    def scores_by(self, part: parts.Part, small: State) -> NDArray[np.float64]:
        """Scores of all samples by the subsample, to begin with: of few columns if they do."""
        coefficients, store = small.coefficients(), small.store
        assert isinstance(store, ColumnStore)
        support = np.flatnonzero(coefficients)
        order = np.argsort(-np.abs(coefficients[support]), kind="stable")
        rows = support[order[:AT_HAND]]
        if len(support) > len(rows):
            factor = _factor(store, rows)
            weights = solve_triangular(factor, small.scores[rows], lower=True)
            weights = solve_triangular(factor, weights, lower=True, trans="T")
            others = self._rng.choice(store.n_samples, TRIED)
            constant = store.source.shift * np.sum(weights)
            error = small.scores[others] - constant - store.product_at(others, rows, weights)
            if np.max(np.abs(error)) <= NEARLY:
                scores = np.full(self.store.n_samples, constant)
                self.store.add_product(part.rows[rows], weights, scores)
                return scores
        return starts.scores_by(part, small, self.state)

    def know(self, rows: NDArray[np.intp]) -> None:
        """Compute what the state has for each sample, its score and its group's, at `rows`."""
        rows = rows[~self.known[rows]]
        if len(rows):
            state = self.state
            state.scores[rows] = self._scores_at(rows)
            if state.capped:
                missing = self.group.missing(state.members())
                state.group_column[rows] = self.group.sums[rows] + self._product_at(rows, *missing)
            self.known[rows] = True
            self.doubt[rows] = 0.0

    def settle(self) -> None:
        """Bring everything the state has for each sample up to date."""
        if not self.known.all():
            self._complete()
            self.state.group_column[:] = self.group.sums
            self.known[:] = True

    def correct(self) -> None:
        """Take over scores of the state that are better than sums of columns."""
        self._approach(keep=np.ones(len(self.known), dtype=bool))
        self.others.sums += self.state.scores - self._sums()

    def _complete(self) -> None:
        """Compute the scores of all samples, by all columns that are missing."""
        missing, _ = self._missing()
        keep = np.zeros(self.store.n_samples, dtype=bool)
        keep[self.state.rows[self.state.worth_keeping()]] = True
        self.store.prepare(missing[keep[missing]])
        self._approach(keep)
        self.state.scores[:] = self._sums()
        self.doubt[:] = 0.0

    def _approach(self, keep: NDArray[np.bool_] | None = None) -> None:
        """Bring the anchors as near as the columns at hand can, or all the way."""
        members = self.state.members()
        if self.state.capped:
            self.group.approach(members, keep)
        self.others.approach(self.state.coefficients() + self._cap * members, keep)

    @property
    def _cap(self) -> float:
        return self.state.cap if self.state.capped else 0.0

    def _sums(self) -> NDArray[np.float64]:
        """Scores of the anchor: of the sums of both kinds."""
        return self.others.sums - self._cap * self.group.sums

    def _missing(self):
        """Columns that the anchor lacks, and their weights."""
        wanted = self.state.coefficients()
        return _nonzero(wanted - self.others.counted + self._cap * self.group.counted, wanted)

    def _scores_at(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return self._sums()[rows] + self._product_at(rows, *self._missing())

    def _product_at(self, rows: NDArray[np.intp], columns, weights) -> NDArray[np.float64]:
        self.n_entries += len(rows) * len(columns)
        return self.store.product_at(rows, columns, weights)

    def _difference(self) -> Difference:
        rows, weights = self._missing()
        # The columns are those of a kernel less a constant, which matters to single functions.
        values = self.state.scores - self._sums() + self.store.source.shift * np.sum(weights)
        slack = 4.0 * self.store.precision * float(np.sum(np.abs(weights))) ** 2
        norm2 = float(np.dot(weights, values[rows]))
        return Difference(rows, weights, values, norm2, slack)

    def _decide(self, difference: Difference, near: Borders, at_any_price: bool = False) -> bool:
        """Estimate all scores and compute those in doubt; False where these are too many."""
        assert self.spread is not None
        state, problem = self.state, self.state.problem
        shift = self.store.source.shift
        coordinates, left = difference.interpolated(self.factor, self.reference)
        weights = solve_triangular(self.factor, coordinates, lower=True, trans="T")
        estimate = self._sums() + shift * (np.sum(weights) - np.sum(difference.weights))
        self.store.add_product(self.reference, weights, estimate)
        doubt = left * self.spread
        doubt[self.known] = 0.0
        scores = np.where(self.known, state.scores, estimate)
        doubtful = near.distance(problem, scores) <= doubt
        if not at_any_price and np.count_nonzero(doubtful & ~self.known) > MANY * len(scores):
            return False
        # The threshold may rise by competitors that are found to be above it.
        for _ in range(2):
            rows = np.flatnonzero((near.distance(problem, scores) <= doubt) & (doubt > 0.0))
            scores[rows] = self._scores_at(rows)
            doubt[rows] = 0.0
            near = Borders.of(problem, scores)
        state.scores[:], self.doubt[:] = scores, doubt
        return True

    def _refer(self, difference: Difference, near: Borders) -> bool:
        """Choose the reference that makes following cheapest; False if all columns are cheaper."""
        candidates = self._candidates(difference)
        some = np.unique(self._rng.choice(np.flatnonzero(~self.known), TRIED))
        cheapest, n_chosen = WORTHWHILE * len(difference.rows), 0
        for size in SIZES:
            reference = candidates[:size]
            fixed = self._price(reference)
            if fixed >= cheapest or size > self.store.capacity // 2:
                break
            doubtful, hopeless = self._tried(reference, some, difference, near)
            cost = fixed + SCATTERED * doubtful * len(difference.rows)
            if cost < cheapest:
                cheapest, n_chosen = cost, len(reference)
            if hopeless or len(candidates) <= size:
                break
        if n_chosen:
            self._use(candidates[:n_chosen])
        return n_chosen > 0

    def _price(self, reference: NDArray[np.intp]) -> float:
        """What it costs to use a reference, in columns."""
        size = len(reference)
        solving = (size + 8.0) * size / (self.store.source.work + PASS)
        return np.count_nonzero(~self.store.cached(reference)) + solving

    def _tried(self, reference, some, difference: Difference, near: Borders) -> tuple[float, bool]:
        """The share of `some` samples that a reference leaves in doubt; whether it is hopeless."""
        shift = self.store.source.shift
        factor = _factor(self.store, reference)
        kernel = self.store.block(reference, some).astype(np.float64) + shift
        features = solve_triangular(factor, kernel, lower=True)
        coordinates, left = difference.interpolated(factor, reference)
        scores = self._sums()
        scores[some] += coordinates @ features - shift * np.sum(difference.weights)
        distance = near.distance(self.state.problem, scores)[some]
        doubt = left * _spread(self.store, np.sum(features**2, axis=0), some)
        hopeless = np.median(doubt) > HOPELESS * np.median(np.abs(distance))
        return float(np.mean(distance <= doubt)), bool(hopeless)

    def _candidates(self, difference: Difference) -> NDArray[np.intp]:
        """Samples for the reference, in order: columns at hand first, then the weightiest."""
        at_hand = self.known & self.store.cached(np.arange(len(self.known)))
        rows = self._rng.permutation(np.flatnonzero(at_hand))[:AT_HAND]
        order = self._rng.permutation(len(difference.rows))
        order = order[np.argsort(-np.abs(difference.weights[order]), kind="stable")]
        return np.concatenate([rows, difference.rows[order]])[: SIZES[-1]]

    def _use(self, rows: NDArray[np.intp]) -> None:
        """Make `rows` the reference: fetch their columns, bound the interpolation everywhere."""
        self.store.fetch(rows)
        self._approach()
        self.reference, self.factor = rows, _factor(self.store, rows)
        self.spread = np.empty(self.store.n_samples)
        slots = self.store.slot_of_row[rows]
        inverse = solve_triangular(self.factor, np.eye(len(rows)), lower=True).astype(np.float32)
        features = np.empty((len(rows), TILE), dtype=np.float32)
        for start in range(0, self.store.n_samples, TILE):
            kernel = self.store.buffer[slots, start : start + TILE].astype(np.float32, copy=False)
            kernel += np.float32(self.store.source.shift)
            some = features[:, : kernel.shape[1]]
            np.matmul(inverse, kernel, out=some)
            tile = np.arange(start, start + kernel.shape[1])
            self.spread[tile] = _spread(self.store, np.einsum("ij,ij->j", some, some), tile)


def _factor(store: ColumnStore, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Cholesky factor of the kernel matrix of `rows`."""
    kernel = store.block(rows, rows).astype(np.float64) + store.source.shift
    kernel[np.diag_indices_from(kernel)] = (1.0 + RIDGE) * _squares(store, rows)
    return np.asarray(np.linalg.cholesky(kernel), dtype=np.float64)


def _squares(store: ColumnStore, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """``|phi|^2`` of samples."""
    return store.diagonal(rows) + store.source.shift


def _spread(
    store: ColumnStore, explained: NDArray[Any], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Norm of what a reference leaves of ``phi``, of which it explains so much."""
    squares = _squares(store, rows)
    return np.sqrt(np.maximum(squares - explained, 0.0) + RIDGE * squares)


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
        return cls(parts.level(problem, scores, t), 1.0 + t)

    def distance(self, problem: Problem, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far each sample is from where it matters; negative where it does."""
        distance = np.full(len(scores), np.inf)
        distance[problem.competitors] = self.lowest - scores[problem.competitors]
        positives = problem.positives
        distance[positives] = np.minimum(distance[positives], scores[positives] - self.highest)
        return distance
