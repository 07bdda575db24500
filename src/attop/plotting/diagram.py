"""Critical difference diagram: average ranks of methods, and which of them do not differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attop.plotting._common import import_pyplot
from attop.plotting._diagram_layout import (
    FONT_SIZE,
    GAP,
    GROUP_HEIGHT,
    LABEL_HEIGHT,
    MARGIN,
    TICK_HEIGHT,
    Layout,
    fit,
    halves,
    plan,
)
from attop.statistics import Comparison, compare, indistinct_groups, nemenyi_critical_difference


class CriticalDifferenceDisplay:
    """Average ranks on an axis, with bars that join methods which do not differ significantly.

    Rank 1, the best, is on the left.  A dot on a bar marks each method that belongs to it.
    Every label has a row of its own, so that labels never overlap, however many methods
    there are and however close their ranks.

    Use `from_scores`, `from_comparison` or `from_ranks` to create one.

    Parameters
    ----------
    ranks : ndarray of shape (n_methods,)
        Average ranks.
    names : sequence of str
        Names of the methods.
    groups : sequence of tuple of int
        Groups of methods that do not differ significantly.
    critical_difference : float, default=None
        Length of the ruler; there is none without it.
    caption : str, default=""
        What was compared and tested, below the diagram.

    Attributes
    ----------
    labels_ : list of matplotlib Text
        Labels of the methods, in the order of `names`.
    bars_ : list of matplotlib Line2D
        One bar for each group.
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        Its figure.

    Examples
    --------
    >>> from attop.plotting import CriticalDifferenceDisplay
    >>> scores = [[0.9, 0.8, 0.1], [0.8, 0.9, 0.2], [0.9, 0.7, 0.3], [0.6, 0.8, 0.4]]
    >>> display = CriticalDifferenceDisplay.from_scores(scores, ["A", "B", "C"])
    >>> display.figure_.savefig("diagram.svg")  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        ranks: NDArray[np.float64],
        names: Sequence[str],
        groups: Sequence[tuple[int, ...]],
        critical_difference: float | None = None,
        caption: str = "",
    ):
        self.ranks = ranks
        self.names = names
        self.groups = groups
        self.critical_difference = critical_difference
        self.caption = caption

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        names: Sequence[str] | None = None,
        *,
        alpha: float = 0.05,
        test: str = "nemenyi",
        title: str = "",
        rows: str | None = None,
        ax: Any = None,
    ) -> CriticalDifferenceDisplay:
        """Compare methods by their scores and draw the outcome.

        Parameters
        ----------
        scores : array-like of shape (n_datasets, n_methods)
            Scores, higher is better; a DataFrame names the methods by its columns.
        names : sequence of str, default=None
            Names of the methods.
        alpha : float, default=0.05
            Level of significance.
        test : {"nemenyi", "wilcoxon-holm"}, default="nemenyi"
            The post-hoc test; see `attop.statistics.compare`.
        title : str, default=""
            Title above the diagram.
        rows : str, default=None
            What the rows of the scores are, for the caption, such as "3 data sets x 5 seeds";
            by default each is a data set.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure of the right size by default.

        Returns
        -------
        CriticalDifferenceDisplay
            The display, drawn.
        """
        comparison = compare(scores, names, alpha=alpha, test=test)
        return cls.from_comparison(comparison, title=title, rows=rows, ax=ax)

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, title: str = "", rows: str | None = None, ax: Any = None
    ) -> CriticalDifferenceDisplay:
        """Draw the outcome of `attop.statistics.compare`.

        Parameters
        ----------
        comparison : Comparison
            The outcome.
        title : str, default=""
            Title above the diagram.
        rows : str, default=None
            What was compared on, for the caption; by default so many data sets.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure of the right size by default.

        Returns
        -------
        CriticalDifferenceDisplay
            The display, drawn.
        """
        return cls(
            ranks=comparison.ranks,
            names=comparison.names,
            groups=comparison.groups,
            critical_difference=comparison.critical_difference,
            caption=_caption(comparison, rows),
        ).plot(title=title, ax=ax)

    @classmethod
    def from_ranks(
        cls,
        ranks: ArrayLike,
        names: Sequence[str],
        *,
        n_datasets: int,
        alpha: float = 0.05,
        title: str = "",
        ax: Any = None,
    ) -> CriticalDifferenceDisplay:
        """Draw average ranks, such as published ones, with the groups of the Nemenyi test.

        Parameters
        ----------
        ranks : array-like of shape (n_methods,)
            Average ranks, 1 is the best.
        names : sequence of str
            Names of the methods.
        n_datasets : int
            Number of data sets over which the ranks were averaged.
        alpha : float, default=0.05
            Level of significance.
        title : str, default=""
            Title above the diagram.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure of the right size by default.

        Returns
        -------
        CriticalDifferenceDisplay
            The display, drawn.
        """
        values = _check_ranks(ranks, names)
        difference = nemenyi_critical_difference(len(values), n_datasets, alpha=alpha)
        groups = indistinct_groups(values, np.abs(values[:, None] - values) >= difference)
        return cls(
            ranks=values,
            names=names,
            groups=groups,
            critical_difference=difference,
            caption=f"{n_datasets} data sets, Nemenyi at {alpha:g}",
        ).plot(title=title, ax=ax)

    def plot(self, *, title: str = "", ax: Any = None) -> CriticalDifferenceDisplay:
        """Draw the display.

        Parameters
        ----------
        title : str, default=""
            Title above the diagram.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure of the right size by default.  In given axes that are
            too small everything shrinks, the font too.

        Returns
        -------
        CriticalDifferenceDisplay
            The display, drawn.
        """
        plt = import_pyplot()
        ranks = _check_ranks(self.ranks, self.names)
        layout = plan(ranks, self.names, self.groups, self.critical_difference, title, self.caption)
        if ax is None:
            figure = plt.figure(figsize=(layout.width, layout.height))
            ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        layout, scale = fit(layout, ax)
        ax.set(xlim=(0.0, layout.width), ylim=(layout.height, 0.0))
        ax.axis("off")
        self.ax_, self.figure_ = ax, ax.figure
        pen = _Pen(ax, scale)
        _draw_heading(pen, layout, title, self.caption)
        _draw_axis(pen, layout, len(self.ranks), self.critical_difference)
        self.bars_ = _draw_groups(pen, layout, self.ranks, self.groups)
        self.labels_ = _draw_labels(pen, layout, self.ranks)
        return self


