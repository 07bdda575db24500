"""ROC curve near the top: logarithmic axis, operating point marked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_curve

from attop.calibration import NeymanPearsonBands, neyman_pearson_bands
from attop.metrics._inputs import check_scores, check_weight
from attop.plotting._common import (
    COLORS,
    LINESTYLES,
    MARKERS,
    check_threshold,
    estimator_scores,
    new_or_given_ax,
)

_CURVE = "attop-top-roc-curve"  # marks our curves on an axis that may hold other things

_MARK: dict[str, Any] = {"markersize": 8, "markerfacecolor": "white", "markeredgewidth": 2}


class OperatingPoint(NamedTuple):
    """Rates of one classifier."""

    fpr: float
    tpr: float


class TopROCDisplay:
    """ROC curve with a logarithmic axis of the false positive rate.

    On the usual axes, the rates that matter at the top are squeezed into a corner.  Here
    each power of ten gets the same room.  A false positive rate of zero has a place of
    its own, the left edge, labelled 0: the curve there is the share of positives above
    all negatives.  The curve is drawn in steps, so that its height is the true positive
    rate of a threshold which exists and whose false positive rate is no larger.

    Use `from_estimator` or `from_predictions` to create one; several displays may share
    an axis.

    Parameters
    ----------
    fpr, tpr : ndarray
        Rates of all thresholds, both increasing from 0 to 1.
    n_negatives : float
        Number of negatives, or the sum of their weights: the axis has room for a rate of
        ``1 / n_negatives``, and for the smallest rate above zero where that is smaller.
    operating_point : tuple of two floats, default=None
        False and true positive rate to be marked.
    name : str, default=None
        Name of the curve in the legend.
    bands : NeymanPearsonBands, default=None
        NP-ROC bands to be drawn, of `attop.calibration.neyman_pearson_bands`.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve.
    band_ : matplotlib PolyCollection or None
        The bands.
    point_ : matplotlib Line2D or None
        The mark of the operating point.
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        Its figure.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from attop.plotting import TopROCDisplay
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> display = TopROCDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
    """

    def __init__(
        self,
        *,
        fpr: NDArray[np.float64],
        tpr: NDArray[np.float64],
        n_negatives: float,
        operating_point: tuple[float, float] | None = None,
        name: str | None = None,
        bands: NeymanPearsonBands | None = None,
    ):
        self.fpr = fpr
        self.tpr = tpr
        self.n_negatives = n_negatives
        self.operating_point = operating_point
        self.name = name
        self.bands = bands

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        threshold: float | str | None = "auto",
        bands: float | None = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> TopROCDisplay:
        """Draw the curve of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted binary classifier with ``decision_function`` or ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
            Samples, better not those of the fit.
        y : array-like of shape (n_samples,)
            Labels.
        threshold : float, "auto" or None, default="auto"
            Where to mark the operating point: where ``estimator.predict`` is, at
            scores of at least this number, or not at all.
        bands : float, default=None
            Confidence of the NP-ROC bands to be drawn, such as 0.95: the true positive rates
            of thresholds whose false positive rate is *promised*, not observed.  The samples
            must not be those of the fit.
        pos_label : int, float, bool or str, default=None
            Label of the positive class; by default the ``pos_label`` of `estimator` or of the
            one inside a pipeline or search, else ``estimator.classes_[1]``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which count copies of the samples; 1 each by default.  In the bands, a
            sample counts once, or not at all if its weight is zero.
        name : str, default=None
            Name in the legend, the class of `estimator` by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **kwargs : dict
            Passed to matplotlib's ``plot`` for the curve.

        Returns
        -------
        TopROCDisplay
            The display, drawn.
        """
        check_threshold(threshold, cls.__name__, automatic=True)
        response, pos_label = estimator_scores(estimator, X, pos_label, cls.__name__)
        given = None if threshold == "auto" else threshold
        display = cls._of_scores(y, response.scores, given, pos_label, sample_weight)
        if threshold == "auto":
            called_positive = np.asarray(estimator.predict(X)) == pos_label
            weight = check_weight(sample_weight, response.scores)
            display.operating_point = _rates(np.asarray(y) == pos_label, called_positive, weight)
        display.name = type(estimator).__name__ if name is None else name
        display.bands = _bands_of(y, response.scores, pos_label, sample_weight, bands)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        threshold: float | None = None,
        bands: float | None = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> TopROCDisplay:
        """Draw the curve of given scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_score : array-like of shape (n_samples,)
            Scores, larger for the positive class.
        threshold : float, default=None
            Marks the operating point of scores of at least this number.
        bands : float, default=None
            Confidence of the NP-ROC bands to be drawn, such as 0.95: the true positive rates
            of thresholds whose false positive rate is *promised*, not observed.  The samples
            must not be those of the fit.
        pos_label : int, float, bool or str, default=None
            Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which count copies of the samples; 1 each by default.  In the bands, a
            sample counts once, or not at all if its weight is zero.
        name : str, default=None
            Name in the legend.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **kwargs : dict
            Passed to matplotlib's ``plot`` for the curve.

        Returns
        -------
        TopROCDisplay
            The display, drawn.
        """
        check_threshold(threshold, cls.__name__, automatic=False)
        display = cls._of_scores(y_true, y_score, threshold, pos_label, sample_weight)
        display.name = name
        display.bands = _bands_of(y_true, y_score, pos_label, sample_weight, bands)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def _of_scores(
        cls, y_true: Any, y_score: Any, threshold: Any, pos_label: Any, sample_weight: Any
    ) -> TopROCDisplay:
        positive, score, weight = check_scores(y_true, y_score, pos_label, sample_weight)
        fpr, tpr, _ = roc_curve(positive, score, sample_weight=weight, drop_intermediate=False)
        point = None if threshold is None else _rates(positive, score >= threshold, weight)
        return cls(
            fpr=fpr,
            tpr=tpr,
            n_negatives=float(weight[~positive].sum()),
            operating_point=point,
        )

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> TopROCDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        name : str, default=None
            Name in the legend, if not that of the display.
        **kwargs : dict
            Passed to matplotlib's ``plot`` for the curve, such as ``color``.

        Returns
        -------
        TopROCDisplay
            This display.
        """
        ax = new_or_given_ax(ax, figsize=(6.0, 4.5))
        index = sum(line.get_gid() == _CURVE for line in ax.lines)
        left = 0.5 * min(1 / self.n_negatives, self.fpr[self.fpr > 0].min(initial=1.0))
        if index:
            left = min(left, ax.get_xlim()[0])
        style = {
            "color": COLORS[index % len(COLORS)],
            "linestyle": LINESTYLES[index % len(LINESTYLES)],
            "linewidth": 1.8,
            "label": self._label(name),
            **kwargs,
        }
        if self.operating_point is not None:
            # On the curve itself no point is marked, but the legend shows the marker.
            style = {**_MARK, "marker": MARKERS[index % len(MARKERS)], "markevery": [], **style}
        # Zero is drawn far outside, so that the curve always comes in at the left edge.
        x = np.where(self.fpr > 0, self.fpr, np.finfo(float).tiny)
        (self.line_,) = ax.plot(x, self.tpr, drawstyle="steps-post", gid=_CURVE, **style)
        self.band_ = self._draw_bands(ax)
        self._set_axes(ax, left)
        self.point_ = self._mark_operating_point(ax)
        if style["label"] is not None or self.bands is not None:
            ax.legend(loc="best", fontsize="small", handlelength=4)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _label(self, name: str | None) -> str | None:
        """Legend of the curve: its name and the rates of the operating point."""
        name = self.name if name is None else name
        if self.operating_point is None:
            return name
        fpr, tpr = self.operating_point
        rates = f"TPR {tpr:.2f} at FPR {fpr:.2g}"
        return rates if name is None else f"{name} ({rates})"

    def _draw_bands(self, ax: Any) -> Any:
        """Fill between the bands, in steps as the curve, up to the rate 1."""
        if self.bands is None:
            return None
        fpr, lower, upper, *_ = self.bands
        return ax.fill_between(
            np.append(fpr, 1.0),
            np.append(lower, lower[-1]),
            np.append(upper, upper[-1]),
            step="post",
            color=self.line_.get_color(),
            alpha=0.2,
            linewidth=0.0,
            label=f"NP-ROC band, confidence {self.bands.confidence:g}",
        )

    def _mark_operating_point(self, ax: Any) -> Any:
        """Mark the operating point, a rate of zero at the left edge wherever that moves."""
        if self.operating_point is None:
            return None
        fpr, tpr = self.operating_point
        (point,) = ax.plot(
            fpr,
            tpr,
            color=self.line_.get_color(),
            marker=self.line_.get_marker(),
            linestyle="none",
            transform=ax.transData if fpr > 0 else ax.get_yaxis_transform(),
            clip_on=False,
            zorder=3,
            **_MARK,
        )
        return point

    @staticmethod
    def _set_axes(ax: Any, left: float) -> None:
        """Logarithmic axis from `left`, which stands for zero, to 1."""
        from matplotlib.ticker import NullFormatter

        ax.set_xscale("log")
        ax.set_xlim(left, 1.0)
        ax.set_ylim(0.0, 1.02)
        ax.xaxis.set_minor_formatter(NullFormatter())
        # Powers of ten that would crowd the label of zero, or each other, are left out: twelve
        # have room side by side.
        decades = [10.0**e for e in range(0, -300, -1) if 10.0**e > 1.7 * left]
        decades = decades[:: 1 + len(decades) // 13][::-1]
        ax.set_xticks([left, *decades], ["0", *(_decade_label(d) for d in decades)])
        ax.set_xlabel("False positive rate (logarithmic, zero at the left edge)")
        ax.set_ylabel("True positive rate")
        ax.grid(True, which="major", alpha=0.3)


def _bands_of(
    y_true: Any, y_score: Any, pos_label: Any, sample_weight: Any, confidence: float | None
) -> NeymanPearsonBands | None:
    if confidence is None:
        return None
    return neyman_pearson_bands(
        y_true, y_score, confidence=confidence, pos_label=pos_label, sample_weight=sample_weight
    )


def _decade_label(decade: float) -> str:
    if decade >= 0.001:
        return f"{decade:g}"
    return f"$10^{{{round(np.log10(decade))}}}$"


def _rates(
    positive: NDArray[np.bool_],
    called_positive: NDArray[np.bool_],
    weight: NDArray[np.float64],
) -> OperatingPoint:
    """False and true positive rate of a classification."""
    fpr, tpr = (
        float(np.average(called_positive[members], weights=weight[members]))
        for members in (~positive, positive)
    )
    return OperatingPoint(fpr, tpr)
