"""Scores whose distribution is known, and thresholds that are set by them."""

from math import comb

import numpy as np
from scipy.stats import binom, norm
from sklearn.base import BaseEstimator, ClassifierMixin

from attop.calibration import NoThresholdError

N_DRAWS = 500
SHARE, DISTANCE = 0.3, 2.0  # of the positives N(2, 1) among negatives N(0, 1)


class Identity(ClassifierMixin, BaseEstimator):
    """Fitted from the start; the only feature is the score."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]

    def __sklearn_is_fitted__(self):
        return True


def calibrated(kind, scores, positive, **promise):
    X = np.asarray(scores, dtype=float)[:, None]
    return kind(Identity(), cv="prefit", **promise).fit(X, np.asarray(positive, dtype=int))


def calibrated_or_none(kind, scores, positive, **promise):
    try:
        return calibrated(kind, scores, positive, **promise)
    except NoThresholdError:
        return None


def draw(rng, n):
    positive = rng.random(n) < SHARE
    return rng.normal(size=n) + DISTANCE * positive, positive


def true_precision(t):
    hits, mistakes = SHARE * norm.sf(t - DISTANCE), (1 - SHARE) * norm.sf(t)
    return hits / (hits + mistakes)


def most_violations(probability, n_draws=N_DRAWS):
    """Exceeded by chance once in a thousand tests."""
    return binom.ppf(0.999, n_draws, probability)


def least_violations(probability, n_draws=N_DRAWS):
    return binom.ppf(0.001, n_draws, probability)


def tail(n, x, p):
    """P(Bin(n, p) <= x), exactly."""
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(x + 1))
