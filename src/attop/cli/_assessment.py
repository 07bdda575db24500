"""How a model does on samples held out: its rates, and what other thresholds would give."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TELLS_NOTHING = (
    "The model gives all samples the same score, which tells nothing. Try --search, a larger --C, "
    "--tau or --K, another --method, or features that tell more."
)
#: False positive rates of the table of thresholds.
_RATES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


class Assessment(NamedTuple):
    """Samples held out: who is positive, their scores, and who is called positive."""

    positive: NDArray[np.bool_]
    scores: NDArray[np.float64]
    called: NDArray[np.bool_]

    @property
    def tells_nothing(self) -> bool:
        """Whether all scores are equal, so that there is no top."""
        return bool(np.ptp(self.scores) == 0.0)

    def rows(self) -> dict[str, str]:
        """Rates by their names; without an order of the samples only those of the threshold."""
        from sklearn.metrics import roc_auc_score

        from attop.metrics import positives_at_top, tpr_at_fpr

        positive, scores = self.positive, self.scores
        rows = {
            "samples held out": f"{len(scores)} ({int(positive.sum())} positive)",
            "TPR at its threshold": f"{self.called[positive].mean():.3f}",
            "FPR at its threshold": f"{self.called[~positive].mean():.4f}",
        }
        if self.tells_nothing:
            return rows
        return {
            **rows,
            "TPR above all negatives": f"{positives_at_top(positive, scores):.3f}",
            "TPR at FPR 0.01": f"{tpr_at_fpr(positive, scores, 0.01):.3f}",
            "TPR at FPR 0.05": f"{tpr_at_fpr(positive, scores, 0.05):.3f}",
            "AUC": f"{roc_auc_score(positive, scores):.4f}",
        }

    def thresholds(self) -> list[dict[str, str]]:
        """For each rate of false positives the lowest threshold that keeps it."""
        from sklearn.metrics import roc_curve

        fpr, tpr, scores = roc_curve(self.positive, self.scores, drop_intermediate=False)
        n_positives = int(self.positive.sum())
        n_negatives = len(self.positive) - n_positives
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
                    "called positive": f"{100 * n_called / len(self.positive):.2f} %",
                }
            )
        return rows


def assess(model: Any, X: Any, y: NDArray[Any], positive: Any) -> Assessment:
    """Scores and predictions of samples whose labels are `y`."""
    scores, called = score(model, X, positive)
    return Assessment(y == positive, scores, called)


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
