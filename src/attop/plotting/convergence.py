"""Convergence: primal and dual objective on their way to the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attop.plotting._common import MARKERS, import_pyplot

if TYPE_CHECKING:
    from attop.solvers.solution import History

_X_LABELS = {"time": "time [s]", "step": "step"}
#: Least height of a panel above and below the optimum, relative to it.
_LEAST_RANGE = 0.3
#: Markers on a line, so that it can be told apart without its colour.
_MARKERS_PER_LINE = 7
#: Colours that differ in lightness too, for black and white (from Okabe and Ito).
_COLORS = ("#000000", "#D55E00", "#56B4E9", "#009E73", "#CC79A7", "#E69F00", "#0072B2")
#: How far back the axis of time reaches from its end.
_TIME_SPAN = 1e3


class ConvergenceDisplay:
    """Primal and dual objective against time or steps, one panel per formulation.

    The primal value of a solver is a solid line, its dual value a dashed one; the optimum
    lies between them.  Where both meet, the problem is solved; where a gap remains, it is
    not.  Solvers differ by colour and marker, so that the plot can be read in black and
    white.

    Use `from_histories` or `from_estimators` to create one.

    Parameters
    ----------
    histories : mapping of str to mapping of str to History
        For each panel, by its title, the history of each solver, by its name.

    Attributes
    ----------
    lines_ : dict
        Lines drawn, by panel, solver and ``"primal"`` or ``"dual"``.
    axes_ : ndarray of matplotlib Axes
        The panels.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from attop import TopPush
    >>> from attop.datasets import load_ionosphere
    >>> from attop.plotting import ConvergenceDisplay
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = TopPush().fit(X, y)
    >>> display = ConvergenceDisplay.from_estimators({"TopPush": {"exact": model}})
    """

    def __init__(self, *, histories: Mapping[str, Mapping[str, History]]):
        self.histories = histories

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, Mapping[str, History]],
        *,
        x: str = "time",
        axes: Any = None,
    ) -> ConvergenceDisplay:
        """Draw histories of solvers.

        Parameters
        ----------
        histories : mapping of str to mapping of str to History
            For each panel, by its title, the history of each solver, by its name.  A
            history may have no dual values (NaN).
        x : {"time", "step"}, default="time"
            The horizontal axis.  Steps of different solvers differ in cost.
        axes : sequence of matplotlib Axes, default=None
            One for each panel; a new figure by default.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        return cls(histories=histories).plot(x=x, axes=axes)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Mapping[str, Any]],
        *,
        x: str = "time",
        axes: Any = None,
    ) -> ConvergenceDisplay:
        """Draw the histories of fitted estimators.

        Parameters
        ----------
        estimators : mapping of str to mapping of str to estimator
            For each panel, by its title, the fitted estimators, by the name of the solver.
        x : {"time", "step"}, default="time"
            The horizontal axis.
        axes : sequence of matplotlib Axes, default=None
            One for each panel; a new figure by default.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        histories = {
            title: {solver: estimator.history_ for solver, estimator in panel.items()}
            for title, panel in estimators.items()
        }
        return cls.from_histories(histories, x=x, axes=axes)

    def plot(self, *, x: str = "time", axes: Any = None) -> ConvergenceDisplay:
        """Draw the display.

        Parameters
        ----------
        x : {"time", "step"}, default="time"
            The horizontal axis.
        axes : sequence of matplotlib Axes, default=None
            One for each panel; a new figure by default.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.
        """
        if x not in _X_LABELS:
            raise ValueError(
                "The 'x' parameter of ConvergenceDisplay must be 'time' or 'step'. "
                f"Got {x!r} instead."
            )
        axes = self._axes(axes)
        solvers = list(dict.fromkeys(name for panel in self.histories.values() for name in panel))
        self.lines_: dict[str, dict[str, dict[str, Any]]] = {}
        for ax, (title, panel) in zip(axes, self.histories.items()):
            self.lines_[title] = {
                name: _draw(ax, getattr(history, x), history, solvers.index(name))
                for name, history in panel.items()
            }
            ax.set(title=title, xlabel=_X_LABELS[x], ylim=_limits(panel))
            _scale_x(ax, x, max(getattr(history, x)[-1] for history in panel.values()))
            ax.grid(color="0.9", linewidth=0.6)
            ax.set_axisbelow(True)
        axes[0].set_ylabel("objective")
        self.axes_, self.figure_ = axes, axes[0].figure
        _add_legend(self.figure_, solvers)
        return self

    def _axes(self, axes: Any) -> NDArray[Any]:
        n_panels = len(self.histories)
        if axes is None:
            size = (1.0 + 3.1 * n_panels, 3.9)
            axes = import_pyplot().subplots(
                1, n_panels, figsize=size, layout="constrained", squeeze=False
            )[1]
        axes = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(axes) != n_panels:
            raise ValueError(
                f"The 'axes' parameter of ConvergenceDisplay must hold {n_panels} axes, one for "
                f"each panel. Got {len(axes)} instead."
            )
        return axes


def _draw(ax: Any, x: NDArray[Any], history: History, number: int) -> dict[str, Any]:
    """Draw the primal and, if there is one, the dual line of a solver."""
    lines = {}
    for kind, linestyle in (("primal", "-"), ("dual", "--")):
        values = getattr(history, kind)
        if np.isfinite(values).any():
            lines[kind] = ax.plot(
                x, values, linestyle=linestyle, markevery=_marked(x), **_solver_style(number)
            )[0]
    return lines


def _marked(x: NDArray[Any]) -> list[int]:
    """Where to put markers: evenly on a logarithmic axis, and at the end."""
    if len(x) <= 2 * _MARKERS_PER_LINE:
        return list(range(len(x)))
    places = np.geomspace(max(x[0], x[-1] / _TIME_SPAN), x[-1], _MARKERS_PER_LINE)
    indices = np.searchsorted(x, places).clip(max=len(x) - 1)
    return np.unique(indices).tolist()


def _scale_x(ax: Any, x: str, last: float) -> None:
    """A logarithmic axis; steps begin at 0."""
    if x == "time":
        ax.set(xscale="log", xlim=(last / _TIME_SPAN, 1.5 * last))
    else:
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(0.0, 1.5 * last)


def _solver_style(number: int) -> dict[str, Any]:
    return {
        "color": _COLORS[number % len(_COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 5.0,
        "linewidth": 1.6,
    }


def _limits(panel: Mapping[str, History]) -> tuple[float, float]:
    """Range around the optimum that holds the end of every line.

    The beginnings may lie far outside: a random point is orders of magnitude away.
    """
    best_primal = min(np.nanmin(history.primal) for history in panel.values())
    duals = [history.dual[np.isfinite(history.dual)] for history in panel.values()]
    optimum = max((values.max() for values in duals if len(values)), default=best_primal)
    ends = [history.primal[-1] for history in panel.values()]
    ends += [values[-1] for values in duals if len(values)]
    farthest = max(abs(end - optimum) for end in ends if np.isfinite(end))
    reach = max(1.5 * farthest, _LEAST_RANGE * abs(optimum), 1e-12)
    return optimum - reach, optimum + reach


def _add_legend(figure: Any, solvers: list[str]) -> None:
    """Name solvers and line styles once for all panels, below them."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", label=name, **_solver_style(number))
        for number, name in enumerate(solvers)
    ]
    handles.append(Line2D([], [], color="black", linestyle="-", label="primal"))
    handles.append(Line2D([], [], color="black", linestyle="--", label="dual"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
