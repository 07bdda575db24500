"""What counts of independent samples say about a probability, exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv
from scipy.stats import binom

#: Relative slack when a tail probability is compared with the allowed one, both rounded.
ROUNDING = 1e-9


def fewest_without_exception(rate: float, delta: float) -> int:
    r"""The least `n` with :math:`(1 - \text{rate})^n \le \delta`."""
    exact = math.log(delta) / math.log1p(-rate)
    return max(1, math.ceil(exact * (1 - 1e-12)))  # 2.0000000000000004 means 2


def most_exceptions(n: int, rate: float, delta: float) -> tuple[int, float]:
    r"""The largest `x` with :math:`P(\mathrm{Bin}(n, \text{rate}) \le x) \le \delta`, and the tail.

    There is one where `n` is at least `fewest_without_exception`.
    """
    allowed = delta * (1 + ROUNDING)
    x = int(binom.ppf(delta, n, rate))
    while x > 0 and binom.cdf(x, n, rate) > allowed:
        x -= 1
    return x, float(binom.cdf(x, n, rate))


def lower_limit(successes: ArrayLike, n: ArrayLike, alpha: ArrayLike) -> NDArray[np.float64]:
    """Clopper-Pearson limit: the probability is below it with a chance of at most `alpha`."""
    x, n = np.asarray(successes), np.asarray(n)
    return _where(x > 0, betaincinv(np.maximum(x, 1), n - x + 1, alpha), 0.0)


def upper_limit(successes: ArrayLike, n: ArrayLike, alpha: ArrayLike) -> NDArray[np.float64]:
    """Clopper-Pearson limit: the probability is above it with a chance of at most `alpha`."""
    x, n = np.asarray(successes), np.asarray(n)
    return _where(x < n, betainccinv(x + 1, np.maximum(n - x, 1), alpha), 1.0)


def _where(condition: Any, value: Any, otherwise: float) -> NDArray[np.float64]:
    return np.asarray(np.where(condition, value, otherwise), dtype=np.float64)