def _caption(comparison: Comparison, rows: str | None) -> str:
    """What was tested; the post-hoc test only where the Friedman test let it speak."""
    pvalue = comparison.friedman.f_pvalue
    test = "Nemenyi" if comparison.test == "nemenyi" else "Wilcoxon-Holm"
    verdict = test if pvalue <= comparison.alpha else "no difference"
    shown = f"p = {pvalue:.2g}" if pvalue >= 1e-3 else "p < 0.001"
    rows = f"{comparison.n_datasets} data sets" if rows is None else rows
    return f"{rows}, Friedman test {shown}, {verdict} at {comparison.alpha:g}"


class _Pen(NamedTuple):
    """Axes in inches, and how much smaller than full scale they show things."""

    ax: Any
    scale: float

    def line(self, xs: Sequence[float], ys: Sequence[float], width: float, **style: Any) -> Any:
        """Draw a line of `width` points."""
        style = {"color": "black", "solid_capstyle": "butt", "clip_on": False} | style
        return self.ax.plot(xs, ys, linewidth=width * self.scale, **style)[0]

    def text(self, x: float, y: float, text: str, **style: Any) -> Any:
        """Write plain text; a dollar is no formula."""
        size = FONT_SIZE * self.scale
        return self.ax.text(x, y, text, fontsize=size, parse_math=False, **style)


def _draw_heading(pen: _Pen, layout: Layout, title: str, caption: str) -> None:
    middle = layout.width / 2
    if title:
        pen.text(middle, MARGIN, title, ha="center", va="top", fontweight="bold")
    if caption:
        pen.text(middle, layout.height - MARGIN, caption, ha="center", va="bottom", color="0.3")


def _draw_axis(pen: _Pen, layout: Layout, n_methods: int, difference: float | None) -> None:
    """The axis of ranks and, above its beginning, the critical difference as a ruler."""
    y = layout.axis_y
    pen.line([layout.x_of(1), layout.x_of(n_methods)], [y, y], 1.2)
    for rank in range(1, n_methods + 1):
        x = layout.x_of(rank)
        pen.line([x, x], [y - 0.08, y], 1.2)
        pen.text(x, y - 0.1, str(rank), ha="center", va="bottom")
    for rank in range(1, n_methods):
        x = layout.x_of(rank + 0.5)
        pen.line([x, x], [y - 0.04, y], 0.8)
    if difference is None:
        return
    y -= TICK_HEIGHT + 0.12
    ends = [layout.x_of(1), layout.x_of(1 + difference)]
    pen.line(ends, [y, y], 1.2)
    for x in ends:
        pen.line([x, x], [y - 0.05, y + 0.05], 1.2)
    pen.text(ends[0], y - 0.07, f"CD = {difference:.2f}", ha="left", va="bottom")


def _draw_groups(
    pen: _Pen, layout: Layout, ranks: NDArray[np.float64], groups: Sequence[tuple[int, ...]]
) -> list[Any]:
    """A bar for each group, with a dot for each of its methods."""
    bars = []
    for row, group in zip(layout.group_rows, groups):
        y = layout.axis_y + GROUP_HEIGHT * (row + 1)
        xs = sorted(layout.x_of(ranks[i]) for i in group)
        bars.append(pen.line([xs[0] - 0.04, xs[-1] + 0.04], [y, y], 3.5, zorder=3))
        dot = {"marker": "o", "markersize": 5.5 * pen.scale, "linestyle": "none", "zorder": 4}
        pen.line(xs, [y] * len(xs), 1.0, **dot)
    return bars


def _draw_labels(pen: _Pen, layout: Layout, ranks: NDArray[np.float64]) -> list[Any]:
    """A label in a row of its own for each method, led to its rank; no leaders cross."""
    labels: dict[int, Any] = {}
    left, right = halves(ranks)
    sides = ((left, layout.x_of(1), -1, "right"), (right, layout.x_of(len(ranks)), 1, "left"))
    for methods, edge, direction, alignment in sides:
        for row, i in enumerate(methods):
            x, y = layout.x_of(ranks[i]), layout.labels_y + LABEL_HEIGHT * row
            end = edge + direction * GAP / 2
            pen.line([x, x, end], [layout.axis_y, y, y], 0.8, solid_joinstyle="miter")
            place = edge + direction * GAP
            labels[i] = pen.text(place, y, layout.labels[i], ha=alignment, va="center_baseline")
    return [labels[i] for i in range(len(ranks))]


def _check_ranks(ranks: ArrayLike, names: Sequence[str]) -> NDArray[np.float64]:
    values, n_methods = np.asarray(ranks, dtype=np.float64), len(names)
    fits = n_methods >= 2 and values.shape == (n_methods,)
    if not fits or not ((values >= 1) & (values <= n_methods)).all():
        raise ValueError(
            "The 'ranks' parameter of CriticalDifferenceDisplay must hold the average rank of each "
            f"of two or more methods, between 1 and their number ({n_methods} names). "
            f"Got {values.tolist()} instead."
        )
    return values
