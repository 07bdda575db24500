"""The closed-form steps: feasible, never downhill, and as good as any step of the same pair."""

import numpy as np
import pytest

from attop.families.base import Cap
from attop.formulations import FORMULATIONS
from attop.objectives import dual_value, infeasibility, signed_coefficients
from attop.solvers.pairwise import sweep
from attop.solvers.pairwise.gains import distances_of, largest, rates_of
from attop.solvers.pairwise.steps import (
    FLAT,
    Dual,
    Point,
    best_partner,
    largest_apart_from,
    move,
    pair_step,
    summarise,
    up_rate,
)

CASES = [
    ("TopPush", "hinge", {}),
    ("TopPush", "quadratic_hinge", {}),
    ("TopPushK", "hinge", {"K": 3}),
    ("TopPushK", "quadratic_hinge", {"K": 3}),
    ("TopMeanK", "hinge", {"tau": 0.7}),
    ("TopMeanK", "quadratic_hinge", {"tau": 0.7}),
    ("PatMat", "hinge", {"tau": 0.7, "theta": 2.0}),
    ("PatMat", "quadratic_hinge", {"tau": 0.7, "theta": 2.0}),
    ("PatMatNP", "hinge", {"tau": 0.3, "theta": 0.5}),
    ("PatMatNP", "quadratic_hinge", {"tau": 0.3, "theta": 0.5}),
    ("SVM", "hinge", {}),
    ("SVM", "quadratic_hinge", {}),
]


class Setting:
    """A small problem at a random feasible point, and its objective along any pair."""

    def __init__(self, name, surrogate, parameters, seed, C=0.8, weighted=False):
        rng = np.random.default_rng(seed)
        positive = np.arange(11) < 5
        X = rng.normal(size=(11, 3))
        X[1], X[6] = X[0], X[5]  # duplicates: pairs without curvature
        # Some samples have more copies than the top of TopPushK has scores.
        weights = rng.uniform(0.2, 5.0, 11) if weighted else None
        self.problem = FORMULATIONS[name].problem(
            positive, C, surrogate, sample_weight=weights, **parameters
        )
        self.matrix = X @ X.T
        alpha, beta = self._feasible_point(rng)
        self.dual = Dual.of(self.problem)
        self.point = Point(
            np.r_[alpha, beta],
            np.r_[self.problem.positives, self.problem.competitors],
            self.matrix @ self._coefficients(alpha, beta),
            np.array(self.problem.weights),
        )
        self.n_alpha, self.n_variables = len(alpha), len(alpha) + len(beta)

    @property
    def alpha(self):
        return self.point.values[: self.n_alpha]

    @property
    def beta(self):
        return self.point.values[self.n_alpha :]

    def _feasible_point(self, rng):
        problem = self.problem
        # Some variables at their bounds, among them several betas at the cap.
        alpha = rng.normal(0.5, 0.7, len(problem.positives))
        beta = rng.normal(0.5, 0.9, len(problem.competitors))
        return problem.family.project(problem, alpha, beta, 0.2)

    def _coefficients(self, alpha, beta):
        return signed_coefficients(self.problem, alpha, beta, len(self.matrix))

    def row(self, v):
        return self.point.rows[v]

    def after(self, k, other, step):
        """Alpha and beta after a step of the pair, by the definition of the moves."""
        values = self.point.values.copy()
        same_kind = (k < self.n_alpha) == (other < self.n_alpha)
        values[k] += step / self.point.weights[k]
        values[other] += (-step if same_kind else step) / self.point.weights[other]
        return values[: self.n_alpha], values[self.n_alpha :]

    def value(self, alpha, beta, norm=None):
        """The dual; with `norm`, that of the quadratic hinge before delta is renewed."""
        coefficients = self._coefficients(alpha, beta)
        w_norm2 = coefficients @ self.matrix @ coefficients
        value = dual_value(self.problem, w_norm2, alpha, beta)
        if norm:
            # delta = norm / (2 theta sqrt(m tau)) kept: the price of |beta| becomes that of
            # its quadratic majorant (|beta|^2 / norm + norm) / 2.
            new = self.norm(beta)
            value += self.problem.betas.norm_price * (new - 0.5 * (new**2 / norm + norm))
        return value

    def norm(self, beta):
        """The norm of the betas of all copies."""
        return np.sqrt(np.dot(self.problem.competitor_weights, beta**2))

    def pairs(self):
        return [(k, v) for k in range(self.n_variables) for v in range(self.n_variables) if k != v]

    def step(self, k, other):
        i, j = self.row(k), self.row(other)
        distance2 = self.matrix[i, i] + self.matrix[j, j] - 2 * self.matrix[i, j]
        values, _, scores, weights = self.point
        rates = [up_rate(self.dual, v, values[v], scores[self.row(v)]) for v in (k, other)]
        return pair_step(
            self.dual,
            summarise(self.dual, values, weights),
            k,
            other,
            values[k],
            values[other],
            weights[k],
            weights[other],
            rates[0] - rates[1],
            max(distance2, 1e-12),
        )


@pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case[:2])))
def case(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def settings(case, request):
    return [Setting(*case, seed, weighted=request.param) for seed in range(3)]


def best_on_a_grid(setting, k, other, norm=None):
    """The best feasible step of a pair by looking everywhere, ever more finely."""

    def quality(step):
        alpha, beta = setting.after(k, other, step)
        if infeasibility(setting.problem, alpha, beta) > 1e-12:
            return -np.inf
        return setting.value(alpha, beta, norm)

    centre, radius = 0.0, 20.0
    for _ in range(17):
        grid = np.r_[centre, centre + np.linspace(-radius, radius, 21)]
        centre = grid[np.argmax([quality(step) for step in grid])]
        radius /= 4
    return centre, quality(centre)


def test_the_step_is_the_best_of_a_fine_grid(settings):
    for setting in settings[:2]:
        norm = None
        if setting.problem.betas.norm_price:
            norm = setting.norm(setting.beta)
        for k, other in setting.pairs()[::7]:
            step, _ = setting.step(k, other)
            value = setting.value(*setting.after(k, other, step), norm)
            _, expected = best_on_a_grid(setting, k, other, norm)
            assert value == pytest.approx(expected, rel=1e-8, abs=1e-8), (k, other)


def test_the_step_keeps_feasibility_and_never_lowers_the_dual(settings):
    for setting in settings:
        before = setting.value(setting.alpha, setting.beta)
        for k, other in setting.pairs():
            step, gain = setting.step(k, other)
            alpha, beta = setting.after(k, other, step)
            assert infeasibility(setting.problem, alpha, beta) <= 1e-12
            assert gain >= 0
            value = setting.value(alpha, beta)
            assert value - before == pytest.approx(gain, abs=1e-10)


def test_the_rule_of_a_pair_does_not_depend_on_who_is_first(settings):
    for setting in settings:
        for k, other in setting.pairs():
            same_kind = (k < setting.n_alpha) == (other < setting.n_alpha)
            step, gain = setting.step(k, other)
            reverse, reverse_gain = setting.step(other, k)
            assert reverse_gain == pytest.approx(gain, abs=1e-12)
            if gain > 1e-9:
                assert reverse == pytest.approx(-step if same_kind else step, rel=1e-9)


def test_the_best_partner_is_the_best_of_all_pairs(settings):
    for setting in settings:
        diagonal = np.diagonal(setting.matrix).copy()
        for k in range(setting.n_variables):
            column = setting.matrix[setting.row(k)]
            partner, _, gain = best_partner(setting.dual, setting.point, k, column, diagonal)
            gains = [
                setting.step(k, other)[1] for other in range(setting.n_variables) if other != k
            ]
            assert gain == pytest.approx(max(gains), rel=1e-9, abs=1e-12)
            assert (partner >= 0) == (gain > 0)


def test_moving_keeps_the_scores_true(settings):
    for setting in settings:
        diagonal = np.diagonal(setting.matrix).copy()
        dual, point = setting.dual, setting.point
        for k in range(setting.n_variables):
            column = setting.matrix[setting.row(k)]
            partner, step, _ = best_partner(dual, point, k, column, diagonal)
            if partner >= 0:
                move(dual, point, k, partner, step, column, setting.matrix[setting.row(partner)])
        scores = setting.matrix @ setting._coefficients(setting.alpha, setting.beta)
        np.testing.assert_allclose(point.scores, scores, atol=1e-11)
        assert infeasibility(setting.problem, setting.alpha, setting.beta) <= 1e-12


@pytest.mark.parametrize("name", ["PatMat", "PatMatNP"])
def test_betas_leave_zero_where_that_gains(name):
    setting = Setting(name, "quadratic_hinge", {"tau": 0.1, "theta": 1.0}, 0)
    setting.point.values[:] = setting.point.scores[:] = 0.0
    k, other = 0, setting.n_variables - 1  # an alpha and the beta of a negative
    step, gain = setting.step(k, other)
    assert gain > 0
    _, expected = best_on_a_grid(setting, k, other)
    value = setting.value(*setting.after(k, other, step))
    assert value == pytest.approx(expected, rel=1e-8)


def test_from_zero_no_pair_moves_when_more_than_one_score_is_averaged():
    setting = Setting("TopPushK", "hinge", {"K": 3}, 0)
    setting.point.values[:] = setting.point.scores[:] = 0.0
    assert all(setting.step(k, other)[1] == 0 for k, other in setting.pairs())


@pytest.mark.parametrize("n_betas", [1, 2, 3, 7])
def test_the_largest_beta_apart_from_two(n_betas):
    rng = np.random.default_rng(n_betas)
    beta = rng.integers(0, 4, n_betas).astype(float)
    problem = FORMULATIONS["TopPush"].problem(np.arange(n_betas + 1) == 0, 1.0, "hinge")
    betas = summarise(Dual.of(problem), np.r_[1.0, beta], np.ones(1 + n_betas))
    for j in range(n_betas):
        for k in range(-1, n_betas):
            rest = [value for i, value in enumerate(beta) if i not in (j, k)]
            # Variable 0 is the alpha, and k = -1 stands for no second exception.
            found = largest_apart_from(betas, j + 1, k + 1 if k >= 0 else -1)
            assert found == max(rest, default=0.0)


def test_gains_of_all_partners_at_once_are_those_of_the_rules(settings):
    """Loops over all partners, with the largest betas mended, against one rule at a time."""
    for setting in settings:
        dual, point, m = setting.dual, setting.point, setting.n_alpha
        if not sweep.can_sweep(dual, point):
            continue
        values, rows, scores, weights = point
        sizes, n = np.diagonal(setting.matrix)[rows], setting.n_variables
        rates, distances2, gains = np.empty(n), np.empty(n), np.empty(n)
        rates_of(values[:m], scores[rows[:m]], 1.0, dual.quadratic_alpha, rates[:m])
        rates_of(values[m:], scores[rows[m:]], -dual.linear_beta, 0.0, rates[m:])
        betas = summarise(dual, values, weights)
        for k in range(n):
            distances_of(sizes[k], FLAT, setting.matrix[rows[k]][rows], sizes, distances2)
            sweep.all_gains(dual, betas, k, values, rates, distances2, gains)
            sweep.mend_gains(dual, betas, k, values, rates, distances2, gains)
            expected = [
                0.0 if v == k else sweep.pair(dual, betas, k, v, values, rates, distances2)[1]
                for v in range(n)
            ]
            np.testing.assert_allclose(gains, expected, rtol=1e-9, atol=1e-12)
            assert largest(gains) == max(0.0, gains.max())


def test_loops_are_for_shared_caps_without_weights(settings):
    can = [sweep.can_sweep(setting.dual, setting.point) for setting in settings]
    plain = np.all(settings[0].point.weights == 1.0)
    terms = settings[0].problem.betas
    shared = terms.cap is not Cap.NONE and not terms.norm_price
    assert can == [bool(plain and shared)] * len(settings)
