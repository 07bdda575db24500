"""Scores of all samples from few kernel columns: what has changed may be out of their reach.

The point differs from a combination of the columns at hand, the anchor, by a function whose
values on the active part are known.  Interpolation from some samples of the part, the
reference, tells its values elsewhere, and by Cauchy and Schwarz its error at the sample j is
at most ``|difference| |phi_j|``, both without their parts in the span of the reference.
Samples that cannot come to the threshold within this bound need no kernel entries at all;
the scores of the others are computed.  From then on it is the change since the last point
that is interpolated, which is much smaller, and its bound is added to that of before.

While the solver is on its way these bounds are estimates, from values in the precision of the
columns.  For the certificate `Reach.bounds` computes them anew, from values in double precision
and with bounds on all that was rounded: :doc:`/theory/certificate` has the proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attop._scores import Scores
from attop.kernels.columns import ColumnStore
from attop.kernels.errors import Tally
from attop.kernels.sources import GaussianSource
from attop.objectives import Certificate
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling import parts
from attop.solvers.exact.scaling import start as starts
from attop.solvers.exact.scaling.column_sums import (
    ColumnSum,
    Difference,
    Rest,
    Stage,
    Tallies,
    beyond_rounding,
    nonzero,
)
from attop.solvers.exact.scaling.keepers import Borders, kinds_of, refine, take_over
from attop.solvers.exact.scaling.reference import (
    RIDGE,
    TRIANGLE,
    Spreads,
    gaussian_source,
    orthonormal,
    proved_norms,
    spread,
    squares,
)


class BoundedScores:
    """Lets a state follow its parts, with exact scores wherever they can matter.

    Parameters
    ----------
    state : State
        The whole, at zero, with a store of columns of a positive definite kernel.

    Attributes
    ----------
    left : ndarray of shape (n_samples,)
        Norm of what interpolants have left since the score of each sample was computed, estimated.
    stages : list of Stage
        What was interpolated with the present reference.
    since : ndarray of shape (n_samples,)
        The first stage that the score of each sample rests on, if any.
    n_entries : int
        Kernel entries computed besides those of the store's columns.
    """

    def __init__(self, state: State) -> None:
        assert isinstance(state.store, ColumnStore)
        self.state, self.store, self.tuning = state, state.store, state.tuning
        self.errors = gaussian_source(self.store).errors
        n = self.store.n_samples
        # Members of the group move with the cap together: their columns are summed once.
        self.group, self.others = ColumnSum(self.store), ColumnSum(self.store)
        self.kinds = kinds_of(state.problem, n)
        self.known = np.ones(n, dtype=bool)
        self.left = np.zeros(n)
        self.reference, self.basis = np.empty(0, dtype=np.intp), np.empty((0, 0))
        self.spreads: Spreads | None = None
        self.stages: list[Stage] = []
        self.since = np.zeros(n, dtype=np.intp)
        self.n_entries = 0
        self._rng = np.random.default_rng(0)

    @staticmethod
    def applies_to(state: State) -> bool:
        """Whether the kernel is definite, as the bound needs, and the point is not rescaled."""
        if not isinstance(state.store, ColumnStore) or not np.isfinite(state.problem.C):
            return False
        return isinstance(state.store.source, GaussianSource)

    def follow(self, part: parts.Part, small: State) -> None:
        """Go where the part went: its scores are taken over, others bounded or computed."""
        before = self._rest()
        self.state.adopt(part, small)
        self.known[:] = False
        self.known[part.rows] = True
        self._approach()
        self.know(self.reference)  # some may have left the part
        near = Borders.of(part.problem, small.scores)
        if self.spreads is not None and self._decide(before, near):
            return
        nothing = Rest.nothing(self.store.n_samples)
        difference = self._difference(nothing)
        if self.known[difference.rows].all() and self._refer(difference, near):
            self.stages, self.since[:] = [], 0
            self._decide(nothing, near, at_any_price=True)
        else:
            self._complete()

    def scores_by(self, part: parts.Part, small: State) -> NDArray[np.float64]:
        """Scores of all samples by the subsample, to begin with: of few columns if they do."""
        coefficients, store = small.coefficients(), small.store
        assert isinstance(store, ColumnStore)
        support = np.flatnonzero(coefficients)
        order = np.argsort(-np.abs(coefficients[support]), kind="stable")
        rows = support[order[: self.tuning.tried]]
        if len(support) > len(rows):
            basis = orthonormal(store, rows)
            weights = basis.T @ (basis @ small.scores[rows])
            # Tried on samples of the top, where it matters, and on some of all.
            top = np.argsort(-small.scores)[: 2 * self.tuning.tried]
            others = np.union1d(self._rng.choice(store.n_samples, 2 * self.tuning.tried), top)
            constant = store.source.shift * np.sum(weights)
            (values,) = store.product_at(others, rows, weights[np.newaxis])
            error = small.scores[others] - constant - values
            if np.max(np.abs(error)) <= self.tuning.near_enough:
                scores = np.full(self.store.n_samples, constant)
                self.store.add_product(part.rows[rows], weights, scores)
                return scores
        return starts.scores_by(part, small, self.state)

    def know(self, rows: NDArray[np.intp]) -> None:
        """Compute what the state has for each sample, its score and its group's, at `rows`."""
        rows = rows[~self.known[rows]]
        if len(rows) == 0:
            return
        state, errors = self.state, self.errors
        wanted = np.stack([state.coefficients(), state.members()])
        lacking = np.stack([self._lacking(), wanted[1] - self.group.counted])
        columns = np.flatnonzero(beyond_rounding(lacking, wanted).any(axis=0))
        self.n_entries += len(rows) * len(columns)
        # One pass over the entries serves both sums.
        sums = self.store.product_at(rows, columns, lacking[: 1 + state.capped, columns])
        state.scores[rows] = self._sums()[rows] + sums[0]
        if state.capped:
            state.group_column[rows] = self.group.sums[rows] + sums[1]
            state.group_tally |= self.group.tally + errors.of_columns(columns, lacking[1, columns])
        state.tally |= self._tally() + errors.of_columns(columns, lacking[0, columns])
        self.known[rows] = True
        self.left[rows] = 0.0
        self.since[rows] = len(self.stages)

    def bounds(self, exact: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of all samples with proved bounds on their errors, for the certificate."""
        state, errors = self.state, self.errors
        if self.knows_all and not self.refine():
            state.sum_anew()
        error = errors.bounds(state.tally)
        rest_on = np.flatnonzero(self.left)
        if len(rest_on) == 0:
            return state.scores, error
        assert self.spreads is not None
        first = self.since[rest_on]
        stages = self.stages[np.min(first) :]
        left, wrong = proved_norms(exact, self.reference, self.basis, stages)
        # Each score rests on all stages from the first one on that it was estimated in.
        behind = first - np.min(first)
        error[rest_on] += np.cumsum(left[::-1])[::-1][behind] * self.spreads.values[rest_on]
        size = np.sqrt(squares(self.store, rest_on))
        error[rest_on] += np.cumsum(wrong[::-1])[::-1][behind] * size
        return state.scores, error

    def settle(self) -> None:
        """Bring everything the state has for each sample up to date."""
        if not self.known.all():
            self._complete()
            self.state.group_column[:] = self.group.sums
            self.state.group_tally = self.group.tally
            self.known[:] = True

    @property
    def knows_all(self) -> bool:
        """Whether no score is in doubt."""
        return not self.left.any()

    @property
    def doubt(self) -> NDArray[np.float64]:
        """Estimated bound on the error of the state's scores, rounding aside."""
        return self.left if self.spreads is None else self.left * self.spreads.values

    def balance(self) -> None:
        """Nothing: the sums behind the scores would not follow, and these entries are small."""

    def refine(self) -> bool:
        """Have all scores more precise, where all are known and that makes a difference."""
        if not self.knows_all:
            return False
        self.settle()
        if not refine(self.state):
            return False
        self._count_in()
        return True

    def correct(self, certificate: Certificate) -> None:
        """Take over the exact scores of a certificate."""
        self.settle()
        take_over(self.state, certificate)
        self._count_in()

    def _count_in(self) -> None:
        """Have the anchors add up to the scores that the state was given."""
        self._approach(keep=np.ones(len(self.known), dtype=bool))
        self.others.sums += self.state.scores - self._sums()
        self.others.tally = self.state.tally + self.group.tally * self._cap

    def _complete(self) -> None:
        """Compute the scores of all samples, by all columns that are missing."""
        missing, _ = self._missing()
        keep = np.zeros(self.store.n_samples, dtype=bool)
        keep[self.state.rows[self.state.worth_keeping()]] = True
        self.store.prepare(missing[keep[missing]])
        self._approach(keep)
        self.state.scores[:], self.state.tally = self._sums(), self._tally()
        self.left[:], self.since[:] = 0.0, len(self.stages)

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

    def _tally(self) -> Tally:
        """What went into the scores of the anchor."""
        return self.others.tally + self.group.tally * self._cap

    def _lacking(self) -> NDArray[np.float64]:
        """The coefficients that the anchor lacks."""
        counted = self.others.counted - self._cap * self.group.counted
        return self.state.coefficients() - counted

    def _missing(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The same as columns and their weights."""
        return nonzero(self._lacking(), self.state.coefficients())

    def _rest(self) -> Rest:
        """What the point has beyond the anchor."""
        tallies = Tallies(self.state.tally, self.others.tally, self.group.tally, self._cap)
        values = self.state.scores - self._sums()
        return Rest(self._lacking(), values, self.left.copy(), tallies)

    def _difference(self, since: Rest) -> Difference:
        """What the rest of the point has beyond another one."""
        change = self._lacking() - since.weights
        rows, weights = nonzero(change, self.state.coefficients())
        # The columns are those of a kernel less a constant, which matters to single functions.
        values = self.state.scores - self._sums() - since.values
        values += self.store.source.shift * np.sum(weights)
        slack = 4.0 * self.store.precision * float(np.sum(np.abs(weights))) ** 2
        norm2 = float(np.dot(weights, values[rows]))
        return Difference(rows, weights, values, norm2, slack)

    def _decide(self, since: Rest, near: Borders, at_any_price: bool = False) -> bool:
        """Estimate all scores by their change, and compute those in doubt.

        Returns False where these are too many, or the change is not known where it has to be.
        """
        difference, shift = self._difference(since), self.store.source.shift
        exact = self.known & (since.left == 0.0)
        if not (exact[difference.rows].all() and exact[self.reference].all()):
            return False
        coordinates = self.basis @ difference.values[self.reference]
        weights = self.basis.T @ coordinates
        estimate = self._sums() + since.values
        estimate += shift * (np.sum(weights) - np.sum(difference.weights))
        self.store.add_product(self.reference, weights, estimate)
        left = np.where(self.known, 0.0, since.left + difference.left(coordinates))
        scores = np.where(self.known, self.state.scores, estimate)
        doubtful = self._doubtful(near, scores, left)
        if not at_any_price and len(doubtful) > self.tuning.many * len(scores):
            return False
        self.state.scores[:], self.left[:] = scores, left
        self.stages.append(Stage(difference.rows, difference.weights, coordinates))
        self.since[self.known] = len(self.stages)
        tally = since.tallies.now(self.others.tally, self.group.tally, self._cap)
        self.state.tally |= tally + self.errors.of_columns(self.reference, weights)
        self.know(doubtful)
        # The threshold may have risen by competitors that were found to be above it.
        near = Borders.of(self.state.problem, self.state.scores)
        self.know(self._doubtful(near, self.state.scores, self.left))
        return True

    def _doubtful(
        self, near: Borders, scores: NDArray[np.float64], left: NDArray[np.float64]
    ) -> NDArray[np.intp]:
        """Samples that interpolation does not keep off the borders."""
        assert self.spreads is not None
        rows = np.flatnonzero(left)
        room = near.distance(self.kinds[:, rows], scores[rows]) / left[rows]
        self.spreads.sharpen(rows, room)
        return rows[room <= self.spreads.values[rows]]

    def _refer(self, difference: Difference, near: Borders) -> bool:
        """Choose the reference that makes following cheapest; False if all columns are cheaper."""
        candidates = self._candidates(difference)
        sizes = np.arange(
            self.tuning.reference_step, len(candidates) + 1, self.tuning.reference_step
        )
        uncached = np.cumsum(~self.store.cached(candidates))[sizes - 1]
        cost = uncached + TRIANGLE * sizes**2 / (self.store.source.work + self.tuning.pass_cost)
        worthwhile = self.tuning.worthwhile * len(difference.rows)
        few = min(len(difference.rows) // self.tuning.fewer, self.store.capacity)
        affordable = (cost < worthwhile) & (sizes <= few)
        sizes, cost = sizes[affordable], cost[affordable]
        if len(sizes) == 0:
            return False
        candidates = candidates[: sizes[-1]]
        basis = orthonormal(self.store, candidates)
        doubtful = self._tried(candidates, basis, sizes, difference, near)
        cost += self.tuning.scattered_cost * doubtful * len(difference.rows)
        cheapest = np.argmin(cost)
        if cost[cheapest] >= worthwhile:
            return False
        # The first functions of a basis are those of the first candidates: one serves all sizes.
        size = sizes[cheapest]
        self._use(candidates[:size], basis[:size, :size])
        return True

    def _tried(
        self,
        candidates: NDArray[np.intp],
        basis: NDArray[np.float64],
        sizes: NDArray[np.intp],
        difference: Difference,
        near: Borders,
    ) -> NDArray[np.float64]:
        """The shares of all samples that references of these sizes leave in doubt, estimated."""
        shift, unknown = self.store.source.shift, np.flatnonzero(~self.known)
        some = np.unique(self._rng.choice(unknown, self.tuning.tried))
        features = basis @ (self.store.block(candidates, some).astype(np.float64) + shift)
        coordinates = basis @ difference.values[candidates]
        scores = self._sums()[some] - shift * np.sum(difference.weights)
        explained, shares = np.zeros(len(some)), np.empty(len(sizes))
        for i, size in enumerate(sizes):
            new = slice(size - self.tuning.reference_step, size)
            scores += coordinates[new] @ features[new]
            explained += np.sum(features[new] ** 2, axis=0)
            left = difference.left(coordinates[:size])
            doubt = left * spread(self.store, explained, some, RIDGE)
            shares[i] = np.mean(near.distance(self.kinds[:, some], scores) <= doubt)
        return shares * len(unknown) / len(self.known)

    def _candidates(self, difference: Difference) -> NDArray[np.intp]:
        """Samples for the reference, in order: columns at hand first, each by their weight."""
        at_hand = np.flatnonzero(self.known & self.store.cached(np.arange(len(self.known))))
        order = np.argsort(-np.abs(self.state.coefficients()[at_hand]), kind="stable")
        others = np.argsort(-np.abs(difference.weights), kind="stable")
        candidates = np.concatenate([at_hand[order], difference.rows[others]])
        return candidates[: self.tuning.reference_most]

    def _use(self, rows: NDArray[np.intp], basis: NDArray[np.float64]) -> None:
        """Make `rows` the reference: fetch their columns, bound the interpolation everywhere."""
        self.store.fetch(rows)
        self._approach()
        self.reference, self.basis = rows, np.ascontiguousarray(basis)
        self.spreads = Spreads(self.store, rows, self.basis)
