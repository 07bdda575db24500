"""How probable it is that one of two methods is better in practice."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length, check_random_state, gen_batches

#: So many numbers are drawn at once: 32 MiB of them.
_NUMBERS_AT_ONCE = 2**22


class SignedRankPosterior(NamedTuple):
    """Outcome of the Bayesian signed-rank test, three probabilities that sum to one.

    ``left``: the first method is better by more than the region of practical equivalence;
    ``rope``: the methods are practically equivalent; ``right``: the second one is better.
    """

    left: float
    rope: float
    right: float


def bayesian_signed_rank_test(
    first: ArrayLike,
    second: ArrayLike,
    *,
    rope: float = 0.01,
    prior_strength: float = 0.5,
    n_draws: int = 50_000,
    random_state: Any = 0,
) -> SignedRankPosterior:
    r"""Probabilities that the first of two methods is better, equivalent or worse.

    The Bayesian counterpart of the Wilcoxon signed-rank test.  Unlike a p-value it can say
    that two methods are equivalent, and how probable a difference is that matters: one of
    more than `rope`, the half width of the region of practical equivalence.

    Let :math:`z_i` be the score of the second method on data set :math:`i` less that of the
    first, and :math:`z_0 = 0` a pseudo-observation of the prior, a Dirichlet process.  The
    posterior gives these differences random weights

    .. math::
        (w_0, w_1, \ldots, w_n) \sim \mathrm{Dirichlet}(s, 1, \ldots, 1),

    :math:`s` being the strength of the prior, and with them the probabilities that the mean of
    two differences lies to the left of the region of practical equivalence, inside or to the
    right,

    .. math::
        \theta_{\text{left}} = \sum_{i, j} w_i w_j [\tfrac12 (z_i + z_j) < -\text{rope}],
        \qquad
        \theta_{\text{right}} = \sum_{i, j} w_i w_j [\tfrac12 (z_i + z_j) > \text{rope}],

    and :math:`\theta_{\text{rope}} = 1 - \theta_{\text{left}} - \theta_{\text{right}}`.  What is
    returned is how often each of the three is the largest, over `n_draws` draws of the weights.

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
        Scores of both methods on the same data sets, higher is better.
    rope : float, default=0.01
        Largest difference that does not matter in practice, at least 0, in the unit of the
        scores; differences of just that much count as equivalent.
    prior_strength : float, default=0.5
        Weight of the pseudo-observation, positive; an observed difference weighs 1.
    n_draws : int, default=50_000
        Number of draws; the standard error of a probability p is ``sqrt(p (1 - p) / n_draws)``,
        at most 0.0022 by default.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws.

    Returns
    -------
    SignedRankPosterior
        The probabilities ``left`` (the first method is better), ``rope`` (equivalent) and
        ``right`` (the second one is better).

    References
    ----------
    A. Benavoli, F. Mangili, G. Corani, M. Zaffalon and F. Ruggeri, "A Bayesian Wilcoxon
    signed-rank test based on the Dirichlet process", ICML 2014.

    A. Benavoli, G. Corani, J. Demsar and M. Zaffalon, "Time for a change: a tutorial for
    comparing multiple classifiers through Bayesian analysis", JMLR 18 (2017).

    Examples
    --------
    >>> from attop.statistics import bayesian_signed_rank_test
    >>> first = [0.90, 0.85, 0.80, 0.95, 0.70, 0.88, 0.79]
    >>> second = [0.80, 0.70, 0.75, 0.91, 0.62, 0.80, 0.80]
    >>> posterior = bayesian_signed_rank_test(first, second)
    >>> posterior.left > 0.95
    True
    """
    _check_parameters(rope, prior_strength, n_draws)
    differences, rounding = _check_differences(first, second)
    z = np.append(0.0, differences)
    sums = z[:, None] + z
    beyond = 2.0 * rope + rounding
    left, right = (sums < -beyond).astype(np.float64), (sums > beyond).astype(np.float64)
    rng = check_random_state(random_state)
    counts = np.append(float(prior_strength), np.ones(len(differences)))
    wins = np.zeros(3)
    for part in gen_batches(n_draws, max(1, _NUMBERS_AT_ONCE // len(z))):
        weights = rng.dirichlet(counts, size=part.stop - part.start)
        theta = np.empty((len(weights), 3))
        theta[:, 0] = np.sum((weights @ left) * weights, axis=1)
        theta[:, 2] = np.sum((weights @ right) * weights, axis=1)
        theta[:, 1] = 1.0 - theta[:, 0] - theta[:, 2]
        wins += np.bincount(np.argmax(theta, axis=1), minlength=3)
    return SignedRankPosterior(*(wins / n_draws).tolist())


def _check_differences(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.float64], float]:
    """Second scores less first ones, and how far the sum of two of them may be rounded.

    The difference of 0.81 and 0.8 is above 0.01 in floating point, and not on paper.
    """
    scores = []
    for name, values in (("first", first), ("second", second)):
        column = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
        if column.ndim != 1:
            raise ValueError(
                f"The {name!r} parameter of bayesian_signed_rank_test must hold one score for "
                f"each data set. Got an array of shape {column.shape} instead."
            )
        scores.append(column)
    check_consistent_length(*scores)
    largest = float(np.max(np.abs(scores)))
    return scores[1] - scores[0], 8.0 * float(np.finfo(np.float64).eps) * largest


def _check_parameters(rope: Any, prior_strength: Any, n_draws: Any) -> None:
    for name, value, valid, words in (
        ("rope", rope, _is(Real, rope) and 0 <= rope < np.inf, "a float in [0, inf)"),
        (
            "prior_strength",
            prior_strength,
            _is(Real, prior_strength) and 0 < prior_strength < np.inf,
            "a float in (0, inf)",
        ),
        ("n_draws", n_draws, _is(Integral, n_draws) and n_draws >= 1, "an int in [1, inf)"),
    ):
        if not valid:
            raise ValueError(
                f"The {name!r} parameter of bayesian_signed_rank_test must be {words}. "
                f"Got {value!r} instead."
            )


def _is(kind: type, value: Any) -> bool:
    """Whether `value` is a number of that kind, which truth values are not."""
    return isinstance(value, kind) and not isinstance(value, bool)
