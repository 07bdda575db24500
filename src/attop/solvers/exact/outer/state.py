"""The point the solver is at: dual variables, scores of all samples, the group at the cap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from attop import objectives
from attop._threads import with_one_blas_thread
from attop._weights import weighted, weighted_sum
from attop.families.base import Cap
from attop.kernels.blocks import slices
from attop.kernels.columns import ColumnStore
from attop.kernels.device.store import DeviceStore
from attop.kernels.errors import Tally
from attop.kernels.linear import LinearStore
from attop.kernels.matrix import MatrixStore
from attop.problem import Problem
from attop.solvers.exact.scaling.parts import Part
from attop.solvers.exact.subproblem.active_set import solve_active_set
from attop.solvers.exact.subproblem.block import SAME, Block, Group, Terms, make_block
from attop.solvers.exact.subproblem.dense import Dense, Matrix
from attop.solvers.exact.subproblem.interior import Kernels, interior_point
from attop.solvers.exact.subproblem.solve import solve_subproblem
from attop.solvers.exact.tuning import DEFAULT, Tuning
from attop.solvers.limits import UNLIMITED, Limits

Store = ColumnStore | DeviceStore | LinearStore

#: Sums are made anew where that makes the bounds of their rounding so many times smaller.
FEWER = 1.2
#: Scores that are updated at once.
_PIECE = 2**16
#: What columns without errors add to a tally.
_NOTHING = Tally()


class State:
    """Dual variables with everything that follows from them.

    The variables are numbered alphas first, then betas; `rows` is the sample of each.

    Attributes
    ----------
    value : ndarray
        Alphas, then betas, of one copy of each sample.
    weight : ndarray
        Copies of the sample of each variable.
    scores : ndarray of shape (n_samples,)
        ``s = K (alpha - beta)``.
    cap : float
        The cap ``u`` of the betas, infinite where there is none.
    member : ndarray of bool
        Which variables are betas at the cap.
    group_column : ndarray of shape (n_samples,)
        Weighted sum of the kernel columns of the members.
    tally, group_tally : Tally
        What went into `scores` and `group_column`, and so how far these may be off.
    computed_before : int
        Columns that the store had computed before this state was made.
    """

    def __init__(
        self, problem: Problem, store: Store | MatrixStore, tuning: Tuning = DEFAULT
    ) -> None:
        self.problem, self.tuning = problem, tuning
        self.store = cast(Store, store)  # that of a matrix has no parts, and is asked for none
        self.n_alphas = len(problem.positives)
        self.rows, self.weight = problem.rows, problem.weights
        self.is_alpha = np.arange(len(self.rows)) < self.n_alphas
        self.value = np.zeros(len(self.rows))
        self.member = np.zeros(len(self.rows), dtype=bool)
        self.scores = np.zeros(store.n_samples)
        self.group_column = np.zeros(store.n_samples)
        self.tally, self.group_tally = Tally(), Tally()
        self.betas = problem.betas
        self.tied = self.betas.cap is Cap.TIED
        self.capped = self.betas.cap is not Cap.NONE
        self.cap = 0.0 if self.capped else np.inf
        self.computed_before = store.n_computed
        #: Whether the kernel is definite for sure.
        self.sure = store.definite

    @property
    def alpha(self) -> NDArray[np.float64]:
        """The alphas (a view)."""
        return self.value[: self.n_alphas]

    @property
    def beta(self) -> NDArray[np.float64]:
        """The betas (a view)."""
        return self.value[self.n_alphas :]

    def set(self, alpha: NDArray[np.float64], beta: NDArray[np.float64]) -> None:
        """Go to a feasible point; scores and group are computed from the kernel columns."""
        self.alpha[:], self.beta[:] = alpha, beta
        if self.capped:
            self.cap = self._total() / self.betas.K if self.tied else float(np.max(beta))
            self._find_members()
        self.scores[:] = 0.0
        if self.capped:
            members = np.flatnonzero(self.member)
            copies = self.weight[members]
            self.group_column[:] = 0.0
            self.store.add_product(self.rows[members], copies, self.group_column)
            self.group_tally = self._tallied(self.rows[members], copies)
            self.scores -= self.cap * self.group_column
        others = np.flatnonzero((self.value != 0.0) & ~self.member)
        weights = self._signed(self.value[others], others)
        self.store.add_product(self.rows[others], weights, self.scores)
        self.tally = self._tallied(self.rows[others], weights)
        if self.capped:
            self.tally += self.group_tally * self.cap

    def _tallied(self, rows, weights) -> Tally:
        """What columns with these weights add to a tally."""
        errors = self.store.errors
        return _NOTHING if errors is None else errors.of_columns(rows, weights)

    def _signed(self, values: NDArray[np.float64], variables) -> NDArray[np.float64]:
        """Values of `variables` as coefficients: all copies, those of betas turned."""
        copies = self.weight[variables] * values
        return np.where(self.is_alpha[variables], copies, -copies)

    def _total(self) -> float:
        """Sum of the alphas."""
        return weighted_sum(self.alpha, self.problem.positive_weights)

    def restricted(self, part: Part, store: Store) -> State:
        """The same point as one of a part that has all its variables that are not zero."""
        small = State(part.problem, store, self.tuning)
        chosen = self._variables(part)
        small.value[:], small.member[:] = self.value[chosen], self.member[chosen]
        small.scores[:] = self.scores[part.rows]
        if self.capped:  # without a cap its pages are never touched
            small.group_column[:] = self.group_column[part.rows]
        small.cap = self.cap
        small.tally, small.group_tally = self.tally, self.group_tally
        return small

    def follow(self, part: Part, small: State) -> None:
        """Go where the part went."""
        self._move(self._variables(part), small.value, small.member, small.cap)

    def adopt(self, part: Part, small: State) -> None:
        """Take over what the part has: its variables, and scores and group at its samples."""
        chosen = self._variables(part)
        self.value[chosen], self.member[chosen] = small.value, small.member
        self.scores[part.rows] = small.scores
        if self.capped:
            self.group_column[part.rows] = small.group_column
        self.cap = small.cap
        self.tally |= small.tally
        self.group_tally |= small.group_tally

    def coefficients(self) -> NDArray[np.float64]:
        """The coefficient of each sample in ``w``."""
        n_samples = self.store.n_samples
        return objectives.signed_coefficients(self.problem, self.alpha, self.beta, n_samples)

    def members(self) -> NDArray[np.float64]:
        """The copies of each sample whose beta is in the group, else 0."""
        members = np.zeros(self.store.n_samples)
        members[self.rows[self.member]] = self.weight[self.member]
        return members

    def _variables(self, part: Part) -> NDArray[np.intp]:
        return np.concatenate([part.alphas, self.n_alphas + part.betas])

    def _find_members(self) -> None:
        close = ~self.is_alpha & (self.value >= self.cap * (1.0 - 1e-10))
        if self.tied:
            candidates = np.flatnonzero(close)
            full = np.cumsum(self.weight[candidates]) > self.betas.K * (1.0 + SAME)
            close[candidates[full]] = False
        self.member[:] = close
        self.value[close] = self.cap

    def rates(self, variables=slice(None)) -> NDArray[np.float64]:
        """Gain rate of variables, in increasing order, moving up."""
        problem = self.problem
        rates = self.scores[self.rows[variables]]
        np.negative(rates, out=rates)
        alphas = self.value[variables][: np.count_nonzero(self.is_alpha[variables])]
        rates[: len(alphas)] += 1.0
        rates[len(alphas) :] -= self.betas.linear
        if problem.quadratic_alpha:
            rates[: len(alphas)] -= problem.quadratic_alpha * alphas
        if self.betas.curvature:
            rates[len(alphas) :] += self.betas.curvature * self.value[variables][len(alphas) :]
        return rates

    def full_rates(self) -> NDArray[np.float64]:
        """The same with the price of the norm, where there is one."""
        rates = self.rates()
        if self.betas.norm_price:
            norm = np.sqrt(weighted_sum(self.beta**2, self.problem.competitor_weights))
            if norm > 0.0:
                rates[self.n_alphas :] += self.betas.norm_price / norm * self.beta
        return rates

    def group_rate(self) -> float | None:
        """Gain rate of the whole group moving up, where its cap is priced."""
        members, copies = self.rows[self.member], self.weight[self.member]
        if self.tied or len(members) == 0:
            return None
        saved = self.betas.price - float(np.dot(copies, self.scores[members]))
        return float(saved / np.sum(copies)) - self.betas.linear

    def objective(self) -> tuple[float, float, float]:
        """Primal value, dual value and relative gap by the solver's own scores."""
        problem, w_norm2 = self.problem, self._w_norm2()
        dual = objectives.dual_value(problem, w_norm2, self.alpha, self.beta)
        primal = objectives.feasible_primal(problem, w_norm2, self.scores)
        return primal, dual, objectives.relative_gap(primal, dual)

    def _w_norm2(self) -> float:
        problem, scores = self.problem, self.scores
        alphas = weighted(self.alpha, problem.positive_weights)
        betas = weighted(self.beta, problem.competitor_weights)
        positive = np.dot(alphas, scores[problem.positives])
        return float(positive - np.dot(betas, scores[problem.competitors]))

    def sum_anew(self) -> None:
        """The scores as one sum of columns, if all are at hand: many small changes round more."""
        errors, coefficients = self.store.errors, self.coefficients()
        support = np.flatnonzero(coefficients)
        if errors is None or not self.store.cached(support).all():
            return
        tally = errors.of_columns(support, coefficients[support])
        if self.tally.total > FEWER * tally.total:
            self.scores[:] = 0.0
            self.store.add_product(support, coefficients[support], self.scores)
            self.tally = tally

    def rescale(self) -> None:
        """Go to the best multiple of the point within the bounds."""
        w_norm2 = self._w_norm2()
        problem = self.problem
        penalty = problem.quadratic_alpha * weighted_sum(self.alpha**2, problem.positive_weights)
        if self.betas.curvature:
            squares = weighted_sum(self.beta**2, problem.competitor_weights)
            penalty += self.betas.curvature * squares
        # What is left of the dual value without its quadratic terms grows with the multiple.
        linear = objectives.dual_value(self.problem, 0.0, self.alpha, self.beta) + 0.5 * penalty
        bend, largest = w_norm2 + penalty, float(np.max(self.alpha))
        if linear > 0.0 and bend > 0.0 and np.isfinite(linear / bend):
            room = self.betas.bound / max(float(np.max(self.beta)), 1e-300)
            self._multiply(min(linear / bend, self.problem.alpha_max / largest, room))

    def stretch(self, share: float) -> None:
        """Make the point longer by this share, or as far as the bounds let it."""
        room = min(
            self.problem.alpha_max / max(float(np.max(self.alpha)), 1e-300),
            self.betas.bound / max(float(np.max(self.beta)), 1e-300),
        )
        self._multiply(min(1.0 + share, max(room, 1.0)))

    def _multiply(self, multiple: float) -> None:
        for array in (self.value, self.scores):
            array *= multiple
        self.cap *= multiple
        self.tally *= multiple

    def balance(self) -> None:
        """Make the sums of alphas and betas equal, up to the last bits of some small variable.

        They differ by rounding, which costs nothing but where large numbers cancel: scores of
        samples with a common offset, say.
        """
        upper = np.where(self.is_alpha, self.problem.alpha_max, min(self.cap, self.betas.bound))
        for _ in range(2):
            copies = self.weight * self.value
            alphas, betas = copies[: self.n_alphas], copies[self.n_alphas :]
            lacking = math.fsum(betas[betas != 0.0]) - math.fsum(alphas[alphas != 0.0])
            if lacking == 0.0:
                return
            after = self.value + np.where(self.is_alpha, lacking, -lacking) / self.weight
            fits = (copies >= 2.0 * abs(lacking)) & (after <= upper)
            # Where all are at their bounds, one is moved beyond, by next to nothing.
            candidates = np.flatnonzero(fits) if fits.any() else [int(np.argmax(self.value))]
            smallest = candidates[int(np.argmin(self.value[candidates]))]
            self.value[smallest] = after[smallest]
            self.tally += Tally(extra=abs(lacking) * self.store.largest)

    def terms(self, n_alphas: int) -> Terms:
        """The numbers of the subproblem."""
        problem, total = self.problem, self._total()
        return Terms(
            n_alphas=n_alphas,
            alpha_max=problem.alpha_max,
            beta_max=self.betas.bound,
            price=self.betas.price + self.betas.norm_price,  # one of them at most
            K=self.betas.K,
            least_curvature=max(1e-12 * self.store.largest, 1e-300),
            least_value=1e-14 * min(problem.alpha_max, max(total, 1e-300)),
        )

    def solve_block(
        self,
        chosen: NDArray[np.intp],
        tolerance: float,
        most: int | None = None,
        limits: Limits = UNLIMITED,
    ) -> tuple[int, int, int]:
        """Solve the subproblem on the variables `chosen`, in increasing order, and go there.

        Returns the pair moves, the turns to the interior-point method, and the batches of moves
        and turns of any kind, `most` of them at most, that it took.
        """
        block, group, effort = self._solved(chosen, tolerance, most, limits)
        self._move(chosen, block.value, block.member, group.cap)
        return effort

    def solve_all(
        self,
        tolerance: float,
        gap: float = 0.0,
        most: int | None = None,
        limits: Limits = UNLIMITED,
    ) -> tuple[int, int, int]:
        """The same with all variables, which leaves the group as it was: see `set`.

        It ends as well where the relative gap is seen to be at most `gap`.
        """

        def enough(block: Block, group: Group) -> bool:
            self._take_over(block, group)
            return 0.0 <= self.objective()[2] <= gap

        everyone = np.arange(len(self.rows))
        look = enough if gap > 0.0 else None
        # Guesses creep where a sample has two variables.
        alone = len(self.rows) <= self.store.n_samples
        block, group, effort = self._solved(everyone, tolerance, most, limits, look, alone)
        self._take_over(block, group)
        return effort

    def _take_over(self, block: Block, group: Group) -> None:
        """Values and scores of a block of all variables."""
        n, rate, value = self.n_alphas, block.rate, np.where(block.member, group.cap, block.value)
        self.value, self.member, self.cap = value, block.member, group.cap
        betas = self.betas.linear + rate[n:] - self.betas.curvature * value[n:]
        self.scores[self.rows[n:]] = -betas
        alphas = self.problem.quadratic_alpha * value[:n] + rate[:n]
        self.scores[self.rows[:n]] = 1.0 - alphas

    def _solved(
        self,
        chosen: NDArray[np.intp],
        tolerance: float,
        most: int | None,
        limits: Limits,
        enough: Callable[[Block, Group], bool] | None = None,
        whole: bool = False,
    ) -> tuple[Block, Group, tuple[int, int, int]]:
        """The subproblem on the variables `chosen` at its solution, the group, and the effort."""
        self.store.fetch(self.rows[chosen])
        block = self._block(chosen, self.store.submatrix(self.rows[chosen]))
        terms = self.terms(int(np.count_nonzero(self.is_alpha[chosen])))
        group, norm2 = self._group(chosen), self._norm2_outside(chosen)
        diagonal = block.kernel.diagonal().copy()
        np.fill_diagonal(block.kernel, diagonal + self._penalty(chosen))
        try:
            group, *effort = solve_subproblem(
                block,
                group,
                terms,
                self.betas,
                norm2,
                tolerance,
                self.tuning,
                self.store.shift,
                most,
                limits,
                enough,
                whole,
            )
        finally:
            np.fill_diagonal(block.kernel, diagonal)  # the matrix may be that of the store
        return block, group, (effort[0], effort[1], effort[2])

    def solve_free_block(self, chosen: NDArray[np.intp], tolerance: float, limits: Limits) -> bool:
        """The same where many are free, by guesses of what is; False if that gains nothing."""
        matrix = self._dense(self.rows[chosen], self._penalty(chosen))
        block = self._block(chosen, np.empty((0, 0)))
        terms = self.terms(int(np.count_nonzero(self.is_alpha[chosen])))
        found = with_one_blas_thread(  # the matrix has threads of its own
            solve_active_set,
            block,
            matrix,
            self._group(chosen),
            terms,
            self.betas,
            self._norm2_outside(chosen),
            self.store.shift,
            tolerance,
            limits,
        )
        if found is None:
            return False
        value, cap = found
        member = np.zeros(len(value), dtype=bool)
        if self.capped:
            member[terms.n_alphas :] = value[terms.n_alphas :] >= cap
        self._move(chosen, value, member, cap)
        return True

    def _dense(self, rows: NDArray[np.intp], penalty: NDArray[np.float64]) -> Matrix:
        """The kernel matrix of `rows` where the store has it, with penalties on its diagonal."""
        if isinstance(self.store, DeviceStore):
            return self.store.dense(rows, penalty)
        assert isinstance(self.store, ColumnStore)
        self.store.fetch(rows)
        kernel = self.store.submatrix(rows, self.store.buffer.dtype)
        return Dense(kernel, penalty, self.store.workers)

    def solve_large_block(
        self, chosen: NDArray[np.intp], gap: float, limits: Limits = UNLIMITED
    ) -> None:
        """The same for a kernel of low rank, by the interior-point method, to a relative gap."""
        assert isinstance(self.store, LinearStore)
        block = self._block(chosen, np.empty((0, 0)))
        terms = self.terms(int(np.count_nonzero(self.is_alpha[chosen])))
        outside = self.member.copy()
        outside[chosen] = False
        kernels = Kernels(
            matrix=None,
            features=self.store.features(self.rows[chosen]),
            penalty=self._penalty(chosen),
            outside=self.store.combination(self.rows[outside], self.weight[outside]),
        )
        norm2 = self._norm2_outside(chosen)
        group = interior_point(
            block, kernels, self._group(chosen), terms, self.betas, norm2, self.tuning, gap, limits
        )
        if group is not None:
            self._move(chosen, block.value, block.member, group.cap)

    def _norm2_outside(self, chosen: NDArray[np.intp]) -> float:
        """``|beta|^2`` of the betas that are not among `chosen`."""
        if not self.betas.norm_price:
            return 0.0  # not asked for
        squares = self.problem.competitor_weights * self.beta**2
        squares[chosen[chosen >= self.n_alphas] - self.n_alphas] = 0.0
        return float(np.sum(squares))

    def _block(self, chosen: NDArray[np.intp], kernel: NDArray[np.float64]) -> Block:
        """The variables `chosen` as the subproblem sees them."""
        rows, value, member = self.rows[chosen], self.value[chosen], self.member[chosen]
        is_alpha, weight = self.is_alpha[chosen], self.weight[chosen]
        room = min(self.cap, self.betas.bound) - value
        below = np.where(is_alpha, value, np.where(member, 0.0, room))
        return make_block(
            kernel,
            member,
            rows,
            diagonal=self.store.diagonal(rows) + self._penalty(chosen),
            weight=weight,
            value=value,
            rate=self.rates(chosen),
            rise=weight * np.where(is_alpha, self.problem.alpha_max - value, value),
            fall=weight * below,
            group_column=self.group_column[rows],
        )

    def _penalty(self, chosen: NDArray[np.intp]) -> NDArray[np.float64]:
        """What the penalties add to the curvature of variables moving."""
        curvature = np.where(
            self.is_alpha[chosen], self.problem.quadratic_alpha, self.betas.curvature
        )
        return curvature / self.weight[chosen]

    def _group(self, chosen: NDArray[np.intp]) -> Group:
        """The group as the subproblem on `chosen` sees it."""
        if not self.capped:
            return Group(np.inf, 0, 0.0, 0.0, 0.0, 0.0)
        members, copies = self.rows[self.member], self.weight[self.member]
        outside = ~self.is_alpha & ~self.member
        outside[chosen] = False
        size = float(np.sum(copies))
        score = float(np.dot(copies, self.scores[members])) + self.betas.linear * size
        floor = float(np.max(self.value, where=outside, initial=0.0))
        square = float(np.dot(copies, self.group_column[members]))
        return Group(float(self.cap), len(members), size, square, score, floor)

    def _move(self, chosen: NDArray[np.intp], value, member, cap: float) -> None:
        """Go to other values of the variables `chosen`, with scores and group.

        Members are at the new cap, whatever their `value` says.
        """
        rows, was_member = self.rows[chosen], self.member[chosen]
        rise = cap - self.cap if self.capped else 0.0
        value = np.where(member, cap, value)
        weights = self._signed(value - self.value[chosen], chosen)
        copies = self.weight[chosen]
        if rise:
            # All members move with the cap by the group's column.
            weights[was_member] += rise * copies[was_member]
            for part in slices(len(self.scores), _PIECE):
                self.scores[part] -= rise * self.group_column[part]
            self.tally += self.group_tally * rise
        self.value[chosen], self.member[chosen], self.cap = value, member, cap
        change = copies * (member.astype(np.float64) - was_member)
        linear = isinstance(self.store, LinearStore)
        if self.capped:
            self.value[self.member] = cap
            if not linear:
                # Those that join or leave the group bring or take a column at the cap with them.
                weights += cap * change
        keep = self.worth_keeping()[chosen]
        self.store.prepare(rows[keep & ((change != 0.0) | (weights != 0.0))])
        if linear:  # columns are cheap, another array of all samples is not
            self._add_columns(rows, change, keep, self.group_column)
        elif change.any():  # one pass over the columns for both
            columns = np.zeros(len(self.scores))
            self._add_columns(rows, change, keep, columns)
            self.group_column += columns
            columns *= cap
            self.scores -= columns
            joined = self._tallied(rows, change)
            self.group_tally += joined
            self.tally += joined * cap
        self._add_columns(rows, weights, keep, self.scores)
        self.tally += self._tallied(rows, weights)

    def worth_keeping(self) -> NDArray[np.bool_]:
        """Which columns to keep: all, or if they do not fit, those of variables between bounds.

        Variables at a bound seldom move again, and their columns have been summed.
        """
        if self.store.capacity >= 1.5 * np.count_nonzero(self.value):
            return np.ones(len(self.value), dtype=bool)
        below = self.value < np.where(self.is_alpha, self.problem.alpha_max, self.betas.bound)
        return (self.value > 0.0) & below & ~self.member

    def _add_columns(self, rows, weights, keep, out) -> None:
        for which, kept in ((keep, True), (~keep, False)):
            self.store.add_product(rows[which], weights[which], out, keep=kept)
