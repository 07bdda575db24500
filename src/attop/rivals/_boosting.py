"""RankBoost for two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from attop.rivals._base import Ranker, Vector, best_threshold

#: Weights of pairs below this count as so much: a perfect stump has no infinite coefficient.
_LEAST = 1e-12


class RankBoost(Ranker):
    r"""RankBoost.B of Freund, Iyer, Schapire and Singer (2003) with thresholds on features.

    It minimises :math:`\sum_{i \in I^+} \sum_{j \in I^-} e^{-(s_i - s_j)}` over sums
    :math:`s = \sum_t a_t h_t` of weak rankers :math:`h_t(x) = [x_f > \theta]`, one in each round.
    The weight of a pair is a product of weights of its two samples, so a round looks at samples
    only.  With :math:`W_+` and :math:`W_-` the weight of the pairs that a weak ranker puts into the
    right and the wrong order, it takes the one of the least :math:`Z = 1 - (\sqrt{W_+} -
    \sqrt{W_-})^2`, with :math:`a = \tfrac12 \log(W_+ / W_-)`.  The share of pairs of training
    samples that end up in the wrong order is at most the product of all Z.

    A round costs :math:`O(n d)`.

    Parameters
    ----------
    n_rounds : int, default=100
        Weak rankers at most.
    n_thresholds : int, default=64
        Thresholds tried on each feature, at quantiles of its values; 255 at most.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; the second one is positive.
    features_, cuts_, weights_ : ndarray of shape (n_rankers,)
        Feature, threshold and coefficient of each weak ranker.
    bounds_ : ndarray of shape (n_rankers,)
        The product of all Z up to each round.
    threshold_ : float
        The most accurate threshold on the training samples; RankBoost has none.

    References
    ----------
    Y. Freund, R. Iyer, R. E. Schapire, Y. Singer: An efficient boosting algorithm for combining
    preferences. Journal of Machine Learning Research 4, 933-969, 2003.
    """

    def __init__(self, n_rounds: int = 100, n_thresholds: int = 64) -> None:
        self.n_rounds = n_rounds
        self.n_thresholds = n_thresholds

    def _learn(self, X: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        self._require("n_rounds", self.n_rounds >= 1, "an integer of at least 1")
        self._require("n_thresholds", 1 <= self.n_thresholds <= 255, "an integer in [1, 255]")
        cuts = _cuts(X, self.n_thresholds)
        places = np.column_stack([np.searchsorted(c, x) for c, x in zip(cuts, X.T, strict=True)])
        scores, chosen, bound = np.zeros(len(X)), [], 1.0
        for _ in range(self.n_rounds):
            right, wrong = _pairs_in_order(places, scores, positive, self.n_thresholds)
            Z = 1.0 - (np.sqrt(right) - np.sqrt(wrong)) ** 2
            feature, cut = np.unravel_index(np.argmin(Z), Z.shape)
            if Z[feature, cut] >= 1.0:
                break  # no weak ranker knows more than chance
            ratio = (right[feature, cut] + _LEAST) / (wrong[feature, cut] + _LEAST)
            weight = 0.5 * np.log(ratio)
            scores += weight * (places[:, feature] > cut)
            # That of this coefficient: of a perfect weak ranker it is not quite the least.
            untold = 1.0 - right[feature, cut] - wrong[feature, cut]
            lost = right[feature, cut] * np.exp(-weight) + wrong[feature, cut] * np.exp(weight)
            bound *= untold + lost
            chosen.append((feature, cuts[feature][cut], weight, bound))
        columns = np.array(chosen, dtype=np.float64).reshape(-1, 4).T
        self.features_ = columns[0].astype(np.intp)
        self.cuts_, self.weights_, self.bounds_ = columns[1:]
        self.threshold_ = best_threshold(scores, positive)

    def _scores(self, X: NDArray[np.float64]) -> Vector:
        scores = np.zeros(len(X))
        for feature, cut, weight in zip(self.features_, self.cuts_, self.weights_, strict=True):
            scores += weight * (X[:, feature] > cut)
        return scores


def _cuts(X: NDArray[np.float64], n: int) -> list[Vector]:
    """The thresholds of each feature: between its values, or at quantiles of many."""
    cuts = []
    for x in X.T:
        values = np.unique(x)
        if len(values) > n + 1:
            values = np.unique(np.quantile(x, np.linspace(0.0, 1.0, n + 1), method="lower"))
        cuts.append(values[:-1])
    return cuts


def _pairs_in_order(
    places: NDArray[np.intp], scores: Vector, positive: NDArray[np.bool_], n_cuts: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight of the pairs that each feature and cut puts into the right, and the wrong, order."""
    above: list[Any] = []
    for members, sign in ((positive, -1.0), (~positive, 1.0)):
        weights = softmax(sign * scores[members])
        n_features = places.shape[1]
        flat = places[members] + (n_cuts + 1) * np.arange(n_features)
        sums = np.bincount(
            flat.ravel(), np.repeat(weights, n_features), n_features * (n_cuts + 1)
        ).reshape(n_features, n_cuts + 1)
        # A sample is above cut c where its place is beyond c.
        above.append(np.cumsum(sums[:, ::-1], axis=1)[:, ::-1][:, 1:])
    of_positives, of_negatives = (np.clip(some, 0.0, 1.0) for some in above)
    right, wrong = of_positives * (1.0 - of_negatives), (1.0 - of_positives) * of_negatives
    return right.astype(np.float64), wrong.astype(np.float64)
