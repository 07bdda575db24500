"""How a model does on samples held out: its rates, and what other thresholds would give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from attop.cli._samples import Samples

TELLS_NOTHING = (
    "The model gives all samples the same score, which tells nothing. Try --method PatMatNP, which "
    "stands overlapping classes, a larger --tau or --K, --search, or features that tell more."
)
#: False positive rates of the table of thresholds.
_RATES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


class Assessment(NamedTuple):
    """Samples held out: who is positive, their scores, who is called positive, their weights."""

    positive: NDArray[np.bool_]
    scores: NDArray[np.float64]
    called: NDArray[np.bool_]
    weight: NDArray[np.float64] | None = None

    @property
    def tells_nothing(self) -> bool:
        """Whether all scores are equal, so that there is no top."""
        return bool(np.ptp(self.scores) == 0.0)

    def rows(self) -> dict[str, str]:
        """Rates by their names; without an order of the samples only those of the threshold."""
        from sklearn.metrics import roc_auc_score

        from attop.metrics import positives_at_top, tpr_at_fpr

        positive, scores = self.positive, self.scores
        weights = {"sample_weight": self.weight}
        rows = {
            "samples held out": f"{len(scores)} ({int(positive.sum())} positive)",
            "TPR at its threshold": f"{self._share_called(positive):.3f}",
            "FPR at its threshold": f"{self._share_called(~positive):.4f}",
        }
        if self.tells_nothing:
            return rows
        return {
            **rows,
            "TPR above all negatives": f"{positives_at_top(positive, scores, **weights):.3f}",
            "TPR at FPR 0.01": f"{tpr_at_fpr(positive, scores, 0.01, **weights):.3f}",
            "TPR at FPR 0.05": f"{tpr_at_fpr(positive, scores, 0.05, **weights):.3f}",
            "AUC": f"{roc_auc_score(positive, scores, **weights):.4f}",
        }

    def _share_called(self, rows: NDArray[np.bool_]) -> float:
        weight = None if self.weight is None else self.weight[rows]
        return float(np.average(self.called[rows], weights=weight))

    def thresholds(self) -> list[dict[str, str]]:
        """For each rate of false positives the lowest threshold that keeps it."""
        from sklearn.metrics import roc_curve

        fpr, tpr, scores = roc_curve(
            self.positive, self.scores, sample_weight=self.weight, drop_intermediate=False
        )
        weight = np.ones(len(self.scores)) if self.weight is None else self.weight
        n_positives, n_negatives = weight[self.positive].sum(), weight[~self.positive].sum()
        rows = []
        for rate in _RATES:
            if 0.0 < rate < 1.0 / n_negatives:
                continue  # the same as none
            last = int(np.searchsorted(fpr, rate * (1 + 1e-9), side="right")) - 1
            hits, alarms = tpr[last] * n_positives, fpr[last] * n_negatives
            n_called = hits + alarms
            rows.append(
                {
                    "FPR at most": f"{rate:g}",
                    "score at least": f"{scores[last]:.4g}" if n_called else "none",
                    "FPR": f"{fpr[last]:.4f}",
                    "TPR": f"{tpr[last]:.3f}",
                    "precision": f"{hits / n_called:.3f}" if n_called else "",
                    "called positive": f"{100 * n_called / weight.sum():.2f} %",
                }
            )
        return rows


def assess(model: Any, samples: Samples) -> Assessment:
    """Scores and predictions of samples that the model has not seen."""
    scores, called = score(model, samples.X, samples.positive)
    return Assessment(samples.y == samples.positive, scores, called, samples.weight)


def score(model: Any, X: Any, positive: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores of the positive class, 0 at the threshold, and who is called positive."""
    from sklearn.utils import _safe_indexing

    from attop.metrics._response import positive_scores

    scores = positive_scores(model, X, positive).scores
    called = scores > 0.0
    ties = np.flatnonzero(scores == 0.0)  # which the model alone can tell
    if len(ties):
        called[ties] = model.predict(_safe_indexing(X, ties)) == positive
    return scores, called
