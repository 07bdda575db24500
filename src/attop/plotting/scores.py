"""Distributions of the scores of both classes, with the threshold between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attop.metrics._inputs import check_count, check_scores
from attop.plotting._common import COLORS, check_threshold, estimator_scores, new_or_given_ax


class _Sample(NamedTuple):
    """Scores of one class, with their weights and the sum of those."""

    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    total: float

    @classmethod
    def of(cls, scores: NDArray[np.float64], weights: Any) -> _Sample:
        weights = np.ones(len(scores)) if weights is None else weights
        return cls(scores, weights, float(np.sum(weights)))


class ScoreDistributionDisplay:
    """Histograms of the scores of both classes, with the threshold.

    Each histogram shows shares of its own class, so that few positives are as visible as
    many negatives, on a logarithmic axis, so that the few negatives above the threshold
    are visible too: the height of the last bars is what matters at the top.

    Use `from_estimator` or `from_predictions` to create one.

    Parameters
    ----------
    negative_scores, positive_scores : ndarray
        Scores of both classes.
    negative_weights, positive_weights : ndarray, default=None
        Weights of these scores, which count copies; 1 each by default.
    threshold : float, default=None
        Samples with a score of at least this are called positive.
    name : str, default=None
        Title of the plot.

    Attributes
    ----------
    negatives_, positives_ : matplotlib StepPatch
        The histograms.
    threshold_line_ : matplotlib Line2D or None
        The threshold.
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        Its figure.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from attop.plotting import ScoreDistributionDisplay
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> model = LogisticRegression().fit(X, y)
    >>> display = ScoreDistributionDisplay.from_estimator(model, X, y)
    """

    def __init__(
        self,
        *,
        negative_scores: NDArray[np.float64],
        positive_scores: NDArray[np.float64],
        negative_weights: NDArray[np.float64] | None = None,
        positive_weights: NDArray[np.float64] | None = None,
        threshold: float | None = None,
        name: str | None = None,
    ):
        self.negative_scores = negative_scores
        self.positive_scores = positive_scores
        self.negative_weights = negative_weights
        self.positive_weights = positive_weights
        self.threshold = threshold
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        threshold: float | str | None = "auto",
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        bins: int = 50,
        log: bool = True,
    ) -> ScoreDistributionDisplay:
        """Draw the scores of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted binary classifier with ``decision_function`` or ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
            Samples, better not those of the fit.
        y : array-like of shape (n_samples,)
            Labels.
        threshold : float, "auto" or None, default="auto"
            Threshold to draw; ``"auto"`` is that of the estimator, 0 for
            ``decision_function`` and 0.5 for ``predict_proba``.
        pos_label : int, float, bool or str, default=None
            Label of the positive class; by default the ``pos_label`` of `estimator` or of the
            one inside a pipeline or search, else ``estimator.classes_[1]``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which count copies of the samples; 1 each by default.
        name : str, default=None
            Title, the class of `estimator` by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        bins : int, default=50
            Number of bins.
        log : bool, default=True
            Whether the axis of the shares is logarithmic.

        Returns
        -------
        ScoreDistributionDisplay
            The display, drawn.
        """
        check_threshold(threshold, cls.__name__, automatic=True)
        response, pos_label = estimator_scores(estimator, X, pos_label, cls.__name__)
        return cls.from_predictions(
            y,
            response.scores,
            threshold=response.threshold if isinstance(threshold, str) else threshold,
            pos_label=pos_label,
            sample_weight=sample_weight,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            bins=bins,
            log=log,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        threshold: float | None = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        bins: int = 50,
        log: bool = True,
    ) -> ScoreDistributionDisplay:
        """Draw given scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_score : array-like of shape (n_samples,)
            Scores, larger for the positive class.
        threshold : float, default=None
            Threshold to draw.
        pos_label : int, float, bool or str, default=None
            Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which count copies of the samples; 1 each by default.
        name : str, default=None
            Title.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        bins : int, default=50
            Number of bins.
        log : bool, default=True
            Whether the axis of the shares is logarithmic.

        Returns
        -------
        ScoreDistributionDisplay
            The display, drawn.
        """
        check_threshold(threshold, cls.__name__, automatic=False)
        positive, score, weight = check_scores(y_true, y_score, pos_label, sample_weight)
        display = cls(
            negative_scores=score[~positive],
            positive_scores=score[positive],
            negative_weights=weight[~positive],
            positive_weights=weight[positive],
            threshold=threshold,
            name=name,
        )
        return display.plot(ax=ax, bins=bins, log=log)

    def plot(self, ax: Any = None, *, bins: int = 50, log: bool = True) -> ScoreDistributionDisplay:
        """Draw the histograms and the threshold.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        bins : int, default=50
            Number of bins.
        log : bool, default=True
            Whether the axis of the shares is logarithmic.

        Returns
        -------
        ScoreDistributionDisplay
            This display.
        """
        check_count(bins, "bins", type(self).__name__)
        ax = new_or_given_ax(ax, figsize=(6.5, 4.5))
        edges = self._edges(bins)
        negatives = _Sample.of(self.negative_scores, self.negative_weights)
        positives = _Sample.of(self.positive_scores, self.positive_weights)
        # A light area and a hatched one: apart for every eye, and in black and white.
        self.negatives_ = self._draw_class(
            ax, negatives, edges, "negatives", COLORS[0], facecolor=f"{COLORS[0]}50"
        )
        self.positives_ = self._draw_class(
            ax, positives, edges, "positives", COLORS[1], facecolor="none", hatch="////"
        )
        if log:
            ax.set_yscale("log")
            bars = np.r_[self.negatives_.get_data().values, self.positives_.get_data().values]
            one_copy = 1 / max(negatives.total, positives.total)
            ax.set_ylim(bottom=0.5 * min(one_copy, bars[bars > 0].min()))
        else:
            ax.set_ylim(bottom=0)
        self.threshold_line_ = self._draw_threshold(ax)
        ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        ax.set_xlabel("Score")
        ax.set_ylabel("Share of the class in each bin")
        # Above the axes, where it hides no bar.
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, title=self.name)
        ax.get_legend().set_alignment("left")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _edges(self, bins: int) -> NDArray[np.float64]:
        """Edges of the bins, one of them at the threshold, so that no bar lies across it."""
        scores = np.concatenate([self.negative_scores, self.positive_scores])
        low, high = scores.min(), scores.max()
        if low == high:
            low, high = low - 0.5, high + 0.5
        if self.threshold is None or not low < self.threshold < high:
            return np.linspace(low, high, bins + 1)
        n_below = int(np.clip(round(bins * (self.threshold - low) / (high - low)), 1, bins - 1))
        below = np.linspace(low, self.threshold, n_below + 1)
        return np.r_[below, np.linspace(self.threshold, high, bins - n_below + 1)[1:]]

    def _draw_class(
        self, ax: Any, sample: _Sample, edges: Any, label: str, color: str, **style: Any
    ) -> Any:
        """Histogram of one class, with its size and rate in the legend."""
        counts, _ = np.histogram(sample.scores, edges, weights=sample.weights)
        label = f"{_count_in_words(sample.total)} {label}"
        if self.threshold is not None:
            share = np.average(sample.scores >= self.threshold, weights=sample.weights)
            label += f", {100 * share:.3g} % called positive"
        return ax.stairs(
            counts / sample.total,
            edges,
            baseline=1e-12,  # zero is nowhere on a logarithmic axis
            label=label,
            fill=True,
            edgecolor=color,
            linewidth=1.5,
            **style,
        )

    def _draw_threshold(self, ax: Any) -> Any:
        if self.threshold is None:
            return None
        return ax.axvline(
            self.threshold,
            color="black",
            linestyle="--",
            linewidth=1.4,
            label=f"threshold {self.threshold:.3g}",
        )


def _count_in_words(total: float) -> str:
    """A number of samples, or a sum of weights, for the legend: 12,345 or 2.75."""
    whole = total == round(total) or total >= 100
    return f"{total:,.0f}" if whole else f"{total:.3g}"
